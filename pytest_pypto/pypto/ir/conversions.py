"""User rules that turn tensor operators into tile operators; the lowering to tiles asks here first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import expr as e
from . import stmt as s
from .span import Span

Rule = Callable[[Sequence[e.Expr], dict[str, Any], "ConversionContext"], e.Expr]

_renamed: dict[str, str] = {}
_custom: dict[str, Rule] = {}


class ConversionContext:
    """Statements that a rule emits in front of the converted call."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._stmts: list[s.Stmt] = []

    @property
    def stmts(self) -> list[s.Stmt]:
        """What has been emitted."""
        return list(self._stmts)

    def let(self, name: str, value: e.Expr) -> e.Var:
        """Emit `name = value` and give the variable."""
        var = e.Var(name, value.type, self.span)
        self.emit(s.AssignStmt(var, value, self.span))
        return var

    def emit(self, stmt: s.Stmt) -> None:
        """Emit a statement."""
        self._stmts.append(stmt)


def register_op_conversion(from_op: str, to_op: str) -> None:
    """`from_op` becomes `to_op` with the same operands."""
    _renamed[from_op] = to_op


def register_op_conversion_custom(from_op: str, func: Rule) -> None:
    """`from_op` becomes what `func(args, kwargs, context)` gives."""
    _custom[from_op] = func


def op_conversion(from_op: str) -> Callable[[Rule], Rule]:
    """`@op_conversion("tensor.my_op")` registers the decorated rule."""

    def register(func: Rule) -> Rule:
        register_op_conversion_custom(from_op, func)
        return func

    return register


def has_op_conversion(op_name: str) -> bool:
    """True when a rule for this operator is registered."""
    return op_name in _custom or op_name in _renamed


def convert(call: e.Call, args: Sequence[e.Expr]) -> tuple[list[s.Stmt], e.Expr] | None:
    """The statements and the value that the registered rule gives for `call` on `args`, or None without a rule."""
    name = call.op.name
    context = ConversionContext(call.span)
    if name in _custom:
        value = _custom[name](args, dict(call.kwargs), context)
        return context.stmts, value
    if name in _renamed:
        from .op_table import create_op_call

        return [], create_op_call(_renamed[name], list(args), call.kwargs, span=call.span)
    return None


def clear_op_conversions() -> None:
    """Forget every registered rule."""
    _renamed.clear()
    _custom.clear()
