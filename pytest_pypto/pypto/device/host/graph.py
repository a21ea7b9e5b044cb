"""Tasks and what orders them: the map from memory regions to writers, explicit dependencies, host reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.enums import ArgDirection
from ..machine.gm import GmArg, extent, nested

READS = (ArgDirection.Input, ArgDirection.InOut)
WRITES = (ArgDirection.InOut, ArgDirection.OutputExisting, ArgDirection.Output)


@dataclass(frozen=True)
class Edge:
    """`pred` must end before `succ`; `source` is explicit, creator or tensormap."""

    pred: int
    succ: int
    arg: int
    source: str
    covered: bool = False


@dataclass
class Task:
    """One submission. `body` executes it; `before` is the set of tasks that are surely finished, as a bit mask."""

    number: int
    name: str
    args: Sequence[tuple[GmArg, ArgDirection]]
    body: Callable[[], None]
    preds: set[int] = field(default_factory=set)
    before: int = 0
    done: bool = False
    manual: bool = False
    ring: int = 0
    local: int = 0
    launch: Any = None
    ticks: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def token(self) -> int:
        """The id that files show: ring and number within the ring."""
        return (self.ring << 32) | self.local


@dataclass
class _Writer:
    task: int
    arg: GmArg


class Graph:
    """All tasks of a run with their edges."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.edges: list[Edge] = []
        self._writers: dict[int, list[_Writer]] = {}
        self.host_before = 0
        self._seen: set[tuple[int, int]] = set()

    def add(self, task: Task, deps: Sequence[int], manual: bool) -> None:
        """Derive the edges of a new task and register what it writes."""
        self._seen.clear()
        for d in dict.fromkeys(deps):
            self._edge(task, d, -1, "explicit")
        for i, (arg, direction) in enumerate(task.args):
            creator = arg.root.base.producer
            if creator is not None and direction is not ArgDirection.Output and not manual:
                self._edge(task, creator, i, "creator")
            if not manual and direction in READS and not arg.root.manual_dep:
                self._look_up(task, i, arg, direction)
        if not manual:
            for arg, direction in task.args:
                self._register(task, arg, direction)
        task.before = self.host_before
        for p in task.preds:
            task.before |= self.tasks[p].before | (1 << p)
        self.tasks.append(task)

    def _edge(self, task: Task, pred: int, arg: int, source: str, covered: bool = False) -> None:
        if (pred, arg) in self._seen:
            return
        self._seen.add((pred, arg))
        task.preds.add(pred)
        self.edges.append(Edge(pred, task.number, arg, source, covered))

    def _look_up(self, task: Task, i: int, arg: GmArg, direction: ArgDirection) -> None:
        entries = self._writers.get(arg.root.base.id, [])
        kept = []
        for w in entries:
            if not overlap(w.arg, arg):
                kept.append(w)
                continue
            covered = covers(arg, w.arg)
            self._edge(task, w.task, i, "tensormap", covered)
            if not (direction is ArgDirection.InOut and covered):
                kept.append(w)
        if len(kept) != len(entries):
            self._writers[arg.root.base.id] = kept

    def _register(self, task: Task, arg: GmArg, direction: ArgDirection) -> None:
        if direction is ArgDirection.Output:
            arg.root.base.producer = task.number
        elif direction in WRITES and not arg.root.manual_dep:
            self._writers.setdefault(arg.root.base.id, []).append(_Writer(task.number, arg))

    @property
    def registered(self) -> int:
        """Entries in the map of writers."""
        return sum(len(w) for w in self._writers.values())

    def ordered(self, a: int, b: int) -> bool:
        """True when one of the two tasks surely ends before the other starts."""
        first, second = min(a, b), max(a, b)
        return bool(self.tasks[second].before >> first & 1)

    def writers_of(self, arg: GmArg) -> list[int]:
        """Tasks registered as writers of a region, and the creator of its buffer."""
        found = [w.task for w in self._writers.get(arg.root.base.id, []) if overlap(w.arg, arg)]
        if arg.root.base.producer is not None:
            found.append(arg.root.base.producer)
        return found

    def host_saw(self, task: int) -> None:
        """The host has waited for `task`: everything submitted later comes after it."""
        self.host_before |= self.tasks[task].before | (1 << task)


def overlap(a: GmArg, b: GmArg) -> bool:
    """True when two windows of one buffer may share an element."""
    if a.root.base is not b.root.base:
        return False
    if a.root.dtype.itemsize != b.root.dtype.itemsize:
        a, b = a.in_bytes(), b.in_bytes()
    (a0, a1), (b0, b1) = a.span(), b.span()
    if a0 >= b1 or b0 >= a1:
        return False
    if a.strides == b.strides and a.is_box and b.is_box:
        return all(x0 < y1 and y0 < x1 for (x0, x1), (y0, y1) in zip(a.box, b.box, strict=True))
    return True


def covers(a: GmArg, b: GmArg) -> bool:
    """True when window `a` surely holds every element of window `b`."""
    if a.root.dtype.itemsize != b.root.dtype.itemsize:
        a, b = a.in_bytes(), b.in_bytes()
    if a.strides == b.strides and nested(a.strides):
        return all(x0 <= y0 and y1 <= x1 for (x0, x1), (y0, y1) in zip(a.box, b.box, strict=True))
    (a0, a1), (b0, b1) = a.span(), b.span()
    elements = 1
    for n in a.shape:
        elements *= n
    dense = elements == extent(a.shape, a.strides)
    return dense and a0 <= b0 and b1 <= a1
