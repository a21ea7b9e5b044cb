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
