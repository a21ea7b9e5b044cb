"""The three views of a `RunConfig`: what compilation reads, what a dispatch reads, what a dispatch records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..passes.context import MemoryPlanner
from ..passes.diagnostic_types import DiagnosticCheckSet, DiagnosticPhase
from ..passes.dumps import PassDumpLevel
from ..passes.manager import OptimizationStrategy

if TYPE_CHECKING:
    from .distributed import DistributedConfig

SWIMLANE_LEVELS = range(5)
_ALWAYS = (
    *("platform", "strategy", "dump_passes", "dump_ptoas_passes", "profiling"),
    *("diagnostic_phase", "disabled_diagnostics", "analyze_auto_scopes_for_deps"),
)
_WHEN_SET = ("output_dir", "memory_planner", "distributed_config")


def swimlane_level(value: object, name: str = "enable_chip_swimlane") -> int:
    """A swimlane setting as a level 0..4; True is the highest level.

    Raises:
        TypeError: not a number. ValueError: out of range.
    """
    if isinstance(value, bool):
        return SWIMLANE_LEVELS[-1] if value else 0
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a bool or an int, got {value!r}")
    if value not in SWIMLANE_LEVELS:
        raise ValueError(f"{name} must be a collection level in [0, {SWIMLANE_LEVELS[-1]}], got {value}")
    return value


@dataclass(frozen=True)
class CompileOptions:
    """The compile side, in the words of `ir.compile`: unpack `as_compile_kwargs()` into it."""

    platform: str = "a2a3sim"
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    dump_passes: bool | PassDumpLevel = False
    dump_ptoas_passes: bool = False
    profiling: bool = False
    diagnostic_phase: DiagnosticPhase | None = None
    disabled_diagnostics: DiagnosticCheckSet | None = None
    analyze_auto_scopes_for_deps: bool = False
    output_dir: str | None = None
    memory_planner: MemoryPlanner | None = None
    distributed_config: DistributedConfig | None = None

    def as_compile_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of `ir.compile`. Options that defer to an active `PassContext` are left out when unset."""
        given = {key: getattr(self, key) for key in _WHEN_SET if getattr(self, key) is not None}
        return {key: getattr(self, key) for key in _ALWAYS} | given


@dataclass(frozen=True)
class DfxOptions:
    """Which diagnostics a dispatch collects.

    Attributes:
        enable_chip_swimlane: level 0..4 of task timing; True means 4.
        enable_dump_args: 0 off, 1 tagged tensors, 2 every argument.
        enable_pmu: 0 off, else the event type.
        enable_dep_gen: record the task graph.
        enable_scope_stats: record ring use per scope.

    Raises:
        TypeError, ValueError: a swimlane level that is no level.
    """

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "enable_chip_swimlane", swimlane_level(self.enable_chip_swimlane))

    def any(self) -> bool:
        """True when something is collected."""
        levels = self.enable_chip_swimlane > 0 or self.enable_dump_args > 0 or self.enable_pmu > 0
        return bool(levels or self.enable_dep_gen or self.enable_scope_stats)


@dataclass(frozen=True)
class RunOptions:
    """The dispatch side. Dispatch entries take a `RunConfig` and derive this view themselves."""

    platform: str = "a2a3sim"
    device_id: int = 0
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None
    dfx: DfxOptions = field(default_factory=DfxOptions)
