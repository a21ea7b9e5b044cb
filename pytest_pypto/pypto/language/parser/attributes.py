"""Attribute dictionaries: `attrs={...}` of calls and loops, and `pl.func_attr({...})`."""

from __future__ import annotations

import ast
from enum import Enum
from typing import Any

from ...ir import expr as e
from ...ir.dtypes import DataType
from ...ir.enums import ArgDirection, SplitMode
from .context import Ctx
from .diagnostics import ParserSyntaxError, ParserTypeError
from .names import MISSING

_PLAIN = (bool, int, float, str)
_DECORATOR_KEYS = ("auto_scope", "external_source")
_INT_LISTS = ("arg_direction_overrides",)


def entries(ctx: Ctx, node: ast.expr, what: str) -> dict[str, ast.expr]:
    """Keys and value nodes of a dictionary literal with distinct string keys."""
    if not isinstance(node, ast.Dict):
        hint = 'write {"key": value}'
        ctx.fail(ParserSyntaxError, f"{what} takes a dictionary literal, got {ast.unparse(node)}", node, hint)
    found: dict[str, ast.expr] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            ctx.fail(ParserSyntaxError, f"keys of {what} are string literals", key or node, 'write {"key": value}')
        if key.value in found:
            ctx.fail(ParserSyntaxError, f"duplicate key '{key.value}' in {what}", key, "drop one of the two")
        found[key.value] = value
    return found


def call_attrs(ctx: Ctx, node: ast.expr) -> dict[str, Any]:
    """The attributes of a call, kept as they are written."""
    return {k: attr_value(ctx, v) for k, v in entries(ctx, node, "attrs=").items()}


def loop_attrs(ctx: Ctx, node: ast.expr) -> dict[str, Any]:
    """The attributes of a loop: literals only."""
    made = call_attrs(ctx, node)
    for key, value in made.items():
        if not isinstance(value, _PLAIN) and not ctx.program.printed:
            ctx.fail(ParserSyntaxError, f"loop attribute '{key}' must be a literal number, bool or string", node)
    return made


def attr_value(ctx: Ctx, node: ast.expr) -> Any:
    """One attribute value: a literal, dtype, enum member, direction, name, expression, or a list of these."""
    if isinstance(node, ast.Constant) and (node.value is None or type(node.value) in _PLAIN):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [attr_value(ctx, item) for item in node.elts]
    if isinstance(node, ast.Dict):
        hint = "values are numbers, strings, dtypes, enum members, names, expressions, and lists of these"
        ctx.fail(ParserSyntaxError, "an attribute value cannot be a dictionary", node, hint)
    if isinstance(node, (ast.Attribute, ast.Name)):
        value = ctx.constant(node)
        if isinstance(value, (DataType, Enum, str)):
            return value
    return ctx.value(node)


def func_attrs(ctx: Ctx, node: ast.Call) -> dict[str, Any]:
    """The attributes that one `pl.func_attr({...})` gives a function."""
    if len(node.args) != 1 or node.keywords:
        ctx.fail(ParserSyntaxError, "pl.func_attr() takes one dictionary literal", node)
    return dict_attrs(ctx, node.args[0])


def dict_attrs(ctx: Ctx, node: ast.expr) -> dict[str, Any]:
    """Function attributes in a dictionary literal."""
    return {
        key: value
        for key, item in entries(ctx, node, "pl.func_attr()").items()
        if (value := _func_attr(ctx, key, item)) is not MISSING
    }


def _func_attr(ctx: Ctx, key: str, node: ast.expr) -> Any:
    if key in _DECORATOR_KEYS:
        hint = f"write @pl.function({key}=...)"
        ctx.fail(ParserSyntaxError, f"'{key}' is a keyword of the decorator, not a pl.func_attr() key", node, hint)
    value = attr_value(ctx, node)
    if key == "split":
        return _split(ctx, value, node)
    if isinstance(value, list):
        _check_list(ctx, key, value, node)
    return value


def _split(ctx: Ctx, value: Any, node: ast.expr) -> Any:
    if not isinstance(value, SplitMode):
        good = ", ".join(f"pl.SplitMode.{m.name}" for m in SplitMode)
        ctx.fail(ParserTypeError, f"'split' takes a pl.SplitMode, got {ast.unparse(node)}", node, f"one of {good}")
    return value.value if value is not SplitMode.NONE else MISSING


def _check_list(ctx: Ctx, key: str, values: list[Any], node: ast.expr) -> None:
    if key in _INT_LISTS and all(type(v) is int for v in values):
        return
    if all(isinstance(v, (e.Var, ArgDirection)) for v in values):
        return
    ctx.wrong(
        f"Unsupported list element type for key: {key}. A list-valued attr under an arbitrary key may hold Var (a "
        "reference) or ArgDirection. Integer lists are accepted only for the reserved key 'arg_direction_overrides'.",
        node,
    )
