"""Data races in global memory.

Inside a task the agents' vector clocks order accesses: what is pushed happens before what pops it, a freed slot before
the push that takes it, everything before a barrier before everything after it. Between tasks the edges of the task
graph order them. Two overlapping accesses that nothing orders, one of them a write, race; atomic adds do not race with
each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..findings import ADVICE, ERROR, Finding, FindingKind, Site
from ..host.graph import overlap
from ..machine.gm import GmArg, GmView

if TYPE_CHECKING:
    from ..host.session import Session
    from ..mixed.agents import Agent
    from ..mixed.task import TaskRun
    from ..run_context import RunContext


@dataclass(frozen=True, slots=True)
class Access:
    """One window of one buffer that an agent touched; `stamp` is its own clock then, `clock` the whole one."""

    window: GmArg
    write: bool
    atomic: bool
    site: int
    agent: Any
    clock: tuple[int, ...] | None
    key: Any = None


def accesses(ag: Agent) -> Iterator[Access]:
    """The distinct accesses of an agent, with the clock at that time."""
    clock = None
    if ag.clock is not None:
        clock = tuple(1 if i == ag.index else 0 for i in range(len(ag.clock)))
    seen: set[Any] = set()
    sites = ag.kernel.sites
    for entry in ag.trace:
        if entry[0] is None:
            clock = tuple(entry[1])
            seen.clear()
            continue
        if entry in seen:
            continue
        seen.add(entry)
        site, view, offsets, sizes = entry
        extra = sites[site].extra
        write, atomic = bool(extra.get("write")), bool(extra.get("atomic"))
        window = window_of(view, offsets, sizes)
        if window is not None:
            yield Access(window, write, atomic, site, ag, clock, (view, offsets, sizes))


def window_of(view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> GmArg | None:
    """The elements of a window access; None when it is empty."""
    if not all(n > 0 for n in sizes):
        return None
    start = view.offset + sum(o * s for o, s in zip(offsets, view.strides, strict=True))
    return GmArg(view.root, start, sizes, view.strides)


def conflicts(a: Access, b: Access) -> bool:
    """True when the two touch a common element and their order matters."""
    if not (a.write or b.write) or (a.atomic and b.atomic):
        return False
    return meets(a.window, b.window)


def meets(a: GmArg, b: GmArg) -> bool:
    """True when two windows share an element; exact, also for windows of different strides."""
    if not overlap(a, b):
        return False
    if a.strides == b.strides and (len(a.strides) == 1 or a.strides[-1] == 1):
        return True
    return bool(set(_elements(a)) & set(_elements(b)))


def _elements(a: GmArg) -> Sequence[int]:
    import numpy as np

    spots = np.array([a.offset], np.int64)
    for n, s in zip(a.shape, a.strides, strict=True):
        spots = (spots[:, None] + np.arange(n, dtype=np.int64) * s).reshape(-1)
    return [int(x) for x in spots]


def before(a: Access, b: Access) -> bool:
    """True when access `a` happened before `b`, both by agents of one task."""
    if a.clock is None or b.clock is None:
        return True
    i: int = a.agent.index
    return b.clock[i] >= a.clock[i]


def inner_races(run: RunContext, made: TaskRun) -> list[tuple[Access, Access]]:
    """Unordered conflicting accesses of different agents of one task."""
    if len(made.agents) < 2:
        return []
    by_root: dict[int, dict[int, list[Access]]] = {}
    for ag in made.agents:
        for access in accesses(ag):
            by_root.setdefault(access.window.root.id, {}).setdefault(ag.index, []).append(access)
    found = []
    for groups in by_root.values():
        if len(groups) < 2 or not any(a.write for g in groups.values() for a in g):
            continue
        found += list(_pairs(list(groups.values())))
    return found


def _pairs(groups: list[list[Access]]) -> Iterator[tuple[Access, Access]]:
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            for a in first:
                for b in second:
                    if (a.write or b.write) and conflicts(a, b) and not before(a, b) and not before(b, a):
                        yield a, b


def report_inner(run: RunContext, made: TaskRun) -> None:
    """Report the races inside a finished task."""
    for a, b in inner_races(run, made):
        same = a.write and b.write and _equal_values(a, b)
        _report(run, a, b, a.agent.place(a.site), b.agent.place(b.site), same, "no push, free or barrier orders them")


def _equal_values(a: Access, b: Access) -> bool:
    """Both lanes of one block stored the same bytes to the same window."""
    if a.agent.block != b.agent.block or a.key != b.key:
        return False
    mine, theirs = a.agent.kept.get(a.key), b.agent.kept.get(b.key)
    return mine is not None and mine == theirs


def _report(run: RunContext, a: Access, b: Access, pa: Site, pb: Site, same: bool, why: str) -> None:
    root = a.window.root
    (a0, a1), (b0, b1) = a.window.span(), b.window.span()
    size = root.flat.itemsize
    verbs = " and ".join("writes" if x.write else "reads" for x in (a, b))
    run.report(
        Finding(
            FindingKind.RACE,
            ADVICE if same else ERROR,
            f"two cores touch the same elements of {root.name!r} ({verbs}) and {why}"
            + ("; both lanes store equal values" if same else ""),
            pa,
            pb,
            root.name,
            ((max(a0, b0) * size, min(a1, b1) * size),),
        )
    )


@dataclass
class TaskAccesses:
    """What one finished task touched, per buffer."""

    number: int
    by_root: dict[int, list[Access]]


def summary(number: int, agents: Sequence[Agent]) -> TaskAccesses:
    """The distinct windows of a task."""
    by_root: dict[int, list[Access]] = {}
    seen: set[Any] = set()
    for ag in agents:
        for access in accesses(ag):
            w = access.window
            key = (w.root.id, w.offset, w.shape, w.strides, access.write, access.atomic)
            if key not in seen:
                seen.add(key)
                by_root.setdefault(w.root.id, []).append(access)
    return TaskAccesses(number, by_root)


def task_conflicts(session: Session) -> Iterator[tuple[Access, Access]]:
    """Unordered conflicting accesses of different tasks."""
    by_root: dict[int, list[TaskAccesses]] = {}
    for done in session.summaries:
        for root in done.by_root:
            by_root.setdefault(root, []).append(done)
    graph = session.graph
    for root, group in by_root.items():
        if len(group) < 2 or not any(a.write for t in group for a in t.by_root[root]):
            continue
        for i, first in enumerate(group):
            for second in group[i + 1 :]:
                if graph.ordered(first.number, second.number):
                    continue
                found = next(
                    ((a, b) for a in first.by_root[root] for b in second.by_root[root] if conflicts(a, b)), None
                )
                if found is not None:
                    yield found


def task_races(run: RunContext, session: Session) -> None:
    """Report the races between tasks."""
    if not run.wants(FindingKind.RACE):
        return
    for a, b in task_conflicts(session):
        why = "no dependency orders the two tasks; pass the result of one to the other, or add it to deps"
        _report(run, a, b, a.agent.place(a.site), b.agent.place(b.site), False, why)
