"""One task on its cores: blocks, agents, pipes, and what must hold when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..compile.flags import flag_findings
from ..findings import Finding, FindingKind, Site
from ..machine.gm import GmArg
from .agents import Agent, Barrier
from .pipes import Ring
from .scheduler import Chooser, drive

if TYPE_CHECKING:
    from ..compile.builder import Kernel
    from ..run_context import RunContext


@dataclass
class Launch:
    """What a task executes: kernel names per core, blocks, arguments per core ("aic", "aiv").

    `tensors` and `scalars` are in the order of the kernel's parameters; run-time extents follow the scalars. `group` is
    the name under which the host called it.
    """

    number: int
    group: str
    aic: str | None
    aiv: str | None
    lanes: int
    blocks: int
    tensors: Mapping[str, Sequence[GmArg]]
    scalars: Mapping[str, Sequence[Any]]
    site: Site = field(default_factory=Site)


KernelOf = Callable[[str, int, str], "Kernel"]
"""(function name, cluster, core "aic"/"aiv0"/"aiv1") to the compiled kernel."""


class TaskRun:
    """The execution of one launch."""

    def __init__(self, run: RunContext, launch: Launch, kernel_of: KernelOf, choose: Chooser) -> None:
        self.run, self.launch, self.kernel_of, self.choose = run, launch, kernel_of, choose
        self.agents: list[Agent] = []
        self.rings: list[Ring] = []

    def execute(self) -> None:
        """Run all blocks; one after the other, or all at once when a kernel waits for the other blocks."""
        launch = self.launch
        per_block = (launch.aic is not None) + (launch.lanes if launch.aiv is not None else 0)
        total = per_block * launch.blocks
        together = self._waits_for_blocks() or self.run.explorer is not None
        groups = []
        for block in range(launch.blocks):
            groups.append(self._block(block, block if together else 0, block * per_block, total))
        barrier = Barrier(self.agents)
        for a in self.agents:
            a.barrier = barrier
        if together:
            self._drive(self.agents)
        else:
            while groups:
                self._drive(groups.pop(self._next(groups)))
        self._ends()

    def _next(self, groups: Sequence[Any]) -> int:
        order = self.run.settings.order
        if order == "late":
            return len(groups) - 1
        if order == "random":
            firsts = [g[0] for g in groups]
            return firsts.index(self.choose(firsts))
        return 0

    def _waits_for_blocks(self) -> bool:
        launch = self.launch
        if launch.blocks < 2:
            return False
        used = ((launch.aic, "aic"), (launch.aiv, "aiv0"))
        return any(name is not None and self.kernel_of(name, 0, core).syncs for name, core in used)

    def _block(self, block: int, cluster: int, first: int, total: int) -> list[Agent]:
        launch, run = self.launch, self.run
        found: list[Agent] = []
        if launch.aic is not None:
            kernel = self.kernel_of(launch.aic, cluster, "aic")
            found.append(Agent(run, kernel, first, 0, block, launch.blocks, launch.number, total))
        for lane in range(launch.lanes if launch.aiv is not None else 0):
            assert launch.aiv is not None
            kernel = self.kernel_of(launch.aiv, cluster, f"aiv{lane}")
            index = first + len(found)
            found.append(Agent(run, kernel, index, lane, block, launch.blocks, launch.number, total))
        if launch.lanes > 1:
            for a in found:
                a.twin = run.log and a.kind == "aiv"
        self._pipes(found)
        self.agents += found
        return found

    def _pipes(self, agents: Sequence[Agent]) -> None:
        cube = next((a for a in agents if a.kind == "aic"), None)
        lanes = [a for a in agents if a.kind == "aiv"]
        if cube is None or not lanes:
            self._lonely(agents)
            return
        for number, decl in cube.kernel.pipes.items():
            peer = lanes[0].kernel.pipes.get(number)
            if peer is None or (peer.dirs, peer.slot_size, peer.slots) != (decl.dirs, decl.slot_size, decl.slots):
                self._disagree(cube, lanes[0], decl, peer)
            for way in decl.dirs:
                ends = (1, len(lanes)) if way == "c2v" else (len(lanes), 1)
                ring = Ring(number, way, decl.slots, *ends, decl)
                self.rings.append(ring)
                for a in agents:
                    a.rings[(number, way)] = ring
        for number in lanes[0].kernel.pipes:
            if number not in cube.kernel.pipes:
                self._disagree(cube, lanes[0], None, lanes[0].kernel.pipes[number])

    def _lonely(self, agents: Sequence[Agent]) -> None:
        for a in agents:
            for number, decl in a.kernel.pipes.items():
                self.run.stop(
                    f"kernel {a.kernel.name} uses pipe {number}, but task {self.launch.group!r} has no core on its "
                    "other side; launch it as a group of a cube and a vector kernel",
                    a.kernel.file,
                    decl.line,
                )

    def _disagree(self, cube: Agent, lane: Agent, decl: Any, peer: Any) -> None:
        def text(d: Any) -> str:
            if d is None:
                return "not initialised"
            return f"{'/'.join(d.dirs)} with {d.slots} slot(s) of {d.slot_size} bytes"

        line = (decl or peer).line
        site = Site(
            cube.kernel.name, "initialize_pipe", cube.kernel.file, line, None, "aic", None, 0, self.launch.number
        )
        other = None
        if peer is not None:
            other = Site(lane.kernel.name, "initialize_pipe", lane.kernel.file, peer.line, None, "aiv", 0, 0)
        self.run.halt(
            Finding(
                FindingKind.WRONG_LANE,
                "error",
                f"the two sides of pipe {(decl or peer).id} disagree: {text(decl)} in {cube.kernel.name}, "
                f"{text(peer)} in {lane.kernel.name}",
                site,
                other,
            )
        )

    def _drive(self, agents: Sequence[Agent]) -> None:
        launch = self.launch

        def body(a: Agent) -> Callable[[], Any]:
            return lambda: a.kernel.run(a, launch.tensors[a.kind], launch.scalars[a.kind])

        drive(self.run, agents, [body(a) for a in agents], self.choose)

    # ---- at the end

    def _ends(self) -> None:
        for a in self.agents:
            for found in flag_findings(a) if a.flags else ():
                self.run.report(found)
        for ring in self.rings:
            self._leftovers(ring)

    def _leftovers(self, ring: Ring) -> None:
        name = f"pipe {ring.id} ({ring.way})"
        if len(set(ring.pushed)) > 1 or len(set(ring.popped)) > 1:
            sent, got = "/".join(map(str, ring.pushed)), "/".join(map(str, ring.popped))
            self._end_finding(
                ring, FindingKind.WRONG_LANE, f"the lanes make unequal numbers of transfers on {name}: {sent} pushes, "
                f"{got} pops"
            )  # fmt: skip
        left = max(ring.pushed) - min(ring.popped)
        if left > 0:
            self._end_finding(
                ring, FindingKind.LEFTOVER, f"{left} message(s) of {name} are never popped; match every push with a pop"
            )
        kept = max(p - f for p, f in zip(ring.popped, ring.freed, strict=True))
        if kept > 0:
            self._end_finding(
                ring, FindingKind.LEFTOVER, f"{kept} popped slot(s) of {name} are never freed; free every popped tile"
            )

    def _end_finding(self, ring: Ring, kind: FindingKind, message: str) -> None:
        user = next(a for a in self.agents if a.rings.get((ring.id, ring.way)) is ring)
        consumer = "aiv" if ring.way == "c2v" else "aic"
        block = user.block
        found = next(a for a in self.agents if a.kind == consumer and a.block == block)
        decl = found.kernel.pipes[ring.id]
        lane = found.lane if consumer == "aiv" else None
        site = Site(
            found.kernel.name, "initialize_pipe", found.kernel.file, decl.line, None, consumer, lane, block, found.task
        )
        self.run.report(Finding(kind, "error", message, site))
