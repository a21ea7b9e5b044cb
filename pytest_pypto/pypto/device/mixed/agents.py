"""One core that executes a kernel: what generated code talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..findings import Finding, FindingKind
from ..machine.gm import GmView
from ..measure.cost import Cost

if TYPE_CHECKING:
    from ..compile.builder import Kernel
    from ..run_context import RunContext

Where = tuple[int, ...]


class Agent:
    """A core of one block of one task.

    `lane` is 0 on the cube core. `clock` is the vector clock of the task's agents (None without race checks); `trace`
    collects global accesses and, as `(None, clock)`, every change of the clock. `twin` says that another lane of the
    block runs the same kernel, so that stored values are kept for comparison.
    """

    __slots__ = (
        "barrier",
        "block",
        "blocks",
        "clock",
        "counts",
        "extra",
        "flags",
        "index",
        "kept",
        "kernel",
        "kind",
        "lane",
        "restless",
        "rings",
        "rounds",
        "run",
        "task",
        "trace",
        "twin",
        "wait",
        "while_limit",
    )  # fmt: skip

    def __init__(
        self, run: RunContext, kernel: Kernel, index: int, lane: int, block: int, blocks: int, task: int, agents: int
    ) -> None:
        self.run, self.kernel, self.kind = run, kernel, kernel.kind
        self.index, self.lane, self.block, self.blocks, self.task = index, lane, block, blocks, task
        self.counts = [0] * kernel.blocks
        self.extra: dict[Cost, int] = {}
        self.trace: list[Any] = []
        self.clock: list[int] | None = [0] * agents if run.log and agents > 1 else None
        if self.clock is not None:
            self.clock[index] = 1
        self.rings: dict[tuple[int, str], Any] = {}
        self.barrier: Any = None
        self.wait: tuple[Any, Any, str] | None = None
        self.restless = run.restless
        self.twin = False
        self.kept: dict[Any, Any] = {}
        self.while_limit = run.settings.while_limit
        self.rounds = 0
        self.flags: dict[Any, Any] = {}

    # ---- waiting

    def ready(self) -> bool:
        """True when the agent can go on."""
        if self.wait is None:
            return True
        _, what, verb = self.wait
        if verb == "push":
            return bool(what.can_push(self.lane))
        if verb == "pop":
            return bool(what.can_pop(self.lane))
        return bool(self.barrier.passed(what))

    # ---- clocks

    def tick(self) -> list[int]:
        """A copy of the clock for somebody else; later events of this agent are not covered by it."""
        clock = self.clock
        assert clock is not None
        out = list(clock)
        clock[self.index] += 1
        self.trace.append((None, list(clock)))
        return out

    def join(self, other: list[int] | None) -> None:
        """What `other` covers happened before what this agent does from now on."""
        clock = self.clock
        if clock is None or other is None:
            return
        merged = [max(a, b) for a, b in zip(clock, other, strict=True)]
        if merged != clock:
            self.clock = merged
            self.trace.append((None, list(merged)))

    # ---- reports

    def report(self, finding: Finding) -> None:
        """Hand a finding to the run; without that sanitizer the run stops here."""
        self.run.report(finding)

    def endless(self, site: int) -> None:
        """The loops of this core have run too long."""
        info = self.kernel.sites[site]
        self.run.stop(
            f"a loop of this core has made {self.while_limit} rounds and does not end; raise while_limit if it should",
            self.kernel.file,
            info.line,
        )

    def moved(self, site: int, elements: int) -> None:
        """Count elements of an access whose size is known only now."""
        info = self.kernel.sites[site]
        read = tuple((space, size * elements) for space, size in info.reads)
        written = tuple((space, size * elements) for space, size in info.writes)
        cost = Cost(info.unit, elements, 0, read, written, info.op)
        self.extra[cost] = self.extra.get(cost, 0) + 1

    # ---- global memory

    def watch_load(self, site: int, view: GmView, offsets: Where, sizes: Where) -> None:
        """A load from a buffer that the sanitizers watch."""
        self.run.global_checks.load(self, site, view, offsets, sizes)

    def watch_store(self, site: int, view: GmView) -> None:
        """A store to an input is about to happen."""
        self.run.global_checks.store(self, site, view)

    def keep(self, site: int, view: GmView, offsets: Where, sizes: Where) -> None:
        """Remember what was stored, to compare it with the other lane's values."""
        window = view.arr[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        self.kept[(view, offsets, sizes)] = window.tobytes()

    def stop(self, site: int) -> bool:
        """True when the order explorer wants a choice before this access."""
        return self.run.explorer is not None and self.run.explorer.chooses(self, site)

    def place(self, site: int) -> Any:
        """The place of one of the kernel's sites as executed by this agent."""
        from ..compile.builder import place_of

        return place_of(self.kernel.sites[site], self.kernel.name, self.kernel.file, self)


class Barrier:
    """`syncall` over all agents of a task: every agent of the named core type must arrive."""

    def __init__(self, agents: list[Agent]) -> None:
        self.size = {
            "mix": len(agents),
            "aiv_only": sum(a.kind == "aiv" for a in agents),
            "aic_only": sum(a.kind == "aic" for a in agents),
        }
        self.rounds: dict[tuple[str, int], list[Agent]] = {}
        self.clocks: dict[tuple[str, int], list[list[int]]] = {}
        self.visits: dict[tuple[Agent, str], int] = {}

    def arrive(self, ag: Agent, kind: str) -> tuple[str, int]:
        """Arrive; gives the token to wait for."""
        number = self.visits.get((ag, kind), 0)
        self.visits[(ag, kind)] = number + 1
        token = (kind, number)
        self.rounds.setdefault(token, []).append(ag)
        if ag.clock is not None:
            self.clocks.setdefault(token, []).append(ag.tick())
        return token

    def passed(self, token: tuple[str, int]) -> bool:
        """True when everybody has arrived."""
        return len(self.rounds[token]) >= self.size[token[0]]

    def leave(self, ag: Agent, token: tuple[str, int]) -> None:
        """Everything before the barrier happened before what follows."""
        for clock in self.clocks.get(token, []):
            ag.join(clock)


def wrong(kind: FindingKind, message: str, ag: Agent, site: int, **more: Any) -> Finding:
    """A finding at a site of an agent."""
    return Finding(kind, "error", message, ag.place(site), **more)
