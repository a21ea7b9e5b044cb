"""Bitwise operators, activations, cast, compare and select."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import DataType
from ..expr import ConstInt, index
from ..op_table import Inference, Rule
from ..types import ScalarType, TileType, Type
from .common import (
    VEC,
    Dims,
    broadcast,
    dtype_kwarg,
    last,
    op,
    promote,
    require_dtype,
    require_integer,
    require_same_dtype,
    tensor,
    tile,
)
from .elementwise import (
    FLOATS,
    common_valid,
    grown_valid,
    same_shape,
    same_valid,
    tile_binary,
    tile_result,
    tile_scalar,
)

# --- bits ------------------------------------------------------------------------------------------------------------


def _tensor_bits(keep_valid: bool = True, left_dtype: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, b = i.tensor(0), i.tensor(1)
        require_integer(i, a.dtype, b.dtype)
        same_shape(i, a.shape, b.shape)
        dtype = a.dtype if left_dtype else promote(a.dtype, b.dtype)
        return tensor(a.shape, dtype, common_valid(a, b) if keep_valid else None)

    return rule


def _tensor_bits_scalar(keep_valid: bool = True, shift: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, s = i.tensor(0), i.scalar(1)
        require_integer(i, a.dtype, s)
        count = i.args[1]
        if shift and isinstance(count, ConstInt) and count.value < 0:
            i.fail(f"requires a shift count of at least 0, but got {count.value}")
        return tensor(a.shape, a.dtype, a.valid_shape if keep_valid else None)

    return rule


def _tile_bits_scalar(i: Inference) -> Type:
    a = i.tile(0)
    require_integer(i, a.dtype, i.scalar(1))
    return tile(a.shape, a.dtype, a.valid_shape, like=a)


_BITS = (("and", "a & b"), ("or", "a | b"), ("xor", "a ^ b"), ("shl", "a << b"), ("shr", "a >> b"))


def _bits() -> None:
    for name, doc in _BITS:
        xor, shift = name == "xor", name.startswith("sh")
        tmp = " tmp:tile@Vec" if xor else ""
        scratch = (2,) if xor else ()
        op(f"tensor.{name}", "lhs:tensor rhs:tensor", _tensor_bits(not xor, shift), category="bitwise", doc=doc)
        rule = _tensor_bits_scalar(not xor, shift)
        op(f"tensor.{name}s", "lhs:tensor rhs:scalar", rule, category="bitwise", doc=doc.replace("b", "s"))
        op(
            f"tile.{name}",
            f"lhs:tile@Vec rhs:tile@Vec{tmp}",
            tile_binary(True, shift),
            category="bitwise",
            space=VEC,
            scratch=scratch,
            row_major_only=True,
            doc=doc,
        )
        op(
            f"tile.{name}s",
            f"lhs:tile@Vec rhs:scalar{tmp}",
            _tile_bits_scalar,
            category="bitwise",
            space=VEC,
            scratch=scratch,
            no_alias=() if shift else (-1,),
            doc=doc.replace("b", "s"),
        )


# --- activation, cast ------------------------------------------------------------------------------------------------


def _prelu(i: Inference) -> Type:
    a, slope = i.tile(0), i.tile(1)
    same_shape(i, a.shape, slope.shape)
    require_same_dtype(i, a.dtype, slope.dtype)
    require_dtype(i, a.dtype, FLOATS)
    same_valid(i, a, slope)
    return tile(a.shape, a.dtype, a.valid_shape, like=a)


def _cast(i: Inference) -> Type:
    a, target = i.shaped(0), dtype_kwarg(i, "target_type")
    if a.dtype is target:
        i.fail(f"requires another target type than that of its operand, but both are {target.name}; drop the cast")
    if isinstance(a, TileType):
        return tile(a.shape, target, a.valid_shape, like=a)
    return tensor(a.shape, target, a.valid_shape)


def _activation_and_cast() -> None:
    op(
        "tile.lrelu",
        "tile:tile@Vec slope:scalar",
        tile_scalar(),
        category="activation",
        space=VEC,
        row_major_only=True,
        doc="x where x > 0, slope * x elsewhere",
    )
    op(
        "tile.prelu",
        "tile:tile@Vec slope:tile@Vec tmp:tile@Vec",
        _prelu,
        category="activation",
        space=VEC,
        scratch=(2,),
        row_major_only=True,
        extra={"no_alias_910b": True},
        doc="x where x > 0, x * slope elsewhere (slope is a tile)",
    )
    kw, doc = "target_type:dtype mode:int=2", "each element converted to target_type, rounding as mode says"
    op("tensor.cast", "input:tensor", _cast, kw, category="cast", doc=doc)
    wider = {"no_alias_when_wider": 0}
    op("tile.cast", "tile:tile@Vec", _cast, kw, category="cast", space=VEC, row_major_only=True, extra=wider, doc=doc)


# --- compare and select ----------------------------------------------------------------------------------------------


def _tensor_cmp(i: Inference) -> Type:
    a = i.tensor(0)
    if isinstance(i.args[1].type, ScalarType):
        return tensor(a.shape, promote(a.dtype, i.scalar(1)))
    b = i.tensor(1)
    return tensor(broadcast(i, a.shape, b.shape), promote(a.dtype, b.dtype))


def _mask(i: Inference) -> Type:
    a = i.tile(0)
    shape = a.shape if isinstance(i.args[1].type, ScalarType) else broadcast(i, a.shape, i.tile(1).shape)
    columns = x.mul(x.ceil_div(x.ceil_div(last(i, shape), 8), 32), index(32))
    valid = a.valid_shape if x.all_equal(a.shape, shape) else grown_valid(a, shape) or shape
    return tile(
        (*shape[:-1], columns), DataType.UINT8, (*valid[:-1], x.ceil_div(valid[-1], 8)), like=_with_shape(a, shape)
    )


def _with_shape(a: TileType, shape: Dims) -> TileType:
    return TileType(shape, a.dtype, None, a.get_effective_tile_view(), a.space)


def _sel(i: Inference) -> Type:
    i.tile(0)
    a, b = i.tile(1), i.tile(2)
    return tile_result(i, a, (b,), promote(a.dtype, b.dtype))


_SIGNED_TWIN = {
    DataType.UINT8: DataType.INT8,
    DataType.UINT16: DataType.INT16,
    DataType.UINT32: DataType.INT32,
}


def _sels(i: Inference) -> Type:
    a, s = i.tile(1), i.scalar(3)
    want = _SIGNED_TWIN.get(a.dtype, a.dtype)
    if s is not want:
        i.fail(f"requires a scalar of type {want.name} for a {a.dtype.name} tile, but got {s.name}")
    if len(a.shape) != 2:
        i.fail(f"requires a tile of rank 2, but got {x.text(a.shape)}")
    return tile(a.shape, a.dtype, a.valid_shape, like=a)


def _compare_select() -> None:
    cat, kw = "compare-select", "cmp_type:int=0"
    doc = "1 where the comparison holds, else 0"
    op("tensor.cmp", "lhs:tensor rhs:tensor|scalar", _tensor_cmp, kw, category=cat, doc=doc)
    doc = "packed bit mask of the comparison: bit k of byte j is column 8j + k"
    op("tile.cmp", "lhs:tile@Vec rhs:tile@Vec", _mask, kw, category=cat, space=VEC, doc=doc)
    op("tile.cmps", "lhs:tile@Vec rhs:scalar", _mask, kw, category=cat, space=VEC, row_major_only=True, doc=doc)
    op(
        "tile.sel",
        "mask:tile@Vec lhs:tile@Vec rhs:tile@Vec tmp:tile@Vec",
        _sel,
        category=cat,
        space=VEC,
        scratch=(3,),
        no_alias=(0, 3),
        row_major_only=True,
        doc="lhs where the mask bit is set, rhs elsewhere",
    )
    op(
        "tile.sels",
        "mask:tile@Vec src:tile@Vec tmp:tile@Vec scalar:scalar",
        _sels,
        category=cat,
        space=VEC,
        scratch=(2,),
        no_alias=(0,),
        row_major_only=True,
        doc="src where the mask bit is set, the scalar elsewhere",
    )


def register_all() -> None:
    """Add the records of this module."""
    for group in (_bits, _activation_and_cast, _compare_select):
        group()
