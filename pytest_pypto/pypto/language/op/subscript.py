"""`x[i, a:b]` on wrapped values in Python: element reads and slices."""

from __future__ import annotations

from typing import Any

from ...ir import expr as e
from ...ir import extents
from ...ir.dtypes import INDEX
from ...ir.op import values
from ...ir.op.build import make
from ...ir.span import UNKNOWN
from ...ir.types import ArrayType, TensorType, TileType, TupleType
from ..typing import unwrap


def read_subscript(base: e.Expr, index: Any) -> e.Expr:
    """The element or window of `base` that a subscript names.

    Raises:
        TypeError: the value has no elements. ValueError: too many indices, or a step.
    """
    parts = [unwrap(i) for i in (index if isinstance(index, tuple) else (index,))]
    if isinstance(base.type, TupleType):
        return e.TupleGetItemExpr(base, parts[0])
    if isinstance(base.type, ArrayType):
        return make("array.get_element", [base, parts[0]], {}, UNKNOWN)
    if not isinstance(base.type, (TensorType, TileType)):
        raise TypeError(f"a value of type {base.type} has no elements")
    shape = base.type.shape
    space = "tile" if isinstance(base.type, TileType) else "tensor"
    if len(parts) > len(shape):
        raise ValueError(f"{len(parts)} indices for a {space} of rank {len(shape)}")
    if len(parts) == len(shape) and not any(isinstance(p, slice) for p in parts):
        return make(f"{space}.read", [base, parts], {}, UNKNOWN)
    return _window(space, base, shape, parts)


def _window(space: str, base: e.Expr, shape: tuple[e.Expr, ...], parts: list[Any]) -> e.Expr:
    sizes: list[e.Expr] = []
    offsets: list[e.Expr] = []
    for axis, extent in enumerate(shape):
        part = parts[axis] if axis < len(parts) else slice(None)
        if not isinstance(part, slice):
            sizes.append(e.index(1))
            offsets.append(values.integer(part, INDEX, UNKNOWN))
            continue
        if part.step is not None:
            raise ValueError("slices take no step")
        low = e.index(0) if part.start is None else values.integer(unwrap(part.start), INDEX, UNKNOWN)
        high = extent if part.stop is None else values.integer(unwrap(part.stop), INDEX, UNKNOWN)
        sizes.append(extents.sub(high, low))
        offsets.append(low)
    dropped = [k for k, p in enumerate(parts) if not isinstance(p, slice)]
    operands: list[Any] = [base, sizes, offsets]
    if dropped:
        operands += [[], dropped]
    return make(f"{space}.slice", operands, {}, UNKNOWN)
