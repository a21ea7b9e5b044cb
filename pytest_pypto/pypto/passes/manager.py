"""Running the passes: `PassPipeline` runs a list, `PassManager` knows the list of a strategy and writes dumps."""

from __future__ import annotations

from enum import Enum

from ..ir.program import Program
from ..logs import child_log
from .base import Pass
from .context import MemoryPlanner, PassContext, VerificationLevel, active_planner
from .diagnostic_types import Diagnostic, DiagnosticPhase
from .dumps import DumpInstrument, PassDumpLevel
from .hints import collecting
from .instruments import PassInstrument
from .pipeline import default_passes
from .profiling import profile_stage
from .properties import AUTOMATIC, STRUCTURAL, IRPropertySet

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassManager", "PassPipeline"]

_log = child_log("passes")


class OptimizationStrategy(Enum):
    """Which passes run."""

    Default = "Default"


class _Checks(PassInstrument):
    """What a pipeline does between passes by itself: verification and diagnostics, as the context asks."""

    def __init__(self, context: PassContext, dumps: DumpInstrument | None) -> None:
        super().__init__("pipeline checks")
        self.level = context.get_verification_level()
        self.phase = context.get_diagnostic_phase()
        self.disabled = context.get_disabled_diagnostics()
        self.dumps = dumps
        self.verified = IRPropertySet()
        self.found: list[Diagnostic] = []

    def start(self, program: Program) -> None:
        """Diagnostics of the input; check what always holds."""
        self._diagnose(DiagnosticPhase.PRE_PIPELINE, program)
        self._verify(IRPropertySet(STRUCTURAL & AUTOMATIC), program, "the pipeline's input")

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Check what the pass promises, and the round trip when asked."""
        self.verified = self.verified.difference(pass_.get_invalidated_properties())
        wanted = pass_.get_produced_properties().intersection(IRPropertySet(AUTOMATIC))
        self._verify(wanted.difference(self.verified), program, pass_.get_name())
        if self.level is VerificationLevel.ROUNDTRIP:
            from .verification import verify_roundtrip

            verify_roundtrip(program, pass_.get_name())
        found = self._diagnose(DiagnosticPhase.POST_PASS, program)
        if found and self.dumps is not None:
            self.dumps.log(found, pass_)

    def run_after_pipeline(self, program: Program) -> None:
        """Diagnostics of the result."""
        self._diagnose(DiagnosticPhase.POST_PIPELINE, program)

    def _verify(self, wanted: IRPropertySet, program: Program, where: str) -> None:
        if self.level is VerificationLevel.NONE or wanted.empty():
            return
        from .verification import verify_properties

        verify_properties(wanted, program, where)
        self.verified = self.verified.union_with(wanted)

    def _diagnose(self, phase: DiagnosticPhase, program: Program) -> list[Diagnostic]:
        from .diagnostics import checks_for, report, run_checks

        if self.level is VerificationLevel.NONE or self.phase is DiagnosticPhase.NONE:
            return []
        found = run_checks(checks_for(phase, self.phase).difference(self.disabled), program)
        report(found, phase)
        self.found += found
        return found


class PassPipeline:
    """A list of passes, run in order under the current `PassContext`.

    At verification level BASIC or ROUNDTRIP every property that a pass produces is checked after it when it can be
    (`properties.AUTOMATIC`); ROUNDTRIP also checks that the program survives print, parse and print after every pass.
    After `run`, `diagnostics` holds the warnings and hints of the run.
    """

    def __init__(self, passes: list[Pass] | None = None) -> None:
        self._passes = list(passes or [])
        self.diagnostics: list[Diagnostic] = []

    def add_pass(self, pass_obj: Pass) -> None:
        """Append a pass."""
        self._passes.append(pass_obj)

    def get_passes(self) -> list[Pass]:
        """The passes, in order."""
        return list(self._passes)

    def get_pass_names(self) -> list[str]:
        """Their names, in order."""
        return [p.get_name() for p in self._passes]

    def run(self, program: Program, dumps: DumpInstrument | None = None) -> Program:
        """The program after all passes.

        Raises:
            VerificationError: a pass broke a promise.
            ValueError, TypeError: a pass met something it cannot handle; the text names the place.
        """
        outer = PassContext.current() or PassContext()
        checks = _Checks(outer, dumps)
        self.diagnostics = checks.found
        own: list[PassInstrument] = [checks] if dumps is None else [dumps, checks]
        with outer.nested(own) as context, collecting(checks.found), profile_stage("passes"):
            checks.start(program)
            for pass_ in self._passes:
                program = pass_(program)
            for instrument in context.get_instruments():
                instrument.run_after_pipeline(program)
        return program


class PassManager:
    """The passes of a strategy, for the memory planner that is active when the manager is made."""

    def __init__(
        self,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> None:
        if not isinstance(strategy, OptimizationStrategy):
            raise ValueError(f"unknown strategy {strategy!r}; use OptimizationStrategy.Default")
        self.strategy = strategy
        self.planner = active_planner()
        self.passes = default_passes(self.planner, analyze_auto_scopes_for_deps)
        self.pass_names = [p.get_name() for p in self.passes]
        self.diagnostics: list[Diagnostic] = []

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """A manager for `strategy`; dependency analysis of AUTO scopes is added on request."""
        return cls(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)

    def get_pass_names(self) -> list[str]:
        """Names in order of execution; dumps are numbered by it, from 1."""
        return list(self.pass_names)

    def run_passes(
        self,
        input_ir: Program,
        dump_ir: bool | PassDumpLevel = False,
        output_dir: str | None = None,
        prefix: str = "pl",
    ) -> Program:
        """The program after all passes.

        Args:
            input_ir: The program as the front end made it.
            dump_ir: Whether to write `00_frontend.py` and `NN_after_<Pass>.py`; True means CONCISE.
            output_dir: The directory that gets the dump files themselves; it is made.
            prefix: Module alias in the dumps.

        Raises:
            ValueError: dumps without a directory, or of something that is no Program.
            RuntimeError: another memory planner is active than when the manager was made.
        """
        level = PassDumpLevel.of(dump_ir)
        planner = active_planner()
        if planner is not self.planner:
            raise RuntimeError(
                f"this PassManager was made for memory planner {self.planner.name}, but {planner.name} is active; "
                "call PassManager.get_strategy(...) inside the PassContext that runs it"
            )
        if planner is MemoryPlanner.PTOAS:
            _log.warning("memory_planner=PTOAS: passes that reuse and place buffers are skipped, ptoas plans memory")
        pipeline = PassPipeline(self.passes)
        try:
            return pipeline.run(input_ir, self._dumps(input_ir, level, output_dir, prefix))
        finally:
            self.diagnostics = pipeline.diagnostics

    def _dumps(self, program: Program, level: PassDumpLevel, out: str | None, prefix: str) -> DumpInstrument | None:
        if level is PassDumpLevel.NONE:
            return None
        if out is None:
            raise ValueError("dump_ir needs output_dir: the directory for 00_frontend.py and NN_after_<Pass>.py")
        if not isinstance(program, Program):
            raise ValueError(f"only an ir.Program can be dumped, got {type(program).__name__}")
        return DumpInstrument(out, program, level, prefix)
