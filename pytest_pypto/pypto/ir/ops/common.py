"""Shared by the operator records: the row notation, type promotion, broadcasting, and result types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import extents as x
from ..dtypes import BOOL, INDEX, DataType
from ..enums import MemorySpace, PadValue, TensorLayout, TileLayout
from ..expr import ConstInt, Expr
from ..op_table import OMITTED, REQUIRED, Inference, KwParam, OpSpec, Param, Rule, register
from ..types import ScalarType, TensorType, TensorView, TileType, TileView, Type, UnknownType

Dims = tuple[Expr, ...]
Facts = dict[str, Any]
"""Keyword arguments that several records share."""
VEC = MemorySpace.Vec

_PARAM = re.compile(r"(\w+):([\w|]+)(?:@([\w,]+))?([?*])?$")
_KWARG = re.compile(r"(\w+):(\w+)(?:=(.*))?$")
_ENUMS: Mapping[str, Any] = {"layout": TensorLayout, "space": MemorySpace, "pad": PadValue, "tile_layout": TileLayout}


def params(text: str) -> tuple[Param, ...]:
    """Operands in row notation: `name:kind[@Space,Space]`, then `?` if optional, `*` if any number may be given."""
    found = []
    for item in text.split():
        match = _PARAM.match(item)
        assert match is not None, f"bad operand notation {item!r}"
        name, kind, spaces, mark = match.groups()
        where = frozenset(MemorySpace[s] for s in spaces.split(",")) if spaces else None
        found.append(Param(name, kind, mark is not None, where, mark == "*"))
    return tuple(found)


def kwargs(text: str) -> tuple[KwParam, ...]:
    """Keywords in row notation: `name:kind` (required), `name:kind=default`, `name:kind=-` (left out if not given)."""
    found = []
    for item in text.split():
        match = _KWARG.match(item)
        assert match is not None, f"bad keyword notation {item!r}"
        name, kind, default = match.groups()
        found.append(KwParam(name, kind, _default(kind, default)))
    return tuple(found)


def _default(kind: str, text: str | None) -> Any:
    if text is None:
        return REQUIRED
    if text == "-":
        return OMITTED
    if kind == "int":
        return int(text)
    if kind == "bool":
        return text == "True"
    if kind == "dtype":
        return DataType.from_name(text)
    return _ENUMS[kind][text] if kind in _ENUMS else text


def op(
    name: str, operands: str, rule: Rule, kw: str = "", *, category: str, no_alias: Iterable[int] = (), **facts: Any
) -> OpSpec:
    """Register one operator written in row notation."""
    facts["scratch"] = frozenset(facts.get("scratch", ()))
    return register(OpSpec(name, category, params(operands), rule, kwargs(kw), no_alias=frozenset(no_alias), **facts))


# --- element types ---------------------------------------------------------------------------------------------------


def promote(a: DataType, b: DataType) -> DataType:
    """Common element type: float beats integer, then the wider, then signed, then the left one."""
    if a is b:
        return a
    if a.is_float() != b.is_float():
        return a if a.is_float() else b
    if a.get_bit() != b.get_bit():
        return a if a.get_bit() > b.get_bit() else b
    return b if a.is_unsigned_int() and b.is_signed_int() else a


def is_integer(dtype: DataType) -> bool:
    """Integers and bool, which counts as the narrowest integer."""
    return dtype.is_int() or dtype is BOOL


def names(dtypes: Iterable[DataType]) -> str:
    """Element types as listed in messages."""
    return ", ".join(d.name for d in dtypes)


def require_dtype(i: Inference, dtype: DataType, allowed: Sequence[DataType], what: str = "element type") -> None:
    """Refuse an element type outside `allowed`."""
    if dtype not in allowed:
        i.fail(f"requires {what} {names(allowed)}, but got {dtype.name}; convert it with pl.cast first")


def require_integer(i: Inference, *dtypes: DataType) -> None:
    """Refuse element types that are not integers."""
    for dtype in dtypes:
        if not is_integer(dtype):
            i.fail(f"requires integer operands, but got {dtype.name}; convert it with pl.cast first")


def require_same_dtype(i: Inference, a: DataType, b: DataType, what: str = "operands") -> None:
    """Refuse two different element types."""
    if a is not b:
        i.fail(f"requires {what} of one element type, but got {a.name} and {b.name}; convert one with pl.cast")


def accumulator_dtype(dtype: DataType) -> DataType:
    """FP32 for products of floats, INT32 for products of integers."""
    return DataType.FP32 if dtype.is_float() else DataType.INT32


# --- shapes ----------------------------------------------------------------------------------------------------------


def is_one(dim: Expr) -> bool:
    """True for the constant 1."""
    return isinstance(dim, ConstInt) and dim.value == 1


def broadcast(i: Inference, a: Dims, b: Dims) -> Dims:
    """Shape of an element-wise result: aligned at the right, extent 1 repeats."""
    if a is b or x.all_equal(a, b):
        return a
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(long) - len(short)
    result = list(long[:lead])
    for k, (p, q) in enumerate(zip(long[lead:], short, strict=False)):
        if x.equal(p, q) or is_one(q):
            result.append(a[k + len(a) - len(short)] if x.equal(p, q) else p)
        elif is_one(p):
            result.append(q)
        else:
            i.fail(f"requires compatible shapes, but got {x.text(a)} and {x.text(b)}")
    return tuple(result)


def last(i: Inference, dims: Dims) -> Expr:
    """The last extent; operands without one are refused."""
    if not dims:
        i.fail("requires operands of rank 1 or more, but got []")
    return dims[-1]


def axis(i: Inference, value: int, rank: int) -> int:
    """A possibly negative axis as an index into the shape."""
    if not -rank <= value < rank:
        i.fail(f"requires an axis from {-rank} to {rank - 1}, but got {value}")
    return value % rank


def const_axis(i: Inference, k: int, rank: int) -> int:
    """Operand `k` as an axis."""
    found = i.args[k]
    if not isinstance(found, ConstInt):
        i.fail(f"requires a constant axis as operand {k + 1}, but got {found}")
    return axis(i, getattr(found, "value", 0), rank)


def static(i: Inference, dims: Dims, what: str = "shape") -> tuple[int, ...]:
    """Extents as ints; refuses symbolic, zero and negative ones."""
    values = [d.value if isinstance(d, ConstInt) else 0 for d in dims]
    if not dims or min(values) <= 0:
        i.fail(f"requires a {what} of positive constants, but got {x.text(dims)}")
    return tuple(values)


def swapped(dims: Dims, a: int, b: int) -> Dims:
    """`dims` with two axes exchanged."""
    out = list(dims)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


# --- result types ----------------------------------------------------------------------------------------------------


def is_full(t: TensorType | TileType) -> bool:
    """True when the whole shape is valid."""
    return t.valid_shape is t.shape or x.all_equal(t.valid_shape, t.shape)


def tensor(
    shape: Dims, dtype: DataType, valid: Dims | None = None, layout: TensorLayout = TensorLayout.ND
) -> TensorType:
    """A new tensor type; `valid` None or equal to the shape means fully valid."""
    if valid is not None and (valid is shape or x.all_equal(valid, shape)):
        valid = None
    if valid is None and layout is TensorLayout.ND:
        return TensorType(shape, dtype)
    return TensorType(shape, dtype, None, TensorView((), layout, valid or ()))


def tile(
    shape: Dims,
    dtype: DataType,
    valid: Dims | None = None,
    space: MemorySpace | None = VEC,
    like: TileType | None = None,
    view: TileView | None = None,
) -> TileType:
    """A new tile type.

    The layout (blayout, slayout, pad, compact) is that of `like`, else of `view`, else the implicit one of shape and
    space.
    """
    if valid is not None and (valid is shape or x.all_equal(valid, shape)):
        valid = None
    if like is not None:
        if like.tile_view is None and like.space is space and like.shape is shape:
            return TileType(shape, dtype, None, None if valid is None else _with_valid(shape, space, valid), space)
        have = like.get_effective_tile_view()
        view = TileView(valid, blayout=have.blayout, slayout=have.slayout, pad=have.pad, compact=have.compact)
    elif view is not None:
        view = TileView(
            valid, view.stride, view.start_offset, view.blayout, view.slayout, view.fractal, view.pad, view.compact
        )
    elif valid is not None:
        view = _with_valid(shape, space, valid)
    return TileType(shape, dtype, None, view, space)


def _with_valid(shape: Dims, space: MemorySpace | None, valid: Dims) -> TileView:
    from ..types import implicit_tile_view

    have = implicit_tile_view(shape, space)
    return TileView(valid, blayout=have.blayout, slayout=have.slayout, fractal=have.fractal)


def same_as(k: int) -> Rule:
    """Rule: the result has exactly the type of operand `k` (updates in place)."""
    return lambda i: i.args[k].type


def scalar(dtype: DataType) -> Rule:
    """Rule: a scalar of this type."""
    made = ScalarType(dtype)
    return lambda i: made


def no_value(i: Inference) -> Type:
    """Rule: the call gives no value."""
    return UnknownType.get()


def dtype_kwarg(i: Inference, name: str = "dtype") -> DataType:
    """The keyword `name`, a dtype."""
    found = i.kwargs.get(name)
    if not isinstance(found, DataType):
        raise TypeError(f"The operator {i.op} requires a dtype as '{name}' (pl.FP32, pl.INT32, ...), but got {found!r}")
    return found


index_scalar: Callable[[Inference], Type] = scalar(INDEX)
