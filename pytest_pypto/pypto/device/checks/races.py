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
from ..machine.gm import GmArg, GmView
from .boxes import meeting_pairs

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


def accesses(ag: Agent, roots: set[int] | None = None) -> Iterator[Access]:
    """The distinct accesses of an agent (to some buffers), with the clock at that time."""
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
        if (roots is not None and entry[1].root.base.id not in roots) or entry in seen:
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


def matters(a: Access, b: Access) -> bool:
    """True when the order of two overlapping accesses matters."""
    return (a.write or b.write) and not (a.atomic and b.atomic)


def before(a: Access, b: Access) -> bool:
    """True when access `a` happened before `b`, both by agents of one task."""
    if a.clock is None or b.clock is None:
        return True
    i: int = a.agent.index
    return b.clock[i] >= a.clock[i]


def inner_races(run: RunContext, made: TaskRun) -> list[tuple[Access, Access]]:
    """Unordered conflicting accesses of different agents of one task."""
    shared = _shared_roots(made.agents)
    if not shared:
        return []
    by_root: dict[int, dict[int, list[Access]]] = {}
    for ag in made.agents:
        for access in accesses(ag, shared):
            by_root.setdefault(access.window.root.base.id, {}).setdefault(ag.index, []).append(access)
    return [pair for groups in by_root.values() for pair in _pairs(list(groups.values()))]


def _shared_roots(agents: Sequence[Agent]) -> set[int]:
    """Buffers that several agents touch, one of them writing."""
    if len(agents) < 2:
        return set()
    users: dict[int, int] = {}
    written: set[int] = set()
    for ag in agents:
        bit, sites = 1 << ag.index, ag.kernel.sites
        for entry in ag.trace:
            if entry[0] is not None:
                root = entry[1].root.base.id
                users[root] = users.get(root, 0) | bit
                if "write" in sites[entry[0]].extra:
                    written.add(root)
    return {r for r in written if users[r] & (users[r] - 1)}


def comparable(first: Sequence[Access], second: Sequence[Access]) -> tuple[list[GmArg], list[GmArg]]:
    """The windows of both sides in one unit: elements, or bytes where the sizes of the elements differ."""
    sides = [a.window for a in first], [b.window for b in second]
    if len({w.root.dtype.itemsize for side in sides for w in side}) == 1:
        return sides
    return [w.in_bytes() for w in sides[0]], [w.in_bytes() for w in sides[1]]


def _pairs(groups: list[list[Access]]) -> Iterator[tuple[Access, Access]]:
    for i, first in enumerate(groups):
        for second in groups[i + 1 :]:
            if not any(a.write for a in (*first, *second)):
                continue
            for m, n in meeting_pairs(*comparable(first, second)):
                a, b = first[m], second[n]
                if matters(a, b) and not before(a, b) and not before(b, a):
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
    (a0, a1), (b0, b1) = a.window.in_bytes().span(), b.window.in_bytes().span()
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
            ((max(a0, b0), min(a1, b1)),),
        )
    )


def distinct(agents: Sequence[Agent]) -> list[Access]:
    """The accesses of a task, each window once."""
    found: dict[Any, Access] = {}
    for ag in agents:
        for access in accesses(ag):
            w = access.window
            key = (w.root.base.id, w.root.dtype.itemsize, w.offset, w.shape, w.strides, access.write, access.atomic)
            found.setdefault(key, access)
    return list(found.values())


def unordered_tasks(session: Session) -> set[int]:
    """Tasks that share a buffer with a task that nothing orders them with."""
    touching: dict[int, int] = {}
    found = 0
    for task in session.graph.tasks:
        for root in {a.root.base.id for a, _ in task.args}:
            seen = touching.get(root, 0)
            loose = seen & ~task.before
            if loose:
                found |= loose | 1 << task.number
            touching[root] = seen | 1 << task.number
    return {t.number for t in session.graph.tasks if found >> t.number & 1}


def task_conflicts(session: Session) -> Iterator[tuple[Access, Access]]:
    """Unordered conflicting accesses of different tasks, one pair per pair of tasks and buffer."""
    by_root: dict[int, list[Access]] = {}
    for number in sorted(unordered_tasks(session)):
        for access in distinct(session.agents.get(number, ())):
            by_root.setdefault(access.window.root.base.id, []).append(access)
    graph = session.graph
    for group in by_root.values():
        writes = [a for a in group if a.write]
        if not writes or len({a.agent.task for a in group}) < 2:
            continue
        seen: set[tuple[int, int]] = set()
        for m, n in meeting_pairs(*comparable(writes, group)):
            a, b = writes[m], group[n]
            pair = (min(a.agent.task, b.agent.task), max(a.agent.task, b.agent.task))
            if pair[0] == pair[1] or pair in seen or not matters(a, b):
                continue
            if not graph.ordered(*pair):
                seen.add(pair)
                yield (a, b) if a.agent.task <= b.agent.task else (b, a)


def task_races(run: RunContext, session: Session) -> None:
    """Report the races between tasks."""
    if not run.wants(FindingKind.RACE):
        return
    for a, b in task_conflicts(session):
        why = "no dependency orders the two tasks; pass the result of one to the other, or add it to deps"
        _report(run, a, b, a.agent.place(a.site), b.agent.place(b.site), False, why)
