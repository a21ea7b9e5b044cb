"""What the operator cases are made of: operands by element type and form, and results in Python's own arithmetic.

Expected values are computed on float64 for floats and on Python integers for integers, then brought to the element
type once; nothing here looks at the emitted script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import MemorySpace

from ..arrays import CLASSES, FLOATS, NUMPY, padded, sample, to_torch
from ..build import tensor, tile

FULL, RAGGED, EDGES = "full", "ragged", "edges"
SHAPE, VALID = (4, 6), (3, 5)
Array = np.ndarray[Any, Any]


def lift(a: Array) -> Array:
    """Floats as float64, integers as Python integers."""
    return a.astype(object) if a.dtype.kind in "iub" else a.astype(np.float64)


def settle(value: Any, dtype: DataType) -> Array:
    """Exact results in the element type: integers wrap, floats are rounded once (through FP32)."""
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            made: Array = np.asarray(value, np.float64).astype(np.float32).astype(NUMPY[dtype])
        return made
    info = np.iinfo(NUMPY[dtype])
    low, size = int(info.min), 1 << info.bits
    flat = [(int(x) - low) % size + low for x in np.asarray(value, object).flat]
    return np.array(flat, object).astype(NUMPY[dtype]).reshape(np.shape(value))


def edge_values(dtype: DataType) -> list[Any]:
    """NaN, infinities, signed zeros and limits of a float type; the limits of an integer type."""
    if dtype in FLOATS:
        info = ml_dtypes.finfo(NUMPY[dtype])
        big, tiny = float(info.max), float(info.smallest_subnormal)
        return [np.nan, np.inf, -np.inf, 0.0, -0.0, big, -big, tiny, 1.0, -1.5]
    low, high = int(np.iinfo(NUMPY[dtype]).min), int(np.iinfo(NUMPY[dtype]).max)
    inner = [-1, 0, 1] if low < 0 else [high // 2, high // 2 + 1]
    return [low, low + 1, *inner, 2, high - 1, high]


def edge_array(dtype: DataType) -> Array:
    """`edge_values` in the element type (integers beyond 63 bits must not pass through a float)."""
    made: Array = np.array(edge_values(dtype), float if dtype in FLOATS else object).astype(NUMPY[dtype])
    return made


@dataclass(frozen=True)
class Kit:
    """One operator on one element type in one form."""

    op: str
    dtype: DataType
    form: str = FULL

    @property
    def space(self) -> str:
        """`tensor` or `tile`."""
        return self.op.split(".")[0]

    @property
    def name(self) -> str:
        """The operator without its namespace."""
        return self.op.split(".")[1]

    @property
    def ragged(self) -> bool:
        """Operands are partly valid."""
        return self.form == RAGGED

    @property
    def is_float(self) -> bool:
        """The element type is a float."""
        return self.dtype in FLOATS

    @property
    def valid(self) -> tuple[int, int]:
        """Valid extents of the main operands."""
        if self.form == EDGES:
            n = len(edge_values(self.dtype))
            return n, n
        return VALID if self.ragged else SHAPE

    @property
    def box(self) -> tuple[int, int]:
        """Extents of the main operands."""
        return SHAPE if self.ragged else self.valid

    def array(self, seed: int, shape: Sequence[int] | None = None, **bounds: float) -> Array:
        """Data of the valid part; with edge values every pair of the operands 1 and 2 meets."""
        if self.form == EDGES and shape is None:
            values = edge_array(self.dtype)
            turned = values[::-1] if seed > 2 else values
            square = np.broadcast_to(turned, self.valid)
            return (square if seed % 2 == 0 else square.T).copy()
        return sample(tuple(shape or self.valid), self.dtype, seed, **bounds)

    def give(
        self, a: Array, dtype: DataType | None = None, box: Sequence[int] | None = None, space: str = "", **more: Any
    ) -> Any:
        """An array as an operand: in a ragged form, the valid part of a poisoned box (by default SHAPE)."""
        kind = dtype or self.dtype
        types = tensor if (space or self.space) == "tensor" else tile
        if not self.ragged:
            return to_torch(a, kind), types(a.shape, kind, None, **more)
        whole = tuple(box or SHAPE)
        return to_torch(padded(a, whole, kind), kind), types(whole, kind, tuple(a.shape), **more)

    def plain(self, a: Array, dtype: DataType | None = None, space: str = "", **more: Any) -> Any:
        """An array as a fully valid operand, whatever the form."""
        kind = dtype or self.dtype
        types = tensor if (space or self.space) == "tensor" else tile
        return to_torch(a, kind), types(a.shape, kind, None, **more)

    def scratch(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Any:
        """An operand whose content does not count."""
        kind = dtype or self.dtype
        return to_torch(np.zeros(tuple(shape or self.box), NUMPY[kind]), kind), tile(shape or self.box, kind)

    def number(self, value: float) -> e.Expr:
        """A constant of the element type."""
        return e.ConstFloat(float(value), self.dtype) if self.is_float else e.ConstInt(int(value), self.dtype)

    def held(self, value: float) -> Any:
        """The number that `number` stands for, as `lift` gives it."""
        return float(np.float64(np.asarray(value).astype(NUMPY[self.dtype]))) if self.is_float else int(value)


@dataclass
class Example:
    """Operands and keywords of one call, and the valid part it must give (or a check of the result)."""

    operands: list[Any]
    want: Array | Callable[[Any], None]
    kwargs: dict[str, Any] = field(default_factory=dict)
    ulps: int = 0


Make = Callable[[Kit], "Example | None"]


@dataclass(frozen=True)
class Case:
    """How one operator is tried: element types, forms, and what makes the example (None: it checked itself)."""

    make: Make
    dtypes: tuple[DataType, ...] = CLASSES
    forms: tuple[str, ...] = (FULL, RAGGED, EDGES)
    unsaid: str = ""
    """Why the type rule admits element types that no text gives a value for."""


CASES: dict[str, Case] = {}


def case(*names: str, **facts: Any) -> Callable[[Make], Make]:
    """Make a function the case of these operators."""

    def add(make: Make) -> Make:
        for name in names:
            assert name not in CASES, name
            CASES[name] = Case(make, **facts)
        return make

    return add


def both(*names: str) -> list[str]:
    """The tensor and the tile operator of each name."""
    return [f"{space}.{name}" for name in names for space in ("tensor", "tile")]


MAT, ACC, LEFT, RIGHT = MemorySpace.Mat, MemorySpace.Acc, MemorySpace.Left, MemorySpace.Right
