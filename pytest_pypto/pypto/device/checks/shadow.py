"""Shadow memory of one kernel on one core.

The bytes that handles cover are cut into segments at every boundary of a handle. A segment's state is an object; an
operation is a transition from the states of the segments it touches to new ones. Transitions are worked out exactly,
byte by byte, the first time a combination of states is met, and looked up afterwards, so that a loop pays for its
first rounds only. What a look-up cannot repeat - marking writes as read, reporting - is done once per run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ..findings import Finding, FindingKind, Site
from ..machine.bind import Part
from ..machine.dtypes import Array
from ..machine.tiles import Tile
from .state import Record, State, compressed

Cells = list[State]


@dataclass
class Verdict:
    """The result of one transition: new states (or the holes of a message), writes that were read, what to report."""

    out: Any
    read: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Fault:
    """A finding that still lacks the agent."""

    kind: FindingKind
    message: str
    space: str
    addresses: tuple[tuple[int, int], ...]
    other: int | None = None


class Shadow:
    """Segments, write records and transitions of one kernel instance."""

    def __init__(self, ranges: Sequence[tuple[str, int, int]], place: Callable[..., Site]) -> None:
        self.place = place
        self.segments: list[tuple[str, int, int]] = []
        self._first: dict[tuple[str, int], int] = {}
        by_space: dict[str, list[tuple[int, int]]] = {}
        for space, lo, hi in ranges:
            by_space.setdefault(space, []).append((lo, hi))
        for space, spans in by_space.items():
            cuts = sorted({x for span in spans for x in span})
            for lo, hi in pairwise(cuts):
                if any(a <= lo and hi <= b for a, b in spans):
                    self._first[(space, lo)] = len(self.segments)
                    self.segments.append((space, lo, hi))
        self.records: list[Record] = [Record(-1, "", (0, 0), True)]
        self._record_ids: dict[Record, int] = {}
        self._states: dict[Any, State] = {}
        self.transitions: list[Transition] = []
        self.read_sites: set[int] = set()
        self.written_sites: set[int] = set()

    # ---- runs

    def initial(self) -> Cells:
        """States at the start of a task: nothing has a value."""
        return [self._intern(i, State(hi - lo, 0, True), (0, True)) for i, (_, lo, hi) in enumerate(self.segments)]

    def begin(self) -> None:
        """Forget what was reported and marked in the run before."""
        for t in self.transitions:
            t.seen.clear()
        self.read_sites.clear()
        self.written_sites.clear()

    # ---- pieces

    def of(self, tile: Tile) -> range:
        """Numbers of the segments of a tile's buffer."""
        return self.span(tile.space, *tile.root)

    def span(self, space: str, lo: int, hi: int) -> range:
        """Numbers of the segments between two boundaries."""
        first = self._first[(space, lo)]
        last = first
        while last < len(self.segments) and self.segments[last][0] == space and self.segments[last][1] < hi:
            last += 1
        return range(first, last)

    def record(self, site: int, tile: Tile, exempt: bool) -> int:
        """The number of the write record of `site` on the buffer of `tile`."""
        key = Record(site, tile.space, tile.root, exempt, tile.form)
        if key not in self._record_ids:
            self._record_ids[key] = len(self.records)
            self.records.append(key)
        return self._record_ids[key]

    def _intern(self, segment: int, state: State, key: object) -> State:
        return self._states.setdefault((segment, key), state)

    def state(self, segment: int, writer: int, undefined: bool) -> State:
        """The uniform state of a segment."""
        _, lo, hi = self.segments[segment]
        return self._intern(segment, State(hi - lo, writer, undefined), (writer, undefined))

    def state_of(self, segment: int, writer: Array, undefined: Array) -> State:
        """The state of a segment from one entry per byte."""
        state, key = compressed(len(writer), writer, undefined)
        return self._intern(segment, state, key)

    def transition(self, site: int, **what: Any) -> Transition:
        """A transition of `site`; see `Transition`."""
        made = Transition(self, site, **what)
        self.transitions.append(made)
        return made


@dataclass(eq=False)
class Transition:
    """How one operation on certain tiles changes the shadow.

    `pairs` maps read part i to the written part that receives its elements, for copies. `message` means the holes of
    the first read part are the result (a push) instead of new states. `loads` are holes given from outside (a pop).
    """

    shadow: Shadow
    site: int
    reads: Sequence[Part] = ()
    writes: Sequence[Part] = ()
    scratch: Sequence[Tile] = ()
    copies: bool = False
    keeps: bool = False
    merges: bool = False
    message: bool = False
    exempt: bool = False
    turned: bool = False
    holes: Array | None = None
    seen: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shadow = self.shadow
        self._memo: dict[Any, Verdict] = {}
        touched: dict[int, None] = {}
        for part in self.reads:
            touched |= dict.fromkeys(shadow.of(part.tile))
        out: dict[int, None] = {}
        for tile in (*self.scratch, *(p.tile for p in self.writes)):
            out |= dict.fromkeys(shadow.of(tile))
            if self.keeps or windowed(tile):
                touched |= dict.fromkeys(shadow.of(tile))
        self.keys, self.outs = tuple(touched), tuple(out)
        self.get: Callable[[Cells], Any] = itemgetter(*self.keys) if self.keys else lambda cells: None
        self.records = [shadow.record(self.site, p.tile, self.exempt) for p in self.writes]
        self.scratch_records = [shadow.record(self.site, t, True) for t in self.scratch]

    @property
    def constant(self) -> bool:
        """True when the new states do not depend on the old ones."""
        return not self.keys

    def apply(self, cells: Cells, ag: Any) -> Any:
        """Make the transition; gives the holes of a message."""
        key = self.get(cells)
        found = self.seen.get(key)
        if found is None:
            found = self.slow(key, ag)
        if self.message:
            return found
        if len(self.outs) == 1:
            cells[self.outs[0]] = found
        else:
            for i, state in zip(self.outs, found, strict=True):
                cells[i] = state
        return None

    def slow(self, key: Any, ag: Any) -> Any:
        """The first time in a run that these states are met: work out or recall, mark, report."""
        verdict = self._memo.get(key)
        if verdict is None:
            states = () if not self.keys else (key,) if len(self.keys) == 1 else key
            verdict = self._memo[key] = self._work_out(dict(zip(self.keys, states, strict=True)))
        shadow = self.shadow
        shadow.read_sites.update(verdict.read)
        if self.writes and not self.exempt:
            shadow.written_sites.add(self.site)
        for fault in verdict.faults:
            other = None if fault.other is None else shadow.place(fault.other)
            ag.report(
                Finding(
                    fault.kind, "error", fault.message, shadow.place(self.site, ag), other, fault.space, fault.addresses
                )
            )
        self.seen[key] = verdict.out
        return verdict.out

    # ---- the exact part

    def _work_out(self, states: dict[int, State]) -> Verdict:
        from .exact import read_part, write_states

        read: set[int] = set()
        faults: list[Fault] = []
        holes: list[Array | None] = []
        for part in self.reads:
            seen, found, missing = read_part(self.shadow, part, states, use=not (self.copies or self.message))
            read |= seen
            faults += found
            holes.append(missing)
        for part in self.writes if self.merges else ():
            seen, found, _ = read_part(self.shadow, part, states, use=False)
            read |= seen
            faults += found
        if self.message:
            out: Any = False if holes[0] is None else holes[0]
        else:
            out = write_states(self, states, holes)
            if len(self.outs) == 1:
                out = out[0]
        return Verdict(out, tuple(read), tuple(faults))


def windowed(tile: Tile) -> bool:
    """True when the tile is a part of a larger buffer."""
    return tile.type.nbytes != tile.root[1] - tile.root[0]


def intervals(addresses: Array, itemsize: int, most: int = 4) -> tuple[tuple[int, int], ...]:
    """Byte intervals of elements at the given addresses; at most `most` of them."""
    flat = np.unique(addresses)
    if not len(flat):
        return ()
    breaks = np.nonzero(np.diff(flat) > itemsize)[0]
    starts = np.concatenate(([0], breaks + 1))[:most]
    ends = np.concatenate((breaks, [len(flat) - 1]))[:most]
    return tuple((int(flat[a]), int(flat[b]) + itemsize) for a, b in zip(starts, ends, strict=True))
