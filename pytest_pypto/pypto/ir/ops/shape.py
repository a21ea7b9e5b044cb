"""Operators that cut, join and reinterpret."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import DataType
from ..enums import CompactMode, MemorySpace, TensorLayout, TileLayout
from ..expr import ConstInt, Expr, const_value, index
from ..op_table import Inference
from ..types import TensorType, TensorView, TileType, TileView, Type
from . import regions
from .common import (
    VEC,
    Dims,
    axis,
    const_axis,
    dtype_kwarg,
    is_full,
    is_one,
    last,
    op,
    promote,
    require_dtype,
    require_same_dtype,
    static,
    swapped,
    tensor,
    tile,
)
from .memory import with_valid

CATEGORY = "shape"
_REINTERPRETABLE = tuple(
    d for d in DataType.members() if d.name in ("FP16", "BF16", "FP32") or (d.is_int() and d.get_bit() >= 8)
)


def _layout(a: TensorType) -> TensorLayout:
    return a.tensor_view.layout if a.tensor_view else TensorLayout.ND


# --- slice, extract, assemble ----------------------------------------------------------------------------------------


def _window(i: Inference, source: TensorType | TileType, chip: bool) -> tuple[Dims, Dims, Dims]:
    """Shape, valid shape and dropped axes of a slice."""
    shape, offset = i.extents(1), i.dims(2)
    request = i.dims(3) if i.has(3) and i.dims(3) else None
    drop = i.dims(4) if i.has(4) else ()
    if request is not None and len(request) != len(shape):
        i.fail(f"requires a valid shape of the window's rank, but got {x.text(request)} for {x.text(shape)}")
    if len(offset) not in (len(source.shape), len(shape)):
        i.fail(f"requires one offset per axis of {x.text(source.shape)}, but got {x.text(offset)}")
    if len(shape) == len(source.shape) == len(offset):
        valid = regions.window(i, source, offset, shape, request, bool(i.kwargs.get("clamp")), chip)
    elif len(shape) > len(source.shape):
        i.fail(f"requires a window of at most the rank of {x.text(source.shape)}, but got {x.text(shape)}")
    else:
        valid = shape if request is None else request
    return shape, valid, drop


def _drop(i: Inference, shape: Dims, valid: Dims, drop: Dims) -> tuple[Dims, Dims]:
    if not drop:
        return shape, valid
    gone = {const_axis_value(i, d, len(shape)) for d in drop}
    for k in gone:
        if not is_one(shape[k]):
            i.fail(f"can drop only axes of extent 1, but axis {k} of {x.text(shape)} has {x.text([shape[k]])}")
    kept = [k for k in range(len(shape)) if k not in gone]
    return tuple(shape[k] for k in kept), tuple(valid[k] for k in kept)


def const_axis_value(i: Inference, found: Expr, rank: int) -> int:
    """An element of a list of axes as an index into the shape."""
    value = const_value(found)
    if value is None:
        i.fail(f"requires constant axes, but got {found}")
    return axis(i, value or 0, rank)


def _slice_tensor(i: Inference) -> Type:
    source = i.tensor(0)
    shape, valid, drop = _window(i, source, chip=False)
    shape, valid = _drop(i, shape, valid, drop)
    have = source.tensor_view or TensorView()
    pad = i.kwargs.get("pad_value") or have.pad
    full = x.all_equal(shape, valid)
    return TensorType(shape, source.dtype, None, TensorView((), have.layout, () if full else valid, pad))


def _slice_tile(i: Inference) -> Type:
    source = i.tile(0)
    static(i, i.dims(1))
    shape, valid, drop = _window(i, source, chip=True)
    shape, valid = _drop(i, shape, valid, drop)
    lead = (index(1),) * (2 - len(shape))
    shape, valid = lead + shape, lead + valid
    have = source.tile_view
    pad = i.kwargs.get("pad_value")
    if have is None and pad is None:
        return tile(shape, source.dtype, valid, source.space)
    eff = source.get_effective_tile_view()
    if have is None:
        eff = TileType(shape, source.dtype, None, None, source.space).get_effective_tile_view()
    view = TileView(
        blayout=eff.blayout, slayout=eff.slayout, fractal=eff.fractal, pad=pad or eff.pad, compact=eff.compact
    )
    return tile(shape, source.dtype, valid, source.space, view=view)


def _extract(i: Inference) -> Type:
    source, shape = i.tile(0), i.extents(3)
    if len(static(i, shape)) != 2 or len(source.shape) != 2:
        i.fail(f"requires a tile and a shape of rank 2, but got {x.text(source.shape)} and {x.text(shape)}")
    valid = regions.window(i, source, i.args[1:3], shape, None, False, chip=True)
    space = i.kwargs.get("target_memory", VEC)
    implicit = TileType(shape, source.dtype, None, None, space).get_effective_tile_view()
    left, right = space is MemorySpace.Left, space is MemorySpace.Right
    partial = (left or right) and not x.all_equal(valid, shape)
    view = TileView(
        blayout=TileLayout.row_major if left else implicit.blayout,
        slayout=implicit.slayout,
        fractal=implicit.fractal,
        compact=CompactMode.normal if partial else CompactMode.null,
    )
    return tile(shape, source.dtype, valid, space, view=view)


def _same_rank(i: Inference, target: TensorType | TileType, source: TensorType | TileType, offset: Dims) -> None:
    if not len(target.shape) == len(source.shape) == len(offset):
        i.fail(
            f"requires target, source and offset of one rank, but got {x.text(target.shape)}, {x.text(source.shape)} "
            f"and {x.text(offset)}"
        )


def _assemble_tensor(i: Inference) -> Type:
    target, source, offset = i.tensor(0), i.tensor(1), i.dims(2)
    _same_rank(i, target, source, offset)
    return with_valid(target, regions.union(i, target, offset, source.valid_shape))


def _assemble_tile(i: Inference) -> Type:
    target, source, offset = i.tile(0), i.tile(1), i.dims(2)
    _same_rank(i, target, source, offset)
    return with_tile_valid(target, regions.union(i, target, offset, source.shape))


def with_tile_valid(a: TileType, valid: Dims, keep_memref: bool = True) -> TileType:
    """The type of `a` with another valid shape; the rest of its view stays."""
    have = a.get_effective_tile_view()
    view = TileView(
        valid, have.stride, have.start_offset, have.blayout, have.slayout, have.fractal, have.pad, have.compact
    )
    return TileType(a.shape, a.dtype, a.memref if keep_memref else None, view, a.space)


# --- reshape, view, transpose ----------------------------------------------------------------------------------------


def _reshape_tensor(i: Inference) -> Type:
    a, shape = i.tensor(0), i.extents(1)
    valid = regions.reshaped(i, a, shape)
    if i.has(2) and i.dims(2):
        want = i.dims(2)
        if len(want) != len(shape) or any(map(x.less, valid, want)):
            i.fail(f"can only narrow the valid shape {x.text(valid)}, but got {x.text(want)}")
        valid = want
    return tensor(shape, a.dtype, valid)


def _reshape_tile(i: Inference) -> Type:
    a, shape = i.tile(0), i.dims(1)
    static(i, shape)
    valid = regions.reshaped(i, a, shape)
    have = a.get_effective_tile_view()
    implicit = TileType(shape, a.dtype, None, None, a.space).get_effective_tile_view()
    view = TileView(
        blayout=implicit.blayout,
        slayout=implicit.slayout,
        fractal=implicit.fractal,
        pad=have.pad,
        compact=have.compact,
    )
    return tile(shape, a.dtype, valid, a.space, view=view)


def _two_axes(i: Inference, rank: int) -> tuple[int, int]:
    first, second = const_axis(i, 1, rank), const_axis(i, 2, rank)
    if first == second:
        i.fail(f"requires two different axes, but both are {first}")
    return first, second


def _transpose_tensor(i: Inference) -> Type:
    a = i.tensor(0)
    rank = len(a.shape)
    first, second = _two_axes(i, rank)
    valid = i.dims(3) if i.has(3) and i.dims(3) else swapped(a.valid_shape, first, second)
    layout = TensorLayout.ND
    if {first, second} == {rank - 2, rank - 1} and _layout(a) is TensorLayout.ND:
        layout = TensorLayout.DN
    return tensor(swapped(a.shape, first, second), a.dtype, valid, layout)


def _transpose_tile(i: Inference) -> Type:
    a = i.tile(0)
    first, second = _two_axes(i, len(a.shape))
    return tile(swapped(a.shape, first, second), a.dtype, None, a.space)


def _transpose_view(i: Inference) -> Type:
    a = i.tile(0)
    rank = len(a.shape)
    if rank < 2:
        i.fail(f"requires a tile of rank 2 or more, but got {x.text(a.shape)}")
    have = a.get_effective_tile_view()
    flip = {TileLayout.row_major: TileLayout.col_major, TileLayout.col_major: TileLayout.row_major}
    view = TileView(
        blayout=flip.get(have.blayout, have.blayout),
        slayout=flip.get(have.slayout, have.slayout),
        fractal=have.fractal,
        pad=have.pad,
        compact=have.compact,
    )
    shape, valid = (swapped(d, rank - 2, rank - 1) for d in (a.shape, a.valid_shape))
    return tile(shape, a.dtype, valid, a.space, view=view)


def _view(i: Inference) -> Type:
    a = i.tensor(0)
    shape = i.extents(1) if i.has(1) and i.dims(1) else None
    request = i.dims(2) if i.has(2) and i.dims(2) else None
    rank, layout = len(a.shape), i.kwargs.get("layout", _layout(a))
    if shape is None:
        flips = layout is not _layout(a)
        if flips and rank < 2:
            i.fail(f"needs rank 2 or more to change the layout, but got {x.text(a.shape)}")
        dims, valid = a.shape, a.valid_shape
        if flips:
            dims, valid = swapped(dims, rank - 2, rank - 1), swapped(valid, rank - 2, rank - 1)
        return tensor(dims, a.dtype, request or valid, layout)
    if not is_full(a) and request is None:
        i.fail(f"requires valid_shape when its source is valid only on {x.text(a.valid_shape)}")
    regions.check_count(i, a.shape, shape)
    return tensor(shape, a.dtype, request, layout)


def _reinterpret(i: Inference) -> Type:
    a, dtype = i.shaped(0), dtype_kwarg(i)
    for d in (a.dtype, dtype):
        require_dtype(i, d, _REINTERPRETABLE)
    if a.dtype is dtype:
        i.fail(f"requires another element type than {dtype.name}")
    shape, valid = _rescaled(i, a, dtype)
    if i.has(1) and i.dims(1):
        wanted = i.dims(1)
        regions.check_count(i, shape, wanted)
        full = x.all_equal(shape, valid)
        scaled = tensor(shape, dtype, None if full else valid)
        shape, valid = wanted, regions.reshaped(i, scaled, wanted)
    if isinstance(a, TensorType):
        return tensor(shape, dtype, valid)
    return tile(shape, dtype, valid, a.space)


def _rescaled(i: Inference, a: TensorType | TileType, dtype: DataType) -> tuple[Dims, Dims]:
    """Shape and valid shape with the contiguous axis rescaled by the ratio of element sizes."""
    last(i, a.shape)
    old, new = a.dtype.get_byte(), dtype.get_byte()
    k = len(a.shape) - 1
    if isinstance(a, TileType) and a.get_effective_tile_view().blayout is TileLayout.col_major and k >= 1:
        k -= 1

    def scale(dim: Expr, exact: bool) -> Expr:
        if old == new:
            return dim
        if isinstance(dim, ConstInt):
            if exact and dim.value * old % new:
                i.fail(f"cannot see {dim.value} elements of {a.dtype.name} as {dtype.name}: the bytes do not divide")
            return index(-(-dim.value * old // new))
        return x.mul(dim, index(old // new)) if old > new else x.ceil_div(dim, new // old)

    shape, valid = list(a.shape), list(a.valid_shape)
    shape[k], valid[k] = scale(shape[k], True), scale(valid[k], False)
    return tuple(shape), tuple(valid)


# --- joining and the rest --------------------------------------------------------------------------------------------


def _concat(i: Inference) -> Type:
    a, b = i.shaped(0), i.shaped(1)
    require_same_dtype(i, a.dtype, b.dtype)
    if len(a.shape) != 2 or len(b.shape) != 2 or not x.equal(a.shape[0], b.shape[0]):
        i.fail(f"requires two operands of rank 2 with equal rows, but got {x.text(a.shape)} and {x.text(b.shape)}")
    shape = (a.shape[0], x.add(a.shape[1], b.shape[1]))
    return tensor(shape, a.dtype) if isinstance(a, TensorType) else tile(shape, a.dtype)


def _set_validshape(i: Inference) -> Type:
    a = i.shaped(0)
    if len(a.shape) != 2:
        i.fail(f"requires rank 2, but got {x.text(a.shape)}")
    valid = i.args[1:3]
    for k, (v, extent) in enumerate(zip(valid, a.shape, strict=False)):
        if x.negative(v) or x.less(extent, v):
            i.fail(f"requires a valid extent from 0 to {x.text([extent])} on axis {k}, but got {x.text([v])}")
    return with_valid(a, valid) if isinstance(a, TensorType) else with_tile_valid(a, valid)


def _expand_clone(i: Inference) -> Type:
    a, target = i.tensor(0), i.tensor(1)
    if len(a.shape) != 3 or len(target.shape) != 3:
        i.fail(f"requires operands of rank 3, but got {x.text(a.shape)} and {x.text(target.shape)}")
    grown = [k for k in range(3) if not x.equal(a.shape[k], target.shape[k])]
    if len(grown) > 1 or any(not is_one(a.shape[k]) for k in grown):
        i.fail(f"can repeat one axis of extent 1, but got {x.text(a.shape)} for {x.text(target.shape)}")
    return tensor(target.shape, promote(a.dtype, target.dtype))


def register_all() -> None:
    """Add the records of this module."""
    _windows()
    _views()
    _joins()


def _windows() -> None:
    operands = "shape:tuple offset:tuple valid_shape:tuple? drop_dims:tuple?"
    doc = "window as a view; unit axes in drop_dims are removed"
    kw = "pad_value:pad=- clamp:bool=-"
    op("tensor.slice", f"input:tensor {operands}", _slice_tensor, kw, category=CATEGORY, view_of=0, doc=doc)
    op(
        "tile.slice",
        f"input:tile {operands}",
        _slice_tile,
        "pad_value:pad=-",
        category=CATEGORY,
        space_from=0,
        view_of=0,
        doc=doc,
    )
    op(
        "tile.extract",
        "src:tile index_row:index index_col:index shape:tuple",
        _extract,
        "target_memory:space=Vec",
        category=CATEGORY,
        space_kwarg="target_memory",
        no_alias=(-1,),
        doc="window copied to a dense tile in another memory space",
    )
    doc = "target with the valid part of source written at offset, in place"
    operands = "target:tensor source:tensor offset:tuple"
    op("tensor.assemble", operands, _assemble_tensor, "atomic:int=-", category=CATEGORY, inplace=0, doc=doc)
    doc = "target with the whole source written at offset, in place"
    operands = "target:tile source:tile offset:tuple"
    op("tile.assemble", operands, _assemble_tile, category=CATEGORY, space_from=0, inplace=0, doc=doc)


def _views() -> None:
    doc = "the same elements in row-major order with another shape"
    operands = "input:tensor shape:tuple valid_shape:tuple?"
    op("tensor.reshape", operands, _reshape_tensor, category=CATEGORY, view_of=0, doc=doc)
    op("tile.reshape", "input:tile shape:tuple", _reshape_tile, category=CATEGORY, space_from=0, view_of=0, doc=doc)
    doc = "two axes exchanged"
    operands = "axis1:index axis2:index"
    op("tensor.transpose", f"input:tensor {operands} valid_shape:tuple?", _transpose_tensor, category=CATEGORY, doc=doc)
    op(
        "tile.transpose",
        f"input:tile {operands} tmp:tile?",
        _transpose_tile,
        category=CATEGORY,
        space_from=0,
        scratch=(3,),
        no_alias=(-1,),
        doc=doc,
    )
    doc = "the last two axes exchanged without moving data"
    op("tile.transpose_view", "input:tile", _transpose_view, category=CATEGORY, space_from=0, view_of=0, doc=doc)
    doc = "the same bytes with another shape or layout"
    operands = "input:tensor shape:tuple? valid_shape:tuple?"
    op("tensor.view", operands, _view, "layout:layout=-", category=CATEGORY, view_of=0, doc=doc)
    doc = "the same bytes read as another element type"
    op(
        "tensor.reinterpret_view",
        "data:tensor shape:tuple?",
        _reinterpret,
        "dtype:dtype",
        category=CATEGORY,
        view_of=0,
        doc=doc,
    )
    op(
        "tile.reinterpret_view",
        "data:tile shape:tuple?",
        _reinterpret,
        "dtype:dtype",
        category=CATEGORY,
        space_from=0,
        view_of=0,
        doc=doc,
    )
    doc = "the same storage with another valid region"
    operands = "valid_rows:index valid_cols:index"
    op("tensor.set_validshape", f"tensor:tensor {operands}", _set_validshape, category=CATEGORY, inplace=0, doc=doc)
    op(
        "tile.set_validshape",
        f"tile:tile {operands}",
        _set_validshape,
        category=CATEGORY,
        space_from=0,
        inplace=0,
        doc=doc,
    )


def _joins() -> None:
    doc = "side by side along the last axis"
    op("tensor.concat", "src0:tensor src1:tensor", _concat, category=CATEGORY, doc=doc)
    op("tile.concat", "src0:tile@Vec src1:tile@Vec", _concat, category=CATEGORY, space=VEC, no_alias=(-1,), doc=doc)
    doc = "input repeated to the shape of target"
    op("tensor.expand_clone", "input:tensor target:tensor", _expand_clone, category="broadcast", doc=doc)
