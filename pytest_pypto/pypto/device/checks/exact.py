"""The exact rules behind shadow transitions, element by element."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..findings import FindingKind
from ..machine.bind import Part
from ..machine.dtypes import Array
from ..machine.tiles import Tile, byte_spots
from .shadow import Fault, Shadow, Transition, intervals, windowed
from .state import State

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_part(
    shadow: Shadow, part: Part, states: Mapping[int, State], use: bool
) -> tuple[set[int], list[Fault], Array | None]:
    """Look at the elements of `part`: sites that wrote them, faults, and the holes (None when there are none).

    `use` says that an undefined element is a fault here (arithmetic, stores, scalar reads), not just carried along.
    """
    tile = part.tile
    segments = [i for i in shadow.of(tile) if i in states]
    quick = _uniform_read(shadow, tile, [states[i] for i in segments])
    if quick is not None:
        return quick, [], None
    addresses = tile.addresses()[part.row : part.row + part.rows, part.col : part.col + part.cols]
    writer = np.zeros(addresses.shape, np.int32)
    holes = np.ones(addresses.shape, np.bool_)
    for i in segments:
        _, lo, hi = shadow.segments[i]
        inside = (addresses >= lo) & (addresses < hi)
        spots = addresses[inside] - lo
        writer[inside] = states[i].writers()[spots]
        holes[inside] = states[i].holes()[spots]
    return _judge(shadow, tile, addresses, writer, holes, use)


def _uniform_read(shadow: Shadow, tile: Tile, states: list[State]) -> set[int] | None:
    """The sites that wrote a tile whose segments are all uniform, defined and of its own buffer."""
    sites = set()
    for state in states:
        if not isinstance(state.writer, int) or state.undefined is not False:
            return None
        record = shadow.records[state.writer]
        if record.root != tile.root or record.form != tile.form:
            return None
        sites.add(record.site)
    return sites


def _judge(
    shadow: Shadow, tile: Tile, addresses: Array, writer: Array, holes: Array, use: bool
) -> tuple[set[int], list[Fault], Array | None]:
    faults: list[Fault] = []
    sites: set[int] = set()
    size = tile.dtype.itemsize
    for number in np.unique(writer[~holes]):
        record = shadow.records[int(number)]
        sites.add(record.site)
        if record.root != tile.root:
            spots = intervals(addresses[(writer == number) & ~holes], size)
            faults.append(
                Fault(
                    FindingKind.OVERLAP,
                    f"reads the buffer {_span(tile.root)} of {tile.space}, but bytes of it were written through the "
                    f"overlapping buffer {_span(record.root)}; give the two tiles separate addresses",
                    tile.space,
                    spots,
                    record.site,
                )
            )
        elif record.form != tile.form and not record.exempt:
            faults.append(_other_form(tile, record.form, record.site, intervals(addresses[writer == number], size)))
    if use and holes.any():
        faults.append(_undefined(shadow, tile, addresses, writer, holes))
    return sites, faults, holes if holes.any() else None


def _other_form(tile: Tile, form: str, site: int, spots: tuple[tuple[int, int], ...]) -> Fault:
    return Fault(
        FindingKind.OVERLAP,
        f"reads bytes as a {tile.type.rows}x{tile.type.cols} tile that were written as a tile of another form "
        f"({form or 'whole boxes'}); a boxed tile without whole boxes is stored row by row and cannot be seen under "
        "another layout: pad its extents to whole boxes, or copy it",
        tile.space,
        spots,
        site,
    )


def _undefined(shadow: Shadow, tile: Tile, addresses: Array, writer: Array, holes: Array) -> Fault:
    row, col = (int(x[0]) for x in np.nonzero(holes))
    by = int(writer[row, col])
    record = shadow.records[by] if by else None
    why = "which nothing has written" if record is None else "which the operation that wrote the tile left undefined"
    return Fault(
        FindingKind.UNINITIALISED,
        f"uses {int(holes.sum())} undefined element(s) of a {tile.type.rows}x{tile.type.cols} tile, first "
        f"[{row}, {col}], {why}",
        tile.space,
        intervals(addresses[holes], tile.dtype.itemsize),
        record.site if record is not None else None,
    )


def _span(root: tuple[int, int]) -> str:
    return f"{root[0]}..{root[1] - 1}"


def write_states(t: Transition, states: Mapping[int, State], holes: list[Array | None]) -> tuple[State, ...]:
    """New states of all segments in `t.outs`."""
    shadow = t.shadow
    if not t.keeps and all(h is None for h in holes) and t.holes is None and not t.scratch:
        quick = _uniform_write(t)
        if quick is not None:
            return quick
    new: dict[int, tuple[Array, Array]] = {}

    def arrays(i: int) -> tuple[Array, Array]:
        if i not in new:
            _, lo, hi = shadow.segments[i]
            old = states.get(i)
            if old is None:
                new[i] = (np.zeros(hi - lo, np.int32), np.ones(hi - lo, np.bool_))
            else:
                new[i] = (old.writers().copy(), old.holes().copy())
        return new[i]

    for tile, record in zip(t.scratch, t.scratch_records, strict=True):
        _put(shadow, arrays, tile, tile.addresses(), record, None, undefined=True)
    for tile, record in {p.tile: r for p, r in zip(t.writes, t.records, strict=True)}.items():
        if not t.keeps and not windowed(tile):
            _put(shadow, arrays, tile, tile.addresses(), record, None, undefined=True)
    for n, (part, record) in enumerate(zip(t.writes, t.records, strict=True)):
        tile = part.tile
        addresses = tile.addresses()[part.row : part.row + part.rows, part.col : part.col + part.cols]
        _put(shadow, arrays, tile, addresses, record, _carried(t, part, n, holes), undefined=False)
    return tuple(shadow.state_of(i, *arrays(i)) for i in t.outs)


def _uniform_write(t: Transition) -> tuple[State, ...] | None:
    """States when every written tile is filled completely and nothing is undefined."""
    found: dict[int, State] = {}
    for part, record in zip(t.writes, t.records, strict=True):
        tile = part.tile
        if windowed(tile) or (part.row, part.col) != (0, 0):
            return None
        if (part.rows, part.cols) != (tile.type.rows, tile.type.cols):
            return None
        for i in t.shadow.of(tile):
            found[i] = t.shadow.state(i, record, False)
    return tuple(found[i] for i in t.outs) if set(found) == set(t.outs) else None


def _carried(t: Transition, part: Part, n: int, holes: list[Array | None]) -> Array | None:
    """Holes that arrive in written part `n`, in its coordinates; elements beyond the source are defined."""
    missing = t.holes if t.holes is not None else holes[n] if t.copies and n < len(holes) else None
    if missing is None:
        return None
    if t.turned:
        missing = missing.T
    full = np.zeros((part.rows, part.cols), np.bool_)
    rows, cols = min(part.rows, missing.shape[0]), min(part.cols, missing.shape[1])
    full[:rows, :cols] = missing[:rows, :cols]
    return full


def _put(
    shadow: Shadow, arrays: object, tile: Tile, addresses: Array, record: int, holes: Array | None, undefined: bool
) -> None:
    spots = byte_spots(addresses, tile.dtype).reshape(-1)
    flags = np.full(addresses.shape, undefined) if holes is None else holes
    values = np.repeat(flags.reshape(-1), tile.dtype.itemsize)
    for i in shadow.of(tile):
        _, lo, hi = shadow.segments[i]
        inside = (spots >= lo) & (spots < hi)
        writer, missing = arrays(i)  # type: ignore[operator]
        writer[spots[inside] - lo] = record
        missing[spots[inside] - lo] = values[inside]
