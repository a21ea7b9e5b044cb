"""`args_dump/`: what tasks were given and what they made."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.enums import ArgDirection
from ..machine.gm import GmArg, dense_strides
from .observer import Observer, dtype_name

if TYPE_CHECKING:
    from ..host.graph import Task
    from ..host.session import Session
    from ..mixed.task import TaskRun
    from ..run_context import RunContext

_ROLES = {
    ArgDirection.Input: "in",
    ArgDirection.NoDep: "in",
    ArgDirection.InOut: "inout",
    ArgDirection.Output: "out",
    ArgDirection.OutputExisting: "out",
}


class ArgsDump(Observer):
    """`args_dump/`: arguments of tasks before and after, densely in logical order."""

    def __init__(self, run: RunContext) -> None:
        super().__init__(run)
        self.level = run.settings.dfx.dump_args
        self.rows: list[dict[str, Any]] = []
        self.data = bytearray()

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
