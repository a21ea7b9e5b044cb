"""Floats to narrower floats in a chosen sense.

Every small float but the scale type is a sign and a magnitude, and magnitudes are ordered like their bits: the next
larger number has the next larger bits, and after the largest one comes infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import ml_dtypes
import numpy as np

from .dtypes import BF16, F32, F64, Array, DType

NEAREST_EVEN = ("NONE", "RINT")
UNSIGNED = "float8_e8m0fnu"
SATURATING = "float8_e4m3fn"
"""The type without infinities: what lies beyond its largest number becomes that number, infinities too."""


def narrowed(x: Array, dtype: DType, mode: str) -> Array:
    """Float array `x` as `dtype`; `mode` acts on the last kept bit.

    Numbers beyond the largest one become infinite where the mode leads away from zero, or to the nearest and the
    nearest number would be half a unit further; else they become the largest. A type without infinities saturates.
    """
    if dtype.name == SATURATING:
        x = np.clip(x.astype(F64 if x.dtype == F64 else F32), -_largest(dtype)[0], _largest(dtype)[0])  # keeps NaN
    if x.dtype == F32 and dtype == BF16 and mode in ("ROUND", "TRUNC"):
        return _cut(x, mode)
    near = x.astype(dtype)
    if mode in NEAREST_EVEN:
        return near
    value, (top, step) = x.astype(F64), _largest(dtype)
    size = np.abs(value)
    bits = np.dtype(f"u{dtype.itemsize}")
    found = np.minimum(size, top).astype(dtype).view(bits)
    low = (found - ((found.view(dtype).astype(F64) > size) & (found > 0))).astype(bits)
    below = low.view(dtype).astype(F64)
    above = np.where(below == top, top + step, (low + bits.type(1)).view(dtype).astype(F64))
    up = _AWAY[mode](value, size - below, above - size, (low & 1 == 1) | (below == top))
    made = low + up.astype(bits)
    if dtype.name != UNSIGNED:
        made |= np.signbit(value).astype(bits) << bits.type(8 * dtype.itemsize - 1)
    rounds = np.isfinite(value) & (below < size) & ((value > 0) | (dtype.name != UNSIGNED))
    out: Array = np.where(rounds, made, near.view(bits)).astype(bits).view(dtype)
    return out


def saturates(dtype: DType) -> bool:
    """True for the type without infinities, to which numpy does not convert as the machine does."""
    return bool(dtype.name == SATURATING)


def _cut(x: Array, mode: str) -> Array:
    """FP32 to BF16 on the bits: sign and magnitude, so adding half a unit rounds ties away from zero."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    kept = (bits + np.uint32(0x8000) if mode == "ROUND" else bits) >> np.uint32(16)
    out: Array = kept.astype(np.uint16).view(BF16)
    missing = np.isnan(x)
    if missing.any():
        out[missing] = np.nan
    return out


@lru_cache(maxsize=16)
def _largest(dtype: DType) -> tuple[float, float]:
    """The largest finite number of a type, and the step that leads to it from the one before."""
    top = np.asarray(ml_dtypes.finfo(dtype).max, dtype)  # type: ignore[no-untyped-call]
    before = (top.view(f"u{dtype.itemsize}") - 1).astype(f"u{dtype.itemsize}").view(dtype)
    return float(top), float(top) - float(before)


Away = Callable[[Array, Array, Array, Array], Array]
_AWAY: dict[str, Away] = {
    "ROUND": lambda value, below, above, odd: below >= above,
    "FLOOR": lambda value, below, above, odd: value < 0,
    "CEIL": lambda value, below, above, odd: value > 0,
    "TRUNC": lambda value, below, above, odd: np.zeros(value.shape, np.bool_),
    "ODD": lambda value, below, above, odd: ~odd,
}
"""Whether the larger neighbour is taken: from the value, its distances to both neighbours, and whether the smaller one
has an odd last bit (or is the largest number, which `ODD` does not leave)."""
