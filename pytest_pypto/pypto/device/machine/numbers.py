"""The number rules of the language: conversions with rounding modes, integer division, remainders, shifts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .dtypes import BF16, F32, F64, Array, DType, is_float, is_small_float
from .rounding import NEAREST_EVEN, narrowed, saturates

ROUND_MODES = ("NONE", "RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD")
"""Names in the `.pto` text, in the order of the language's codes 0..6."""


def to_float(x: Array) -> Array:
    """`x` in the type that arithmetic runs in: FP32 for the small floats, else unchanged."""
    return x.astype(F32) if is_small_float(x.dtype) else x


def _half_away(x: Array) -> Array:
    whole = np.trunc(x)
    out: Array = whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0).astype(x.dtype)
    return out


def _odd(x: Array) -> Array:
    low = np.floor(x)
    exact = low == x
    out: Array = np.where(exact | (np.mod(low, 2) != 0), low, low + 1)
    return out


TO_WHOLE: dict[str, Callable[[Array], Array]] = {
    "NONE": np.rint,
    "RINT": np.rint,
    "ROUND": _half_away,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "TRUNC": np.trunc,
    "ODD": _odd,
}
"""Rounding to a whole number, per mode."""


def float_to_int(x: Array, dtype: DType, mode: str) -> Array:
    """Round `x`, saturate to `dtype`; NaN becomes 0."""
    wide = x.astype(F64)
    whole = TO_WHOLE[mode](wide)
    info = np.iinfo(dtype)
    top = np.nextafter(float(info.max), 0) if info.bits == 64 else float(info.max)
    clipped = np.nan_to_num(np.clip(whole, float(info.min), top), nan=0.0)
    out: Array = clipped.astype(dtype)
    if info.bits == 64:
        out[whole >= float(info.max)] = info.max
    return out


def _rank(dtype: DType) -> tuple[int, int]:
    """Exponent and mantissa bits, to tell a widening from a narrowing."""
    name = dtype.name
    table = {"float64": (11, 52), "float32": (8, 23), "bfloat16": (8, 7), "float16": (5, 10)}
    table |= {"float8_e4m3fn": (4, 3), "float8_e5m2": (5, 2), "float8_e8m0fnu": (8, 0)}
    return table[name]


def widens(src: DType, dst: DType) -> bool:
    """True when every value of float type `src` is one of `dst`."""
    (es, ms), (ed, md) = _rank(src), _rank(dst)
    return ed >= es and md >= ms


def plain(src: DType, dst: DType) -> bool:
    """True when numpy converts as the machine does: between floats with infinities, rounding to nearest even."""
    if src == dst:
        return True
    eight = src.itemsize == dst.itemsize == 1  # numpy has no way from one 8-bit float to another
    return is_float(src) and is_float(dst) and not saturates(dst) and not eight


def converter(src: DType, dst: DType, mode: str = "RINT") -> Callable[[Array], Array]:
    """The conversion of arrays of type `src` to `dst` under `mode`.

    float to int saturates (NaN gives 0), int to narrower int keeps the low bits, float to narrower float rounds in
    the sense of the mode, everything else is exact or rounds to nearest even.
    """
    if src == dst:
        return lambda x: x
    if is_float(src) and is_float(dst):
        if saturates(dst):
            return partial(narrowed, dtype=dst, mode=mode)
        if mode in NEAREST_EVEN or widens(src, dst):
            return (lambda x: x.astype(dst)) if plain(src, dst) else (lambda x: x.astype(F32).astype(dst))
        if src.itemsize == 1:
            return lambda x: narrowed(x.astype(F32), dst, mode)
        return partial(narrowed, dtype=dst, mode=mode)
    if is_float(src):
        if dst == np.bool_:
            return lambda x: x.astype(F32) != 0
        return partial(float_to_int, dtype=dst, mode=mode)
    if saturates(dst):
        return lambda x: narrowed(x.astype(F32), dst, "RINT")
    if is_small_float(dst):
        return lambda x: x.astype(F64 if dst != BF16 else F32).astype(dst)
    return lambda x: x.astype(dst)


def scalar_of(value: Any, dtype: DType) -> Any:
    """A Python number as a numpy scalar of `dtype`: integers wrap, floats round to nearest even."""
    if is_float(dtype):
        exact = np.asarray(value, F64 if dtype == F64 else F32)
        return converter(exact.dtype, dtype)(exact)[()]
    if isinstance(value, float):
        return float_to_int(np.asarray(value), dtype, "TRUNC")[()]
    if dtype == np.bool_:
        return np.bool_(value)
    return np.asarray(int(value) & ((1 << 8 * dtype.itemsize) - 1), np.uint64).astype(dtype)[()]


def int_div(a: Array, b: Any) -> Array:
    """Integer quotient truncated toward zero; 0 where the divisor is 0."""
    b = np.asarray(b, a.dtype)
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    quotient = np.floor_divide(a, safe)
    rest = a - quotient * safe
    fix = (rest != 0) & ((a < 0) != (safe < 0))
    out: Array = np.where(b == 0, 0, quotient + fix.astype(a.dtype)).astype(a.dtype)
    return out


def int_rem(a: Array, b: Any) -> Array:
    """Remainder with the sign of the divisor; 0 where the divisor is 0."""
    b = np.asarray(b, a.dtype)
    out: Array = np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b))).astype(a.dtype)
    return out


def int_fmod(a: Array, b: Any) -> Array:
    """Remainder with the sign of the dividend; 0 where the divisor is 0."""
    b = np.asarray(b, a.dtype)
    out: Array = np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)
    return out


def shift_left(a: Array, b: Any) -> Array:
    """`a << b`; 0 for counts outside 0..width-1."""
    b = np.asarray(b)
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    out: Array = np.where(inside, np.left_shift(a, np.where(inside, b, 0).astype(a.dtype)), 0).astype(a.dtype)
    return out


def shift_right(a: Array, b: Any) -> Array:
    """`a >> b`, arithmetic for signed types; counts beyond the width fill with the sign (or 0)."""
    b = np.asarray(b)
    last = 8 * a.dtype.itemsize - 1
    inside = (b >= 0) & (b <= last)
    filled = np.right_shift(a, np.asarray(last, a.dtype)) if a.dtype.kind == "i" else np.zeros_like(a)
    out: Array = np.where(inside, np.right_shift(a, np.where(inside, b, 0).astype(a.dtype)), filled).astype(a.dtype)
    return out


def pad_value(dtype: DType, code: int) -> Any:
    """The constant of pad code 0 null, 1 zero, 2 max, 3 min: infinities for floats, limits for integers."""
    if code in (0, 1):
        return np.zeros((), dtype)[()]
    if is_float(dtype):
        if dtype.name in ("float8_e4m3fn", "float8_e8m0fnu"):  # these have no infinity
            import ml_dtypes

            info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
            return info.max if code == 2 else info.min
        return np.asarray(np.inf if code == 2 else -np.inf, dtype)[()]
    limits = np.iinfo(dtype)
    return np.asarray(limits.max if code == 2 else limits.min, dtype)[()]
