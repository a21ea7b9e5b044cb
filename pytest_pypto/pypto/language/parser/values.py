"""Values that a text may define at module level, made without running it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ...ir import types as t
from ...ir.expr import MemRef
from .. import typing as wrappers
from .constants import ENUMS, NotConstant, constant_of, evaluate
from .context import Ctx
from .diagnostics import ParserError, ParserSyntaxError
from .names import MISSING, Closure
from .scope_options import member
from .text import Source


@dataclass
class InlineFunction:
    """A function whose statements are spliced into its callers."""

    name: str
    func_def: ast.FunctionDef
    param_names: list[str]
    source_file: str
    source_lines: list[str]
    line_offset: int
    col_offset: int
    closure_vars: Any


def inline_function(source: Source, node: ast.FunctionDef, closure: Closure) -> InlineFunction:
    """The inline function that a `def` in a text describes."""
    params = [a.arg for a in node.args.args]
    return InlineFunction(node.name, node, params, source.filename, source.lines, 0, 0, closure.layers[0])


def imported(name: str) -> Any:
    """What `from pypto.language import <name>` binds when it is a dtype, enum or annotation class, or `MISSING`."""
    if name in ENUMS:
        return ENUMS[name]
    value = constant_of(name)
    if value is not MISSING:
        return value
    found = getattr(wrappers, name, MISSING)
    if isinstance(found, type) and name[:1].isupper():
        return found
    return getattr(t, name, MISSING) if name.endswith("View") else MISSING


@dataclass(frozen=True, slots=True)
class SplitOption:
    """`pl.split(mode)` kept in a variable."""

    mode: Any
    slot_num: int | None = None


@dataclass(frozen=True, slots=True)
class SlotOption:
    """`pl.cross_core_slot(slot_num=N)` kept in a variable."""

    slot_num: int


def made_by_call(ctx: Ctx, name: str, node: ast.Call) -> Any:
    """The value of `pl.dynamic("M")`, `pl.MemRef(...)`, `pl.split(...)` and the like, or `MISSING`."""
    if name == "dynamic":
        return _dynamic(ctx, node)
    if name == "MemRef":
        return _memref(ctx, node)
    if name in ("split", "optimizations.split"):
        from ...ir.enums import SplitMode

        if len(node.args) == 1:
            return SplitOption(member(ctx, node.args[0], SplitMode, "pl.split()"))
    if name in ("cross_core_slot", "optimizations.cross_core_slot"):
        given = [*node.args, *(k.value for k in node.keywords)]
        if len(given) == 1 and isinstance(given[0], ast.Constant) and type(given[0].value) is int:
            return SlotOption(given[0].value)
    if name in ("TensorView", "TileView"):
        return _view(ctx, name, node)
    if name == "const":
        return ctx.value(node)
    return MISSING


def _dynamic(ctx: Ctx, node: ast.Call) -> Any:
    only = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if not isinstance(only, ast.Constant) or not isinstance(only.value, str):
        ctx.fail(ParserSyntaxError, "pl.dynamic() takes the name of a symbol, as in pl.dynamic('M')", node)
    try:
        return wrappers.dynamic(only.value)
    except ValueError as exc:
        ctx.fail(ParserSyntaxError, str(exc), only, "a symbol is named like a variable")


_DECLARED = 'write pl.MemRef("name") or pl.MemRef("name", slots=2)'


def _memref(ctx: Ctx, node: ast.Call) -> Any:
    slots, name = 1, ""
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        if keyword.arg == "slots" and type(value) is int and value >= 1:
            slots = value
        elif keyword.arg == "name" and isinstance(value, str):
            name = value
        else:
            ctx.fail(ParserSyntaxError, f"Unsupported pl.MemRef arguments: {ast.unparse(node)}", node, _DECLARED)
    if node.args:
        first = node.args[0]
        if len(node.args) > 1 or not isinstance(first, ast.Constant) or not isinstance(first.value, str):
            return MISSING
        name = first.value
        if not name:
            ctx.fail(ParserSyntaxError, "the name of a pl.MemRef must not be empty", first, _DECLARED)
    return MemRef(name, 0, 0, ctx.span(node), True, slots)


def _view(ctx: Ctx, name: str, node: ast.Call) -> Any:
    from .views import tensor_view, tile_view

    try:
        return tensor_view(ctx, node) if name == "TensorView" else tile_view(ctx, node, (), None)
    except ParserError:
        return MISSING


def annotation_value(ctx: Ctx, node: ast.expr) -> Any:
    """A type alias such as `T = pl.Tensor[[64, 64], pl.FP32]`, a `pl.*` class, or `MISSING`."""
    from .annotations import resolve

    if isinstance(node, ast.Subscript) and ctx.path(node.value) is not None:
        try:
            return resolve(ctx, node).type
        except ParserError:
            return MISSING
    if isinstance(node, (ast.List, ast.Tuple)):
        items = [_item(ctx, x) for x in node.elts]
        return MISSING if MISSING in items else (items if isinstance(node, ast.List) else tuple(items))
    return MISSING


def _item(ctx: Ctx, node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        path = ctx.path(node.func)
        return MISSING if path is None else made_by_call(ctx, path[1], node)
    try:
        return evaluate(node, ctx.constant)
    except NotConstant:
        return MISSING
