"""Sorting, gathering and scattering."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import FP32, DataType
from ..enums import MemorySpace
from ..expr import Expr, const_value, index
from ..op_table import Inference, Rule
from ..types import TensorType, TileType, TupleType, Type
from .common import (
    VEC,
    Dims,
    Facts,
    axis,
    last,
    op,
    require_dtype,
    require_same_dtype,
    same_as,
    static,
    tensor,
    tile,
)
from .memory import with_valid

SORT, GATHER = "sort", "gather-scatter"
_FLOATS = (DataType.FP16, FP32)
_GATHERABLE = (DataType.FP16, FP32, DataType.INT16, DataType.INT32)
_PAGED = (DataType.FP16, DataType.BF16, FP32, DataType.INT8)
_STRIDES = {1: 2, 2: 2, 3: 4, 4: 4, 5: 4, 6: 4, 7: 1}


def _made(i: Inference, shape: Dims, dtype: DataType, valid: Dims | None = None, like: TileType | None = None) -> Type:
    if i.op.startswith("tile."):
        return tile(shape, dtype, valid, like=like)
    return tensor(shape, dtype, valid)


def _tile_or_none(t: TensorType | TileType) -> TileType | None:
    return t if isinstance(t, TileType) else None


# --- sorting ---------------------------------------------------------------------------------------------------------


def _sort32(i: Inference) -> Type:
    a, idx = i.shaped(0), i.shaped(1)
    require_dtype(i, a.dtype, _FLOATS)
    if isinstance(a, TensorType):
        require_dtype(i, idx.dtype, (DataType.UINT32,), "index type")
        columns = const_value(last(i, a.shape))
        if not x.all_equal(a.shape, idx.shape) or (columns or 32) % 32:
            i.fail(f"requires equal shapes with 32, 64, ... columns, but got {x.text(a.shape)} and {x.text(idx.shape)}")
    return _made(i, (*a.shape[:-1], x.mul(last(i, a.shape), index(2))), a.dtype)


def _merge_one(i: Inference) -> Type:
    a, block = i.shaped(0), const_value(i.args[1])
    require_dtype(i, a.dtype, _FLOATS)
    if block is not None and (block <= 0 or block % 64):
        i.fail(f"requires block_len to be a positive multiple of 64, but got {block}")
    return _made(i, a.shape, a.dtype)


def _merge_lists(i: Inference) -> Type:
    lists = [i.shaped(k) for k in range(len(i.args))]
    first = lists[0]
    for other in lists[1:]:
        require_same_dtype(i, first.dtype, other.dtype)
    if isinstance(first, TileType):
        return tile(lists[-1].shape, first.dtype)
    columns: Expr = index(0)
    for one in lists:
        columns = x.add(columns, last(i, one.shape))
    return tensor((*first.shape[:-1], columns), first.dtype)


def _sorting() -> None:
    doc = "groups of 32 sorted in descending order as (value, index) pairs"
    vec: Facts = {"category": SORT, "space": VEC, "no_alias": (-1,)}
    merge = "every 4 neighbouring sorted runs of block_len merged"
    op("tensor.sort32", "src:tensor idx:tensor", _sort32, category=SORT, doc=doc)
    op("tile.sort32", "src:tile@Vec idx:tile@Vec", _sort32, row_major_only=True, doc=doc, **vec)
    op("tensor.mrgsort_format1", "src:tensor block_len:index", _merge_one, category=SORT, doc=merge)
    op("tile.mrgsort_format1", "src:tile@Vec block_len:index", _merge_one, doc=merge, **vec)
    kw, doc = "exhausted:bool=False", "2 to 4 sorted pair lists merged in descending order"
    operands = "src0:tensor src1:tensor src2:tensor? src3:tensor?"
    op("tensor.mrgsort_format2", operands, _merge_lists, kw, category=SORT, doc=doc)
    operands = "src0:tile@Vec src1:tile@Vec tmp_or_src2:tile@Vec tmp_or_src3:tile@Vec? tmp:tile@Vec?"
    last = {"scratch_last": True}
    op(
        "tile.mrgsort_format2",
        operands,
        _merge_lists,
        kw,
        category=SORT,
        space=VEC,
        no_alias=(-1,),
        extra=last,
        doc=doc,
    )


# --- gathering -------------------------------------------------------------------------------------------------------


def _check_index(i: Inference, data: DataType, idx: DataType) -> None:
    allowed = (DataType.INT32, DataType.INT16) if data.get_bit() == 16 else (DataType.INT32,)
    require_dtype(i, idx, allowed, f"for {data.name} data index type")


def _gather_tensor(i: Inference) -> Type:
    a, idx = i.tensor(0), i.tensor(1)
    require_dtype(i, a.dtype, _GATHERABLE)
    _check_index(i, a.dtype, idx.dtype)
    axis(i, i.kwargs["dim"], len(a.shape))
    if len(a.shape) != len(idx.shape):
        i.fail(f"requires an index of rank {len(a.shape)}, but got {x.text(idx.shape)}")
    return tensor(idx.shape, a.dtype)


def _gather_tile(i: Inference) -> Type:
    a, idx = i.tile(0), i.tile(1)
    require_dtype(i, a.dtype, _GATHERABLE)
    _check_index(i, a.dtype, idx.dtype)
    return tile(idx.shape, a.dtype, like=a)


def _stride(i: Inference) -> int:
    pattern = i.kwargs["mask_pattern"]
    if pattern not in _STRIDES:
        i.fail(f"takes mask_pattern 1 to 7 (P0101, P1010, P0001, P0010, P0100, P1000, P1111), but got {pattern}")
    return _STRIDES.get(pattern, 1)


def _gather_mask(i: Inference) -> Type:
    a, stride = i.shaped(0), _stride(i)
    dtype = i.kwargs.get("output_dtype") or a.dtype
    if dtype.get_bit() != a.dtype.get_bit():
        i.fail(f"requires an output_dtype as wide as {a.dtype.name}, but got {dtype.name}")
    columns = const_value(a.shape[-1])
    if columns is None or columns % stride:
        i.fail(f"requires a multiple of {stride} columns, but got {x.text(a.shape)}")
    return _made(i, (*a.shape[:-1], index((columns or 0) // stride)), dtype, like=_tile_or_none(a))


def _gather_compare(i: Inference) -> Type:
    a, key = i.shaped(0), i.scalar(1)
    if key is not a.dtype:
        i.fail(f"requires kvalue of type {a.dtype.name}, but got {key.name}")
    if i.kwargs["cmp_mode"] not in range(6):
        i.fail(f"takes cmp_mode 0 to 5 (eq, ne, lt, le, gt, ge), but got {i.kwargs['cmp_mode']}")
    rows, like = a.shape[0], _tile_or_none(a)
    places = _made(i, (rows, index(i.kwargs["out_cols"])), DataType.INT32, like=like)
    counts = _made(i, (index(1), rows), i.kwargs.get("count_dtype") or DataType.INT32, like=like)
    return TupleType((places, counts))


def _gatherb(i: Inference) -> Type:
    a, offset = i.tile(0), i.tile(1)
    require_dtype(i, offset.dtype, (DataType.UINT32,), "offset type")
    columns = const_value(last(i, offset.shape))
    if columns is None or columns <= 0 or columns % 8:
        i.fail(f"requires offset columns that are a positive multiple of 8, but got {x.text(offset.shape)}")
    dtype = i.kwargs.get("output_dtype") or a.dtype
    per_block = index(32 // dtype.get_byte())
    shape, valid = ((*d[:-1], x.mul(d[-1], per_block)) for d in (offset.shape, offset.valid_shape))
    return tile(shape, dtype, valid)


def _gather_row(i: Inference) -> Type:
    target, source = i.shaped(0), i.tensor(1)
    require_same_dtype(i, target.dtype, source.dtype)
    static(i, i.dims(4))
    if i.has(5) and i.kwargs.get("transpose"):
        i.fail("does not take valid_shape together with transpose=True")
    return target


def _paged_gather(i: Inference) -> Type:
    a, transposed = i.tensor(0), i.kwargs.get("is_trans", False)
    require_dtype(i, a.dtype, _PAGED)
    for k in (1, 2):
        require_dtype(i, i.tensor(k).dtype, (DataType.INT32,), "index type")
    if transposed and i.kwargs.get("space", MemorySpace.Mat) is not MemorySpace.Mat:
        i.fail(f"takes is_trans=True only in Mat, but got {i.kwargs.get('space')}")
    shape = (index(i.kwargs["max_indices"]), index(i.kwargs["size"]))
    return tensor(shape[::-1] if transposed else shape, a.dtype)


def _mgather(i: Inference) -> Type:
    mem, idx = i.tensor(0), i.shaped(1)
    require_dtype(i, idx.dtype, (DataType.INT32,), "index type")
    space, by_row = i.kwargs.get("target_memory", VEC), i.kwargs.get("coalesce", 0) == 0
    shape, valid = idx.shape, idx.valid_shape
    if by_row:
        count, live = x.volume(idx.shape), x.volume(idx.valid_shape)
        shape, valid = (count, last(i, mem.shape)), (live, mem.valid_shape[-1])
    extra = [k for k in range(2, len(i.args)) if not (k == 2 and isinstance(i.args[k].type, TensorType))]
    if extra:
        valid = i.dims(extra[0])
        if len(extra) > 1 or len(valid) != len(shape):
            i.fail(f"requires one valid shape of rank {len(shape)}, but got {x.text(valid)}")
    return tile(shape, mem.dtype, valid, space)


# --- scattering ------------------------------------------------------------------------------------------------------


def _scatter_tensor(i: Inference) -> Type:
    a, idx, src = i.tensor(0), i.tensor(1), i.tensor(2)
    require_same_dtype(i, a.dtype, src.dtype)
    rank = len(a.shape)
    if rank != 2 or axis(i, i.kwargs["dim"], rank) != 1 or not x.all_equal(idx.shape, src.shape):
        i.fail(
            f"requires rank 2, the last axis and an index of the shape of src, but got {x.text(a.shape)}, "
            f"dim={i.kwargs['dim']} and {x.text(idx.shape)} for {x.text(src.shape)}"
        )
    _check_scatter_index(i, a.dtype, idx.dtype)
    return tensor(a.shape, a.dtype)


def _check_scatter_index(i: Inference, data: DataType, idx: DataType) -> None:
    want = DataType.INT32 if data.get_byte() == 4 else DataType.INT16
    require_dtype(i, idx, (want,), f"for {data.name} data index type")


def _scatter_tile(i: Inference) -> Type:
    dst, src, idx = i.tile(0), i.tile(1), i.tile(2)
    require_same_dtype(i, dst.dtype, src.dtype)
    _check_scatter_index(i, dst.dtype, idx.dtype)
    if not x.all_equal(idx.shape, src.shape):
        i.fail(f"requires an index of the shape {x.text(src.shape)}, but got {x.text(idx.shape)}")
    return dst


def _scatter_mask(dst_first: bool) -> Rule:
    def rule(i: Inference) -> Type:
        source, target = (i.shaped(1), i.shaped(0)) if dst_first else (i.shaped(0), i.shaped(1))
        require_same_dtype(i, source.dtype, target.dtype)
        want = x.mul(source.shape[-1], index(_stride(i)))
        if x.difference(want, target.shape[-1]) not in (0, None):
            i.fail(f"requires a target of {x.text([want])[1:-1]} columns, but got {x.text(target.shape)}")
        return target

    return rule


def _scatter_update(i: Inference) -> Type:
    a, idx, src = i.shaped(0), i.shaped(1), i.shaped(2)
    require_same_dtype(i, a.dtype, src.dtype)
    if not idx.dtype.is_int():
        i.fail(f"requires integer indices, but got {idx.dtype.name}")
    if len(idx.shape) != 2 or len(a.shape) not in (2, 4) or len(src.shape) != len(a.shape):
        i.fail(
            f"requires an index of rank 2 and data of rank 2 or 4, but got {x.text(idx.shape)}, {x.text(a.shape)} and "
            f"{x.text(src.shape)}"
        )
    return a if isinstance(a, TileType) else with_valid(tensor(a.shape, a.dtype), a.valid_shape)


def _mscatter(i: Inference) -> Type:
    a, idx, target = i.tile(0), i.tile(1), i.tensor(2)
    require_same_dtype(i, a.dtype, target.dtype)
    require_dtype(i, idx.dtype, (DataType.INT32,), "index type")
    return target


def _gathering() -> None:
    vec: Facts = {"category": GATHER, "space": VEC, "no_alias": (-1,)}
    gathered: Facts = {"category": GATHER}
    doc = "x at the positions of index along dim"
    op("tensor.gather", "input:tensor index:tensor", _gather_tensor, "dim:int", doc=doc, **gathered)
    operands, doc = "src:tile@Vec indices:tile@Vec tmp:tile@Vec", "x at flat positions"
    op("tile.gather", operands, _gather_tile, scratch=(2,), doc=doc, **vec)
    kw, doc = "mask_pattern:int output_dtype:dtype=-", "the marked columns of each row, packed to the left"
    op("tensor.gather_mask", "input:tensor", _gather_mask, kw, doc=doc, **gathered)
    op("tile.gather_mask", "src:tile@Vec", _gather_mask, kw, doc=doc, **vec)
    kw = "cmp_mode:int offset:int=0 out_cols:int count_dtype:dtype=-"
    doc = "per row the positions where the comparison with kvalue holds, and their number"
    op("tensor.gather_compare", "input:tensor kvalue:scalar", _gather_compare, kw, doc=doc, **gathered)
    operands = "src:tile@Vec kvalue:scalar tmp:tile@Vec"
    op("tile.gather_compare", operands, _gather_compare, kw, scratch=(2,), doc=doc, **vec)
    doc = "blocks of 32 bytes at byte offsets"
    operands = "src:tile@Vec offset:tile@Vec"
    op("tile.gatherb", operands, _gatherb, "output_dtype:dtype=-", row_major_only=True, doc=doc, **vec)
    rest = "src:tensor dst_offset:tuple src_offset:tuple shapes:tuple valid_shape:tuple?"
    doc = "a window of global memory copied into an accumulator, in place"
    op("tensor.gather_row", f"acc:tensor {rest}", _gather_row, "transpose:bool=False", inplace=0, doc=doc, **gathered)
    kw = "transpose:bool=False"
    op("tile.gather_row", f"dst:tile {rest}", _gather_row, kw, category=GATHER, space_from=0, inplace=0, doc=doc)
    kw = "block_size:int size:int col_off:int=0 max_indices:int is_trans:bool=False is_b_matrix:bool=False"
    kw += " space:space=Mat"
    operands, doc = "src:tensor indices:tensor block_table:tensor", "rows of a paged table"
    op("tensor.paged_gather", operands, _paged_gather, kw, space_kwarg="space", doc=doc, **gathered)
    op(
        "tile.mgather",
        "mem:tensor idx:tile|tensor scratch:tensor|tuple? valid_shape:tuple?",
        _mgather,
        "coalesce:int=0 gather_oob:int=0 target_memory:space=Vec",
        category=GATHER,
        space_kwarg="target_memory",
        no_alias=(-1,),
        doc="rows or elements of a tensor at run-time positions",
    )


def _scattering() -> None:
    doc = "input with src written at the positions of index"
    operands = "input:tensor index:tensor src:tensor"
    op("tensor.scatter", operands, _scatter_tensor, "dim:int", category=GATHER, doc=doc)
    doc = "src written at flat positions of dst, in place"
    operands = "dst:tile@Vec src:tile@Vec indexes:tile@Vec"
    op("tile.scatter", operands, _scatter_tile, category=GATHER, space_from=0, inplace=0, doc=doc)
    kw, doc = "mask_pattern:int", "compact columns spread to the marked columns of dst"
    op("tensor.scatter_mask", "input:tensor dst:tensor", _scatter_mask(False), kw, category=GATHER, doc=doc)
    operands, rule = "dst:tile@Vec src:tile@Vec", _scatter_mask(True)
    op("tile.scatter_mask", operands, rule, kw, category=GATHER, space_from=0, inplace=0, doc=doc)
    kw, doc = "dim:int=-2", "rows of input replaced at the positions of index"
    operands = "input:tensor index:tensor src:tensor"
    op("tensor.scatter_update", operands, _scatter_update, kw, category=GATHER, doc=doc)
    operands = "input:tile@Vec index:tile@Vec src:tile@Vec"
    op("tile.scatter_update", operands, _scatter_update, kw, category=GATHER, space_from=0, no_alias=(1, 2), doc=doc)
    op(
        "tile.mscatter",
        "src:tile@Vec idx:tile@Vec output_tensor:tensor",
        _mscatter,
        category=GATHER,
        space=MemorySpace.DDR,
        inplace=2,
        row_major_only=True,
        doc="elements written at flat positions of a tensor",
    )


def register_all() -> None:
    """Add the records of this module."""
    _sorting()
    _gathering()
    _scattering()


__all__ = ["register_all", "same_as"]
