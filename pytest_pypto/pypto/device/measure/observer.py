"""What a profile listens to, and names that the files share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..machine.dtypes import NAMES
from ..machine.gm import GlobalBuffer

if TYPE_CHECKING:
    from ..host.graph import Task
    from ..host.session import Session
    from ..mixed.task import TaskRun
    from ..run_context import RunContext

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
        self.ids: dict[str, int] = {}
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


def name_map(ids: dict[str, int]) -> str:
    """Text of the file that gives kernels their names."""
    names = {str(number): name for name, number in ids.items()}
    return json.dumps({"level": 2, "orchestrator_name": None, "callable_id_to_name": names})
