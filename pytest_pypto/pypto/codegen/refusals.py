"""Programs that cannot be built here, refused by name before anything is written."""

from __future__ import annotations

from ..ir.enums import Level, level_to_linqu_level
from ..ir.expr import Call
from ..ir.program import Function, Program
from ..ir.stmt import CommDomainScopeStmt
from ..ir.types import DistributedTensorType
from ..ir.visitor import calls_in, walk_stmts
from .errors import CodegenError

_NEXT = (
    "distributed programs (several chips) are outside the embedded compiler; "
    "compile the chip-level part on its own, or use an installed PyPTO with its runtime"
)
_MAX_NAME = 180
"""Characters of a function name: with what the passes add it stays below the 255 bytes of a file name."""
_PREFIXES = ("pld.", "builtin.tensor.", "prefetch.")


def refuse_distributed(program: Program) -> None:
    """Check that a program stays on one chip.

    Raises:
        CodegenError: names the function and the construct that needs several.
    """
    for func in program.functions.values():
        construct = _construct(func)
        if construct is not None:
            raise CodegenError(f"function '{func.name}' uses {construct}: {_NEXT}", func.span)


def refuse_names(program: Program) -> None:
    """Check that the functions can give their names to files, to symbols of `.pto` text and to C++ functions.

    Raises:
        CodegenError: quotes the name, at the function.
    """
    for func in program.functions.values():
        why = ""
        if not func.name.isascii():
            why = f"has {next(c for c in func.name if not c.isascii())!r}"
        elif len(func.name) > _MAX_NAME:
            why = f"has {len(func.name)} characters"
        if why:
            raise CodegenError(
                f"function name '{func.name[:_MAX_NAME]}' {why}: it names files and symbols, so use ASCII letters, "
                f"digits and '_', at most {_MAX_NAME}",
                func.span,
            )


def _construct(func: Function) -> str | None:
    if func.level is not None and level_to_linqu_level(func.level) >= level_to_linqu_level(Level.HOST):
        return f"level pl.Level.{func.level.name}"
    for param in func.params:
        if isinstance(param.type, DistributedTensorType):
            return f"the distributed tensor '{param.name_hint}'"
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, CommDomainScopeStmt):
            return "a communication domain"
    for call in calls_in(func.body):
        if isinstance(call, Call) and call.op.name.startswith(_PREFIXES):
            return f"operator '{call.op.name}'"
    return None
