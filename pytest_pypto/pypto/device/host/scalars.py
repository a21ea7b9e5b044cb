"""Scalar expressions of the host program. Integers are Python integers; `//` and `%` floor."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import expr as e
from ...ir.dtypes import DataType
from ..machine.bind import BindError
from ..machine.numbers import scalar_of
from .values import storage

Evaluate = Callable[[e.Expr], Any]


def _divide(a: Any, b: Any) -> float:
    if b == 0:
        return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return float(a / b)


def _whole(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: 0 if b == 0 else fn(a, b)


def _shift(fn: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda a, b: fn(a, b) if 0 <= b < 64 else 0 if fn is operator.lshift or a >= 0 else -1


def _power(a: Any, b: Any) -> Any:
    """Whole powers wrap at 64 bits (0 for a negative exponent unless the base is 1 or -1); else IEEE."""
    if isinstance(a, float) or isinstance(b, float):
        with np.errstate(all="ignore"):
            return float(np.float_power(a, b))
    if b < 0:
        return 0 if abs(a) != 1 else a if b % 2 else 1
    found = pow(a, b, 1 << 64)
    return found - (1 << 64) if found >= 1 << 63 else found


BINARY: dict[type[e.BinaryExpr], Callable[[Any, Any], Any]] = {
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
    e.FloorDiv: _whole(operator.floordiv),
    e.FloorMod: _whole(operator.mod),
    e.FloatDiv: _divide,
    e.Min: min,
    e.Max: max,
    e.Pow: _power,
    e.Eq: operator.eq,
    e.Ne: operator.ne,
    e.Lt: operator.lt,
    e.Le: operator.le,
    e.Gt: operator.gt,
    e.Ge: operator.ge,
    e.Xor: lambda a, b: bool(a) != bool(b),
    e.BitAnd: operator.and_,
    e.BitOr: operator.or_,
    e.BitXor: operator.xor,
    e.BitShiftLeft: _shift(operator.lshift),
    e.BitShiftRight: _shift(operator.rshift),
}


def evaluate(x: e.Expr, value: Evaluate) -> Any:
    """The value of a scalar expression; `value` gives the values of its operands.

    Raises:
        BindError: an expression that is no scalar arithmetic.
    """
    if isinstance(x, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        return x.value
    if isinstance(x, e.And):
        return bool(value(x.left)) and bool(value(x.right))
    if isinstance(x, e.Or):
        return bool(value(x.left)) or bool(value(x.right))
    if isinstance(x, e.BinaryExpr):
        return fitted(BINARY[type(x)](_number(value(x.left)), _number(value(x.right))), x.dtype)
    if isinstance(x, e.UnaryExpr):
        return _unary(x, _number(value(x.operand)))
    raise BindError(f"the host program has an expression that the device cannot evaluate: {type(x).__name__}")


def _number(found: Any) -> Any:
    if not isinstance(found, (int, float)):
        raise BindError(f"scalar arithmetic on a {type(found).__name__}")
    return found


def _unary(x: e.UnaryExpr, value: Any) -> Any:
    if isinstance(x, e.Neg):
        return fitted(-value, x.dtype)
    if isinstance(x, e.Abs):
        return fitted(abs(value), x.dtype)
    if isinstance(x, e.Not):
        return not value
    if isinstance(x, e.BitNot):
        return fitted(~value, x.dtype)
    if isinstance(x, e.Cast):
        return converted(value, x.dtype)
    raise BindError(f"the host program has an unknown operator {type(x).__name__}")


def fitted(value: Any, dtype: DataType) -> Any:
    """`value` wrapped or rounded to `dtype`; booleans stay as they are."""
    if isinstance(value, bool) or dtype is DataType.BOOL:
        return value
    if dtype.is_float() and dtype is not DataType.FP32:
        return converted(value, dtype)
    if (dtype.is_int() or dtype is DataType.INDEX) and isinstance(value, int) and not -(2**31) <= value < 2**31:
        return converted(value, dtype)
    return value


def converted(value: Any, dtype: DataType) -> Any:
    """A Python number as `dtype`: integers wrap, floats round, float to integer truncates and saturates."""
    if dtype is DataType.BOOL:
        return bool(value)
    if dtype.is_float():
        return float(scalar_of(float(value), storage(dtype)).astype("float64"))
    one = scalar_of(value, storage(dtype))
    return int(one)
