"""Element-wise arithmetic: unary, binary, with scalars, of three operands."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import FP32, DataType
from ..op_table import Inference, Rule
from ..types import ScalarType, TensorType, TileType, Type
from .common import (
    VEC,
    Dims,
    broadcast,
    is_full,
    op,
    promote,
    require_dtype,
    require_integer,
    require_same_dtype,
    tensor,
    tile,
)

FLOATS = (DataType.FP16, FP32)
"""Types of the precise variants of unary operators."""
_DIVIDABLE = (DataType.INT16, DataType.INT32, DataType.FP16, FP32)
_SUBS = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, FP32, DataType.BF16)
_NOT = (DataType.INT16, DataType.UINT16)


def common_valid(a: TensorType, b: TensorType) -> Dims | None:
    """Valid extents that both operands share, None for full or unproved."""
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
        require_dtype(i, dtype, FLOATS, "for high_precision=True element type")


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
    ("log", "natural logarithm of each element", FLOATS, False),
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
    return tensor(broadcast(i, a.shape, b.shape), promote(a.dtype, b.dtype), common_valid(a, b))


def _tensor_div(i: Inference) -> Type:
    for k in (0, 1):
        require_dtype(i, i.tensor(k).dtype, _DIVIDABLE)
    return _tensor_binary(i)


def _tensor_part(i: Inference) -> Type:
    a, b = i.tensor(0), i.tensor(1)
    return tensor(broadcast(i, a.shape, b.shape), promote(a.dtype, b.dtype))


def same_shape(i: Inference, a: Dims, b: Dims) -> None:
    """Refuse two shapes that are not provably equal."""
    if not x.all_equal(a, b):
        i.fail(f"requires operands of one shape (it does not broadcast), but got {x.text(a)} and {x.text(b)}")


def tile_binary(integer: bool = False, left_dtype: bool = False) -> Rule:
    """Rule of two tiles: broadcast shape, promoted type, layout and valid shape of the first."""

    def rule(i: Inference) -> Type:
        a, b = i.tile(0), i.tile(1)
        if integer:
            require_integer(i, a.dtype, b.dtype)
        return tile_result(i, a, (b,), a.dtype if left_dtype else promote(a.dtype, b.dtype))

    return rule


def tile_result(i: Inference, a: TileType, others: tuple[TileType, ...], dtype: DataType) -> TileType:
    """Result of tile operands: broadcast shape, layout and valid shape of the first."""
    shape = a.shape
    for b in others:
        shape = broadcast(i, shape, b.shape)
    valid = a.valid_shape if shape is a.shape or x.all_equal(shape, a.shape) else grown_valid(a, shape)
    return tile(shape, dtype, valid, like=a)


def grown_valid(a: TileType, shape: Dims) -> Dims | None:
    """Valid region of a first operand that was broadcast: repeated axes are full."""
    if is_full(a):
        return None
    lead = len(shape) - len(a.shape)
    kept = [v if x.equal(s, t) else t for v, s, t in zip(a.valid_shape, a.shape, shape[lead:], strict=False)]
    return (*shape[:lead], *kept)


def _tile_div(i: Inference) -> Type:
    a, b = i.tile(0), i.tile(1)
    same_shape(i, a.shape, b.shape)
    require_same_dtype(i, a.dtype, b.dtype)
    require_dtype(i, a.dtype, _DIVIDABLE)
    _check_precision(i, a.dtype)
    same_valid(i, a, b)
    return tile(a.shape, a.dtype, a.valid_shape, like=a)


def same_valid(i: Inference, a: TileType, b: TileType) -> None:
    """Refuse two valid shapes that are not provably equal."""
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
            _tile_div if div else tile_binary(),
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
        op(f"tile.{name}", operands, tile_binary(), category=cat, space=VEC, row_major_only=True, doc=doc)
    op(
        "tile.rem",
        "lhs:tile@Vec rhs:tile@Vec tmp:tile@Vec",
        tile_binary(),
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


def tile_scalar(allowed: tuple[DataType, ...] = ()) -> Rule:
    """Rule of a tile and a scalar: the type of the tile."""

    def rule(i: Inference) -> Type:
        a = i.tile(0)
        i.scalar(1)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        return tile(a.shape, a.dtype, a.valid_shape, like=a)

    return rule


def _rems(i: Inference) -> Type:
    a, tmp = i.tile(0), i.tile(2)
    return tile_result(i, a, (tmp,), promote(promote(a.dtype, i.scalar(1)), tmp.dtype))


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
            tile_scalar(_SUBS if name == "subs" else ()),
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
        return tile_result(i, a, (c,), promote(promote(a.dtype, i.scalar(1)), c.dtype))
    b = i.tile(1)
    return tile_result(i, a, (b, c), promote(promote(a.dtype, b.dtype), c.dtype))


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


def register_all() -> None:
    """Add the records of this module."""
    for group in (_unary, _binary, _with_scalar, _three):
        group()
