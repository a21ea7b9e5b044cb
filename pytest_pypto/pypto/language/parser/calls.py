"""Calls: what the callee is, and the calls that are not operators (constants, casts, attributes of dtypes)."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir.dtypes import DataType
from ...ir.program import Function
from ...ir.types import ScalarType, Type
from .annotations import dtype_of
from .constants import dotted
from .context import EXPRESSIONS, INT_MAX, INT_MIN, TOO_BIG, Ctx, Value
from .diagnostics import InvalidOperationError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from .expressions import apply_scalar
from .function_calls import call_function, call_inline, submit
from .names import MISSING
from .operator_calls import argument, call_operator

Special: TypeAlias = Callable[[Ctx, ast.Call, "Type | None"], Value]


def _call(ctx: Ctx, node: ast.Call) -> Value:
    want, ctx.want = ctx.want, None
    func = node.func
    if isinstance(func, ast.Name):
        return _bare(ctx, node, func, want)
    if not isinstance(func, ast.Attribute):
        _no_call(ctx, node)
    if isinstance(func.value, ast.Name) and func.value.id == "self":
        return call_function(ctx, node, func.attr, want=want)
    path = ctx.path(func)
    if path is None or func.attr in ("get_byte", "get_bit"):
        return _method(ctx, node, func)
    special = _SPECIAL.get(path[1]) if path[0] == "pl" else None
    if special is not None:
        return special(ctx, node, want)
    return call_operator(ctx, node, path, want)


def _no_call(ctx: Ctx, node: ast.Call) -> NoReturn:
    hint = "inside a @pl.function call pl operators, self.<function>(...), or a name decorated with @pl.inline"
    ctx.fail(UnsupportedFeatureError, f"Unsupported function call: {ast.unparse(node)}", node, hint)


def _bare(ctx: Ctx, node: ast.Call, func: ast.Name, want: Type | None) -> Value:
    if ctx.scopes.find(func.id) is not None:
        _no_call(ctx, node)
    value = ctx.closure.get(func.id)
    if isinstance(value, Function):
        return call_function(ctx, node, func.id, value, want)
    if value is not MISSING and hasattr(value, "func_def") and hasattr(value, "param_names"):
        return call_inline(ctx, node, value)
    if value is MISSING and func.id in _BUILTINS:
        return _BUILTINS[func.id](ctx, node)
    if value is MISSING and func.id in ctx.program.functions:
        return call_function(ctx, node, func.id, hint_self=True)
    _no_call(ctx, node)


def _float(ctx: Ctx, node: ast.Call) -> Value:
    """`float("inf")`, `float("-inf")`, `float("nan")`: the printed form of constants that have no literal."""
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(only, ast.Constant) and only.value in ("inf", "-inf", "nan"):
        return float(only.value)
    _no_call(ctx, node)


def _abs(ctx: Ctx, node: ast.Call) -> Value:
    if len(node.args) != 1 or node.keywords:
        _no_call(ctx, node)
    return apply_scalar(ctx, ops.abs_, (ctx.expr(node.args[0]),), node)


_BUILTINS: dict[str, Callable[[Ctx, ast.Call], Value]] = {"float": _float, "abs": _abs}


def _method(ctx: Ctx, node: ast.Call, func: ast.Attribute) -> Value:
    """`pl.FP32.get_byte()`; anything else on a value is no part of the language."""
    owner = ctx.constant(func.value)
    if isinstance(owner, DataType) and func.attr in ("get_byte", "get_bit") and not node.args:
        return e.index(getattr(owner, func.attr)(), ctx.span(node))
    text = dotted(func)
    root = (text or "").split(".")[0]
    outer = ctx.closure.get(root) if root else MISSING
    if ctx.scopes.find(root) is None and outer is not MISSING:
        value = ctx.constant(func)
        if isinstance(value, Function):
            return call_function(ctx, node, value.name, value)
        _no_call(ctx, node)
    shown = ast.unparse(node)
    hint = f"values have no methods: write pl.{func.attr}({ast.unparse(func.value)}, ...)"
    ctx.fail(UnsupportedFeatureError, f"Unsupported operation call: {shown}", node, hint)


def _const(ctx: Ctx, node: ast.Call, want: Type | None) -> Value:
    """`pl.const(value, dtype)`: a constant that keeps its dtype."""
    parts = list(node.args) + [k.value for k in node.keywords if k.arg in ("value", "dtype")]
    if len(parts) != 2 or len(node.keywords) > 2:
        ctx.fail(ParserSyntaxError, "pl.const() takes a number and a dtype, as in pl.const(7, pl.INT32)", node)
    value, dtype = ctx.value(parts[0]), dtype_of(ctx, parts[1])
    if isinstance(value, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        value = value.value
    span = ctx.span(node)
    if type(value) is bool:
        return e.ConstBool(value, span) if dtype is DataType.BOOL else e.ConstInt(int(value), dtype, span)
    if type(value) is int:
        if not INT_MIN <= value <= INT_MAX:
            ctx.fail(ParserTypeError, "integer constant does not fit in 64 bits", parts[0], TOO_BIG)
        ctx.fitting(value, dtype, parts[0])
        return e.ConstBool(bool(value), span) if dtype is DataType.BOOL else e.ConstInt(value, dtype, span)
    if type(value) is float:
        if dtype.is_int() and not math.isfinite(value):
            ctx.fail(ParserTypeError, f"{value} is no {dtype}", parts[0], "write a finite number, or a float dtype")
        if dtype.is_int():
            ctx.fitting(int(value), dtype, parts[0])
        return e.ConstFloat(value, dtype, span)
    hint = "for a variable write pl.cast(x, dtype)"
    ctx.fail(ParserTypeError, f"pl.const() takes a number, got {ast.unparse(parts[0])}", parts[0], hint)


def _scalar_pair(name: str, make: Callable[..., e.Expr]) -> Special:
    """`pl.min(a, b)` and the like when both operands are scalars; otherwise the operator of that name."""

    def handler(ctx: Ctx, node: ast.Call, want: Type | None) -> Value:
        if len(node.args) != 2 or node.keywords:
            return call_operator(ctx, node, ("pl", name), want)
        values = [argument(ctx, a) for a in node.args]
        if all(_is_scalar(v) for v in values):
            left, right = (ctx.lift(v, a) for v, a in zip(values, node.args, strict=True))
            return apply_scalar(ctx, make, (left, right), node)
        return call_operator(ctx, node, ("pl", name), want, values)

    return handler


def _is_scalar(value: Value) -> bool:
    return isinstance(value.type, ScalarType) if isinstance(value, e.Expr) else type(value) in (int, float)


def _cast(ctx: Ctx, node: ast.Call, want: Type | None) -> Value:
    if not node.args:
        return call_operator(ctx, node, ("pl", "cast"), want)
    operand = argument(ctx, node.args[0])
    if len(node.args) == 2 and not node.keywords and _is_scalar(operand):
        return e.Cast(ctx.lift(operand, node.args[0]), dtype_of(ctx, node.args[1]), ctx.span(node))
    return call_operator(ctx, node, ("pl", "cast"), want, [operand, *(argument(ctx, a) for a in node.args[1:])])


def _misplaced(message: str, hint: str) -> Special:
    def handler(ctx: Ctx, node: ast.Call, want: Type | None) -> Value:
        ctx.fail(ParserSyntaxError, message, node, hint)

    return handler


def _no_dep(ctx: Ctx, node: ast.Call, want: Type | None) -> Value:
    hint = "write self.kernel(pl.no_dep(x), ...)"
    ctx.fail(InvalidOperationError, "pl.no_dep() is for an argument of a function call", node, hint)


_SPECIAL: dict[str, Special] = {
    "const": _const,
    "cast": _cast,
    "min": _scalar_pair("min", ops.min_),
    "max": _scalar_pair("max", ops.max_),
    "submit": submit,
    "spmd_submit": submit,
    "no_dep": _no_dep,
    "yield_": _misplaced(
        "pl.yield_() stands alone on the right of an assignment or as a statement", "write v = pl.yield_(e)"
    ),
    "cond": _misplaced("pl.cond() is the first statement of a pl.while_() body", "use the condition directly"),
    "func_attr": _misplaced("pl.func_attr() is a statement", "write it on a line of its own"),
}
for _name in ("range", "parallel", "unroll", "pipeline", "while_", "spmd", "split_aiv"):
    _SPECIAL[_name] = _misplaced(f"pl.{_name}() is for loops", f"write for ... in pl.{_name}(...):")
for _name in ("at", "cluster", "scope", "manual_scope"):
    _SPECIAL[_name] = _misplaced(f"pl.{_name}() opens a scope", f"write with pl.{_name}(...):")
EXPRESSIONS[ast.Call] = _call
