"""Element-wise operators: unary, binary, with scalars, of three operands, bitwise, cast, compare and select."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import FP32, DataType
from ..expr import ConstInt, index
from ..op_table import Inference, Rule
from ..types import ScalarType, TensorType, TileType, Type
from .common import (
    VEC,
    Dims,
    broadcast,
    dtype_kwarg,
    is_full,
    op,
    promote,
    require_dtype,
    require_integer,
    require_same_dtype,
    tensor,
    tile,
)

_FLOATS = (DataType.FP16, FP32)
_DIVIDABLE = (DataType.INT16, DataType.INT32, DataType.FP16, FP32)
_SUBS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, FP32, DataType.BF16)
_NOT = (DataType.INT16, DataType.UINT16)


def _common_valid(a: TensorType, b: TensorType) -> Dims | None:
    same = x.all_equal(a.shape, b.shape) and x.all_equal(a.valid_shape, b.valid_shape)
    return a.valid_shape if same and not is_full(a) else None


# --- unary -----------------------------------------------------------------------------------------------------------


def _tensor_unary(allowed: tuple[DataType, ...] = (), to_float: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a = i.tensor(0)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        _check_precision(i, a.dtype)
        return tensor(a.shape, FP32 if to_float and not a.dtype.is_float() else a.dtype, a.valid_shape)

    return rule


def _check_precision(i: Inference, dtype: DataType) -> None:
    if i.kwargs.get("high_precision"):
        require_dtype(i, dtype, _FLOATS, "for high_precision=True element type")


def _tile_unary(allowed: tuple[DataType, ...] = ()) -> Rule:
    def rule(i: Inference) -> Type:
        a = i.tile(0)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        _check_precision(i, a.dtype)
        return tile(a.shape, a.dtype, a.valid_shape, like=a)

    return rule


_UNARY: tuple[tuple[str, str, tuple[DataType, ...], bool], ...] = (
    ("abs", "magnitude of each element", (), False),
    ("neg", "each element negated", (), False),
    ("exp", "e to the power of each element", (), True),
    ("log", "natural logarithm of each element", _FLOATS, False),
    ("sqrt", "square root of each element", (), True),
    ("rsqrt", "1 / square root of each element", (), True),
    ("recip", "1 / each element", (), True),
    ("sin", "sine of each element (radians)", (FP32,), False),
    ("cos", "cosine of each element (radians)", (FP32,), False),
    ("not", "bitwise complement of each element", _NOT, False),
)
_PRECISE = ("log", "rsqrt", "recip")
_ROW_MAJOR_UNARY = ("abs", "exp", "log", "sqrt", "rsqrt", "recip", "not")


def _unary() -> None:
    for name, doc, allowed, to_float in _UNARY:
        cat = "bitwise" if name == "not" else "unary"
        kw = "high_precision:bool=-" if name in _PRECISE else ""
        op(f"tensor.{name}", "input:tensor", _tensor_unary(allowed, to_float), kw, category=cat, doc=doc)
        two = name == "rsqrt"
        op(
            f"tile.{name}",
            "tile:tile@Vec tmp:tile@Vec?" if two else "tile:tile@Vec",
            _tile_unary(allowed),
            "" if two else kw,
            category=cat,
            space=VEC,
            doc=doc,
            scratch=(1,) if two else (),
            row_major_only=name in _ROW_MAJOR_UNARY,
            no_alias=(-1,) if name in ("recip", "rsqrt") else (),
        )
    op("tile.relu", "tile:tile@Vec", _tile_unary(), category="unary", space=VEC, doc="max(x, 0) of each element")


# --- binary ----------------------------------------------------------------------------------------------------------


def _tensor_binary(i: Inference) -> Type:
    a = i.tensor(0)
    if isinstance(i.args[1].type, ScalarType):
        return tensor(a.shape, promote(a.dtype, i.scalar(1)), a.valid_shape)
    b = i.tensor(1)
    return tensor(broadcast(i, a.shape, b.shape), promote(a.dtype, b.dtype), _common_valid(a, b))


def _tensor_div(i: Inference) -> Type:
    for k in (0, 1):
        require_dtype(i, i.tensor(k).dtype, _DIVIDABLE)
    return _tensor_binary(i)


def _tensor_part(i: Inference) -> Type:
    a, b = i.tensor(0), i.tensor(1)
    return tensor(broadcast(i, a.shape, b.shape), promote(a.dtype, b.dtype))


def _same_shape(i: Inference, a: Dims, b: Dims) -> None:
    if not x.all_equal(a, b):
        i.fail(f"requires operands of one shape (it does not broadcast), but got {x.text(a)} and {x.text(b)}")


def _tensor_bits(keep_valid: bool = True, left_dtype: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, b = i.tensor(0), i.tensor(1)
        require_integer(i, a.dtype, b.dtype)
        _same_shape(i, a.shape, b.shape)
        dtype = a.dtype if left_dtype else promote(a.dtype, b.dtype)
        return tensor(a.shape, dtype, _common_valid(a, b) if keep_valid else None)

    return rule


def _tile_binary(integer: bool = False, left_dtype: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, b = i.tile(0), i.tile(1)
        if integer:
            require_integer(i, a.dtype, b.dtype)
        return _tile_result(i, a, (b,), a.dtype if left_dtype else promote(a.dtype, b.dtype))

    return rule


def _tile_result(i: Inference, a: TileType, others: tuple[TileType, ...], dtype: DataType) -> TileType:
    shape = a.shape
    for b in others:
        shape = broadcast(i, shape, b.shape)
    valid = a.valid_shape if shape is a.shape or x.all_equal(shape, a.shape) else _grown_valid(a, shape)
    return tile(shape, dtype, valid, like=a)


def _grown_valid(a: TileType, shape: Dims) -> Dims | None:
    """Valid region of a first operand that was broadcast: repeated axes are full."""
    if is_full(a):
        return None
    lead = len(shape) - len(a.shape)
    kept = [v if x.equal(s, t) else t for v, s, t in zip(a.valid_shape, a.shape, shape[lead:])]
    return (*shape[:lead], *kept)


def _tile_div(i: Inference) -> Type:
    a, b = i.tile(0), i.tile(1)
    _same_shape(i, a.shape, b.shape)
    require_same_dtype(i, a.dtype, b.dtype)
    require_dtype(i, a.dtype, _DIVIDABLE)
    _check_precision(i, a.dtype)
    _same_valid(i, a, b)
    return tile(a.shape, a.dtype, a.valid_shape, like=a)


def _same_valid(i: Inference, a: TileType, b: TileType) -> None:
    if not x.all_equal(a.valid_shape, b.valid_shape):
        i.fail(
            f"requires operands of one valid shape, but got {x.text(a.valid_shape)} and {x.text(b.valid_shape)}; "
            "state it with pl.set_validshape"
        )


_BINARY = (
    ("add", "a + b"),
    ("sub", "a - b"),
    ("mul", "a * b"),
    ("div", "a / b; integers truncate toward zero"),
    ("maximum", "the larger of a and b"),
    ("minimum", "the smaller of a and b"),
    ("fmod", "remainder of a / b with the sign of a"),
)
_PART = (("part_add", "a + b"), ("part_mul", "a * b"), ("part_max", "the larger"), ("part_min", "the smaller"))


def _binary() -> None:
    cat = "elementwise-binary"
    for name, doc in _BINARY:
        second = "rhs:tensor|scalar" if name in ("maximum", "minimum") else "rhs:tensor"
        div = name == "div"
        kw = "high_precision:bool=-" if div else ""
        op(f"tensor.{name}", f"lhs:tensor {second}", _tensor_div if div else _tensor_binary, kw, category=cat, doc=doc)
        op(
            f"tile.{name}",
            "lhs:tile@Vec rhs:tile@Vec",
            _tile_div if div else _tile_binary(),
            kw,
            category=cat,
            space=VEC,
            doc=doc,
            row_major_only=True,
            no_alias=(-1,) if name == "fmod" else (),
        )
    for name, what in _PART:
        doc = f"{what} where both are valid, the valid operand elsewhere"
        op(f"tensor.{name}", "src0:tensor src1:tensor", _tensor_part, category=cat, doc=doc)
        operands = "src0:tile@Vec src1:tile@Vec"
        op(f"tile.{name}", operands, _tile_binary(), category=cat, space=VEC, row_major_only=True, doc=doc)
    op(
        "tile.rem",
        "lhs:tile@Vec rhs:tile@Vec tmp:tile@Vec",
        _tile_binary(),
        category=cat,
        space=VEC,
        scratch=(2,),
        row_major_only=True,
        doc="remainder of a / b with the sign of b",
    )


# --- with a scalar ---------------------------------------------------------------------------------------------------


def _tensor_scalar(keep_dtype: bool = False, allowed: tuple[DataType, ...] = ()) -> Rule:
    def rule(i: Inference) -> Type:
        a, s = i.tensor(0), i.scalar(1)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        return tensor(a.shape, a.dtype if keep_dtype else promote(a.dtype, s), a.valid_shape)

    return rule


def _tile_scalar(allowed: tuple[DataType, ...] = ()) -> Rule:
    def rule(i: Inference) -> Type:
        a = i.tile(0)
        i.scalar(1)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        return tile(a.shape, a.dtype, a.valid_shape, like=a)

    return rule


def _rems(i: Inference) -> Type:
    a, tmp = i.tile(0), i.tile(2)
    return _tile_result(i, a, (tmp,), promote(promote(a.dtype, i.scalar(1)), tmp.dtype))


_SCALAR = (
    ("adds", "x + s"),
    ("subs", "x - s"),
    ("muls", "x * s"),
    ("divs", "x / s"),
    ("fmods", "remainder of x / s with the sign of x"),
)
_TILE_ONLY_SCALAR = (("maximums", "the larger of x and s"), ("minimums", "the smaller of x and s"))


def _with_scalar() -> None:
    cat = "elementwise-scalar"
    for name, doc in _SCALAR:
        subs = name == "subs"
        rule = _tensor_scalar(subs, _SUBS if subs else ())
        op(f"tensor.{name}", "lhs:tensor rhs:scalar", rule, category=cat, doc=doc)
    for name, doc in _SCALAR + _TILE_ONLY_SCALAR:
        op(
            f"tile.{name}",
            "lhs:tile@Vec rhs:scalar",
            _tile_scalar(_SUBS if name == "subs" else ()),
            category=cat,
            space=VEC,
            doc=doc,
            row_major_only=name != "minimums",
            no_alias=(-1,) if name == "fmods" else (),
        )
    doc = "remainder of x / s with the sign of s"
    op("tile.rems", "lhs:tile@Vec rhs:scalar tmp:tile@Vec", _rems, category=cat, space=VEC, scratch=(2,), doc=doc)


# --- three operands --------------------------------------------------------------------------------------------------


def _ternary(i: Inference) -> Type:
    a, c = i.tile(0), i.tile(2)
    if isinstance(i.args[1].type, ScalarType):
        return _tile_result(i, a, (c,), promote(promote(a.dtype, i.scalar(1)), c.dtype))
    b = i.tile(1)
    return _tile_result(i, a, (b, c), promote(promote(a.dtype, b.dtype), c.dtype))


def _three() -> None:
    cat = "elementwise-ternary"
    for name, doc in (("addc", "a + b + c"), ("subc", "a - b - c")):
        op(f"tile.{name}", "lhs:tile@Vec rhs:tile@Vec rhs2:tile@Vec", _ternary, category=cat, space=VEC, doc=doc)
        op(
            f"tile.{name[:3]}sc",
            "lhs:tile@Vec rhs:scalar rhs2:tile@Vec",
            _ternary,
            category=cat,
            space=VEC,
            row_major_only=True,
            doc=doc.replace("b", "s"),
        )


# --- bits ------------------------------------------------------------------------------------------------------------


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
            _tile_binary(True, shift),
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
    _same_shape(i, a.shape, slope.shape)
    require_same_dtype(i, a.dtype, slope.dtype)
    require_dtype(i, a.dtype, _FLOATS)
    _same_valid(i, a, slope)
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
        _tile_scalar(),
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
    columns = x.mul(x.ceil_div(x.ceil_div(shape[-1], 8), 32), index(32))
    valid = a.valid_shape if x.all_equal(a.shape, shape) else _grown_valid(a, shape) or shape
    return tile(
        (*shape[:-1], columns), DataType.UINT8, (*valid[:-1], x.ceil_div(valid[-1], 8)), like=_with_shape(a, shape)
    )


def _with_shape(a: TileType, shape: Dims) -> TileType:
    return TileType(shape, a.dtype, None, a.get_effective_tile_view(), a.space)


def _sel(i: Inference) -> Type:
    i.tile(0)
    a, b = i.tile(1), i.tile(2)
    return _tile_result(i, a, (b,), promote(a.dtype, b.dtype))


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
    for group in (_unary, _binary, _with_scalar, _three, _bits, _activation_and_cast, _compare_select):
        group()
