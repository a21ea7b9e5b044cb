"""Reads the short notation of inference vectors: `T[16,M]fp32 v[16,7]`, `t[16,16]bf16 @Left`, `i3`, `f1.0`, `(0,n)`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import INDEX, DataType
from pytest_pypto.pypto.ir.enums import MemorySpace, PadValue, TensorLayout
from pytest_pypto.pypto.ir.op_table import create_op_call

_SHAPED = re.compile(r"([Tt])\[([^]]*)\]([a-z0-9]+)(?: v\[([^]]*)\])?(?: @(\w+))?$")
_SHORT = {"bf16": "bfloat16"}


def dtype_of(text: str) -> DataType:
    """`fp32`, `bf16`, `index` as an element type."""
    found = DataType.from_string(_SHORT.get(text, text))
    assert found is not None, text
    return found


@dataclass
class Reader:
    """Makes operands; one symbol per letter."""

    symbols: dict[str, e.Var] = field(default_factory=dict)

    def dim(self, text: str) -> e.Expr:
        """An extent: a number or a symbol."""
        text = text.strip()
        if re.fullmatch(r"-?\d+", text):
            return e.index(int(text))
        return self.symbols.setdefault(text, e.Var(text, t.ScalarType(INDEX)))

    def dims(self, text: str) -> tuple[e.Expr, ...]:
        """A list of extents."""
        return tuple(self.dim(p) for p in text.split(",") if p.strip())

    def operand(self, text: str) -> e.Expr:
        """One operand."""
        match = _SHAPED.match(text)
        if match:
            return e.Var("x", self._shaped(*match.groups()))
        if text.startswith("("):
            return e.MakeTuple(self.dims(text[1:-1]))
        if text.startswith("s:"):
            return e.Var("s", t.ScalarType(dtype_of(text[2:])))
        if text[0] == "f":
            return e.ConstFloat(float(text[1:]), DataType.FP32)
        return e.ConstInt(int(text[1:]), DataType.INT32 if text[0] == "I" else INDEX)

    def _shaped(self, kind: str, shape: str, dtype: str, valid: str | None, space: str | None) -> t.Type:
        dims, valid_dims = self.dims(shape), None if valid is None else self.dims(valid)
        if kind == "T":
            view = None if valid_dims is None else t.TensorView(valid_shape=valid_dims)
            return t.TensorType(dims, dtype_of(dtype), None, view)
        where = MemorySpace[space or "Vec"]
        view2 = None
        if valid_dims is not None:
            have = t.implicit_tile_view(dims, where)
            view2 = t.TileView(valid_dims, blayout=have.blayout, slayout=have.slayout, fractal=have.fractal)
        return t.TileType(dims, dtype_of(dtype), None, view2, where)


def _keyword(name: str, value: Any) -> Any:
    if name in ("dtype", "target_type", "out_dtype", "output_dtype", "count_dtype"):
        return dtype_of(value)
    if name == "target_memory":
        return MemorySpace[value]
    if name == "pad_value":
        return PadValue[value]
    return TensorLayout[value] if name == "layout" else value


def infer(op: str, args: list[str], kwargs: dict[str, Any] | None = None) -> t.Type:
    """Result type of a call written in the short notation."""
    read = Reader()
    made = {k: _keyword(k, v) for k, v in (kwargs or {}).items()}
    return create_op_call(op, [read.operand(a) for a in args], made).type


def _dim_text(dim: e.Expr) -> object:
    return dim.value if isinstance(dim, e.ConstInt) else dim.name_hint if isinstance(dim, e.Var) else str(dim)


def describe(found: t.Type) -> dict[str, Any]:
    """A type as the vectors describe it."""
    if isinstance(found, t.TupleType):
        return {"kind": "tuple", "items": [describe(i) for i in found.types]}
    if isinstance(found, t.ScalarType):
        return {"kind": "scalar", "dtype": str(found.dtype)}
    assert isinstance(found, (t.TensorType, t.TileType)), found
    out: dict[str, Any] = {"kind": "tensor" if isinstance(found, t.TensorType) else "tile"}
    out["shape"], out["dtype"] = [_dim_text(d) for d in found.shape], str(found.dtype)
    valid = [_dim_text(d) for d in found.valid_shape]
    if valid != out["shape"]:
        out["valid"] = valid
    if isinstance(found, t.TileType):
        out["memory"] = None if found.memory_space is None else found.memory_space.name
    elif found.tensor_view is not None and found.tensor_view.layout is not TensorLayout.ND:
        out["layout"] = found.tensor_view.layout.name
    return out
