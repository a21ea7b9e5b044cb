"""What a pass is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..ir.program import Function, Program
from .context import PassContext
from .profiling import profile_stage
from .properties import IRPropertySet, PassProperties


@dataclass(frozen=True)
class Pass:
    """A transformation of a program; the input is not changed, untouched functions are shared by identity.

    Subclasses set `name` (the reference's name, as in dump files) and the three property sets, and implement `apply`.
    Calling a pass runs it between the hooks of the current `PassContext`.
    """

    name: ClassVar[str]
    requires: ClassVar[frozenset[str]] = frozenset()
    produces: ClassVar[frozenset[str]] = frozenset()
    invalidates: ClassVar[frozenset[str]] = frozenset()

    def apply(self, program: Program) -> Program:
        """The transformed program; `program` itself when nothing applies."""
        raise NotImplementedError(f"pass {type(self).__name__} must implement apply()")

    def __call__(self, program: Program) -> Program:
        """`apply` between the `run_before_pass` and `run_after_pass` hooks of the current context."""
        if not isinstance(program, Program):
            raise TypeError(f"pass {self.get_name()} takes an ir.Program, got {type(program).__name__}")
        context = PassContext.current()
        instruments = context.get_instruments() if context is not None else []
        for instrument in instruments:
            instrument.run_before_pass(self, program)
        with profile_stage(self.get_name()):
            made = self.apply(program)
        for instrument in instruments:
            instrument.run_after_pass(self, made)
        return made

    def get_name(self) -> str:
        """The name in dump files."""
        return self.name

    def get_required_properties(self) -> IRPropertySet:
        """What must hold before."""
        return IRPropertySet(self.requires)

    def get_produced_properties(self) -> IRPropertySet:
        """What holds afterwards."""
        return IRPropertySet(self.produces)

    def get_invalidated_properties(self) -> IRPropertySet:
        """What may no longer hold afterwards."""
        return IRPropertySet(self.invalidates)


@dataclass(frozen=True)
class FunctionPass(Pass):
    """A pass that looks at one function at a time."""

    def apply(self, program: Program) -> Program:
        """`apply_function` on every function."""
        return program.with_functions([self.apply_function(f, program) for f in program.functions.values()])

    def apply_function(self, func: Function, program: Program) -> Function:
        """The transformed function; `func` itself when nothing applies."""
        raise NotImplementedError(f"pass {type(self).__name__} must implement apply_function()")


@dataclass(frozen=True)
class CustomPass(Pass):
    """A pass made from a Python function, for users and tests."""

    title: str
    transform: Callable[[Any], Any]
    per_function: bool = False
    properties: PassProperties = field(default_factory=PassProperties)

    def get_name(self) -> str:
        """The name given at creation."""
        return self.title

    def get_required_properties(self) -> IRPropertySet:
        """The set given at creation."""
        return self.properties.required

    def get_produced_properties(self) -> IRPropertySet:
        """The set given at creation."""
        return self.properties.produced

    def get_invalidated_properties(self) -> IRPropertySet:
        """The set given at creation."""
        return self.properties.invalidated

    def apply(self, program: Program) -> Program:
        """The function applied to the program, or to each function of it."""
        if not self.per_function:
            made: Program = self.transform(program)
            return made
        return program.with_functions([self.transform(f) for f in program.functions.values()])


def create_program_pass(
    transform: Callable[[Program], Program], name: str = "", properties: PassProperties | None = None
) -> Pass:
    """A pass from a function on programs."""
    title = name or getattr(transform, "__name__", "program_pass")
    return CustomPass(title, transform, False, properties or PassProperties())


def create_function_pass(
    transform: Callable[[Function], Function], name: str = "", properties: PassProperties | None = None
) -> Pass:
    """A pass from a function on functions."""
    title = name or getattr(transform, "__name__", "function_pass")
    return CustomPass(title, transform, True, properties or PassProperties())
