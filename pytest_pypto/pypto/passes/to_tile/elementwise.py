"""Element-wise operators, reductions, broadcasts and casts."""

from __future__ import annotations

from ...ir import expr as e
from ...ir import extents
from ...ir import stmt as s
from ...ir.dtypes import FP32, DataType
from ...ir.enums import MemorySpace
from ...ir.op_table import create_op_call, find_op
from ...ir.span import Span
from ...ir.types import TensorType, TileType
from .kernel import Kernel
from .table import handles

_VECTORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "div": "div",
    "maximum": "max",
    "minimum": "min",
}
"""Binary operator -> suffix of its row_expand_ and col_expand_ forms."""
_COMMUTES = frozenset({"add", "mul", "maximum", "minimum"})


def tile_type(tile: e.Expr) -> TileType:
    """The type of a tile."""
    assert isinstance(tile.type, TileType)
    return tile.type


def dtype_of(call: e.Call) -> DataType:
    """Element type of a tensor operator's result."""
    assert isinstance(call.type, TensorType)
    return call.type.dtype


def kept_kwargs(call: e.Call, op: str) -> dict[str, object]:
    """The keywords that the tile form has too."""
    spec = find_op(op)
    known = {k.name for k in spec.kwargs} if spec is not None else set()
    return {k: v for k, v in call.kwargs.items() if k in known}


def scratch(k: Kernel, shape: tuple[e.Expr, ...], dtype: DataType, span: Span) -> e.Var:
    """A scratch tile."""
    kwargs = {"dtype": dtype, "target_memory": MemorySpace.Vec}
    return k.emit("tile.create", [e.MakeTuple(shape, span)], kwargs, name="tmp_tile", span=span)


_UNARY = ("abs", "cos", "exp", "log", "neg", "not", "recip", "sin", "sqrt")


@handles(*_UNARY)
def unary(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One operand; integers are converted first where the result is a float."""
    op = call.op.name.replace("tensor.", "tile.")
    x = k.cast(k.tile(call.args[0]), dtype_of(call), call.span)
    return k.emit(op, [x], kept_kwargs(call, op), name=f"{base}__tile", span=call.span)


@handles("rsqrt")
def rsqrt(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """With `high_precision` the tile form takes a scratch tile."""
    x = k.cast(k.tile(call.args[0]), dtype_of(call), call.span)
    args = [x]
    if call.kwargs.get("high_precision"):
        args.append(scratch(k, tile_type(x).shape, tile_type(x).dtype, call.span))
    return k.emit("tile.rsqrt", args, name=f"{base}__tile", span=call.span)


@handles("cast")
def cast(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """The same operator on a tile."""
    x = k.tile(call.args[0])
    return k.emit("tile.cast", [x], call.kwargs, name=f"{base}__tile", span=call.span)


_SCALAR = ("adds", "subs", "muls", "divs", "fmods", "ands", "ors", "shls", "shrs", "maximum", "minimum")


@handles(*(n for n in _SCALAR if n not in ("maximum", "minimum")))
def with_scalar(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Tile and scalar; the tile gets the result's element type first."""
    name = call.op.name.removeprefix("tensor.")
    op = f"tile.{name}s" if name in ("maximum", "minimum") else f"tile.{name}"
    x = k.cast(k.tile(call.args[0]), dtype_of(call), call.span)
    return k.emit(op, [x, k.value(call.args[1])], name=f"{base}__tile", span=call.span)


@handles("xor", "xors")
def xor(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Takes a scratch tile."""
    op = call.op.name.replace("tensor.", "tile.")
    x = k.tile(call.args[0])
    y = k.value(call.args[1]) if op == "tile.xors" else k.tile(call.args[1])
    tmp = scratch(k, tile_type(x).shape, tile_type(x).dtype, call.span)
    return k.emit(op, [x, y, tmp], name=f"{base}__tile", span=call.span)


_BINARY = ("add", "sub", "mul", "div", "fmod", "maximum", "minimum", "and", "or", "shl", "shr")
_PART = ("part_add", "part_max", "part_min", "part_mul")


@handles(*_BINARY, *_PART)
def binary(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Two tensors: row and column vectors use the expanding forms; element types are made equal first."""
    if not isinstance(call.args[1].type, TensorType):
        return with_scalar(k, call, base, stmt)
    name = call.op.name.removeprefix("tensor.")
    x, y = k.tile(call.args[0]), k.tile(call.args[1])
    if name not in ("shl", "shr"):
        x, y = k.cast(x, dtype_of(call), call.span), k.cast(y, dtype_of(call), call.span)
    assert isinstance(call.type, TensorType)
    shape = call.type.shape
    if name in _VECTORS:
        if not extents.all_equal(tile_type(x).shape, shape) and name in _COMMUTES:
            x, y = y, x
        vector = _vector_form(x, y)
        if vector is not None and takes(f"tile.{vector}_expand_{_VECTORS[name]}", x, y):
            return k.emit(f"tile.{vector}_expand_{_VECTORS[name]}", [x, y], name=f"{base}__tile", span=call.span)
    x, y = expand(k, x, shape, call), expand(k, y, shape, call)
    return k.emit(f"tile.{name}", [x, y], kept_kwargs(call, f"tile.{name}"), name=f"{base}__tile", span=call.span)


def takes(op: str, *args: e.Expr) -> bool:
    """The operator has a form for these operands; some take fewer element types than the plain operation does."""
    try:
        create_op_call(op, args, {})
    except (TypeError, ValueError):
        return False
    return True


def _vector_form(x: e.Var, y: e.Var) -> str | None:
    """`row` or `col` when y is a vector beside the tile x."""
    a, b = tile_type(x).shape, tile_type(y).shape
    if extents.all_equal(a, b) or len(a) != len(b) or len(a) < 2:
        return None
    if e.const_value(b[-1]) == 1 and extents.all_equal(a[:-1], b[:-1]):
        return "row"
    ones = all(e.const_value(d) == 1 for d in b[:-1])
    return "col" if ones and extents.equal(a[-1], b[-1]) else None


def expand(k: Kernel, tile: e.Var, shape: tuple[e.Expr, ...], call: e.Call) -> e.Var:
    """The tile repeated to `shape`.

    Raises (PassError): a repetition that no kernel operator makes.
    """
    have = tile_type(tile).shape
    if extents.all_equal(have, shape):
        return tile
    name = f"{call.op.name.removeprefix('tensor.')}__tile"
    if len(have) < len(shape):
        lead = (e.index(1, call.span),) * (len(shape) - len(have))
        tile = k.emit("tile.reshape", [tile, e.MakeTuple((*lead, *have), call.span)], name=name, span=call.span)
        have = tile_type(tile).shape
    if e.const_value(have[-1]) == 1 and not extents.equal(have[-1], shape[-1]):
        target = scratch(k, (*have[:-1], shape[-1]), tile_type(tile).dtype, call.span)
        tile = k.emit("tile.row_expand", [target, tile], name=name, span=call.span)
        have = tile_type(tile).shape
    if extents.all_equal(have, shape):
        return tile
    if all(e.const_value(d) == 1 for d in have[:-1]):
        target = scratch(k, shape, tile_type(tile).dtype, call.span)
        return k.emit("tile.col_expand", [target, tile], name=name, span=call.span)
    raise k.fail(
        f"{call.op.name} cannot repeat {extents.text(have)} to {extents.text(shape)} in a kernel: only row vectors "
        "[..., M, 1] and column vectors [1, N] are repeated; reshape the operands or loop over the outer axis",
        call,
    )


@handles(
    *(
        f"{side}_expand{suffix}"
        for side in ("row", "col")
        for suffix in ("", "_add", "_sub", "_mul", "_div", "_max", "_min", "_expdif")
    )
)
def expanded(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Row and column vector forms, one to one; element types are made equal first."""
    x, v = (k.cast(k.tile(a), dtype_of(call), call.span) for a in call.args)
    return k.emit(call.op.name.replace("tensor.", "tile."), [x, v], name=f"{base}__tile", span=call.span)


@handles("expands")
def expands(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One scalar everywhere."""
    x = k.tile(call.args[0])
    return k.emit("tile.expands", [x, k.value(call.args[1])], name=f"{base}__tile", span=call.span)


@handles("cmp")
def compare(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A mask, and ones where it is set, zeros elsewhere."""
    dtype = dtype_of(call)
    x = k.cast(k.tile(call.args[0]), dtype, call.span)
    if isinstance(call.args[1].type, TensorType):
        y = k.cast(k.tile(call.args[1]), dtype, call.span)
        assert isinstance(call.type, TensorType)
        x, y = expand(k, x, call.type.shape, call), expand(k, y, call.type.shape, call)
        mask = k.emit("tile.cmp", [x, y], call.kwargs, name=f"{base}__tile", span=call.span)
    else:
        mask = k.emit("tile.cmps", [x, k.value(call.args[1])], call.kwargs, name=f"{base}__tile", span=call.span)
    one, zero = full(k, tile_type(x).shape, 1, dtype, call.span), full(k, tile_type(x).shape, 0, dtype, call.span)
    return select(k, mask, one, zero, base, call.span)


def full(k: Kernel, shape: tuple[e.Expr, ...], value: int, dtype: DataType, span: Span) -> e.Var:
    """A tile with one number everywhere."""
    number: e.Expr = e.ConstFloat(float(value), dtype, span) if dtype.is_float() else e.ConstInt(value, dtype, span)
    return k.emit("tile.full", [e.MakeTuple(shape, span), number], {"dtype": dtype}, name="full__tile", span=span)


def select(k: Kernel, mask: e.Var, yes: e.Var, no: e.Var, base: str, span: Span) -> e.Var:
    """`yes` where the mask is set, `no` elsewhere."""
    tmp = scratch(k, (e.index(1, span), e.index(32, span)), DataType.UINT8, span)
    return k.emit("tile.sel", [mask, yes, no, tmp], name=f"{base}__tile", span=span)


_KINDS = ("sum", "max", "min", "prod", "argmax", "argmin")


@handles(*(f"{side}_{kind}" for side in ("row", "col") for kind in _KINDS))
def reduction(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Reductions over the last or the second-last axis; rows and positions need a scratch tile."""
    side, kind = call.op.name.removeprefix("tensor.").split("_")
    x = k.tile(call.args[0])
    rank = len(tile_type(x).shape)
    if rank == 1:
        x = k.emit("tile.reshape", [x, _row(x, call.span)], name=f"{base}__tile", span=call.span)
        side = "row"
    else:
        side = _side(k, call, side, rank)
    tmp = _reduction_scratch(k, x, side, kind, call.span)
    result = k.emit(f"tile.{side}_{kind}", [x, *tmp], name=f"{base}__tile", span=call.span)
    return _dropped(k, call, result, base)


def _row(x: e.Var, span: Span) -> e.MakeTuple:
    return e.MakeTuple((e.index(1, span), *tile_type(x).shape), span)


def _side(k: Kernel, call: e.Call, side: str, rank: int) -> str:
    axis = call.kwargs.get("axis")
    if axis is None:
        return side
    at = axis + rank if axis < 0 else axis
    if at not in (rank - 1, rank - 2):
        raise k.fail(
            f"{call.op.name} reduces axis {axis} of rank {rank}; kernels reduce one of the last two axes", call
        )
    return "row" if at == rank - 1 else "col"


def _reduction_scratch(k: Kernel, x: e.Var, side: str, kind: str, span: Span) -> list[e.Var]:
    type_ = tile_type(x)
    positions = kind.startswith("arg")
    if side == "col" and not positions:
        return []
    shape = type_.shape
    columns = e.const_value(shape[-1])
    least = 512 // FP32.get_byte()
    if not positions and columns is not None and columns < least:
        shape = (*shape[:-1], e.index(least, span))
    return [scratch(k, shape, type_.dtype, span)]


def _dropped(k: Kernel, call: e.Call, result: e.Var, base: str) -> e.Expr:
    """The result in the shape that the tensor operator promises."""
    if not isinstance(call.type, TensorType):
        zeros = e.make_tuple([0, 0], call.span)
        return k.emit("tile.read", [result, zeros], name=f"{base}__tile", span=call.span)
    if extents.all_equal(tile_type(result).shape, call.type.shape):
        return result
    shape = e.MakeTuple(call.type.shape, call.span)
    return k.emit("tile.reshape", [result, shape], name=f"{base}__tile", span=call.span)
