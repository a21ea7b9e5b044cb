"""`deps.json` and `scope_stats.jsonl`: the task graph and the rings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...ir.enums import ArgDirection
from ..machine.gm import GlobalBuffer, GmArg
from .observer import Observer, dtype_name, name_map

if TYPE_CHECKING:
    from ..host.graph import Task
    from ..host.session import Session
    from ..run_context import RunContext


class Deps(Observer):
    """`deps.json`: tasks, tensors and the edges between tasks."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.tensors: dict[int, dict[str, Any]] = {}

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
        self.write(f"name_map_{self.directory.parent.name}.json", name_map(self.ids))


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
