"""`pl.TensorView(...)` and `pl.TileView(...)` inside annotations."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import expr as e
from ...ir import types as t
from ...ir.enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from .context import Ctx
from .diagnostics import ParserTypeError
from .extents import index_expr
from .names import MISSING

_TILE_FIELDS = ("valid_shape", "stride", "start_offset", "blayout", "slayout", "fractal", "pad", "compact")
_TENSOR_FIELDS = ("valid_shape", "stride", "layout", "pad")


def tensor_view(ctx: Ctx, node: ast.Call) -> t.TensorView:
    """The view that `pl.TensorView(valid_shape=, stride=, layout=, pad=)` describes."""
    given = _fields(ctx, node, "TensorView", _TENSOR_FIELDS)
    return t.TensorView(
        stride=_extents(ctx, given.get("stride")),
        layout=_member(ctx, given.get("layout"), TensorLayout, TensorLayout.ND),
        valid_shape=_extents(ctx, given.get("valid_shape")),
        pad=_member(ctx, given.get("pad"), PadValue, PadValue.null),
    )


def tile_view(ctx: Ctx, node: ast.expr, shape: tuple[e.Expr, ...], space: MemorySpace | None) -> t.TileView:
    """The view that `pl.TileView(...)` describes; fields left out are those of the implicit view."""
    if not isinstance(node, ast.Call):
        value = ctx.constant(node)
        assert isinstance(value, t.TileView)
        return value
    given = _fields(ctx, node, "TileView", _TILE_FIELDS)
    implied = t.implicit_tile_view(shape, space)
    offset = given.get("start_offset")
    return t.TileView(
        valid_shape=_extents(ctx, given.get("valid_shape")) or None,
        stride=_extents(ctx, given.get("stride")) or None,
        start_offset=None if offset is None else index_expr(ctx, offset),
        blayout=_member(ctx, given.get("blayout"), TileLayout, implied.blayout),
        slayout=_member(ctx, given.get("slayout"), TileLayout, implied.slayout),
        fractal=_number(ctx, given.get("fractal"), implied.fractal),
        pad=_member(ctx, given.get("pad"), PadValue, PadValue.null),
        compact=_member(ctx, given.get("compact"), CompactMode, CompactMode.null),
    )


def _fields(ctx: Ctx, node: ast.Call, what: str, known: tuple[str, ...]) -> dict[str, ast.expr]:
    path = ctx.path(node.func)
    if path is None or path[1] != what:
        ctx.fail(ParserTypeError, f"Expected pl.{what}(...), got {ast.unparse(node)}", node, f"write pl.{what}(...)")
    if node.args:
        message = f"pl.{what}(...) in an annotation takes keyword arguments only"
        ctx.fail(ParserTypeError, message, node.args[0], f"keywords: {', '.join(known)}")
    given: dict[str, ast.expr] = {}
    for keyword in node.keywords:
        if keyword.arg not in known:
            hint = f"keywords: {', '.join(known)}"
            ctx.fail(ParserTypeError, f"Unknown keyword argument '{keyword.arg}' in pl.{what}()", keyword, hint)
        given[keyword.arg] = keyword.value
    return given


def _extents(ctx: Ctx, node: ast.expr | None) -> tuple[e.Expr, ...]:
    if node is None:
        return ()
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(index_expr(ctx, item) for item in node.elts)
    value = ctx.constant(node)
    if isinstance(value, (list, tuple)):
        from .extents import dim_list

        return dim_list(ctx, list(value), node)
    if isinstance(node, ast.Constant) and node.value is None:
        return ()
    return (index_expr(ctx, node),)


def _member(ctx: Ctx, node: ast.expr | None, enum: Any, default: Any) -> Any:
    if node is None:
        return default
    value = ctx.constant(node)
    if isinstance(value, enum):
        return value
    if value is not MISSING or node is not None:
        good = ", ".join(f"pl.{enum.__name__}.{m.name}" for m in enum)
        ctx.fail(ParserTypeError, f"Expected a pl.{enum.__name__}, got {ast.unparse(node)}", node, f"one of {good}")


def _number(ctx: Ctx, node: ast.expr | None, default: int) -> int:
    if node is None:
        return default
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if type(value) is not int:
        ctx.fail(
            ParserTypeError,
            f"Expected an integer, got {ast.unparse(node)}",
            node,
            "write a literal, or a name bound to one",
        )
    return value
