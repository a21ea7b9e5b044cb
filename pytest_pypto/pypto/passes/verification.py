"""Checking IR properties, and the text round trip.

`RULES` maps a property to the function that yields its violations. A property without an entry is a promise that no
check exists for; asking for it checks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..ir.program import Program
from ..ir.span import UNKNOWN, Span
from .base import Pass
from .diagnostic_types import Diagnostic, DiagnosticSeverity
from .properties import AUTOMATIC, STANDALONE, STRUCTURAL, IRProperty, IRPropertySet
from .verify_flow import FLOW_RULES
from .verify_hosts import HOST_RULES
from .verify_kernels import KERNEL_RULES
from .verify_launches import LAUNCH_RULES
from .verify_types import TYPE_RULES

Rule = Callable[[Program], Iterable[Diagnostic]]
RULES: dict[IRProperty, Rule] = {
    IRProperty[k]: v for k, v in (FLOW_RULES | TYPE_RULES | KERNEL_RULES | HOST_RULES | LAUNCH_RULES).items()
}


class VerificationError(ValueError):
    """A program lacks a property it should have.

    `pass_name` says after which pass, `property` which promise (`Roundtrip` for the text round trip), `code` is the
    number of the first violation, `span` its place, `diagnostics` all of them.
    """

    def __init__(self, pass_name: str, property: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.pass_name = pass_name
        self.property = property
        self.diagnostics = list(diagnostics)
        first = self.diagnostics[0] if self.diagnostics else None
        self.code = first.error_code if first else 0
        self.span: Span = first.span if first else UNKNOWN
        super().__init__(
            f"IR verification failed after {pass_name}: {property}\n" + "\n".join(f"  {d}" for d in self.diagnostics)
        )


class PropertyVerifierRegistry:
    """Runs the checks of properties."""

    @staticmethod
    def verify(properties: IRPropertySet, program: Program) -> list[Diagnostic]:
        """All violations of the properties."""
        return [d for p in properties if p in RULES for d in RULES[p](program)]

    @staticmethod
    def verify_or_throw(properties: IRPropertySet, program: Program) -> None:
        """Check the properties.

        Raises:
            VerificationError: one does not hold.
        """
        verify_properties(properties, program, "(no pass)")

    @staticmethod
    def generate_report(diagnostics: Sequence[Diagnostic]) -> str:
        """The diagnostics as text, one per line, with a count."""
        if not diagnostics:
            return "IR verification passed: no violations\n"
        lines = [f"IR verification found {len(diagnostics)} violation(s):", *(f"  {d}" for d in diagnostics)]
        return "\n".join(lines) + "\n"


def verify_properties(properties: IRPropertySet, program: Program, pass_name: str) -> None:
    """Check properties one after the other.

    Raises:
        VerificationError: the first one that does not hold, with all its violations.
    """
    for prop in properties:
        rule = RULES.get(prop)
        found = list(rule(program)) if rule is not None else []
        if found:
            raise VerificationError(pass_name, prop.name, found)


def verify_roundtrip(program: Program, pass_name: str) -> None:
    """Check print -> parse: the loaded program is structurally equal and prints the same text.

    Raises:
        VerificationError: there is no text, it does not load, or it gives another program or another text.
    """
    from ..ir.printer import python_print
    from ..ir.structural import assert_structural_equal
    from ..language.parser import parse

    try:
        text = python_print(program, format=False)
    except Exception as error:
        raise _roundtrip_error(pass_name, f"the program cannot be printed: {error}") from error
    try:
        loaded = parse(text, filename=f"<{pass_name}>")
    except Exception as error:
        raise _roundtrip_error(pass_name, f"the printed program does not load: {error}") from error
    try:
        assert_structural_equal(program, loaded)
    except ValueError as error:
        raise _roundtrip_error(pass_name, f"the printed program loads as another program: {error}") from error
    again = python_print(loaded, format=False)
    if again != text:
        raise _roundtrip_error(pass_name, f"the loaded program prints differently: {_first_difference(text, again)}")


def _roundtrip_error(pass_name: str, message: str) -> VerificationError:
    return VerificationError(pass_name, "Roundtrip", [Diagnostic(DiagnosticSeverity.Error, "Roundtrip", message)])


def _first_difference(a: str, b: str) -> str:
    left, right = a.splitlines(), b.splitlines()
    for i, (x, y) in enumerate(zip(left, right, strict=False), 1):
        if x != y:
            return f"line {i}\n    printed:   {x.strip()}\n    reprinted: {y.strip()}"
    return f"{len(left)} lines against {len(right)}"


@dataclass(frozen=True)
class RunVerifier(Pass):
    """A pass that checks properties and changes nothing."""

    name = "RunVerifier"
    properties: tuple[IRProperty, ...]

    def apply(self, program: Program) -> Program:
        """Check.

        Raises:
            VerificationError: a property does not hold.
        """
        verify_properties(IRPropertySet(self.properties), program, self.name)
        return program


def run_verifier(properties: IRPropertySet | None = None) -> Pass:
    """A pass that checks `properties` (default: `get_default_verify_properties()`)."""
    chosen = get_default_verify_properties() if properties is None else properties
    return RunVerifier(tuple(chosen))


def get_default_verify_properties() -> IRPropertySet:
    """What `run_verifier` checks when nothing is named."""
    return IRPropertySet(STANDALONE)


def get_structural_properties() -> IRPropertySet:
    """Properties that always hold."""
    return IRPropertySet(STRUCTURAL)


def get_verified_properties() -> IRPropertySet:
    """Properties that a pipeline checks by itself."""
    return IRPropertySet(AUTOMATIC)
