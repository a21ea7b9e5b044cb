"""Operators that make, move, read and write memory."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import INDEX, DataType
from ..enums import MemorySpace, PadValue, TensorLayout, TileLayout
from ..expr import ConstBool, ConstFloat, ConstInt, Expr, const_value
from ..op_table import Inference
from ..types import PtrType, ScalarType, TensorType, TensorView, TileType, TileView, Type, implicit_tile_view
from . import regions
from .common import (
    VEC,
    Dims,
    axis,
    dtype_kwarg,
    index_scalar,
    is_full,
    is_one,
    op,
    require_dtype,
    same_as,
    static,
    tensor,
    tile,
)

_ATOMIC = (DataType.FP32, DataType.BF16, DataType.FP16, DataType.INT32, DataType.INT16, DataType.INT8)
_RAMP = (DataType.INT16, DataType.INT32, DataType.UINT16, DataType.UINT32)
_BITS32 = (DataType.INT32, DataType.UINT32)
_MX = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
_PADS = (PadValue.zero, PadValue.max, PadValue.min)
CATEGORY = "memory"


# --- load and store --------------------------------------------------------------------------------------------------


def _load(i: Inference) -> Type:
    source, offset, shape, request = i.tensor(0), i.dims(1), i.extents(2), i.dims(3)
    if not len(offset) == len(shape) == len(request):
        i.fail(
            f"requires offsets, shapes and valid_shape of one length, but got {x.text(offset)}, {x.text(shape)} and "
            f"{x.text(request)}; give extent 1 on the axes the window does not use"
        )
    valid = request
    if len(shape) == len(source.shape):
        valid = regions.window(i, source, offset, shape, request, bool(i.kwargs.get("clamp")), chip=False)
    space = i.kwargs.get("target_memory")
    layout = source.tensor_view.layout if source.tensor_view else TensorLayout.ND
    if layout in _MX and space is not MemorySpace.Mat:
        i.fail(f"loads a tensor of layout {layout.name} only to Mat, but got {space}")
    view = None
    if layout is TensorLayout.DN and space is MemorySpace.Mat:
        view = TileView(blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    return tile(shape, source.dtype, valid, space, view=view)


def _store(i: Inference) -> Type:
    source, offset, target = i.tile(0), i.dims(1), i.tensor(2)
    if i.kwargs.get("atomic"):
        require_dtype(i, target.dtype, _ATOMIC, "for an atomic add element type")
    if len(offset) != len(target.shape):
        i.fail(f"requires one offset per axis of the target {x.text(target.shape)}, but got {x.text(offset)}")
    extent = i.dims(3) if i.has(3) else source.valid_shape
    if len(extent) != len(target.shape):
        return target
    return with_valid(target, regions.union(i, target, offset, extent))


def with_valid(target: TensorType, valid: Dims) -> TensorType:
    """The type of `target` with another valid shape (its storage and the rest of its view stay)."""
    if valid is target.valid_shape or x.all_equal(valid, target.valid_shape):
        return target
    have = target.tensor_view or TensorView()
    full = x.all_equal(valid, target.shape)
    view = TensorView(have.stride, have.layout, () if full else valid, have.pad)
    return TensorType(target.shape, target.dtype, target.memref, view)


# --- making ----------------------------------------------------------------------------------------------------------


def _create_tensor(i: Inference) -> Type:
    return tensor(i.extents(0), dtype_kwarg(i), layout=i.kwargs.get("layout") or TensorLayout.ND)


def _create_l1(i: Inference) -> Type:
    static(i, i.dims(0))
    return tensor(i.extents(0), dtype_kwarg(i))


def _create_tile(i: Inference) -> Type:
    shape, space = i.dims(0), i.kwargs.get("target_memory")
    static(i, shape)
    if space in (MemorySpace.LeftScale, MemorySpace.RightScale):
        i.fail(f"cannot make a tile in {space.name}; load its data to Mat and move it there")
    view: TileView | None = None
    if i.kwargs.get("transpose"):
        if space is not MemorySpace.Mat or len(shape) != 2:
            i.fail(f"takes transpose=True only for a tile of rank 2 in Mat, but got {x.text(shape)} in {space}")
        view = TileView(blayout=TileLayout.row_major, slayout=TileLayout.col_major)
    if i.kwargs.get("flat_layout"):
        if space is not MemorySpace.Mat:
            i.fail(f"takes flat_layout=True only for a tile in Mat, but got {space}")
        view = TileView()
    elif view is None and _is_column(shape, space):
        view = TileView()
    return tile(shape, dtype_kwarg(i), None, space, view=view)


def _is_column(shape: Dims, space: MemorySpace | None) -> bool:
    """A `[N, 1]` tile made in place is row-major, unlike one that is loaded."""
    return space in (VEC, None) and implicit_tile_view(shape, space).blayout is TileLayout.col_major


def _literal(i: Inference, k: int) -> None:
    if not isinstance(i.args[k], (ConstInt, ConstFloat, ConstBool)):
        i.fail(f"requires a literal value, but got {i.args[k]}; use pl.expands for a run-time value")


def _full_tensor(i: Inference) -> Type:
    _literal(i, 1)
    return tensor(i.extents(0), dtype_kwarg(i))


def _full_tile(i: Inference) -> Type:
    _literal(i, 1)
    shape = i.dims(0)
    static(i, shape)
    return tile(shape, dtype_kwarg(i), view=TileView() if _is_column(shape, VEC) else None)


def _ramp(i: Inference) -> Type:
    start, shape, dtype = i.scalar(0), i.dims(1), i.kwargs.get("dtype", DataType.INT32)
    require_dtype(i, dtype, _RAMP)
    if start is not dtype:
        i.fail(f"requires a start of type {dtype.name}, but got {start.name}; write pl.const(start, pl.{dtype.name})")
    if not shape or not all(map(is_one, shape[:-1])) or is_one(shape[-1]):
        i.fail(f"requires one row of more than one element (as [1, 64]), but got {x.text(shape)}")
    return _of_namespace(i, shape, dtype, None)


def _of_namespace(i: Inference, shape: Dims, dtype: DataType, valid: Dims | None) -> Type:
    return tile(shape, dtype, valid) if i.op.startswith("tile.") else tensor(shape, dtype, valid)


def _optional_valid(i: Inference, k: int, shape: Dims) -> Dims | None:
    if not i.has(k) or not i.dims(k):
        return None
    valid = i.dims(k)
    if len(valid) != len(shape) or any(map(x.less, shape, valid)):
        i.fail(f"requires a valid shape within {x.text(shape)}, but got {x.text(valid)}")
    return valid


def _tri(i: Inference) -> Type:
    shape = i.dims(1)
    if i.scalar(0) is not DataType.INT32:
        i.fail(f"requires an INT32 diagonal, but got {i.scalar(0).name}; write pl.const(d, pl.INT32)")
    if len(static(i, shape)) != 2:
        i.fail(f"requires a shape of rank 2, but got {x.text(shape)}")
    return tile(shape, i.kwargs.get("dtype", DataType.INT32), _optional_valid(i, 2, shape))


def _random(i: Inference) -> Type:
    shape, dtype, rounds = i.dims(6), i.kwargs.get("dtype", DataType.UINT32), i.kwargs.get("rounds", 10)
    require_dtype(i, dtype, _BITS32)
    for k in range(6):
        require_dtype(i, i.scalar(k), _BITS32, "key and counter type")
    if rounds not in (7, 10):
        i.fail(f"takes rounds 7 or 10, but got {rounds}")
    if len(shape) != 2:
        i.fail(f"requires a shape of rank 2, but got {x.text(shape)}")
    return _of_namespace(i, shape, dtype, _optional_valid(i, 7, shape))


# --- elements, extents, tokens ---------------------------------------------------------------------------------------


def _read(i: Inference) -> Type:
    source = i.shaped(0)
    _check_indices(i, source.shape, i.dims(1))
    return ScalarType(source.dtype)


def _check_indices(i: Inference, shape: Dims, indices: Dims) -> None:
    if len(indices) != len(shape):
        i.fail(f"requires one index per axis of {x.text(shape)}, but got {x.text(indices)}")
    for k, (extent, at) in enumerate(zip(shape, indices, strict=False)):
        if x.negative(at) or x.at_most(extent, at):
            i.fail(f"requires an index within the {x.text([extent])} elements of axis {k}, but got {x.text([at])}")


def _write(i: Inference) -> Type:
    target = i.shaped(0)
    _check_indices(i, target.shape, i.dims(1))
    value = i.scalar(2)
    if value is not target.dtype:
        i.fail(f"requires a value of type {target.dtype.name}, but got {value.name}; convert it with pl.cast")
    return target


def _dim(i: Inference) -> Type:
    found: Expr = i.args[1]
    value = const_value(found)
    if value is None:
        i.fail(f"requires a constant axis, but got {found}")
    axis(i, value or 0, len(i.tensor(0).shape))
    return ScalarType(INDEX)


def _alloc(i: Inference) -> Type:
    return PtrType.get()


def _move(i: Inference) -> Type:
    a, space = i.tile(0), i.kwargs["target_memory"]
    implicit = implicit_tile_view(a.shape, space)
    blayout, slayout = i.kwargs.get("blayout"), i.kwargs.get("slayout")
    view = TileView(
        blayout=implicit.blayout if blayout is None else blayout,
        slayout=implicit.slayout if slayout is None else slayout,
        fractal=implicit.fractal,
        pad=a.get_effective_tile_view().pad,
    )
    scale = space in (MemorySpace.LeftScale, MemorySpace.RightScale)
    dtype = DataType.FP8E8M0 if scale and a.dtype is DataType.UINT8 else a.dtype
    return tile(a.shape, dtype, a.valid_shape, space, view=view)


# --- padding ---------------------------------------------------------------------------------------------------------


def _pad(i: Inference) -> PadValue:
    pad = i.kwargs.get("pad_value", PadValue.zero)
    if pad not in _PADS:
        i.fail(f"requires pad_value zero, max or min, but got {pad}")
    return PadValue(pad)


def _fillpad(i: Inference) -> Type:
    a, pad = i.shaped(0), _pad(i)
    if isinstance(a, TensorType):
        have = a.tensor_view or TensorView()
        return TensorType(a.shape, a.dtype, None, TensorView((), have.layout, (), pad))
    have_tile = a.get_effective_tile_view()
    view = TileView(
        blayout=have_tile.blayout,
        slayout=have_tile.slayout,
        pad=pad,
        fractal=have_tile.fractal,
        compact=have_tile.compact,
    )
    memref = a.memref if i.op.endswith("_inplace") else None
    return TileType(a.shape, a.dtype, memref, view, a.space)


def _fillpad_expand(i: Inference) -> Type:
    a, shape, pad = i.shaped(0), i.extents(1), _pad(i)
    if len(shape) != len(a.shape) or any(map(x.less, shape, a.shape)):
        i.fail(f"requires a shape of at least {x.text(a.shape)} on each axis, but got {x.text(shape)}")
    if isinstance(a, TensorType):
        return TensorType(shape, a.dtype, None, TensorView(pad=pad))
    implicit = implicit_tile_view(shape, a.space)
    view = TileView(blayout=implicit.blayout, slayout=implicit.slayout, fractal=implicit.fractal, pad=pad)
    return TileType(shape, a.dtype, None, view, a.space)


def register_all() -> None:
    """Add the records of this module."""
    _transfers()
    _makers()
    _elements()
    _fills()


def _transfers() -> None:
    op(
        "tile.load",
        "tensor:tensor offsets:tuple shapes:tuple valid_shape:tuple",
        _load,
        "target_memory:space=- clamp:bool=-",
        category=CATEGORY,
        space_kwarg="target_memory",
        doc="window of a tensor as a new tile; cells outside the valid shape are padding",
    )
    op(
        "tile.store",
        "tile:tile@Vec,Acc offsets:tuple output_tensor:tensor shapes:tuple?",
        _store,
        "atomic:int=-",
        category=CATEGORY,
        inplace=2,
        space=MemorySpace.DDR,
        doc="valid part of a tile written into a tensor at offsets; gives the tensor",
    )
    op(
        "tile.move",
        "tile:tile",
        _move,
        "target_memory:space blayout:tile_layout=- slayout:tile_layout=-",
        category=CATEGORY,
        space_kwarg="target_memory",
        no_alias=(-1,),
        doc="the same values in another memory space",
    )


def _makers() -> None:
    dtype = "dtype:dtype"
    kw = f"{dtype} layout:layout=ND manual_dep:bool=- init_value:float=-"
    doc = "new tensor in global memory, undefined unless init_value is given"
    op("tensor.create", "shape:tuple", _create_tensor, kw, category=CATEGORY, space=MemorySpace.DDR, doc=doc)
    doc = "on-chip accumulator typed as a tensor, for row-wise gathers"
    op("tensor.create_l1", "shape:tuple", _create_l1, f"{dtype} transpose:bool=-", category=CATEGORY, doc=doc)
    kw = f"{dtype} target_memory:space=- transpose:bool=- flat_layout:bool=-"
    doc = "new tile, undefined"
    op("tile.create", "shape:tuple", _create_tile, kw, category=CATEGORY, space_kwarg="target_memory", doc=doc)
    op(
        "tensor.full",
        "shape:tuple value:typed",
        _full_tensor,
        dtype,
        category=CATEGORY,
        doc="tensor filled with a literal",
    )
    doc = "tile filled with a literal"
    operands = "shape:tuple value:typed"
    op("tile.full", operands, _full_tile, dtype, category=CATEGORY, space=VEC, row_major_only=True, doc=doc)
    kw, doc = "dtype:dtype=INT32 descending:bool=False", "one row of integers counting up (or down) from start"
    for ns, space in (("tensor", None), ("tile", VEC)):
        op(f"{ns}.ci", "start:typed shape:tuple", _ramp, kw, category=CATEGORY, space=space, doc=doc)
    kw, doc = "dtype:dtype=INT32 upper:bool=False", "1 below (or above) a diagonal, else 0"
    op("tile.tri", "diagonal:int32 shape:tuple valid_shape:tuple?", _tri, kw, category=CATEGORY, space=VEC, doc=doc)
    kw, doc = "dtype:dtype=UINT32 rounds:int=10", "counter-based pseudo-random 32-bit words"
    seeds = "key0:int32 key1:int32 counter0:int32 counter1:int32 counter2:int32 counter3:int32 shape:tuple"
    op("tensor.random", seeds, _random, kw, category=CATEGORY, doc=doc)
    op("tile.random", f"{seeds} valid_shape:tuple?", _random, kw, category=CATEGORY, space=VEC, doc=doc)


def _elements() -> None:
    for ns, kind in (("tensor", "tensor:tensor"), ("tile", "tile:tile@Vec")):
        op(f"{ns}.read", f"{kind} indices:tuple", _read, category=CATEGORY, doc="one element as a scalar")
        doc = "one element replaced, in place; gives the same storage"
        op(f"{ns}.write", f"{kind} indices:tuple value:scalar", _write, category=CATEGORY, inplace=0, doc=doc)
        kw, doc = "pinned:bool=-" if ns == "tile" else "", "allocation of `size` bytes in a memory space"
        op(f"{ns}.alloc", "memory_space:index size:index", _alloc, kw, category=CATEGORY, doc=doc)
    op("tensor.dim", "tensor:tensor axis:index", _dim, category=CATEGORY, doc="run-time extent of one axis")
    for ns in ("tensor", "tile"):
        op(f"{ns}.get_block_idx", "", index_scalar, category="identity", doc="index of this block in an SPMD launch")
        op(f"{ns}.get_block_num", "", index_scalar, category="identity", doc="number of blocks of the launch")
        core = "vector" if ns == "tile" else None
        op(f"{ns}.get_subblock_idx", "", index_scalar, category="identity", core=core, doc="vector lane, 0 or 1")


def _fills() -> None:
    kw, doc = "pad_value:pad=zero", "everything outside the valid region set to the pad constant"
    op("tensor.fillpad", "tensor:tensor", _fillpad, kw, category="shape", doc=doc)
    op("tile.fillpad", "tile:tile@Vec", _fillpad, kw, category="shape", space_from=0, doc=doc)
    op("tile.fillpad_inplace", "tile:tile@Vec", _fillpad, kw, category="shape", space_from=0, inplace=0, doc=doc)
    doc = "larger copy, padded with the constant"
    op("tensor.fillpad_expand", "tensor:tensor shape:tuple", _fillpad_expand, kw, category="shape", doc=doc)
    op(
        "tile.fillpad_expand",
        "tile:tile@Vec shape:tuple",
        _fillpad_expand,
        kw,
        category="shape",
        space_from=0,
        no_alias=(-1,),
        doc=doc,
    )


__all__ = ["is_full", "register_all", "same_as", "with_valid"]
