"""What a pass is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.program import Function, Program


@dataclass(frozen=True)
class Pass:
    """A transformation of a program; the input is not changed, untouched functions are shared by identity.

    Subclasses set `name` (the reference's name, as in dump files) and the three property sets, and implement `apply`.
    """

    name: ClassVar[str]
    requires: ClassVar[frozenset[str]] = frozenset()
    produces: ClassVar[frozenset[str]] = frozenset()
    invalidates: ClassVar[frozenset[str]] = frozenset()

    def apply(self, program: Program) -> Program:
        """The transformed program; `program` itself when nothing applies."""
        raise NotImplementedError(f"pass {type(self).__name__} must implement apply()")


@dataclass(frozen=True)
class FunctionPass(Pass):
    """A pass that looks at one function at a time."""

    def apply(self, program: Program) -> Program:
        """`apply_function` on every function."""
        return program.with_functions([self.apply_function(f, program) for f in program.functions.values()])

    def apply_function(self, func: Function, program: Program) -> Function:
        """The transformed function; `func` itself when nothing applies."""
        raise NotImplementedError(f"pass {type(self).__name__} must implement apply_function()")
