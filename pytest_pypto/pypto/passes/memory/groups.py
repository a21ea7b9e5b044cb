"""Which buffers share memory: largest first, each joins the first group it may share with."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir.enums import MemorySpace
from .liveness import Buffer
from .sizes import padded

ALIGN = 32
"""Bytes; every on-chip buffer starts at a multiple."""


@dataclass(slots=True)
class Group:
    """Buffers at one address; the first member is the largest and gives name and size."""

    members: list[Buffer] = field(default_factory=list)
    _spans: list[tuple[int, int, int]] = field(default_factory=list)
    """(start, end, position in members), by start."""
    _reach: int = 0
    """Longest span, which bounds how far back a search for overlaps must look."""

    @property
    def base(self) -> e.Var:
        """Base of the group's memory."""
        return self.members[0].base

    @property
    def size(self) -> int:
        """Bytes of the group."""
        return self.members[0].size

    def add(self, buffer: Buffer) -> None:
        """Take in a buffer."""
        insort(self._spans, (buffer.start, buffer.end, len(self.members)))
        self._reach = max(self._reach, buffer.end - buffer.start)
        self.members.append(buffer)

    def overlapping(self, buffer: Buffer) -> list[Buffer]:
        """Members that are needed at the same time as `buffer`."""
        at = bisect_left(self._spans, (buffer.end, 0, 0))
        found: list[Buffer] = []
        while at > 0:
            at -= 1
            start, end, position = self._spans[at]
            if start + self._reach <= buffer.start:
                break
            if end > buffer.start and start < buffer.end:
                found.append(self.members[position])
        return found


def forgiven(a: Buffer, b: Buffer) -> bool:
    """True when two buffers overlap only in tiles that different branches yield for one result."""
    related = False
    for x in a.lives:
        for y in b.lives:
            if x.start < y.end and y.start < x.end:
                if not x.family & y.family:
                    return False
                related = True
    return related


class Grouping:
    """Groups of one memory space."""

    def __init__(self, buffers: Sequence[Buffer], depth: Mapping[str, int]) -> None:
        self.groups: list[Group] = []
        self._depth = depth
        self._group_of: dict[e.Var, Group] = {}
        self._with_stages: dict[int, list[Buffer]] = defaultdict(list)
        for buffer in sorted(buffers, key=lambda b: (-b.size, b.start, b.order)):
            self._place(buffer)

    def _place(self, buffer: Buffer) -> None:
        barred = {id(self._group_of[base]) for base in buffer.apart if base in self._group_of}
        for group in self.groups:
            if id(group) not in barred and self._may_join(buffer, group):
                break
        else:
            group = Group()
            self.groups.append(group)
        group.add(buffer)
        self._group_of[buffer.base] = group
        if buffer.stages:
            self._with_stages[id(group)].append(buffer)

    def _may_join(self, buffer: Buffer, group: Group) -> bool:
        if buffer.stages and any(self._other_stage(buffer, m) for m in self._with_stages[id(group)]):
            return False
        return all(forgiven(buffer, other) for other in group.overlapping(buffer))

    def _other_stage(self, a: Buffer, b: Buffer) -> bool:
        """True when the two belong to copies of one pipeline that should be in flight together."""
        for name, mine in a.stages.items():
            theirs = b.stages.get(name)
            depth = self._depth.get(name, 1)
            if theirs is not None and {x % depth for x in mine} != {x % depth for x in theirs}:
                return True
        return False

    def total(self) -> int:
        """Bytes when the groups are packed one after the other."""
        return sum(padded(g.size, ALIGN) for g in self.groups)


@dataclass(frozen=True, slots=True)
class Reduced:
    """A pipeline whose copies share buffers because the memory is too small for all of them."""

    space: MemorySpace
    group: str
    wanted: int
    depth: int


def pipeline_depths(buffers: Sequence[Buffer], capacity: int | None) -> dict[str, int]:
    """For each pipeline group how many copies get buffers of their own: all, or as many as the memory holds."""
    stages: dict[str, int] = {}
    largest: dict[str, int] = {}
    for buffer in buffers:
        for name, found in buffer.stages.items():
            stages[name] = max(stages.get(name, 0), max(found) + 1)
            largest[name] = max(largest.get(name, 0), buffer.size)
    if capacity is None:
        return stages
    return {name: max(1, min(n, capacity // max(1, largest[name]))) for name, n in stages.items()}


def group_space(buffers: Sequence[Buffer], space: MemorySpace, handler: Handler) -> tuple[Grouping, list[Reduced]]:
    """Groups of the buffers of one space; pipelines give up depth, one step at a time, while the space overflows."""
    capacity = handler.limit(space)
    depth = pipeline_depths(buffers, capacity)
    wanted = pipeline_depths(buffers, None)
    grouping = Grouping(buffers, depth)
    while capacity is not None and grouping.total() > capacity and any(n > 1 for n in depth.values()):
        deepest = min(depth, key=lambda name: (-depth[name], int(name)))
        depth[deepest] -= 1
        grouping = Grouping(buffers, depth)
    reduced = [Reduced(space, name, wanted[name], depth[name]) for name in depth if depth[name] < wanted[name]]
    return grouping, reduced
