"""Where compile time goes: a tree of stages, written as `pipeline_profile.{txt,json}`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, ClassVar

_TITLE = "PyPTO Compile Profile"


@dataclass
class Stage:
    """One stage; `seconds` includes the children."""

    name: str
    seconds: float = 0.0
    children: list[Stage] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """`{"name", "seconds", "children"}`, seconds rounded to 6 digits."""
        children = [c.to_dict() for c in self.children]
        return {"name": self.name, "seconds": round(self.seconds, 6), "children": children}


def format_seconds(seconds: float) -> str:
    """`81us`, `4.2ms` or `1.234s`."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}us"
    return f"{seconds * 1e3:.1f}ms" if seconds < 1 else f"{seconds:.3f}s"


class CompileProfiler:
    """Collects stages while active on this thread; the outermost active profiler gets them."""

    _local: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self._open: list[Stage] = []
        self._outer: CompileProfiler | None = None

    @classmethod
    def current(cls) -> CompileProfiler | None:
        """The profiler in force on this thread, or None."""
        found: CompileProfiler | None = getattr(cls._local, "active", None)
        return found

    def __enter__(self) -> CompileProfiler:
        self._outer = self.current()
        self._local.active = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._local.active = self._outer

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Time a block as a child of the stage that is open."""
        stage = Stage(name)
        (self._open[-1].children if self._open else self.stages).append(stage)
        self._open.append(stage)
        start = perf_counter()
        try:
            yield stage
        finally:
            stage.seconds = perf_counter() - start
            self._open.pop()

    def add_stage_record(self, name: str, seconds: float, children: list[Stage] | None = None) -> Stage:
        """Add a stage that was timed elsewhere (in a worker, say)."""
        stage = Stage(name, seconds, list(children or []))
        (self._open[-1].children if self._open else self.stages).append(stage)
        return stage

    @property
    def total_seconds(self) -> float:
        """Sum of the outermost stages."""
        return sum(s.seconds for s in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """`{"total_seconds", "stages"}`."""
        return {"total_seconds": round(self.total_seconds, 6), "stages": [s.to_dict() for s in self.stages]}

    def to_json(self, path: str | Path, indent: int = 2) -> None:
        """Write `to_dict` as JSON with a final newline."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=indent) + "\n", encoding="utf-8")

    def summary(self) -> str:
        """The tree as text, with each stage's share of the total."""
        total = self.total_seconds
        lines = [_TITLE, "=" * 22, f"Total: {format_seconds(total)}", ""]
        stack = [(s, 0) for s in reversed(self.stages)]
        while stack:
            stage, depth = stack.pop()
            share = f"  ({100 * stage.seconds / total:5.1f}%)" if total else ""
            lines.append(f"{'  ' * (depth + 1)}{stage.name:<28} {format_seconds(stage.seconds):>10}{share}")
            stack += [(c, depth + 1) for c in reversed(stage.children)]
        return "\n".join(lines) + "\n"

    def write_report(self, directory: str | Path) -> None:
        """Write `pipeline_profile.txt` and `pipeline_profile.json` into `directory`, which is made."""
        target = Path(directory)
        target.mkdir(parents=True, exist_ok=True)
        (target / "pipeline_profile.txt").write_text(self.summary(), encoding="utf-8")
        self.to_json(target / "pipeline_profile.json")


def get_active_profiler() -> CompileProfiler | None:
    """The active profiler; with `PYPTO_COMPILE_PROFILING=1` one is made when there is none."""
    found = CompileProfiler.current()
    if found is None and os.environ.get("PYPTO_COMPILE_PROFILING", "").lower() in ("1", "true", "yes"):
        found = CompileProfiler._local.active = CompileProfiler()
    return found


@contextmanager
def profile_stage(name: str) -> Iterator[None]:
    """Time a block when a profiler is active, else do nothing."""
    profiler = get_active_profiler()
    if profiler is None:
        yield
        return
    with profiler.stage(name):
        yield
