"""Exact counts of one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..mixed.agents import Agent
    from ..mixed.pipes import Ring


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

    def note_ring(self, kernel: str, ring: Ring) -> None:
        """Add one pipe way of a finished task."""
        key = f"{kernel}:{ring.id}:{ring.way}"
        self.pipe_peak[key] = max(self.pipe_peak.get(key, 0), ring.high)
        self.transfers[ring.way] = self.transfers.get(ring.way, 0) + sum(ring.pushed)

    def note_agent(self, ag: Agent) -> int:
        """Add the work of a finished agent; gives its ticks."""
        kernel, ticks = ag.kernel, 0
        for info in kernel.sites:
            times = ag.counts[info.block]
            if times and info.unit:
                self.operations[info.op] = self.operations.get(info.op, 0) + times
                if info.cost is not None:
                    ticks += self._note_cost(info.cost, times)
        for cost, times in ag.extra.items():
            ticks += self._note_cost(cost, times)
        for space, top in kernel.peak.items():
            self.peak_bytes[space] = max(self.peak_bytes.get(space, 0), top)
        return ticks

    def _note_cost(self, cost: Any, times: int) -> int:
        for table, moved in ((self.bytes_read, cost.read), (self.bytes_written, cost.written)):
            for space, n in moved:
                table[space] = table.get(space, 0) + n * times
        if cost.unit == "vector":
            self.vector_elements += cost.elements * times
        self.cube_products += cost.products * times
        return int(cost.ticks) * times
