"""`RunConfig`: the settings of compilation and dispatch in one object.

`platform`, `backend_type` and `enable_l2_swimlane` are constructor keywords and properties, not fields, so that
`dataclasses.replace` can change either axis of the platform without a warning.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

from ..backend import BackendType
from ..passes.context import MemoryPlanner
from ..passes.diagnostic_types import DiagnosticCheckSet, DiagnosticPhase
from ..passes.dumps import PassDumpLevel
from ..passes.manager import OptimizationStrategy
from .distributed import DistributedConfig
from .options import CompileOptions, DfxOptions, RunOptions, swimlane_level
from .platforms import ExecutionMode, parse_platform, platform_name
from .rings import RULES, checked_ring

_UNSET: Any = object()
HARNESS_FIELDS = ("rtol", "atol", "golden_data_dir", "save_kernels", "codegen_only")
"""Fields that only test harnesses read; they change neither a compile nor a dispatch."""


@dataclass(kw_only=True)
class RunConfig:
    """Settings of compilation, dispatch and diagnostics.

    `RunConfig(platform="a5")` sets both `arch` and `execution_mode` and wins over them. Ring sizes take one number
    for all four rings or a list of four, in which 0 keeps a ring's default.

    Raises:
        TypeError: an axis of the wrong type. ValueError: an unknown platform, level or ring size.
    """

    __test__: ClassVar[bool] = False

    arch: BackendType = BackendType.Ascend910B
    execution_mode: ExecutionMode = ExecutionMode.SIM
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    dump_passes: bool | PassDumpLevel = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: DiagnosticPhase | None = None
    disabled_diagnostics: DiagnosticCheckSet | None = None
    golden_data_dir: str | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | tuple[int, ...] | None = None
    ring_heap: int | list[int] | tuple[int, ...] | None = None
    ring_dep_pool: int | list[int] | tuple[int, ...] | None = None
    distributed_config: DistributedConfig | None = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: MemoryPlanner | None = None
    dump_ptoas_passes: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            platform: str | None = None,
            backend_type: BackendType | None = None,
            enable_l2_swimlane: int | None = None,
            **values: Any,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.arch, BackendType):
            raise TypeError(f"RunConfig.arch must be a BackendType (Ascend910B, Ascend950), got {self.arch!r}")
        if not isinstance(self.execution_mode, ExecutionMode):
            raise TypeError(f"execution_mode must be an ExecutionMode (ONBOARD, SIM), got {self.execution_mode!r}")
        self.enable_chip_swimlane = swimlane_level(self.enable_chip_swimlane)
        if self.any_dfx_enabled():
            self.save_kernels = True
        for rule in RULES:
            setattr(self, rule.field, checked_ring(rule, getattr(self, rule.field)))

    @property
    def platform(self) -> str:
        """The platform name that `arch` and `execution_mode` make."""
        return platform_name(self.arch, self.execution_mode)

    @property
    def backend_type(self) -> BackendType:
        """The architecture, in the compiler's word for it."""
        return self.arch

    def _get_l2_swimlane(self) -> int:
        """Deprecated name of `enable_chip_swimlane`."""
        return self.enable_chip_swimlane

    def _set_l2_swimlane(self, value: int) -> None:
        _warn_l2(3)
        self.enable_chip_swimlane = swimlane_level(value, "enable_l2_swimlane")

    enable_l2_swimlane = property(_get_l2_swimlane, _set_l2_swimlane)

    def compile_options(self) -> CompileOptions:
        """What compilation reads."""
        return CompileOptions(
            platform=self.platform,
            strategy=self.strategy,
            dump_passes=self.dump_passes,
            dump_ptoas_passes=self.dump_ptoas_passes,
            profiling=self.compile_profiling,
            diagnostic_phase=self.diagnostic_phase,
            disabled_diagnostics=self.disabled_diagnostics,
            analyze_auto_scopes_for_deps=self.analyze_auto_scopes_for_deps,
            output_dir=self.save_kernels_dir,
            memory_planner=self.memory_planner,
            distributed_config=self.distributed_config,
        )

    def compile_kwargs(self) -> dict[str, Any]:
        """Keyword arguments of `ir.compile`."""
        return self.compile_options().as_compile_kwargs()

    def dfx_options(self) -> DfxOptions:
        """What a dispatch records."""
        return DfxOptions(
            enable_chip_swimlane=self.enable_chip_swimlane,
            enable_dump_args=self.enable_dump_args,
            enable_pmu=self.enable_pmu,
            enable_dep_gen=self.enable_dep_gen,
            enable_scope_stats=self.enable_scope_stats,
        )

    def run_options(self) -> RunOptions:
        """What a dispatch reads."""
        return RunOptions(
            platform=self.platform,
            device_id=self.device_id,
            aicpu_thread_num=self.aicpu_thread_num,
            ring_task_window=_stored(self.ring_task_window),
            ring_heap=_stored(self.ring_heap),
            ring_dep_pool=_stored(self.ring_dep_pool),
            dfx=self.dfx_options(),
        )

    def any_dfx_enabled(self) -> bool:
        """True when a dispatch records something."""
        return self.dfx_options().any()


def _stored(value: int | list[int] | tuple[int, ...] | None) -> int | list[int] | None:
    return list(value) if isinstance(value, tuple) else value


def _warn_l2(stacklevel: int) -> None:
    text = "enable_l2_swimlane is deprecated; use enable_chip_swimlane (a level 0..4)"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel + 1)


def _accept_aliases() -> None:
    """Let the constructor take `platform`, `backend_type` and `enable_l2_swimlane`, which are no fields."""
    plain = RunConfig.__init__

    @wraps(plain)
    def init(
        self: RunConfig,
        *,
        platform: str | None = _UNSET,
        backend_type: BackendType | None = None,
        enable_l2_swimlane: int | None = None,
        **values: Any,
    ) -> None:
        if platform is not _UNSET:
            values["arch"], values["execution_mode"] = parse_platform(platform)
        arch = values.get("arch", BackendType.Ascend910B)
        if backend_type is not None and backend_type != arch:
            text = "RunConfig(backend_type=...) is deprecated and has never taken effect; use platform= or arch="
            warnings.warn(text, DeprecationWarning, stacklevel=2)
        if enable_l2_swimlane is not None:
            _warn_l2(2)
            if "enable_chip_swimlane" in values:
                raise ValueError(
                    "enable_l2_swimlane and enable_chip_swimlane are one setting; pass only enable_chip_swimlane"
                )
            values["enable_chip_swimlane"] = swimlane_level(enable_l2_swimlane, "enable_l2_swimlane")
        plain(self, **values)

    known = inspect.signature(plain)
    first = inspect.Parameter("platform", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
    shown = list(known.parameters.values())
    init.__signature__ = known.replace(parameters=[shown[0], first, *shown[1:]])  # type: ignore[attr-defined]
    RunConfig.__init__ = init  # type: ignore[method-assign]


_accept_aliases()
FIELD_NAMES = tuple(f.name for f in fields(RunConfig))
