"""IR as executable Python: `torch_codegen` and the names that go with it."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr, Var
from ..ir.program import Function, Program
from ..ir.stmt import Stmt
from . import catalog
from .emit.exprs import ExprWriter
from .emit.function import FunctionWriter, Options
from .errors import UnsupportedOpError
from .names import NameTable, semantic_key
from .ops import OP_MAP as _OP_MAP
from .ops.system import split_mode_to_int as _split_mode_to_int
from .plan.plan import Plan
from .script import write_script
from .select import SSA_SUFFIX_RE as _SSA_SUFFIX_RE
from .select import select_entry_function as _select_entry_function

_PREAMBLE: str = catalog.whole()


def torch_codegen(
    node: Program | Function,
    check_shapes: bool = False,
    *,
    source_positions: bool = False,
    trace: bool = False,
) -> str:
    """Python source that computes what the IR means, with torch and the standard library only.

    `exec` of the text in a dict leaves one callable per function. Parameters are positional and include outputs, which
    are written in place. The text depends on the IR alone.

    Args:
        node: a program, or a function on its own.
        check_shapes: assert types of arguments, and shapes and types after each assignment.
        source_positions: end each line with the place of the kernel line it comes from.
        trace: call `_TRACE(function, name, value)` of the namespace after each assignment and merge.

    Raises:
        TypeError: `node` is neither.
        UnsupportedOpError: an operator without a handler (a ValueError).
        ValueError: a call of a missing function, or a construct without a meaning on one device.
    """
    if not isinstance(node, (Program, Function)):
        raise TypeError(f"torch_codegen expects an ir.Program or ir.Function, got {type(node).__name__}")
    return write_script(node, Options(bool(check_shapes), source_positions, trace)).text


class TorchCodegen:
    """The generator of one function after another; mainly for looking at names and single expressions."""

    def __init__(self, check_shapes: bool = False) -> None:
        self._options = Options(check_shapes)
        self._names = NameTable()

    def _unique_name(self, hint: str) -> str:
        return self._names.unique(hint)

    @staticmethod
    def _var_semantic_key(var: Var) -> tuple[Any, ...]:
        return semantic_key(var)

    def visit_function(self, func: Function) -> str:
        """The lines of one function; names start anew."""
        self._names = NameTable((func.name,))
        return FunctionWriter(Plan(func), func, self._options).write().text

    def visit_expr(self, expr: Expr) -> str:
        """The text of one expression, with the names given so far."""
        empty = Function("_", [], [], _nothing())
        return ExprWriter(Plan(empty), None, self._names, self._hoisted, False).text(expr)

    @staticmethod
    def _hoisted(text: str) -> str:
        return f"({text})"


def _nothing() -> Stmt:
    from ..ir.stmt import SeqStmts

    return SeqStmts(())


__all__ = [
    "_OP_MAP",
    "_PREAMBLE",
    "_SSA_SUFFIX_RE",
    "TorchCodegen",
    "UnsupportedOpError",
    "_select_entry_function",
    "_split_mode_to_int",
    "torch_codegen",
]
