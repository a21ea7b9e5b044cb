"""Instruments: what may happen between two passes (dumps, verification, reports, user hooks)."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from ..ir.program import Program
from .diagnostic_types import Diagnostic, DiagnosticCheckSet, DiagnosticPhase
from .properties import STRUCTURAL, IRPropertySet

if TYPE_CHECKING:
    from .base import Pass

Hook = Callable[["Pass", Program], None]


class VerificationMode(Enum):
    """When a `VerificationInstrument` checks."""

    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class PassInstrument:
    """Base of the instruments; the hooks do nothing."""

    def __init__(self, name: str = "") -> None:
        self.name = name or type(self).__name__

    def get_name(self) -> str:
        """The name given at creation."""
        return self.name

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        """Called with the program a pass is about to see."""

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Called with the program a pass has made."""

    def run_after_pipeline(self, program: Program) -> None:
        """Called with the result of a pipeline."""


class CallbackInstrument(PassInstrument):
    """Calls two plain functions."""

    def __init__(
        self, before_pass: Hook | None = None, after_pass: Hook | None = None, name: str = "CallbackInstrument"
    ) -> None:
        super().__init__(name)
        self._before, self._after = before_pass, after_pass

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        """Call the first function."""
        if self._before is not None:
            self._before(pass_, program)

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Call the second function."""
        if self._after is not None:
            self._after(pass_, program)


class VerificationInstrument(PassInstrument):
    """Checks what a pass requires (before it), what it produces (after it), and the structural properties."""

    def __init__(self, mode: VerificationMode) -> None:
        super().__init__()
        self.mode = mode

    def run_before_pass(self, pass_: Pass, program: Program) -> None:
        """Check the required properties.

        Raises:
            VerificationError: one does not hold.
        """
        from .verification import verify_properties

        if self.mode in (VerificationMode.BEFORE, VerificationMode.BEFORE_AND_AFTER):
            wanted = pass_.get_required_properties().union_with(IRPropertySet(STRUCTURAL))
            verify_properties(wanted, program, f"before {pass_.get_name()}")

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Check the produced properties.

        Raises:
            VerificationError: one does not hold.
        """
        from .verification import verify_properties

        if self.mode in (VerificationMode.AFTER, VerificationMode.BEFORE_AND_AFTER):
            wanted = pass_.get_produced_properties().union_with(IRPropertySet(STRUCTURAL))
            verify_properties(wanted, program, pass_.get_name())


class RoundtripInstrument(PassInstrument):
    """Prints, parses and compares the program after every pass."""

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Check the round trip.

        Raises:
            VerificationError: the text does not load, or gives another program or another text.
        """
        from .verification import verify_roundtrip

        verify_roundtrip(program, pass_.get_name())


def make_roundtrip_instrument() -> PassInstrument:
    """An instrument that checks the round trip after every pass."""
    return RoundtripInstrument()


class DiagnosticInstrument(PassInstrument):
    """Collects warnings and hints after every pass, in `diagnostics`."""

    def __init__(self, checks: DiagnosticCheckSet | None = None) -> None:
        super().__init__()
        self.checks = checks
        self.diagnostics: list[Diagnostic] = []

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Run the checks."""
        from .diagnostics import DiagnosticCheckRegistry

        checks = self.checks or DiagnosticCheckRegistry.get_all_checks()
        self.diagnostics += DiagnosticCheckRegistry.run_checks(checks, DiagnosticPhase.POST_PASS, program)


class ReportInstrument(PassInstrument):
    """Writes a report of memory use after address assignment into a directory."""

    def __init__(self, output_dir: str) -> None:
        super().__init__()
        self._dir = str(output_dir)

    def get_output_dir(self) -> str:
        """The directory."""
        return self._dir

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Write `memory_after_<Pass>.txt` after a pass that assigns addresses."""
        from .memory_report import memory_report

        if "AllocatedMemoryAddr" in pass_.produces:
            target = Path(self._dir)
            target.mkdir(parents=True, exist_ok=True)
            (target / f"memory_after_{pass_.get_name()}.txt").write_text(memory_report(program), encoding="utf-8")
