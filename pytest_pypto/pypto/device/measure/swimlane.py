"""`chip_swimlane_records.json` and `pmu.csv`.

Times are ticks of the cost clock: a model that is exact and repeatable, not a prediction.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .cost import Cost
from .observer import Observer, name_map

if TYPE_CHECKING:
    from ..host.graph import Task
    from ..host.session import Session
    from ..mixed.task import TaskRun
    from ..run_context import RunContext


class Swimlane(Observer):
    """`chip_swimlane_records.json` and `pmu.csv`: tasks on cores over the cost clock.

    Every task starts when its predecessors have ended and its cores are free; cores are taken round robin.
    """

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.clusters = run.settings.clusters or run.platform.clusters
        self.free = [0] * (3 * self.clusters)
        self.ends: dict[int, int] = {}
        self.rows: list[list[int]] = []
        self.dispatch: list[list[int]] = []
        self.pmu: list[list[Any]] = []
        self.next = 0

    def core(self, kind: str, cluster: int, lane: int) -> int:
        """Number of a core: cube cores first, then vector cores in pairs."""
        return cluster if kind == "aic" else self.clusters + 2 * cluster + lane

    def task_done(self, task: Task, made: TaskRun) -> None:
        """Place the task on the clock."""
        start = max((self.ends.get(p, 0) for p in task.preds), default=0)
        end = start
        by_block: dict[int, list[Any]] = {}
        for ag in made.agents:
            by_block.setdefault(ag.block, []).append(ag)
        for agents in by_block.values():
            cluster = self.next % self.clusters
            self.next += 1
            cores = [self.core(a.kind, cluster, a.lane) for a in agents]
            begin = max([start, *(self.free[c] for c in cores)])
            work = [_work(a) for a in agents]
            length = max(sum(w.values()) for w in work)
            for ag, core, units in zip(agents, cores, work, strict=True):
                self._row(task, ag, core, begin, begin + length, units)
                self.free[core] = begin + length
            end = max(end, begin + length)
        self.ends[task.number] = end

    def _row(self, task: Task, ag: Any, core: int, begin: int, end: int, units: dict[str, int]) -> None:
        number = len(self.rows)
        kernel = self.ids.setdefault(ag.kernel.name, len(self.ids))
        self.rows.append([core, task.token, number, begin, end])
        self.dispatch.append([core, number, max(begin - 1, 0), end + 1])
        busy = [
            units.get("vector", 0),
            units.get("cube", 0),
            units.get("scalar", 0),
            units.get("move", 0),
            units.get("load", 0),
            units.get("store", 0),
        ]
        self.pmu.append([0, core, task.token, kernel, ag.kind, end - begin, *busy, 0, 0, self.run.settings.dfx.pmu])

    def end(self, session: Session) -> None:
        """Write the files."""
        dfx = self.run.settings.dfx
        if dfx.chip_swimlane:
            self.write("chip_swimlane_records.json", json.dumps(self._records(dfx.chip_swimlane, session), indent=1))
            self.write(f"name_map_{self.directory.parent.name}.json", name_map(self.ids))
        if dfx.pmu:
            head = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,vec_busy_cycles,cube_busy_cycles,"
            head += "scalar_busy_cycles,mte1_busy_cycles,mte2_busy_cycles,mte3_busy_cycles,icache_miss,icache_req,"
            head += "event_type"
            self.write("pmu.csv", "\n".join([head, *(",".join(map(str, row)) for row in self.pmu), ""]))

    def _records(self, level: int, session: Session) -> dict[str, Any]:
        kinds = ["aic"] * self.clusters + ["aiv"] * (2 * self.clusters)
        meta: dict[str, Any] = {
            "clock_freq_hz": self.run.platform.clock_hz,
            "num_cores": len(kinds),
            "core_types": kinds,
            "clock": "cost model, not a prediction",
        }
        out: dict[str, Any] = {"chip_swimlane_level": level, "metadata": meta, "aicore_tasks": self.rows}
        if level >= 2:
            out["aicpu_tasks"] = self.dispatch
        if level >= 3:
            meta["core_to_thread"] = [0] * len(kinds)
            phases = [
                {"kind": "dispatch", "start_cycles": r[2], "end_cycles": r[2] + 1, "loop_iter": i, "tasks_processed": 1}
                for i, r in enumerate(self.dispatch)
            ]
            out["aicpu_scheduler_phases"] = [phases]
        if level >= 4:
            out["aicpu_orchestrator_phases"] = [
                [
                    {"submit_idx": t.number, "task_id": t.token, "start_cycles": t.number, "end_cycles": t.number + 1}
                    for t in session.graph.tasks
                ]
            ]
        return out


def _work(ag: Any) -> dict[str, int]:
    """Ticks of one agent per engine."""
    units: dict[str, int] = {}
    costs: list[tuple[Cost, int]] = list(ag.extra.items())
    costs += [(i.cost, ag.counts[i.block]) for i in ag.kernel.sites if i.cost is not None]
    for cost, times in costs:
        units[cost.unit] = units.get(cost.unit, 0) + cost.ticks * times
    return units or {"scalar": 1}
