"""`ir.compile`: passes, code generation, artifact, handle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..backend import BackendType, set_backend_type
from ..codegen import CodegenOptions, PartialCodegenError, artifact_files
from ..codegen.artifact import write_files
from ..codegen.metadata import META_NAME
from ..codegen.options import source_locations_wanted
from ..codegen.refusals import refuse_distributed, refuse_names
from ..ir.program import Program
from ..logs import child_log
from ..passes.context import (
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    runtime_kind_to_name,
)
from ..passes.diagnostic_types import Diagnostic, DiagnosticCheckSet, DiagnosticPhase, DiagnosticSeverity
from ..passes.dumps import PassDumpLevel
from ..passes.instruments import PassInstrument
from ..passes.manager import OptimizationStrategy, PassManager
from ..passes.profiling import CompileProfiler, get_active_profiler, profile_stage
from .build_directory import exclusive, forget_earlier_build, make_directory
from .compiled import CompiledProgram
from .distributed import DistributedConfig
from .platforms import ExecutionMode, parse_platform, platform_name

_log = child_log("compile")
_told: set[str] = set()


def compile_program(
    program: Program,
    *,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType = BackendType.Ascend910B,
    skip_ptoas: bool = False,
    verification_level: VerificationLevel | None = None,
    diagnostic_phase: DiagnosticPhase | None = None,
    disabled_diagnostics: DiagnosticCheckSet | None = None,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: RuntimeKind | None = None,
) -> CompiledProgram:
    """Compile a program into an artifact directory.

    Args:
        program: the only positional argument; a `@pl.program` class gives one.
        output_dir: the artifact directory; None makes `<name>_<timestamp>` below `PYPTO_PROG_BUILD_DIR`, or below
            `build_output`. A given directory is never cleared.
        strategy: the pass list; `Default` is the only one.
        dump_passes: IR text after every pass in `passes_dump/`; True means `PassDumpLevel.CONCISE`.
        backend_type: the architecture when no platform is given.
        skip_ptoas: stop at `.pto` text. Without an assembler that is what happens anyway.
        verification_level: how much is checked between passes; None asks the active context, else the environment.
        diagnostic_phase: when warnings and hints are collected; None as above.
        disabled_diagnostics: checks to leave out.
        memory_planner: who plans on-chip memory; None asks the active context, else PYPTO.
        enable_pypto_l0c_double_buffer: double-buffered accumulators; None asks the active context.
        profiling: write `report/pipeline_profile.{txt,json}`.
        platform: `a2a3sim`, `a5sim`, `a2a3` or `a5`; wins over `backend_type`.
        distributed_config: devices of a program above chip level, which is refused here.
        analyze_auto_scopes_for_deps: derive task dependencies in AUTO scopes.
        emit_source_loc: source places in the `.pto` text; None asks `PYPTO_EMIT_PTO_LOC`, else yes.
        dump_ptoas_passes: IR of the assembler; without one there is none.
        runtime: runtime the artifact is for; None asks the active context.

    Raises:
        TypeError: no program. ValueError: unknown platform or strategy, or an error of a pass at the user's line.
        RuntimeError: an option that an active `PassContext` already decides.
        PartialCodegenError: some kernels cannot be written; the other files are on disk.
    """
    return _compiled(_Request(**locals()))


@dataclass(frozen=True)
class _Request:
    """The arguments of one `compile_program`; see there."""

    program: Program
    output_dir: str | os.PathLike[str] | None
    strategy: OptimizationStrategy
    dump_passes: bool | PassDumpLevel
    backend_type: BackendType
    skip_ptoas: bool
    verification_level: VerificationLevel | None
    diagnostic_phase: DiagnosticPhase | None
    disabled_diagnostics: DiagnosticCheckSet | None
    memory_planner: MemoryPlanner | None
    enable_pypto_l0c_double_buffer: bool | None
    profiling: bool
    platform: str | None
    distributed_config: DistributedConfig | None
    analyze_auto_scopes_for_deps: bool
    emit_source_loc: bool | None
    dump_ptoas_passes: bool
    runtime: RuntimeKind | None

    def __post_init__(self) -> None:
        if not isinstance(self.program, Program):
            raise TypeError(
                f"ir.compile() takes an ir.Program, got {type(self.program).__name__}; "
                "decorate the class with @pl.program, or call kernel.compile(...) for a @pl.jit kernel"
            )
        if not isinstance(self.strategy, OptimizationStrategy):
            raise ValueError(f"Unsupported optimization strategy {self.strategy!r}; use OptimizationStrategy.Default")

    def target(self) -> tuple[BackendType, str]:
        """Architecture and platform."""
        if self.platform is None:
            return self.backend_type, platform_name(self.backend_type, ExecutionMode.SIM)
        return parse_platform(self.platform)[0], self.platform

    def context(self) -> PassContext:
        """The context that the passes run in."""
        return _context(
            "compile",
            verification_level=self.verification_level,
            diagnostic_phase=self.diagnostic_phase,
            memory_planner=self.memory_planner,
            runtime=self.runtime,
            disabled_diagnostics=self.disabled_diagnostics,
            enable_pypto_l0c_double_buffer=self.enable_pypto_l0c_double_buffer,
            instruments=[],
        )

    def codegen(self, context: PassContext) -> CodegenOptions:
        """How the artifact is written."""
        kind = context.get_runtime()
        return CodegenOptions(
            emit_source_loc=source_locations_wanted(self.emit_source_loc),
            baked_addresses=context.get_memory_planner() is not MemoryPlanner.PTOAS,
            compile_only=self.skip_ptoas and kind is RuntimeKind.TENSORMAP_AND_RINGBUFFER,
            runtime=runtime_kind_to_name(kind),
        )


def _compiled(asked: _Request) -> CompiledProgram:
    level = PassDumpLevel.of(asked.dump_passes)
    arch, target = asked.target()
    set_backend_type(arch)
    directory = make_directory(asked.program, asked.output_dir)
    context = asked.context()
    (directory / "report").mkdir(exist_ok=True)
    if not asked.skip_ptoas:
        _tell_once("no assembler", _NO_PTOAS)
    refuse_distributed(asked.program)
    refuse_names(asked.program)
    with exclusive(directory), _profiler(asked.profiling, directory):
        forget_earlier_build(directory)
        analyze = asked.analyze_auto_scopes_for_deps
        lowered = _run_passes(asked.program, context, directory, level, asked.strategy, analyze)
        _generate(lowered, asked.program, directory, target, asked.codegen(context))
        return handle(asked.program, directory, arch, target)


_NO_PTOAS = (
    "the embedded compiler has no assembler (ptoas): artifacts stop at .pto text, as with skip_ptoas=True; "
    "the simulated device runs them as they are. Pass skip_ptoas=True to say so"
)


def _tell_once(key: str, text: str) -> None:
    """Log a warning the first time only."""
    if key not in _told:
        _told.add(key)
        _log.warning(text)


def lower_program(
    program: Program,
    *,
    platform: str | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    diagnostic_phase: DiagnosticPhase | None = None,
    disabled_diagnostics: DiagnosticCheckSet | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: MemoryPlanner | None = None,
) -> Program:
    """The program after all passes; writes nothing. Errors as for `compile_program`."""
    if platform is not None:
        set_backend_type(parse_platform(platform)[0])
    context = _context(
        "lower",
        verification_level=None,
        diagnostic_phase=diagnostic_phase,
        memory_planner=memory_planner,
        runtime=None,
        disabled_diagnostics=disabled_diagnostics,
        enable_pypto_l0c_double_buffer=None,
        instruments=[],
    )
    with context:
        manager = PassManager.get_strategy(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)
        return manager.run_passes(program)


def _context(
    caller: str,
    *,
    verification_level: VerificationLevel | None,
    diagnostic_phase: DiagnosticPhase | None,
    memory_planner: MemoryPlanner | None,
    runtime: RuntimeKind | None,
    disabled_diagnostics: DiagnosticCheckSet | None,
    enable_pypto_l0c_double_buffer: bool | None,
    instruments: list[PassInstrument],
) -> PassContext:
    """The context the passes run in: explicit values, else those of an active context, else the defaults.

    Raises:
        RuntimeError: an explicit value although a context is active.
    """
    outer = PassContext.current()
    exclusive = {
        "verification_level": verification_level,
        "diagnostic_phase": diagnostic_phase,
        "memory_planner": memory_planner,
        "runtime": runtime,
    }
    given = next((name for name, value in exclusive.items() if value is not None), None)
    if outer is not None and given is not None:
        raise RuntimeError(
            f"{caller}() was called with {given} while a PassContext is already active. "
            f"Set {given} on that PassContext instead, or leave the context first"
        )
    base = outer if outer is not None else PassContext()
    double = enable_pypto_l0c_double_buffer
    return PassContext(
        [*base.get_instruments(), *instruments],
        verification_level or base.get_verification_level(),
        diagnostic_phase or base.get_diagnostic_phase(),
        disabled_diagnostics if disabled_diagnostics is not None else base.get_disabled_diagnostics(),
        memory_planner or base.get_memory_planner(),
        base.get_enable_pypto_l0c_double_buffer() if double is None else double,
        runtime or base.get_runtime(),
    )


@contextmanager
def _profiler(wanted: bool, directory: Path) -> Iterator[None]:
    """Collect stage times and write them, unless an outer profiler owns them."""
    if not wanted or get_active_profiler() is not None:
        yield
        return
    with CompileProfiler() as profiler:
        try:
            yield
        finally:
            profiler.write_report(directory / "report")


def _run_passes(
    program: Program,
    context: PassContext,
    directory: Path,
    level: PassDumpLevel,
    strategy: OptimizationStrategy,
    analyze: bool,
) -> Program:
    with context:
        manager = PassManager.get_strategy(strategy, analyze_auto_scopes_for_deps=analyze)
        try:
            folder = str(directory / "passes_dump")
            return manager.run_passes(program, dump_ir=level, output_dir=folder)
        finally:
            _write_hints(manager.diagnostics, directory / "report" / "perf_hints.log")


def _write_hints(found: list[Diagnostic], path: Path) -> None:
    """Append the performance hints to the log, and say so in one line."""
    hints = [d for d in found if d.severity is DiagnosticSeverity.PerfHint]
    if not hints:
        return
    with path.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as log:
        log.writelines(f"{hint}\n" for hint in hints)
    sites = len({str(h.span) for h in hints})
    _log.info("[perf_hint] %d hints across %d sites; see %s", len(hints), sites, path)


def _generate(lowered: Program, source: Program, directory: Path, target: str, options: CodegenOptions) -> None:
    with profile_stage("codegen"):
        try:
            files = artifact_files(lowered, platform=target, options=options, source=source)
        except PartialCodegenError as problem:
            report = {"report/codegen_errors.txt": f"{problem}\n"}
            write_files(directory, {**problem.files, **report})
            raise
        metas = {path: text for path, text in files.items() if path.endswith(META_NAME)}
        write_files(directory, {path: text for path, text in files.items() if path not in metas})
        write_files(directory, metas)


def handle(program: Program, directory: Path, arch: BackendType, target: str) -> CompiledProgram:
    """The handle of an artifact that is complete but for its `debug/run.py`, which is written."""
    from .debug.run_script_writer import write_run_script

    compiled = CompiledProgram(program, directory, backend_type=arch, platform=target)
    parts = [compiled[name] for name in compiled.orchestration_names]
    for part in parts or (compiled,):
        write_run_script(part.output_dir, part.params, target)
    return compiled
