"""Calls that are statements of their own: yields, static checks, function attributes, dump marks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType
from ...ir.types import TensorType
from .context import Ctx
from .diagnostics import InvalidOperationError, ParserError, ParserSyntaxError
from .expressions import unsupported


def _bare_yield(ctx: Ctx, node: ast.Call) -> None:
    values = tuple(ctx.expr(a) for a in node.args)
    if ctx.yields:
        ctx.yields[-1].bare = True
    ctx.emit(s.YieldStmt(values, ctx.span(node)))


def _late_func_attr(ctx: Ctx, node: ast.Call) -> None:
    message = f"pl.func_attr() must appear before every other statement in '{ctx.name}'"
    ctx.fail(ParserSyntaxError, message, node, "move it to the head of the body")


def _static_print(ctx: Ctx, node: ast.Call) -> None:
    """Print at parse time: `static_print [file:line]: ...`."""
    span = ctx.span(node)
    shown = " ".join(_shown(ctx, a) for a in node.args)
    sys.stdout.write(f"static_print [{span.filename}:{span.begin_line}]: {shown}\n")


def _shown(ctx: Ctx, node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_piece(ctx, part, node) for part in node.values)
    value = ctx.value(node)
    if isinstance(value, e.Var):
        return f"{value.name_hint}: {value.type}"
    return str(value)


def _piece(ctx: Ctx, part: ast.expr, whole: ast.JoinedStr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    assert isinstance(part, ast.FormattedValue)
    if part.conversion != -1 or part.format_spec is not None:
        ctx.fail(ParserSyntaxError, "f-strings of pl.static_print() take no conversions or format specs", whole)
    return _shown(ctx, part.value)


def _static_assert(ctx: Ctx, node: ast.Call) -> None:
    if not 1 <= len(node.args) <= 2 or node.keywords:
        ctx.fail(ParserSyntaxError, "pl.static_assert() takes a condition and an optional message", node)
    if _static_truth(ctx, node.args[0]):
        return
    text = "static_assert failed"
    if len(node.args) == 2:
        message = node.args[1]
        if not isinstance(message, (ast.Constant, ast.JoinedStr)):
            unsupported(ctx, message)
        text += f": {_shown(ctx, message)}"
    ctx.fail(ParserError, text, node, "the condition is false for the constants it was parsed with")


def _static_truth(ctx: Ctx, node: ast.expr) -> bool:
    """The truth of a compile-time constant condition."""
    if isinstance(node, ast.BoolOp):
        values = [_static_truth(ctx, v) for v in node.values]
        return all(values) if isinstance(node.op, ast.And) else any(values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _static_truth(ctx, node.operand)
    if isinstance(node, ast.Compare):
        parts = [static_number(ctx, p) for p in (node.left, *node.comparators)]
        pairs = zip(node.ops, parts, parts[1:], strict=False)
        return all(_holds(ctx, op, a, b, node) for op, a, b in pairs)
    return bool(static_number(ctx, node))


def _holds(ctx: Ctx, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> bool:
    import operator

    table: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
    }
    if type(op) not in table:
        ctx.fail(ParserSyntaxError, "Only simple comparisons supported", node, "use == != < <= > >=")
    return table[type(op)](left, right)


def static_number(ctx: Ctx, node: ast.expr) -> Any:
    """The number or bool that an expression is at parse time.

    Raises:
        ParserSyntaxError: it is not known before the program runs.
    """
    from .constants import NotConstant, evaluate

    try:
        return evaluate(node, ctx.constant)
    except NotConstant:
        value = ctx.value(node)
    if isinstance(value, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        return value.value
    if isinstance(value, e.Expr):
        from ...ir.extents import linear

        constant, terms = linear(value)
        if not terms:
            return constant
        message = f"static condition is no compile-time constant: {ast.unparse(node)}"
        ctx.fail(ParserSyntaxError, message, node, "compare literals, names from outside and static extents")
    return value


def _dump_tag(ctx: Ctx, node: ast.Call) -> None:
    """Mark a tensor: later calls that use it get a `dump_vars` attribute."""
    if ctx.func_type not in (FunctionType.Orchestration, FunctionType.Inline):
        message = "pl.dump_tag() is for Orchestration and Inline functions"
        ctx.fail(InvalidOperationError, message, node, "add type=pl.FunctionType.Orchestration")
    var = ctx.expr(node.args[0]) if len(node.args) == 1 else None
    if not isinstance(var, e.Var) or not isinstance(var.type, TensorType):
        ctx.fail(ParserSyntaxError, "pl.dump_tag() takes the name of a tensor", node)
    ctx.dumps.append(var)


def _late_cond(ctx: Ctx, node: ast.Call) -> None:
    message = "pl.cond() must be the first statement of a pl.while_() body"
    ctx.fail(ParserSyntaxError, message, node, "there is one pl.cond() per loop")


SPECIAL_STATEMENTS: dict[str, Callable[[Ctx, ast.Call], None]] = {
    "yield_": _bare_yield,
    "func_attr": _late_func_attr,
    "static_print": _static_print,
    "static_assert": _static_assert,
    "dump_tag": _dump_tag,
    "cond": _late_cond,
}
