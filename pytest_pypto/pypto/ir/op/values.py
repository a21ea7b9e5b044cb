"""Arguments of DSL calls as IR operands and keywords: literals take the type their place asks for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import expr as e
from ..dtypes import FP32, INDEX, DataType, fitting
from ..enums import CAST_MODES, MemorySpace, PadValue, PipeType, TensorLayout, TileLayout
from ..op_table import OpSpec, Param
from ..span import Span
from ..types import ArrayType, ScalarType, TensorType, TileType, UnknownType

CMP_MODES = ("eq", "ne", "lt", "le", "gt", "ge")
_COALESCE = ("row", "elem")
_OUT_OF_BOUNDS = ("undefined", "clamp", "wrap", "zero")
_MASK_PATTERNS = ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111")


def is_literal(value: Any) -> bool:
    """True for a bare Python number."""
    return isinstance(value, (int, float)) and not isinstance(value, PipeType)


def kind_of(value: Any) -> str:
    """`tensor`, `tile`, `scalar`, `array`, `unknown` or `other`."""
    if is_literal(value):
        return "scalar"
    if not isinstance(value, e.Expr):
        return "other"
    for cls, kind in ((TensorType, "tensor"), (TileType, "tile"), (ScalarType, "scalar"), (ArrayType, "array")):
        if isinstance(value.type, cls):
            return kind
    return "unknown" if isinstance(value.type, UnknownType) else "other"


def type_word(value: Any) -> str:
    """How an operand is called in messages: Tensor, Tile, Scalar, ConstFloat, ..."""
    if is_literal(value):
        return {bool: "ConstBool", int: "ConstInt", float: "ConstFloat"}[type(value)]
    if isinstance(value, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        return type(value).__name__
    kind = kind_of(value)
    return kind.capitalize() if kind not in ("other", "unknown") else type(value).__name__


def constant(value: float, dtype: DataType | None, span: Span) -> e.Expr:
    """A bare literal as a constant. An int takes `dtype` (a float one makes it a float), a float stays FP32.

    Raises:
        ValueError: an int that `dtype` does not have.
    """
    if isinstance(value, bool):
        return e.ConstBool(value, span)
    if isinstance(value, float):
        return e.ConstFloat(value, FP32, span)
    if dtype is not None and dtype.is_float():
        return e.ConstFloat(float(value), dtype, span)
    return e.ConstInt(fitting(value, INDEX if dtype is None else dtype), INDEX if dtype is None else dtype, span)


def element(value: Any, dtype: DataType | None, span: Span) -> e.Expr:
    """A scalar operand next to elements of type `dtype`.

    Raises:
        ValueError: an INDEX variable, which is no element.
        TypeError: not a scalar.
    """
    if is_literal(value):
        return constant(value, dtype, span)
    made = expression(value)
    is_index = isinstance(made.type, ScalarType) and made.type.dtype is INDEX
    if is_index and not isinstance(made, e.ConstInt) and dtype is not INDEX:
        want = "FP32" if dtype is None else dtype.name
        raise ValueError(f"Scalar operand has dtype `index`, which no element has; convert it: pl.cast(x, pl.{want})")
    return made


def expression(value: Any) -> e.Expr:
    """An operand that must be an IR value already.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, e.Expr):
        return value
    raise TypeError(f"expected a tensor, tile or scalar, got {value!r}")


def integer(value: Any, dtype: DataType, span: Span) -> e.Expr:
    """An integer operand; a bare literal takes `dtype`.

    Raises:
        TypeError: not an integer.
        ValueError: a literal that `dtype` does not have.
    """
    if isinstance(value, MemorySpace):
        value = value.value
    if isinstance(value, int) and not isinstance(value, bool):
        return e.ConstInt(fitting(value, dtype), dtype, span)
    made = value if isinstance(value, e.Expr) else None
    if made is None or not isinstance(made.type, (ScalarType, UnknownType)):
        raise TypeError(
            f"expected an integer, got {value!r}" if made is None else f"expected an integer, got {made.type}"
        )
    if isinstance(made.type, ScalarType) and not made.type.dtype.is_int():
        raise TypeError(f"expected an integer, got a scalar of type {made.type.dtype.name}")
    return made


def integers(value: Any, span: Span) -> e.Expr:
    """A shape or offset operand: a list of integers, a single one, or a tuple expression.

    Raises:
        TypeError: an element that is no integer.
    """
    if isinstance(value, (list, tuple)):
        return e.MakeTuple(tuple(integer(v, INDEX, span) for v in value), span)
    if isinstance(value, e.MakeTuple):
        return value
    if isinstance(value, int) or kind_of(value) == "scalar":
        return e.MakeTuple((integer(value, INDEX, span),), span)
    raise TypeError(f"expected a list of integers, got {value!r}")


def operand(spec: OpSpec, param: Param, value: Any, context: Mapping[str, Any], span: Span) -> e.Expr:
    """One operand; `context` holds `dtype`, the element type bare literals take."""
    kinds = param.kind.split("|")
    kind = kind_of(value)
    if isinstance(value, e.Expr) and kind != "scalar":
        return value
    if "tuple" in kinds and (kind != "scalar" or kinds == ["tuple"]):
        return integers(value, span)
    if "index" in kinds:
        return integer(value, INDEX, span)
    if "int32" in kinds:
        return integer(value, DataType.INT32, span)
    if "typed" in kinds and is_literal(value):
        return constant(value, context.get("typed"), span)
    if kind == "scalar" and "scalar" in kinds:
        return element(value, context.get("dtype"), span)
    if kind == "scalar" and "number" in kinds and is_literal(value):
        return constant(value, context.get("dtype"), span)
    return expression(value)


def element_type(values: Sequence[Any]) -> DataType | None:
    """Element type of the first tensor, tile or array among operands."""
    for value in values:
        if isinstance(value, e.Expr) and isinstance(value.type, (TensorType, TileType, ArrayType)):
            return value.type.dtype
    return None


# --- keywords --------------------------------------------------------------------------------------------------------


def _named(value: Any, names: Sequence[str], what: str, first: int = 0) -> int:
    if isinstance(value, str):
        if value not in names:
            raise ValueError(f"{what} must be one of {', '.join(names)}, got {value!r}")
        return names.index(value) + first
    if isinstance(value, int) and not isinstance(value, bool) and first <= value < len(names) + first:
        return int(value)
    raise ValueError(f"{what} must be one of {', '.join(names)} or {first}..{len(names) + first - 1}, got {value!r}")


def cast_mode(mode: Any) -> int:
    """Rounding mode of a cast as its number (`round` is 2).

    Raises:
        ValueError: no such mode.
    """
    return _named(mode, CAST_MODES, "cast mode")


def compare_mode(cmp_mode: Any) -> int:
    """Comparison as its number: eq, ne, lt, le, gt, ge are 0 to 5."""
    return _named(cmp_mode, CMP_MODES, "cmp_mode")


def pad_value(pad_value: Any) -> PadValue:
    """What fills the padding: a PadValue, or 0, inf, -inf.

    Raises:
        ValueError: another number, or PadValue.null.
    """
    if isinstance(pad_value, PadValue) and pad_value is not PadValue.null:
        return pad_value
    if is_literal(pad_value) and not isinstance(pad_value, bool):
        if pad_value == 0:
            return PadValue.zero
        if isinstance(pad_value, float) and math.isinf(pad_value):
            return PadValue.max if pad_value > 0 else PadValue.min
    raise ValueError(f"pad_value must be pl.PadValue.zero, max or min, or 0, inf or -inf; got {pad_value!r}")


def dtype(value: Any, what: str = "dtype") -> DataType:
    """A dtype, also given by its code.

    Raises:
        TypeError: neither.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        for member in DataType.members():
            if member.code() == value:
                return member
    raise TypeError(f"{what} must be a dtype such as pl.FP32, got {value!r}")


def keyword(name: str, kind: str, value: Any) -> Any:
    """A keyword as the IR stores it."""
    if kind == "dtype":
        return dtype(value, name)
    if kind == "pad":
        return pad_value(value)
    if name == "mode" and kind == "int":
        return cast_mode(value)
    if name == "cmp_mode":
        return compare_mode(value)
    if name == "mask_pattern":
        return _named(value, _MASK_PATTERNS, name, first=1)
    if name == "coalesce":
        return _named(value, _COALESCE, name)
    if name == "gather_oob":
        return _named(value, _OUT_OF_BOUNDS, name)
    if kind == "int":
        return _int(name, value)
    class_, words = _CLASSES[kind]
    if not isinstance(value, class_):
        raise TypeError(f"{name} must be {words}, got {value!r}")
    return value


_CLASSES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "bool": (bool, "True or False"),
    "str": (str, "a string"),
    "float": ((int, float), "a number"),
    "space": (MemorySpace, "a memory space such as pl.Mem.Vec"),
    "layout": (TensorLayout, "a tensor layout such as pl.TensorLayout.NZ"),
    "tile_layout": (TileLayout, "a tile layout such as pl.TileLayout.row_major"),
}


def _int(name: str, value: Any) -> int:
    if isinstance(value, e.ConstInt):
        return value.value
    if isinstance(value, int):
        return int(value)
    raw = getattr(value, "value", None)
    if isinstance(raw, int):
        return raw
    raise TypeError(f"{name} must be a compile-time integer, got {value!r}")
