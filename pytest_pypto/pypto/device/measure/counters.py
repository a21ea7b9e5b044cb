"""Exact counts of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..compile.builder import Kernel
    from ..mixed.agents import Agent
    from ..mixed.pipes import Ring
    from .cost import Cost


@dataclass
class Counters:
    """What was executed.

    `operations` counts executions by operation name; `bytes_read`/`bytes_written` bytes per memory space (`gm` is
    global memory); `peak_bytes` the highest byte that a handle of a core covers, per space; `pipe_peak` the most slots
    in use, by pipe and direction; `vector_elements` results of vector operations; `cube_products` multiply-adds.
    `ticks` is the length of all tasks on the cost clock.
    """

    operations: dict[str, int] = field(default_factory=dict)
    bytes_read: dict[str, int] = field(default_factory=dict)
    bytes_written: dict[str, int] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    pipe_peak: dict[str, int] = field(default_factory=dict)
    transfers: dict[str, int] = field(default_factory=dict)
    tasks: int = 0
    blocks: int = 0
    vector_elements: int = 0
    cube_products: int = 0
    ticks: int = 0

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON-able data."""
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in vars(self).items()}


class Tally:
    """Collects the work of agents while a run goes on.

    Agents that executed the same blocks of a kernel equally often did the same work, so it is added up once per such
    combination, at the end.
    """

    def __init__(self) -> None:
        self.seen: dict[tuple[Kernel, tuple[int, ...]], int] = {}
        self.extra: dict[Cost, int] = {}
        self.tasks = self.blocks = self.ticks = 0
        self.pipe_peak: dict[str, int] = {}
        self.transfers: dict[str, int] = {}

    def note_ring(self, kernel: str, ring: Ring) -> None:
        """Add one pipe way of a finished task."""
        key = f"{kernel}:{ring.id}:{ring.way}"
        self.pipe_peak[key] = max(self.pipe_peak.get(key, 0), ring.high)
        self.transfers[ring.way] = self.transfers.get(ring.way, 0) + sum(ring.pushed)

    def note_agent(self, ag: Agent) -> int:
        """Add the work of a finished agent; gives its ticks."""
        counts = tuple(ag.counts)
        key = (ag.kernel, counts)
        self.seen[key] = self.seen.get(key, 0) + 1
        ticks = ag.kernel.ticks.get(counts)
        if ticks is None:
            costs = ((i.cost, counts[i.block]) for i in ag.kernel.sites if i.cost is not None)
            ticks = ag.kernel.ticks[counts] = sum(c.ticks * n for c, n in costs)
        for cost, times in ag.extra.items():
            self.extra[cost] = self.extra.get(cost, 0) + times
            ticks += cost.ticks * times
        return ticks

    def counters(self) -> Counters:
        """The totals."""
        out = Counters(tasks=self.tasks, blocks=self.blocks, ticks=self.ticks)
        out.pipe_peak, out.transfers = dict(self.pipe_peak), dict(self.transfers)
        costs = dict(self.extra)
        for (kernel, counts), agents in self.seen.items():
            for info in kernel.sites:
                times = counts[info.block] * agents
                if times and info.unit:
                    out.operations[info.op] = out.operations.get(info.op, 0) + times
                    if info.cost is not None:
                        costs[info.cost] = costs.get(info.cost, 0) + times
            for space, top in kernel.peak.items():
                out.peak_bytes[space] = max(out.peak_bytes.get(space, 0), top)
        for cost, times in costs.items():
            _add(out, cost, times)
        return out


def _add(out: Counters, cost: Cost, times: int) -> None:
    for table, moved in ((out.bytes_read, cost.read), (out.bytes_written, cost.written)):
        for space, n in moved:
            table[space] = table.get(space, 0) + n * times
    if cost.unit == "vector":
        out.vector_elements += cost.elements * times
    out.cube_products += cost.products * times
