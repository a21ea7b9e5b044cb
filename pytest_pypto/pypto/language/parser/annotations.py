"""Annotations: from their AST to IR types.

An annotation is `pl.Tensor[...]`, `pl.Tile[...]`, `pl.Scalar[...]`, `pl.Array[...]`, `pl.Tuple[...]`, a handle, or one
of these inside `pl.Out[...]`/`pl.InOut[...]` on a parameter.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...ir import expr as e
from ...ir import types as t
from ...ir.dtypes import DataType
from ...ir.enums import MemorySpace, ParamDirection, TensorLayout
from ..typing import Array, DynVar, Scalar, Tensor, Tile, Tuple
from .constants import dotted
from .context import Ctx
from .diagnostics import ParserTypeError
from .extents import dim_list
from .memrefs import is_memref, memref_of
from .names import MISSING
from .views import tensor_view, tile_view

_HANDLES: dict[str, Callable[[], t.Type]] = {
    "Ptr": t.PtrType,
    "MemRefType": t.MemRefType,
    "UnknownType": t.UnknownType,
    "WindowBufferType": t.WindowBufferType,
    "CommCtxType": t.CommCtxType,
    "PrefetchAsyncContext": t.PrefetchAsyncContextType,
    "AsyncEvent": t.AsyncEventType,
    "AsyncSession": t.AsyncSessionType,
}
_DIRECTIONS = {"Out": ParamDirection.Out, "InOut": ParamDirection.InOut}
_SHAPED = ("Tensor", "Tile", "DistributedTensor")
ACCEPTED = "pl.Tensor[[...], dtype], pl.Tile[[...], dtype], pl.Scalar[dtype], pl.Array[n, dtype] or pl.Tuple[...]"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A resolved annotation. `explicit` names what it says beyond shape and dtype: memref, space, view."""

    type: t.Type
    direction: ParamDirection = ParamDirection.In
    explicit: frozenset[str] = frozenset()


_NOTHING: frozenset[str] = frozenset()


def parameter(ctx: Ctx, node: ast.expr) -> Annotation:
    """The annotation of a parameter, which may carry a direction."""
    if isinstance(node, ast.Subscript):
        kind = _kind(ctx, node.value)
        if kind in _DIRECTIONS:
            inner = resolve(ctx, node.slice)
            if kind == "InOut" and isinstance(inner.type, t.ScalarType):
                ctx.fail(
                    ParserTypeError,
                    "Scalar parameters cannot have InOut direction",
                    node.slice,
                    "scalars are passed by value: drop pl.InOut[...] and return the new value",
                )
            return Annotation(inner.type, _DIRECTIONS[kind], inner.explicit)
    return resolve(ctx, node)


def returns(ctx: Ctx, node: ast.expr | None) -> tuple[t.Type, ...]:
    """The return types; `tuple[A, B]` declares several."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return ()
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "tuple":
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(resolve(ctx, p).type for p in parts)
    return (resolve(ctx, node).type,)


def resolve(ctx: Ctx, node: ast.expr) -> Annotation:
    """The annotation of a variable or result.

    Raises:
        ParserTypeError: it is none of the accepted forms.
    """
    if isinstance(node, ast.Subscript):
        kind = _kind(ctx, node.value)
        if kind in _SHAPED:
            return _shaped(ctx, kind, node.slice)
        maker = _SUBSCRIPTED.get(kind)
        if maker is not None:
            return Annotation(maker(ctx, node.slice))
        if kind in _DIRECTIONS:
            ctx.fail(
                ParserTypeError, f"pl.{kind}[...] is for parameters only", node, f"write {ast.unparse(node.slice)}"
            )
        _refuse(ctx, node)
    if isinstance(node, ast.Call):
        return _legacy(ctx, node)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return Annotation(t.UnknownType.get())
    return _plain(ctx, node)


def _kind(ctx: Ctx, node: ast.expr) -> str:
    """`Tensor` for `pl.Tensor`, and for a bare `Tensor` that the author imported."""
    text = dotted(node)
    if text is None:
        return ""
    root, _, rest = text.partition(".")
    if root in ctx.program.aliases:
        return rest
    if not rest:
        value = ctx.closure.get(root)
        if value is not MISSING and getattr(value, "__module__", "").endswith("pypto.language.typing"):
            return str(getattr(value, "__name__", ""))
        return ""
    path = ctx.path(node)
    return path[1] if path else ""


def _refuse(ctx: Ctx, node: ast.expr) -> Any:
    ctx.fail(ParserTypeError, f"Unsupported type annotation: {ast.unparse(node)}", node, f"an annotation is {ACCEPTED}")


def _plain(ctx: Ctx, node: ast.expr) -> Annotation:
    kind = _kind(ctx, node)
    if kind in _HANDLES:
        return Annotation(_HANDLES[kind]())
    if kind == "TaskId":
        return Annotation(t.ScalarType(DataType.TASK_ID))
    if kind in ("Tensor", "Tile", "Scalar", "Array", "Tuple", "DistributedTensor", "Out", "InOut"):
        example = (
            "[dtype]" if kind == "Scalar" else "[...]" if kind in ("Tuple", "Out", "InOut") else "[[rows, cols], dtype]"
        )
        hint = f"write {ast.unparse(node)}{example}"
        ctx.fail(ParserTypeError, f"Incomplete type annotation: {ast.unparse(node)}", node, hint)
    value = ctx.constant(node)
    if isinstance(value, DataType):
        return Annotation(t.ScalarType(value))
    if isinstance(value, t.Type):
        return Annotation(value)
    if isinstance(value, (Tensor, Tile, Scalar, Array, Tuple)) and not isinstance(value, DynVar):
        return Annotation(type_of_wrapper(ctx, value, node))
    return Annotation(_refuse(ctx, node))


def type_of_wrapper(ctx: Ctx, value: Any, node: ast.expr) -> t.Type:
    """The IR type of an annotation object that the author keeps in a variable."""
    if isinstance(value, Scalar) and value.dtype is not None:
        return t.ScalarType(value.dtype)
    if isinstance(value, Array):
        return t.ArrayType(value.dtype, value.extent)  # type: ignore[arg-type]
    if isinstance(value, Tuple):
        return t.TupleType(tuple(type_of_wrapper(ctx, v, node) for v in value.types))
    if isinstance(value, (Tensor, Tile)) and value.shape is not None and value.dtype is not None:
        dims = [d.unwrap() if isinstance(d, DynVar) else d for d in value.shape]
        if isinstance(value, Tile):
            return t.TileType(dims, value.dtype, value.memref, value.tile_view, value.memory_space)
        view = value.view or (t.TensorView(layout=value.layout) if value.layout is not None else None)
        return t.TensorType(tuple(dims), value.dtype, value.memref, view)
    ctx.fail(ParserTypeError, f"Incomplete type annotation: {ast.unparse(node)}", node, f"an annotation is {ACCEPTED}")


def _legacy(ctx: Ctx, node: ast.Call) -> Annotation:
    """`pl.Tensor((64, 64), pl.FP32)`: the call spelling of the same annotation."""
    kind = _kind(ctx, node.func)
    if node.keywords or kind not in ("Tensor", "Tile", "Scalar", "Tuple", "DistributedTensor"):
        _refuse(ctx, node)
    if kind in _SHAPED:
        return _shaped(ctx, kind, ast.copy_location(ast.Tuple(elts=list(node.args), ctx=ast.Load()), node))
    if len(node.args) != 1:
        _refuse(ctx, node)
    only = node.args[0]
    if kind == "Tuple" and isinstance(only, ast.List):
        only = ast.copy_location(ast.Tuple(elts=only.elts, ctx=ast.Load()), only)
    return Annotation(_SUBSCRIPTED[kind](ctx, only))


def _scalar(ctx: Ctx, node: ast.expr) -> t.Type:
    return t.ScalarType(dtype_of(ctx, node))


def _array(ctx: Ctx, node: ast.expr) -> t.Type:
    if not isinstance(node, ast.Tuple) or len(node.elts) != 2:
        ctx.fail(ParserTypeError, "pl.Array takes an extent and a dtype, as in pl.Array[4, pl.INT32]", node)
    (extent,) = dim_list(ctx, [node.elts[0]])
    if not isinstance(extent, e.ConstInt):
        message = "the extent of a pl.Array is a constant integer"
        ctx.fail(ParserTypeError, message, node.elts[0], "write a number, or a name bound to one outside")
    return t.ArrayType(dtype_of(ctx, node.elts[1]), extent)


def _tuple(ctx: Ctx, node: ast.expr) -> t.Type:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    types = tuple(resolve(ctx, p).type for p in parts)
    for part, type_ in zip(parts, types, strict=True):
        if isinstance(type_, t.TupleType):
            ctx.fail(ParserTypeError, "pl.Tuple cannot be nested", part, "list the elements in one pl.Tuple[...]")
    return t.TupleType(types)


_SUBSCRIPTED: dict[str, Callable[[Ctx, ast.expr], t.Type]] = {"Scalar": _scalar, "Array": _array, "Tuple": _tuple}


def dtype_of(ctx: Ctx, node: ast.expr) -> DataType:
    """A dtype: `pl.FP32`, `DataType.FP32`, or a name bound to one."""
    value = ctx.constant(node)
    if isinstance(value, DataType):
        return value
    if value is MISSING and isinstance(node, ast.Name):
        found = DataType.from_name(node.id)
        if found is not None:
            return found
    path = ctx.path(node)
    if value is MISSING and path is not None and path[0] == "pl":
        no_attribute(ctx, path[1], node)
    ctx.fail(
        ParserTypeError,
        f"Expected a dtype such as pl.FP32, got {ast.unparse(node)}",
        node,
        "dtypes: " + ", ".join(f"pl.{d.name}" for d in DataType.members()),
    )


def no_attribute(ctx: Ctx, name: str, node: ast.expr) -> Any:
    """Raise for a name that the language module does not have."""
    from .diagnostics import ParserSyntaxError

    message = f"AttributeError: module 'pypto.language' has no attribute '{name}'"
    ctx.fail(ParserSyntaxError, message, node, near_attribute(name))


def near_attribute(name: str) -> str | None:
    """A hint that names the closest dtype."""
    import difflib

    near = difflib.get_close_matches(name, [d.name for d in DataType.members()], n=1)
    return f"did you mean pl.{near[0]}?" if near else "dtypes: " + ", ".join(f"pl.{d.name}" for d in DataType.members())


def _shaped(ctx: Ctx, kind: str, node: ast.expr) -> Annotation:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if len(parts) < 2:
        hint = f"write pl.{kind}[[rows, cols], dtype]"
        ctx.fail(ParserTypeError, f"Incomplete type annotation: pl.{kind}[{ast.unparse(node)}]", node, hint)
    shape = _shape(ctx, parts[0])
    dtype = dtype_of(ctx, parts[1])
    try:
        if kind == "Tile":
            return _tile(ctx, shape, dtype, parts[2:])
        return _tensor(ctx, kind, shape, dtype, parts[2:])
    except ValueError as exc:
        ctx.fail(ParserTypeError, f"pl.{kind} cannot be so: {exc}", node, _BOX)


_BOX = "valid extents lie inside the shape, one per axis; FP4 elements come in pairs along the last axis"


def _shape(ctx: Ctx, node: ast.expr) -> tuple[e.Expr, ...]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return dim_list(ctx, node.elts)
    value = ctx.constant(node)
    if isinstance(value, (list, tuple)):
        return dim_list(ctx, list(value), node)
    from .extents import evaluated_shape

    return evaluated_shape(ctx, node)


def _tensor(ctx: Ctx, kind: str, shape: tuple[e.Expr, ...], dtype: DataType, rest: list[ast.expr]) -> Annotation:
    view: t.TensorView | None = None
    memref: e.MemRef | None = None
    said: set[str] = set()
    for part in rest:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            continue
        if is_memref(ctx, part):
            memref = memref_of(ctx, part)
            said.add("memref")
            continue
        if memref is not None:
            message = f"pl.{kind}[...] takes the view before the memref"
            ctx.fail(ParserTypeError, message, part, f"write pl.{kind}[shape, dtype, view, memref]")
        view = _tensor_view(ctx, part, shape)
        said.add("view")
    cls = t.DistributedTensorType if kind == "DistributedTensor" else t.TensorType
    return Annotation(cls(shape, dtype, memref, view), explicit=frozenset(said) if said else _NOTHING)


def _tensor_view(ctx: Ctx, node: ast.expr, shape: tuple[e.Expr, ...]) -> t.TensorView:
    if isinstance(node, ast.Call):
        return tensor_view(ctx, node)
    value = ctx.constant(node)
    if value is TensorLayout.DN:
        ctx.fail(
            ParserTypeError,
            "pl.Tensor[..., pl.DN] is not supported: the DN layout-only shorthand forces two coordinate systems "
            "(IR-logical post-view vs. runtime row-major) onto one annotation",
            node,
            "annotate the tensor as it lies in memory and use pl.transpose or an explicit pl.TensorView",
        )
    if isinstance(value, TensorLayout):
        return t.TensorView(layout=value)
    if isinstance(value, t.TensorView):
        return value
    ctx.fail(
        ParserTypeError,
        f"Expected a layout, a pl.TensorView(...) or a pl.MemRef(...) after the dtype, got {ast.unparse(node)}",
        node,
        "layouts: pl.ND, pl.NZ, pl.MX_A_ZZ, pl.MX_B_NN",
    )


def _tile(ctx: Ctx, shape: tuple[e.Expr, ...], dtype: DataType, rest: list[ast.expr]) -> Annotation:
    memref_node: ast.expr | None = None
    view_node: ast.expr | None = None
    space: MemorySpace | None = None
    said: set[str] = set()
    for part in rest:
        value = MISSING if isinstance(part, ast.Call) else ctx.constant(part)
        if isinstance(value, MemorySpace):
            space = _tile_space(ctx, value, part)
            said.add("space")
        elif is_memref(ctx, part):
            memref_node = part
            said.add("memref")
        elif isinstance(part, ast.Call) or isinstance(value, t.TileView):
            view_node = part
            said.add("view")
        elif isinstance(value, TensorLayout):
            ctx.fail(
                ParserTypeError, "a tile has no tensor layout", part, "write a pl.TileView(blayout=..., slayout=...)"
            )
        else:
            ctx.fail(
                ParserTypeError,
                f"Expected a memory space, a pl.TileView(...) or a pl.MemRef(...), got {ast.unparse(part)}",
                part,
                "memory spaces: " + ", ".join(f"pl.Mem.{m.name}" for m in MemorySpace if m.name != "ScalarLocal"),
            )
    if len(said) != len(rest):
        message = "pl.Tile takes at most one memory space, one view and one memref"
        ctx.fail(ParserTypeError, message, rest[-1], "drop the second one")
    if memref_node is not None and space is None:
        message = "Tile annotation with a memref argument must also specify explicit memory space"
        ctx.fail(ParserTypeError, message, memref_node, "add the space, for example pl.Mem.Vec")
    memref = None if memref_node is None else memref_of(ctx, memref_node)
    view = None if view_node is None else tile_view(ctx, view_node, shape, space)
    return Annotation(t.TileType(shape, dtype, memref, view, space), explicit=frozenset(said) if said else _NOTHING)


def _tile_space(ctx: Ctx, space: MemorySpace, node: ast.expr) -> MemorySpace:
    if space is MemorySpace.ScalarLocal:
        ctx.fail(ParserTypeError, "pl.Mem.ScalarLocal holds scalars, not tiles", node, "for example pl.Mem.Vec")
    return space
