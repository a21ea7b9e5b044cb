"""Subscripts: `x[...]` as read, slice or tuple item, and `dst[...] = src`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ...ir import expr as e
from ...ir import types as t
from ...ir.extents import sub as minus
from .constants import NotConstant, evaluate
from .context import EXPRESSIONS, Ctx, Value
from .diagnostics import ParserSyntaxError, ParserTypeError, SSAViolationError, UnsupportedFeatureError
from .expressions import closure_value, warn
from .names import MISSING
from .operator_calls import dispatch


@dataclass(slots=True)
class Window:
    """A subscript, axis by axis: lower bounds, extents, and the axes given by one index."""

    offsets: list[e.Expr]
    shape: list[e.Expr]
    scalar_axes: list[int]
    given: int
    uppers: list[e.Expr | None]


_INDEXED = "tensors, tiles, arrays and tuples have subscripts"


def _subscript(ctx: Ctx, node: ast.Subscript) -> Value:
    constant = _constant_item(ctx, node)
    if constant is not MISSING:
        return constant
    base = ctx.expr(node.value)
    if isinstance(base.type, t.TupleType):
        return _tuple_item(ctx, base, node)
    if isinstance(base.type, t.ArrayType):
        return dispatch(ctx, "array.get_element", [base, _index(ctx, node.slice)], {}, node)
    if isinstance(base.type, (t.TensorType, t.TileType)):
        return _window_read(ctx, base, base.type, node)
    if isinstance(base.type, t.UnknownType) and isinstance(node.slice, ast.Constant):
        return _tuple_item(ctx, base, node)
    ctx.fail(ParserTypeError, f"a value of type {base.type} cannot be indexed", node, _INDEXED)


def _constant_item(ctx: Ctx, node: ast.Subscript) -> Any:
    """An item of a closure list with a constant index, or `MISSING`."""
    if not isinstance(node.value, (ast.Name, ast.Attribute)):
        return MISSING
    owner = ctx.constant(node.value)
    if not isinstance(owner, (list, tuple)):
        return MISSING
    try:
        item = evaluate(node, ctx.constant)
    except NotConstant:
        return MISSING
    return closure_value(ctx, item, node)


def _tuple_item(ctx: Ctx, base: e.Expr, node: ast.Subscript) -> e.Expr:
    from .assignments import tuple_item

    value = ctx.value(node.slice)
    if type(value) is not int:
        ctx.fail(ParserSyntaxError, "a tuple is indexed by a constant integer", node.slice, "write t[0]")
    return tuple_item(ctx, base, value, node)


def _index(ctx: Ctx, node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        ctx.fail(UnsupportedFeatureError, "an array is indexed by one number", node, "write arr[i]")
    return ctx.value(node)


def _window_read(ctx: Ctx, base: e.Expr, type_: t.TensorType | t.TileType, node: ast.Subscript) -> e.Expr:
    kind = "tensor" if isinstance(type_, t.TensorType) else "tile"
    window = _window(ctx, type_, node, kind)
    rank = len(type_.shape)
    if len(window.scalar_axes) == rank:
        return dispatch(ctx, f"{kind}.read", [base, window.offsets], {}, node)
    if kind == "tile":
        return _tile_slice(ctx, base, type_, window, node)
    args: list[Any] = [base, window.shape, window.offsets]
    if window.scalar_axes:
        args += [[], window.scalar_axes]
    return dispatch(ctx, "tensor.slice", args, {}, node)


def _tile_slice(ctx: Ctx, base: e.Expr, type_: Any, window: Window, node: ast.Subscript) -> e.Expr:
    for lower in window.offsets:
        if not isinstance(lower, e.ConstInt):
            message = "Dynamic lower bounds are not supported in tile subscript"
            ctx.fail(UnsupportedFeatureError, message, node, "use pl.slice(tile, shape, offsets)")
    shape: list[Any] = list(window.shape)
    valid: list[Any] = list(window.shape)
    dynamic = False
    for axis, extent in enumerate(window.shape):
        if isinstance(extent, e.ConstInt):
            continue
        dynamic = True
        shape[axis] = minus(type_.shape[axis], window.offsets[axis])
        if not isinstance(shape[axis], e.ConstInt):
            ctx.fail(UnsupportedFeatureError, "tile subscript needs constant extents", node, "use pl.slice(...)")
    args: list[Any] = [base, shape, window.offsets]
    kept = len(shape) - len(window.scalar_axes)
    drop = window.scalar_axes[: max(0, len(shape) - 2)]
    if kept < 2 and window.scalar_axes:
        warn(ctx, "a tile has at least 2 dimensions: the indexed axes are kept with extent 1", node)
    if dynamic or drop:
        args.append(valid if dynamic else [])
    if drop:
        args.append(drop)
    return dispatch(ctx, "tile.slice", args, {}, node)


def _window(ctx: Ctx, type_: t.TensorType | t.TileType, node: ast.Subscript, kind: str) -> Window:
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    rank = len(type_.shape)
    if len(parts) > rank:
        message = f"{kind.capitalize()} subscript has {len(parts)} indices but the {kind} is {rank}D"
        ctx.fail(ParserTypeError, message, node, f"give at most {rank} indices")
    made = Window([], [], [], len(parts), [])
    for axis, extent in enumerate(type_.shape):
        part = parts[axis] if axis < len(parts) else None
        if part is None or isinstance(part, ast.Slice):
            _slice_axis(ctx, made, part, extent, node, kind)
        else:
            index = ctx.expr(part)
            if not isinstance(index.type, t.ScalarType) or not index.type.dtype.is_int():
                message = f"an index is an integer scalar, got {ast.unparse(part)}"
                ctx.fail(ParserTypeError, message, part, "write a number, an integer scalar or a slice")
            made.offsets.append(index)
            made.shape.append(e.index(1))
            made.scalar_axes.append(axis)
    return made


def _slice_axis(ctx: Ctx, made: Window, part: ast.Slice | None, extent: e.Expr, node: ast.Subscript, kind: str) -> None:
    if part is not None and part.step is not None:
        message = f"Slice step is not supported in {kind} subscript"
        ctx.fail(UnsupportedFeatureError, message, node, "slice without a step")
    lower = e.index(0) if part is None or part.lower is None else ctx.expr(part.lower)
    upper = extent if part is None or part.upper is None else ctx.expr(part.upper)
    made.offsets.append(lower)
    made.shape.append(minus(upper, lower))


# writes ------------------------------------------------------------------------------------------------------------


def write_subscript(ctx: Ctx, target: ast.Subscript, value: ast.expr, node: ast.stmt) -> None:
    """`dst[window] = src`: the updated tensor, tile or array is assigned to the name `dst` again."""
    from .assignments import bind

    if not isinstance(target.value, ast.Name):
        hint = "write into a variable"
        ctx.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", target, hint)
    if ctx.strict:
        message = f"'{ast.unparse(target)} = ...' assigns '{target.value.id}' again, which strict_ssa forbids"
        ctx.fail(SSAViolationError, message, target, "write new = pl.assemble(old, source, offsets)")
    base = ctx.expr(target.value)
    if isinstance(base.type, t.ArrayType):
        args = [base, _index(ctx, target.slice), ctx.value(value)]
        made = dispatch(ctx, "array.update_element", args, {}, node)
    elif isinstance(base.type, (t.TensorType, t.TileType)):
        made = _assemble(ctx, base, base.type, target, value, node)
    else:
        ctx.fail(ParserTypeError, f"a value of type {base.type} cannot be written by subscript", target, _INDEXED)
    bind(ctx, target.value.id, made, made.type, node)


def _assemble(
    ctx: Ctx,
    base: e.Expr,
    type_: t.TensorType | t.TileType,
    target: ast.Subscript,
    value: ast.expr,
    node: ast.stmt,
) -> e.Expr:
    kind = "tensor" if isinstance(type_, t.TensorType) else "tile"
    window = _window(ctx, type_, target, kind)
    if len(window.scalar_axes) == len(type_.shape):
        message = f"Element-write 'dst[i, j] = scalar' is not supported for {kind} targets"
        hint: str | None = f"write {target.value.id} = pl.{kind}.write({target.value.id}, [i, j], value)"  # type: ignore[attr-defined]
        ctx.fail(UnsupportedFeatureError, message, target, hint)
    source = ctx.expr(value)
    same_kind = isinstance(source.type, t.TensorType if kind == "tensor" else t.TileType)
    if not same_kind:
        message = f"Subscript-write source must also be a {kind}, got {type(source.type).__name__}"
        hint = "use pl.store(tile, offsets, tensor) to move a tile to memory" if kind == "tensor" else None
        ctx.fail(ParserTypeError, message, value, hint)
    source = _fitted(ctx, source, type_, window, kind, value, node)
    return dispatch(ctx, f"{kind}.assemble", [base, source, window.offsets], {}, node)


def _fitted(ctx: Ctx, source: e.Expr, type_: Any, window: Window, kind: str, value: ast.expr, node: ast.stmt) -> e.Expr:
    """The source at the rank of the target, after its extents have been compared with the window."""
    have: Any = source.type
    rank = len(type_.shape)
    kept = [axis for axis in range(rank) if axis not in window.scalar_axes]
    whole = len(have.shape) == rank
    axes = list(range(rank)) if whole else kept
    if len(have.shape) != len(axes):
        message = f"Subscript-write source has {len(have.shape)} dimension(s), the window has {len(kept)}"
        ctx.fail(ParserTypeError, message, value, "bring it to that rank with pl.reshape")
    for mine, axis in zip(have.shape, axes, strict=True):
        a, b = e.const_value(mine), e.const_value(window.shape[axis])
        if a is not None and b is not None and a != b:
            message = f"Subscript-write source has extent {a} where the window of dimension {axis} has {b}"
            ctx.fail(ParserTypeError, message, value, "window and source have equal extents")
    if whole:
        return source
    lifted: list[e.Expr] = [e.index(1)] * rank
    for mine, axis in zip(have.shape, axes, strict=True):
        lifted[axis] = mine
    return dispatch(ctx, f"{kind}.reshape", [source, lifted], {}, node)


EXPRESSIONS[ast.Subscript] = _subscript
