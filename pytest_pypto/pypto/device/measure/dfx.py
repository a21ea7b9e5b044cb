"""Profile files of a run. Times are ticks of the cost clock: a model that is exact and repeatable, not a prediction."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.enums import ArgDirection
from ..findings import DeviceError
from ..machine.dtypes import NAMES
from ..machine.gm import GlobalBuffer, GmArg, dense_strides
from .cost import Cost

if TYPE_CHECKING:
    from ..host.graph import Task
    from ..host.session import Session
    from ..mixed.task import TaskRun
    from ..run_context import RunContext

PMU_EVENTS = (1, 2, 4, 5, 6, 7, 8)
_ROLES = {
    ArgDirection.Input: "in",
    ArgDirection.NoDep: "in",
    ArgDirection.InOut: "inout",
    ArgDirection.Output: "out",
    ArgDirection.OutputExisting: "out",
}
_DTYPES = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bfloat16",
    "f8e4m3fn": "fp8e4m3fn",
    "f8e5m2": "fp8e5m2",
    "f8e8m0": "fp8e8m0",
    "i1": "bool",
}


def dtype_name(root: GlobalBuffer) -> str:
    """The language's name of a buffer's element type."""
    name = NAMES[root.dtype]
    return _DTYPES.get(name, name.replace("ui", "uint") if name.startswith("ui") else name.replace("i", "int", 1))


class Observer:
    """Base: what a session tells."""

    def __init__(self, run: RunContext) -> None:
        self.run = run
        directory = run.settings.dfx.directory
        assert directory is not None
        self.directory: Path = directory

    def created(self, root: GlobalBuffer) -> None:
        """The host has made a tensor."""

    def task_starts(self, task: Task) -> None:
        """A task is about to execute."""

    def task_done(self, task: Task, made: TaskRun) -> None:
        """A task has executed."""

    def end(self, session: Session) -> None:
        """The run is over."""

    def write(self, name: str, text: str) -> None:
        """Write a file below the directory."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def observers_for(run: RunContext) -> list[Observer]:
    """The observers that the settings ask for.

    Raises:
        DeviceError: an unknown counter event or level.
    """
    dfx = run.settings.dfx
    if dfx.pmu and dfx.pmu not in PMU_EVENTS:
        raise DeviceError(f"unknown pmu event {dfx.pmu}; known are {', '.join(map(str, PMU_EVENTS))}")
    if not 0 <= dfx.chip_swimlane <= 4 or not 0 <= dfx.dump_args <= 2:
        raise DeviceError("chip_swimlane is a level 0..4, dump_args a level 0..2")
    found: list[Observer] = []
    found += [Swimlane(run)] if dfx.chip_swimlane or dfx.pmu else []
    found += [ArgsDump(run)] if dfx.dump_args else []
    found += [Deps(run)] if dfx.dep_gen else []
    found += [ScopeStats(run)] if dfx.scope_stats else []
    return found


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
        self.ids: dict[str, int] = {}
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
            self.write(f"name_map_{self.directory.parent.name}.json", _name_map(self.ids))
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


def _name_map(ids: dict[str, int]) -> str:
    names = {str(number): name for name, number in ids.items()}
    return json.dumps({"level": 2, "orchestrator_name": None, "callable_id_to_name": names})


class ArgsDump(Observer):
    """`args_dump/`: arguments of tasks before and after, densely in logical order."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.level = run.settings.dfx.dump_args
        self.rows: list[dict[str, Any]] = []
        self.data = bytearray()
        self.ids: dict[str, int] = {}

    def task_starts(self, task: Task) -> None:
        """Values before."""
        self._dump(task, "before_dispatch", ("in", "inout"))

    def task_done(self, task: Task, made: TaskRun) -> None:
        """Values after."""
        self._dump(task, "after_completion", ("out", "inout"))

    def _dump(self, task: Task, stage: str, roles: Sequence[str]) -> None:
        marked = set(task.info.get("dump", ()))
        for i, (arg, direction) in enumerate(task.args):
            role = _ROLES.get(direction, "in")
            if role in roles and (self.level >= 2 or arg.root.id in marked):
                self._tensor(task, stage, role, i, arg)
        if stage == "before_dispatch" and self.level >= 2:
            for i, value in enumerate(task.info.get("scalars", ()), len(task.args)):
                self._scalar(task, i, value)

    def _entry(self, task: Task, stage: str, role: str, index: int, raw: bytes, **more: Any) -> None:
        kernel = self.ids.setdefault(task.name, len(self.ids))
        self.rows.append(
            {
                "task_id": hex(task.token),
                "func_id": [kernel],
                "role": role,
                "stage": stage,
                "arg_index": index,
                **more,
                "truncated": False,
                "overwritten": False,
                "bin_offset": len(self.data),
                "bin_size": len(raw),
            }
        )
        self.data += raw

    def _tensor(self, task: Task, stage: str, role: str, index: int, arg: GmArg) -> None:
        self._entry(
            task,
            stage,
            role,
            index,
            np.ascontiguousarray(arg.array()).tobytes(),
            kind="tensor",
            dtype=dtype_name(arg.root),
            shape=list(arg.shape),
            strides=list(arg.strides),
            start_offset=arg.offset,
            is_contiguous=arg.strides == dense_strides(arg.shape),
        )

    def _scalar(self, task: Task, index: int, value: Any) -> None:
        is_float = isinstance(value, float)
        raw = np.asarray(value, np.float64 if is_float else np.int64).tobytes()
        self._entry(
            task,
            "before_dispatch",
            "in",
            index,
            raw,
            kind="scalar",
            dtype="fp64" if is_float else "int64",
            shape=[],
            strides=[],
            start_offset=0,
            is_contiguous=True,
        )

    def end(self, session: Session) -> None:
        """Write the files."""
        count = {role: sum(r["role"] == role for r in self.rows) for role in ("in", "out", "inout")}
        stages = {s: sum(r["stage"] == s for r in self.rows) for s in ("before_dispatch", "after_completion")}
        head = {
            "run_dir": str(self.directory),
            "bin_format": {"type": "logical_contiguous", "byte_order": sys.byteorder},
            "dump_args_level": self.level,
            "total_args": len(self.rows),
            **stages,
            "input_args": count["in"],
            "output_args": count["out"],
            "inout_args": count["inout"],
            "truncated_args": 0,
            "dropped_records": 0,
            "dropped_overwrite": 0,
            "bin_file": "args.bin",
            "args": self.rows,
        }
        self.write("args_dump/args_dump.json", json.dumps(head, indent=1))
        (self.directory / "args_dump" / "args.bin").write_bytes(bytes(self.data))


class Deps(Observer):
    """`deps.json`: tasks, tensors and the edges between tasks."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.tensors: dict[int, dict[str, Any]] = {}
        self.ids: dict[str, int] = {}

    def _tensor(self, root: GlobalBuffer) -> str:
        number = str(len(self.tensors))
        known = self.tensors.setdefault(
            root.id,
            {
                "tensor_id": number,
                "buffer_addr": str(root.address),
                "version": 0,
                "dtype": dtype_name(root),
                "buffer_numel": str(root.flat.size),
            },
        )
        return str(known["tensor_id"])

    def _kernel(self, name: str | None) -> int:
        return -1 if name is None else self.ids.setdefault(name, len(self.ids))

    def _task(self, task: Task) -> dict[str, Any]:
        launch = task.launch
        kernels = [-1, -1, -1]
        if launch is not None:
            second = launch.aiv if launch.lanes > 1 else None
            kernels = [self._kernel(launch.aic), self._kernel(launch.aiv), self._kernel(second)]
        return {
            "task_id": str(task.token),
            "scope": "manual" if task.manual else "auto",
            "kernel_ids": kernels,
            "block_num": 1 if launch is None else launch.blocks,
            "args": [self._arg(i, arg, direction) for i, (arg, direction) in enumerate(task.args)],
        }

    def _arg(self, i: int, arg: GmArg, direction: ArgDirection) -> dict[str, Any]:
        return {
            "idx": i,
            "type": direction.name.lower(),
            "tensor_id": self._tensor(arg.root),
            "dtype": dtype_name(arg.root),
            "shape": list(arg.shape),
            "start_offset": str(arg.offset),
            "strides": list(arg.strides),
        }

    def end(self, session: Session) -> None:
        """Write the file."""
        tasks = session.graph.tasks
        rows = [self._task(t) for t in tasks]
        edges = []
        for edge in session.graph.edges:
            consumer = tasks[edge.succ]
            row: dict[str, Any] = {
                "pred": str(tasks[edge.pred].token),
                "succ": str(consumer.token),
                "arg": edge.arg,
                "source": edge.source,
                "flags": ["wait", "retain"],
                "overlap": "covered" if edge.covered else "other",
            }
            if edge.arg >= 0:
                arg, _ = consumer.args[edge.arg]
                row |= {
                    "tensor_id": self._tensor(arg.root),
                    "consumer_shape": list(arg.shape),
                    "consumer_start_offset": str(arg.offset),
                    "consumer_strides": list(arg.strides),
                }
            edges.append(row)
        data = {"tasks": rows, "tensors": list(self.tensors.values()), "edges": edges}
        self.write("deps.json", json.dumps(data, indent=1))
        self.write(f"name_map_{self.directory.parent.name}.json", _name_map(self.ids))


class ScopeStats(Observer):
    """`scope_stats/scope_stats.jsonl`: what the rings held at every scope event."""

    def end(self, session: Session) -> None:
        """Write the file."""
        rings = session.rings
        head = {
            "version": 6,
            "fatal": False,
            "dropped": 0,
            "total": len(rings.events),
            "task_window_max": rings.top["task_window"],
            "heap_max": rings.top["heap"],
            "dep_pool_max": rings.top["dep_pool"],
            "tensormap_max": rings.tensormap_max,
        }
        lines = [json.dumps(head), *(json.dumps(event) for event in rings.events)]
        self.write("scope_stats/scope_stats.jsonl", "\n".join([*lines, ""]))
