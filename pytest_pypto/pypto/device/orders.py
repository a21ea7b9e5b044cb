"""Exhaustive search over orders. Transfers through bounded pipes make numbers independent of the order, except for
conflicting accesses to global memory: only those are permuted.

A first run in program order finds the conflicts: pairs of agents of one task, and pairs of tasks. Then the program is
run again and again; whenever several agents stand before a conflicting access, or several conflicting tasks are ready,
another choice is made, depth first, until every combination was run or the limit is reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks.races import inner_races, task_conflicts
from .findings import Finding, FindingKind, Site
from .result import DeviceResult

if TYPE_CHECKING:
    from .artifact import Artifact
    from .host.graph import Task
    from .host.session import Session
    from .mixed.agents import Agent
    from .mixed.task import TaskRun
    from .settings import DeviceSettings

Spot = tuple[str, int]
"""Kernel name and site number."""


@dataclass(frozen=True)
class Conflicts:
    """What must be permuted."""

    sites: frozenset[Spot]
    tasks: frozenset[int]

    @property
    def any(self) -> bool:
        """True when the order can matter."""
        return bool(self.sites or self.tasks)


class Watcher:
    """Explorer of the first run: follows program order and collects conflicts."""

    def __init__(self) -> None:
        self.sites: set[Spot] = set()
        self.tasks: set[int] = set()

    def chooses(self, ag: Agent, site: int) -> bool:
        """Nothing is stopped."""
        return False

    def pick(self, ready: Sequence[Agent]) -> Agent:
        """The first agent."""
        return ready[0]

    def pick_task(self, ready: Sequence[Task]) -> Task:
        """The task submitted first."""
        return ready[0]

    def task_done(self, session: Session, made: TaskRun) -> None:
        """Collect the conflicts inside a task."""
        for pair in inner_races(session.run, made):
            self.sites.update((a.agent.kernel.name, a.site) for a in pair)

    def done(self, session: Session) -> None:
        """Collect the conflicts between tasks."""
        for pair in task_conflicts(session):
            self.tasks.update(a.agent.task for a in pair)


class Explorer:
    """Explorer of one order: replays `prefix`, then takes the first choice everywhere; notes how many there were."""

    def __init__(self, conflicts: Conflicts, prefix: Sequence[int]) -> None:
        self.conflicts, self.prefix = conflicts, list(prefix)
        self.taken: list[int] = []
        self.options: list[int] = []
        self.stopped: set[Agent] = set()

    def _choose(self, count: int) -> int:
        if count == 1:
            return 0
        number = len(self.taken)
        pick = self.prefix[number] if number < len(self.prefix) else 0
        self.taken.append(pick)
        self.options.append(count)
        return pick

    def chooses(self, ag: Agent, site: int) -> bool:
        """Stop before a conflicting access."""
        if (ag.kernel.name, site) in self.conflicts.sites:
            self.stopped.add(ag)
            return True
        return False

    def pick(self, ready: Sequence[Agent]) -> Agent:
        """Agents that stand before no conflict run first; then one of those that do is chosen."""
        free = [a for a in ready if a not in self.stopped]
        if free:
            return free[0]
        chosen = ready[self._choose(len(ready))]
        self.stopped.discard(chosen)
        return chosen

    def pick_task(self, ready: Sequence[Task]) -> Task:
        """Tasks without conflicts run first; then one of the others is chosen."""
        free = [t for t in ready if t.number not in self.conflicts.tasks]
        return free[0] if free else ready[self._choose(len(ready))]

    def task_done(self, session: Session, made: TaskRun) -> None:
        """Nothing to collect."""

    def done(self, session: Session) -> None:
        """Nothing to collect."""

    def next_prefix(self) -> list[int] | None:
        """The choices of the next order, None after the last."""
        for i in range(len(self.taken) - 1, -1, -1):
            if self.taken[i] + 1 < self.options[i]:
                return [*self.taken[:i], self.taken[i] + 1]
        return None


def copies(args: Sequence[Any]) -> list[Any]:
    """Copies of the arrays; one that is passed twice stays one."""
    known: dict[Any, Any] = {}
    found = []
    for a in args:
        if isinstance(a, np.ndarray):
            key = (a.__array_interface__["data"][0] if a.size else id(a), a.shape, a.strides, a.dtype)
            a = known.setdefault(key, a.copy())
        found.append(a)
    return found


def run_exhaustively(artifact: Artifact, args: Sequence[Any], settings: DeviceSettings) -> DeviceResult:
    """Run every order of conflicting accesses, at most `settings.max_orders`.

    The arguments hold the numbers of program order afterwards. Differing numbers are a finding of kind `order`.
    """
    from .run import execute

    start = copies(args)
    watcher = Watcher()
    first = execute(artifact, args, settings, watcher)
    conflicts = Conflicts(frozenset(watcher.sites), frozenset(watcher.tasks))
    if not conflicts.any or not first.completed:
        return first
    wanted = _numbers(args, first)
    quiet = replace(settings, sanitize=frozenset())
    prefix: list[int] | None = []
    orders, capped, findings = 1, False, list(first.findings)
    while prefix is not None:
        if orders >= settings.max_orders:
            capped = True
            break
        explorer = Explorer(conflicts, prefix)
        fresh = copies(start)
        result = execute(artifact, fresh, quiet, explorer)
        orders += 1
        difference = _difference(wanted, _numbers(fresh, result), artifact)
        if difference is not None:
            findings.append(_finding(difference, explorer, artifact))
            break
        prefix = explorer.next_prefix()
    if FindingKind.ORDER.value not in settings.sanitize:
        findings = [f for f in findings if f.kind is not FindingKind.ORDER]
    return replace(first, findings=tuple(findings), orders=orders, capped=capped)


def _numbers(args: Sequence[Any], result: DeviceResult) -> list[Any]:
    returned = result.returned if isinstance(result.returned, tuple) else (result.returned,)
    return [np.array(a) for a in (*args, *returned) if isinstance(a, np.ndarray)]


def _difference(wanted: list[Any], got: list[Any], artifact: Artifact) -> str | None:
    names = [p.name_hint.split("__ssa")[0] for p in artifact.host.entry.params if hasattr(p.type, "shape")]
    for i, (a, b) in enumerate(zip(wanted, got, strict=True)):
        unequal = np.ascontiguousarray(a).reshape(-1).view(np.uint8) != np.ascontiguousarray(b).reshape(-1).view(
            np.uint8
        )
        if unequal.any():
            name = names[i] if i < len(names) else "the returned tensor"
            first = int(np.nonzero(unequal)[0][0]) // a.itemsize
            where = [int(n) for n in np.unravel_index(first, a.shape)]
            return (
                f"{name!r} differs first at {where}: {a[tuple(where)]} in program order, {b[tuple(where)]} in this one"
            )
    return None


def _finding(difference: str, explorer: Explorer, artifact: Artifact) -> Finding:
    choices = ", ".join(f"{t + 1} of {n}" for t, n in zip(explorer.taken, explorer.options, strict=True))
    return Finding(
        FindingKind.ORDER,
        "error",
        f"the result depends on the order of conflicting accesses: {difference} (choices: {choices})",
        Site("", "entry", artifact.host.file, 0, None, "host"),
        extra={"choices": list(explorer.taken)},
    )
