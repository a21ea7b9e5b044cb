"""Timing of compile stages; see `pypto.passes.profiling`."""

from __future__ import annotations

from .passes.profiling import CompileProfiler, Stage, get_active_profiler, profile_stage

__all__ = ["CompileProfiler", "Stage", "get_active_profiler", "profile_stage"]
