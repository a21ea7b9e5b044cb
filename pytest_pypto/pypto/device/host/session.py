"""Tasks of one run: when they execute, in which order, and what is recorded of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.expr import Var
from ...ir.program import Function
from ...ir.types import TensorType
from ..checks.races import report_inner
from ..compile.builder import Kernel, Variant
from ..findings import Site
from ..machine.gm import GlobalBuffer, GmArg
from ..measure.counters import Tally
from ..mixed.agents import Agent
from ..mixed.scheduler import chooser
from ..mixed.task import Launch, TaskRun
from ..orders import Watcher
from ..text.types import ScalarT
from .graph import Graph, Task, overlap
from .rings import Rings

if TYPE_CHECKING:
    from ..artifact import Artifact
    from ..run_context import RunContext


class Session:
    """Submits, orders and executes tasks.

    In program order a task executes when it is submitted. In any other order it waits until the host needs its result
    or the program ends; then one of the tasks whose predecessors are done is picked by the order.
    """

    def __init__(self, run: RunContext, artifact: Artifact) -> None:
        self.run, self.artifact = run, artifact
        self.graph = Graph()
        self.rings = Rings(run)
        self.tally = Tally()
        self.pending: list[Task] = []
        self.order = run.settings.order
        self.eager = self.order == "program" or isinstance(run.explorer, Watcher)
        self.rng = random.Random(run.settings.seed)
        self.choose = chooser(self.order, run.settings.seed)
        self.agents: dict[int, Sequence[Agent]] = {}
        self.observers: list[Any] = []
        self.buffers: list[GlobalBuffer] = []

    # ---- kernels

    def kernel(self, name: str, cluster: int, core: str) -> Kernel:
        """The compiled kernel for one core."""
        run = self.run
        variant = Variant(run.shadow, run.log, run.explorer is not None)
        return self.artifact.kernel(name, cluster, core, variant, run.settings.poison or 0)

    def takes_lane(self, name: str) -> bool:
        """True when the kernel's text has a lane parameter."""
        found = self.artifact.kernels.get(name)
        return found is not None and any(n == "__pypto_spmd_subblock_idx" for n, _ in found[0].params)

    def scalar_count(self, name: str) -> int:
        """Scalars that the host gives to a kernel, run-time extents included."""
        known: dict[str, int] = self.artifact.cache.setdefault("scalars", {})
        if name not in known:
            if name not in self.artifact.kernels:
                self.kernel(name, 0, "aiv0")  # raises: no such kernel
            params = self.artifact.kernels[name][0].params
            known[name] = sum(isinstance(t, ScalarT) and not n.startswith("__pypto_") for n, t in params)
        return known[name]

    def used_symbols(self, func: Function, count: int) -> tuple[Var, ...]:
        """The extents that a kernel takes when it takes only some of them: those that its views use, in order."""
        kernel, module = self.artifact.kernels[func.name]
        scalars = [n for n, t in kernel.params if isinstance(t, ScalarT) and not n.startswith("__pypto_")]
        pointers = {n: i for i, (n, _) in enumerate(kernel.params)}
        tensors = [p for p in func.params if isinstance(p.type, TensorType)]
        found: dict[str, Var] = {}
        for op in kernel.body.ops:
            if op.name != "pto.make_tensor_view" or op.ins[0] not in pointers:
                continue
            param = tensors[pointers[op.ins[0]]]
            assert isinstance(param.type, TensorType)
            for name, dim in zip(op.groups["shape"], param.type.shape, strict=False):
                if name in scalars[-count:] and isinstance(dim, Var):
                    found.setdefault(name, dim)
        missing = [n for n in scalars[-count:] if n not in found]
        if missing:
            self.run.stop(
                f"kernel {func.name} takes %{missing[0]}, and nothing says which extent that is",
                module.file,
                kernel.line,
            )
        return tuple(found[n] for n in scalars[-count:])

    # ---- tasks

    def submit(self, task: Task, deps: Sequence[int], site: Site) -> None:
        """Add a task: derive its edges, take its slot, and execute it when nothing is to be reordered."""
        manual = self.rings.manual
        self.graph.add(task, deps, manual)
        task.manual = manual
        task.ring, task.local = self.rings.submit(site, len(task.preds))
        task.info["site"] = site
        if self.observers:
            self.rings.tensormap = self.graph.registered
            self.rings.tensormap_max = max(self.rings.tensormap_max, self.rings.tensormap)
        if self.eager:
            self._finish(task)
        else:
            self.pending.append(task)

    def execute(self, launch: Launch) -> None:
        """Run a task's kernels."""
        made = TaskRun(self.run, launch, self.kernel, self.choose)
        made.execute()
        task = self.graph.tasks[launch.number]
        task.ticks = self._count(launch, made)
        if self.run.log:
            report_inner(self.run, made)
            self.agents[launch.number] = made.agents
        if self.run.explorer is not None:
            self.run.explorer.task_done(self, made)
        for observer in self.observers:
            observer.task_done(task, made)

    def _count(self, launch: Launch, made: TaskRun) -> int:
        tally = self.tally
        tally.tasks += 1
        tally.blocks += launch.blocks
        longest = max((tally.note_agent(ag) for ag in made.agents), default=0)
        for ring in made.rings:
            tally.note_ring(launch.group, ring)
        tally.ticks += longest
        return longest

    def _finish(self, task: Task) -> None:
        for observer in self.observers:
            observer.task_starts(task)
        task.body()
        task.done = True

    def created(self, root: GlobalBuffer) -> None:
        """The host has made a tensor."""
        self.buffers.append(root)
        root.name = f"created tensor {len(self.buffers)}"
        for observer in self.observers:
            observer.created(root)

    def host_reads(self, site: Site, arg: GmArg, task: int | None = None) -> None:
        """The host, or a copy task, reads a region."""
        if self.run.log:
            self.run.global_checks.host_load(site, arg)

    def host_writes(self, site: Site, arg: GmArg, task: int | None = None) -> None:
        """The host, or a copy task, writes a region."""
        if self.run.log:
            self.run.global_checks.host_store(site, arg)

    def close(self) -> None:
        """Let go of everything that holds tensors."""
        for buffer in self.buffers:
            buffer.close()
        self.agents.clear()
        self.graph.tasks.clear()
        self.run.global_checks = None

    # ---- order

    def settle(self) -> None:
        """Execute everything that is still pending."""
        while self.pending:
            self._step(self.pending)

    def _step(self, among: list[Task]) -> None:
        tasks = self.graph.tasks
        ready = [t for t in among if all(tasks[p].done for p in t.preds)]
        task = self._pick(ready)
        self.pending.remove(task)
        self._finish(task)

    def _pick(self, ready: Sequence[Task]) -> Task:
        if self.run.explorer is not None:
            picked: Task = self.run.explorer.pick_task(ready)
            return picked
        if self.order == "random":
            return ready[self.rng.randrange(len(ready))]
        if self.order == "late":
            return self._latest(ready)
        return ready[0]

    def _latest(self, ready: Sequence[Task]) -> Task:
        """As late as possible: prefer what was submitted last, so that early tasks wait until somebody needs them."""
        return ready[-1]

    def wait_for(self, arg: GmArg) -> None:
        """The host reads a region: its writers must be done first, and are before everything submitted later."""
        for number in self.graph.writers_of(arg):
            self._complete(number)
            self.graph.host_saw(number)

    def wait_for_all(self, arg: GmArg) -> None:
        """The host writes a region: everything that touches it must be done first."""
        for task in list(self.graph.tasks):
            if any(overlap(a, arg) for a, _ in task.args):
                self._complete(task.number)
                self.graph.host_saw(task.number)

    def _complete(self, number: int) -> None:
        tasks = self.graph.tasks
        needed, stack = set(), [number]
        while stack:
            n = stack.pop()
            if n not in needed and not tasks[n].done:
                needed.add(n)
                stack += tasks[n].preds
        while any(not tasks[n].done for n in needed):
            self._step([t for t in self.pending if t.number in needed])
