"""Addresses for buffers by lifetime: two buffers may share bytes when they are never needed at one time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...ir import expr as e
from .groups import ALIGN, forgiven
from .liveness import Buffer
from .sizes import padded

Key = Callable[[Buffer], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """Address of every buffer, and the bytes up to the end of the last one."""

    address: Mapping[e.Var, int]
    top: int


def conflict(a: Buffer, b: Buffer, depth: Mapping[str, int]) -> bool:
    """True when two buffers must not share a byte."""
    if a.pinned or b.pinned or a.base in b.apart or b.base in a.apart:
        return True
    for name, mine in a.stages.items():
        theirs = b.stages.get(name)
        n = depth.get(name, 1)
        if theirs is not None and {x % n for x in mine} != {x % n for x in theirs}:
            return True
    return a.overlaps(b) and not forgiven(a, b)


def touching(a: Buffer, b: Buffer) -> bool:
    """True when the statement that reads one for the last time writes the other.

    Such buffers may be the same bytes, cell for cell; shifted against each other, cells would be written before they
    are read.
    """
    return a.end == b.start or b.end == a.start


_ORDERS: tuple[Key, ...] = (
    lambda b: (-b.size, b.start),
    lambda b: (b.start, -b.size),
    lambda b: (-b.size * (b.end - b.start + 1), b.start),
    lambda b: (-(b.end - b.start), -b.size, b.start),
)
"""Orders in which buffers are placed; the best result wins."""


def pack(buffers: Sequence[Buffer], floor: int, depth: Mapping[str, int]) -> Plan:
    """The lowest of several greedy placements above `floor`, each buffer at the first gap that takes it."""
    conflicts = _pairs(buffers, lambda a, b: conflict(a, b, depth))
    touches = _pairs(buffers, touching)
    plans = [_place(sorted(buffers, key=key), floor, conflicts, touches) for key in _ORDERS]
    best = min(plans, key=lambda p: p.top)
    validate(best, buffers, depth)
    return best


Pairs = Mapping[e.Var, set[e.Var]]


def _pairs(buffers: Sequence[Buffer], holds: Callable[[Buffer, Buffer], bool]) -> Pairs:
    found: dict[e.Var, set[e.Var]] = {b.base: set() for b in buffers}
    for i, a in enumerate(buffers):
        for b in buffers[:i]:
            if holds(a, b):
                found[a.base].add(b.base)
                found[b.base].add(a.base)
    return found


def _place(order: Sequence[Buffer], floor: int, conflicts: Pairs, touches: Pairs) -> Plan:
    address: dict[e.Var, int] = {}
    taken: dict[e.Var, tuple[int, int]] = {}
    top = floor
    for buffer in order:
        size = padded(buffer.size, ALIGN)
        never = [taken[x] for x in conflicts[buffer.base] if x in taken]
        same = [taken[x] for x in touches[buffer.base] - conflicts[buffer.base] if x in taken]
        at = _first_gap(floor, size, never, same)
        address[buffer.base] = at
        taken[buffer.base] = (at, at + size)
        top = max(top, at + size)
    return Plan(address, top)


def _first_gap(floor: int, size: int, never: list[tuple[int, int]], same: list[tuple[int, int]]) -> int:
    """The lowest address that meets no span of `never`, and those of `same` only at their start."""
    places = {floor, *(end for _, end in never), *(x for span in same for x in span)}

    def fits(at: int) -> bool:
        end = at + size
        return not (
            any(start < end and at < stop for start, stop in never)
            or any(start < end and at < stop and at != start for start, stop in same)
        )

    return next(at for at in sorted(places) if fits(at))  # the end of the last span always fits


def validate(plan: Plan, buffers: Sequence[Buffer], depth: Mapping[str, int]) -> None:
    """Check a plan against the constraints, independently of how it was made.

    Raises:
        AssertionError: two buffers that must not share a byte do, or are shifted against each other.
    """
    spans = [(plan.address[b.base], plan.address[b.base] + b.size, b) for b in buffers if b.size]
    open_: list[tuple[int, int, Buffer]] = []
    for start, end, buffer in sorted(spans, key=lambda x: x[0]):
        open_ = [x for x in open_ if x[1] > start]
        for at, _, other in open_:
            if conflict(buffer, other, depth) or (at != start and touching(buffer, other)):
                raise AssertionError(f"planner put {buffer.base.name_hint} over {other.base.name_hint}")
        open_.append((start, end, buffer))
