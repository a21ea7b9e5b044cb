"""Matrix products."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import BOOL, FP32, DataType
from ..enums import CompactMode, MemorySpace
from ..expr import Expr, const_value, index
from ..op_table import Inference, Rule
from ..types import TensorType, TileType, TileView, Type
from .common import (
    Dims,
    Facts,
    accumulator_dtype,
    broadcast,
    is_one,
    op,
    promote,
    require_dtype,
    require_same_dtype,
    swapped,
    tensor,
    tile,
)

CATEGORY = "matmul"
ACC = MemorySpace.Acc
_GEMV_TYPES = (DataType.INT8, DataType.FP16, DataType.BF16, FP32)
_ROWS = index(16)


def _same_k(i: Inference, a: Expr, b: Expr) -> None:
    if x.difference(a, b) not in (0, None):
        i.fail(f"requires equal inner extents, but got {x.text([a])} columns and {x.text([b])} rows")


# --- tensors ---------------------------------------------------------------------------------------------------------


def _operand(i: Inference, k: int, keyword: str) -> Dims:
    shape = i.tensor(k).shape
    if not i.kwargs.get(keyword):
        return shape
    if len(shape) < 2:
        i.fail(f"takes {keyword}=True only for rank 2 or more, but got {x.text(shape)}")
    return swapped(shape, len(shape) - 2, len(shape) - 1)


def _product_shape(i: Inference, a: Dims, b: Dims) -> Dims:
    if not a or not b:
        i.fail("requires operands of rank 1 or more")
    _same_k(i, a[-1], b[-2] if len(b) > 1 else b[-1])
    return (*broadcast(i, a[:-2], b[:-2]), *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


def _matmul_tensor(i: Inference) -> Type:
    a, b = _operand(i, 0, "a_trans"), _operand(i, 1, "b_trans")
    dtype = i.kwargs.get("out_dtype") or promote(i.tensor(0).dtype, i.tensor(1).dtype)
    return tensor(_product_shape(i, a, b), dtype)


def _matmul_acc_tensor(i: Inference) -> Type:
    first = i.tensor(1) if isinstance(i.args[1].type, TensorType) else i.tensor(0)
    acc, b = i.tensor(0), i.tensor(2)
    require_same_dtype(i, first.dtype, b.dtype)
    _check_acc_dtype(i, acc.dtype, first.dtype)
    shape = _product_shape(i, _operand(i, 1, "a_trans"), _operand(i, 2, "b_trans"))
    _check_acc_shape(i, acc.shape, shape)
    _check_init(i, 3)
    return acc


def _check_acc_dtype(i: Inference, acc: DataType, operand: DataType) -> None:
    want = accumulator_dtype(operand)
    if acc is not want:
        i.fail(f"requires an accumulator of type {want.name} for {operand.name} operands, but got {acc.name}")


def _check_acc_shape(i: Inference, acc: Dims, shape: Dims) -> None:
    if len(acc) != len(shape) or any(x.difference(p, q) not in (0, None) for p, q in zip(acc, shape, strict=False)):
        i.fail(f"requires an accumulator of shape {x.text(shape)}, but got {x.text(acc)}")


def _check_init(i: Inference, k: int) -> None:
    if i.has(k) and i.scalar(k) is not BOOL:
        i.fail(f"requires a BOOL init_cond, but got {i.scalar(k).name}")


# --- tiles -----------------------------------------------------------------------------------------------------------


def _pair(i: Inference, at: int) -> tuple[TileType, TileType]:
    """The two factors; checks element types and the contraction."""
    a, b = i.tile(at), i.tile(at + 1)
    require_same_dtype(i, a.dtype, b.dtype)
    for side in (a, b):
        if len(side.shape) < 2:
            i.fail(f"requires tiles of rank 2, but got {x.text(side.shape)}")
    _same_k(i, a.shape[-1], b.shape[-2])
    if x.less(b.valid_shape[-2], a.valid_shape[-1]):
        i.fail(
            f"contracts {x.text(a.valid_shape[-1:])} valid columns of the left tile with only "
            f"{x.text(b.valid_shape[-2:-1])} valid rows of the right one"
        )
    return a, b


def _acc_tile(shape: Dims, dtype: DataType, valid: Dims) -> TileType:
    implicit = TileType(shape, dtype, None, None, ACC).get_effective_tile_view()
    # The pitch of the accumulator follows the valid rows when they are not known to be all rows.
    compact = CompactMode.null if x.equal(valid[-2], shape[-2]) else CompactMode.normal
    view = TileView(blayout=implicit.blayout, slayout=implicit.slayout, fractal=implicit.fractal, compact=compact)
    return tile(shape, dtype, valid, ACC, view=view)


def _matmul_tile(bias: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, b = _pair(i, 0)
        if len(a.shape) != 2 or len(b.shape) != 2:
            i.fail(f"requires tiles of rank 2, but got {x.text(a.shape)} and {x.text(b.shape)}")
        dtype = accumulator_dtype(a.dtype)
        if bias:
            _check_bias(i, i.tile(2), dtype, b.shape[1])
        return _acc_tile((a.shape[0], b.shape[1]), dtype, (a.valid_shape[0], b.valid_shape[1]))

    return rule


def _check_bias(i: Inference, bias: TileType, dtype: DataType, columns: Expr) -> None:
    if bias.dtype is not dtype:
        i.fail(f"requires a bias of type {dtype.name}, but got {bias.dtype.name}")
    if len(bias.shape) != 2 or not is_one(bias.shape[0]) or x.difference(bias.shape[1], columns) not in (0, None):
        i.fail(f"requires a bias of shape [1, {x.text([columns])[1:-1]}], but got {x.text(bias.shape)}")


def _matmul_acc_tile(i: Inference) -> Type:
    acc = i.tile(0)
    a, b = _pair(i, 1)
    _check_acc_dtype(i, acc.dtype, a.dtype)
    _check_acc_shape(i, acc.shape, (a.shape[0], b.shape[1]))
    _check_init(i, 3)
    for have, need in zip(acc.valid_shape, (a.valid_shape[0], b.valid_shape[1]), strict=False):
        if x.less(have, need):
            i.fail(f"requires an accumulator valid on {x.text([need])}, but got {x.text(acc.valid_shape)}")
    return acc


def _batch(acc: bool) -> Rule:
    def rule(i: Inference) -> Type:
        a, b = _pair(i, 1 if acc else 0)
        shape = (*broadcast(i, a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        if not acc:
            return tile(shape, accumulator_dtype(a.dtype), None, ACC)
        have = i.tile(0)
        _check_acc_dtype(i, have.dtype, a.dtype)
        _check_acc_shape(i, have.shape, shape)
        return have

    return rule


def _gemv(extra: str = "") -> Rule:
    def rule(i: Inference) -> Type:
        a, b = _pair(i, 1 if extra == "acc" else 0)
        require_dtype(i, a.dtype, _GEMV_TYPES)
        if not is_one(a.shape[0]) or not is_one(a.valid_shape[0]):
            i.fail(f"requires exactly one row on the left, but got {x.text(a.shape)}")
        dtype = accumulator_dtype(a.dtype)
        if extra == "acc":
            _check_acc_dtype(i, i.tile(0).dtype, a.dtype)
            return i.tile(0)
        if extra == "bias":
            _check_bias(i, i.tile(2), dtype, b.shape[1])
        return _acc_tile((_ROWS, b.shape[1]), dtype, (index(1), b.valid_shape[1]))

    return rule


# --- block-scaled products -------------------------------------------------------------------------------------------


def _mx(extra: str = "") -> Rule:
    def rule(i: Inference) -> Type:
        at = 1 if extra == "acc" else 0
        a, a_scale, b, b_scale = (i.tile(at + k) for k in range(4))
        require_dtype(i, a.dtype, (DataType.FP8E4M3FN,))
        require_dtype(i, b.dtype, (DataType.FP8E4M3FN,))
        for scale in (a_scale, b_scale):
            require_dtype(i, scale.dtype, (DataType.FP8E8M0,), "scale type")
        _same_k(i, a.shape[1], b.shape[0])
        _check_multiples(i, a.shape, b.shape)
        blocks = x.ceil_div(a.shape[1], 32)
        _check_scale(i, a_scale.shape, (a.shape[0], blocks))
        _check_scale(i, b_scale.shape, (blocks, b.shape[1]))
        if extra == "acc":
            return i.tile(0)
        if extra == "bias":
            _check_bias(i, i.tile(4), FP32, b.shape[1])
        return _acc_tile((a.shape[0], b.shape[1]), FP32, (a.valid_shape[0], b.valid_shape[1]))

    return rule


def _check_multiples(i: Inference, a: Dims, b: Dims) -> None:
    for extent, step, what in ((a[0], 16, "M"), (a[1], 64, "K"), (b[1], 32, "N")):
        value = const_value(extent)
        if value is None or value % step:
            i.fail(f"requires {what} to be a constant multiple of {step}, but got {x.text([extent])}")


def _check_scale(i: Inference, have: Dims, want: Dims) -> None:
    if not x.all_equal(have, want):
        i.fail(f"requires a scale of shape {x.text(want)} (one per 32 along K), but got {x.text(have)}")


def register_all() -> None:
    """Add the records of this module."""
    _tensor_records()
    _tile_records()
    _mx_records()


def _tensor_records() -> None:
    kw = "a_trans:bool=False b_trans:bool=False c_matrix_nz:bool=False out_dtype:dtype=-"
    doc = "matrix product; accumulates in FP32 or INT32 and rounds once"
    op("tensor.matmul", "lhs:tensor rhs:tensor", _matmul_tensor, kw, category=CATEGORY, doc=doc)
    op(
        "tensor.matmul_acc",
        "acc:tensor lhs:tensor rhs:tensor init_cond:scalar?",
        _matmul_acc_tensor,
        "a_trans:bool=False b_trans:bool=False",
        category=CATEGORY,
        doc="acc + lhs @ rhs, or the product alone where init_cond holds",
    )


def _tile_records() -> None:
    left, bias, acc = "lhs:tile@Left rhs:tile@Right", "bias:tile@Bias", "acc:tile@Acc"
    cube: Facts = {"category": CATEGORY, "space": ACC, "core": "cube"}
    op("tile.matmul", left, _matmul_tile(), doc="lhs @ rhs in the accumulator", **cube)
    op("tile.matmul_bias", f"{left} {bias}", _matmul_tile(True), doc="lhs @ rhs + bias", **cube)
    doc = "acc + lhs @ rhs in place, or the product alone where init_cond holds"
    op("tile.matmul_acc", f"{acc} {left} init_cond:scalar?", _matmul_acc_tile, inplace=0, doc=doc, **cube)
    op("tile.batch_matmul", left, _batch(False), doc="products over the trailing two axes", **cube)
    op("tile.batch_matmul_acc", f"{acc} {left}", _batch(True), inplace=0, doc="acc + products, in place", **cube)
    kw = "acc_phase:str=unspecified"
    op("tile.gemv", left, _gemv(), kw, doc="one row @ matrix, in row 0 of 16", **cube)
    op("tile.gemv_bias", f"{left} {bias}", _gemv("bias"), kw, doc="one row @ matrix + bias", **cube)
    op("tile.gemv_acc", f"{acc} {left}", _gemv("acc"), kw, inplace=0, doc="acc + one row @ matrix, in place", **cube)


def _mx_records() -> None:
    sides = "lhs:tile@Left lhs_scale:tile@LeftScale rhs:tile@Right rhs_scale:tile@RightScale"
    cube: Facts = {"category": CATEGORY, "space": ACC, "core": "cube"}
    doc = "product of FP8 data with one power-of-two scale per 32 elements along K"
    op("tile.matmul_mx", sides, _mx(), doc=doc, **cube)
    op("tile.matmul_mx_bias", f"{sides} bias:tile@Bias", _mx("bias"), doc=f"{doc}, plus bias", **cube)
    op("tile.matmul_mx_acc", f"acc:tile@Acc {sides}", _mx("acc"), inplace=0, doc=f"acc + {doc}", **cube)
    doc = "binding of a scale tile to its data tile, made by the compiler"
    op(
        "tile.tget_scale_addr",
        "dst_scale:tile src:tile",
        lambda i: i.tile(0),
        category=CATEGORY,
        space_from=0,
        inplace=0,
        doc=doc,
    )
