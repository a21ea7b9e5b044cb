"""Extents in annotations: shapes, and the index expressions of views and memrefs."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...ir import expr as e
from ...ir.dtypes import INDEX
from ...ir.span import UNKNOWN
from ...ir.types import ScalarType
from ..typing import DynVar, Scalar
from .constants import NotConstant, evaluate
from .context import INT_MAX, Ctx
from .diagnostics import ParserTypeError, UndefinedVariableError
from .names import MISSING

FREE_SUFFIX = "__FREE_VAR"


def dim_list(ctx: Ctx, items: Sequence[Any], place: ast.expr | None = None) -> tuple[e.Expr, ...]:
    """Extents of a shape: AST nodes, or values of a closure list."""
    return tuple(_dim(ctx, i) if isinstance(i, ast.expr) else dim_value(ctx, i, place) for i in items)


def _dim(ctx: Ctx, node: ast.expr) -> e.Expr:
    if type(node) is ast.Constant:
        return dim_value(ctx, node.value, node)
    if isinstance(node, ast.Name):
        return _named_dim(ctx, node)
    if _has_dsl_call(node):
        return ctx.expr(node)
    try:
        return dim_value(ctx, evaluate(node, lambda n: _dim_lookup(ctx, n)), node)
    except NotConstant:
        pass
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript)):
        return index_expr(ctx, node)
    ctx.fail(ParserTypeError, f"Unsupported shape dimension: {ast.unparse(node)}", node, _DIM_HINT)


_DIM_HINT = "an extent is an integer, a name bound to one, a pl.dynamic(...) symbol, or arithmetic of these"


def _dim_lookup(ctx: Ctx, node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and ctx.closure.get(node.id) is MISSING:
        return MISSING
    return ctx.constant(node)


def _named_dim(ctx: Ctx, node: ast.Name) -> e.Expr:
    value = ctx.closure.get(node.id)
    if value is not MISSING:
        return dim_value(ctx, value, node)
    var = ctx.scopes.find(node.id)
    if var is None and ctx.program.live and node.id not in ctx.program.symbols:
        ctx.undefined(node.id, node)
    return free_symbol(ctx, node) if var is None else dim_value(ctx, var, node)


def free_symbol(ctx: Ctx, node: ast.Name) -> e.Expr:
    """The dynamic extent that an unknown name in a type stands for.

    Raises:
        UndefinedVariableError: the name marks a variable that the text uses without defining it, or only running the
            text would define it.
        ParserTypeError: it is the name of a language module, or `self`.
    """
    if node.id in ctx.program.aliases or node.id == "self":
        ctx.fail(ParserTypeError, f"Unsupported shape dimension: {node.id} is no extent", node, _DIM_HINT)
    if node.id in ctx.program.skipped:
        ctx.undefined(node.id, node)
    if node.id.endswith(FREE_SUFFIX) and ctx.program.free_names != "symbols":
        ctx.fail(
            UndefinedVariableError,
            f"'{node.id}' is used but nothing defines it: the text was printed from broken IR",
            node,
            'load it with free_names="symbols" to look at it anyway',
        )
    return ctx.symbol(node.id)


def dim_value(ctx: Ctx, value: Any, node: ast.expr | None) -> e.Expr:
    """A Python value as an extent: an int, a `DynVar`, an integer scalar, or an IR expression."""
    place = node if node is not None else ast.Constant(value=None)
    if type(value) is int:
        if not -1 <= value <= INT_MAX:
            ctx.fail(ParserTypeError, f"an extent cannot be {value}", node, _DIM_HINT)
        return e.ConstInt(value, INDEX, ctx.span(place) if node is not None else UNKNOWN)
    if isinstance(value, DynVar):
        return shared_symbol(ctx, value)
    if isinstance(value, Scalar):
        value = value.unwrap()
    if isinstance(value, e.Expr):
        return value
    shown = ast.unparse(node) if node is not None else repr(value)
    ctx.fail(ParserTypeError, f"Unsupported shape dimension: {shown} is {type(value).__name__}", node, _DIM_HINT)


def shared_symbol(ctx: Ctx, value: DynVar) -> e.Var:
    """The one variable of a symbol's name in this text: the parameter of that name when the function has one."""
    own = ctx.symbol_params.get(value.name)
    if own is not None:
        return own
    ctx.used_symbols.add(value.name)
    found = ctx.program.symbols.get(value.name)
    if found is None:
        made = value.unwrap()
        assert isinstance(made, e.Var)
        found = ctx.program.symbols[value.name] = made
    return found


def _has_dsl_call(node: ast.expr) -> bool:
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) for n in ast.walk(node))


def evaluated_shape(ctx: Ctx, node: ast.expr) -> tuple[e.Expr, ...]:
    """A shape given by an expression over closure values, such as `SHAPE[:2]` or `[M] + REST`."""
    try:
        value = evaluate(node, lambda n: _dim_lookup(ctx, n))
    except NotConstant:
        value = None
    if not isinstance(value, (list, tuple)):
        hint = "write the extents as a list, or name a list from outside the function"
        ctx.fail(ParserTypeError, f"Unsupported shape: {ast.unparse(node)}", node, hint)
    return dim_list(ctx, value, node)


def index_expr(ctx: Ctx, node: ast.expr) -> e.Expr:
    """An index expression of a view, offset or slot: unknown bare names are dynamic extents."""
    if type(node) is ast.Constant and type(node.value) is int:
        return dim_value(ctx, node.value, node)
    if isinstance(node, ast.Name):
        var = ctx.scopes.find(node.id)
        if var is not None:
            return dim_value(ctx, var, node)
        value = ctx.closure.get(node.id)
        return free_symbol(ctx, node) if value is MISSING else dim_value(ctx, value, node)
    missing = [n for n in ast.walk(node) if isinstance(n, ast.Name) and _unknown(ctx, n.id)]
    if missing:
        ctx.scopes.push()
        for name in missing:
            symbol = free_symbol(ctx, name)
            assert isinstance(symbol, e.Var)
            ctx.scopes.frames[-1].names[name.id] = symbol
    try:
        made = ctx.expr(node)
    finally:
        if missing:
            ctx.scopes.frames.pop()
    if not isinstance(made.type, ScalarType) or not made.type.dtype.is_int():
        message = f"Expected an integer expression, got {ast.unparse(node)} of type {made.type}"
        ctx.fail(ParserTypeError, message, node, _DIM_HINT)
    return made


def _unknown(ctx: Ctx, name: str) -> bool:
    if name in ctx.program.aliases or ctx.scopes.find(name) is not None:
        return False
    return ctx.closure.get(name) is MISSING and name not in ("min", "max", "len", "abs", "float", "int")
