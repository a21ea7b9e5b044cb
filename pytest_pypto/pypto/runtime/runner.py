"""Names that tools look up in `pypto.runtime.runner`; the work is done elsewhere."""

from __future__ import annotations

from .config import RunConfig
from .options import CompileOptions, DfxOptions, RunOptions
from .platforms import ExecutionMode
from .specs import RunResult

__all__ = ["CompileOptions", "DfxOptions", "ExecutionMode", "RunConfig", "RunOptions", "RunResult"]
