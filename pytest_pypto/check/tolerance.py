"""How close is close enough: one policy by output dtype and accumulation length, and the order in which it yields.

The policy knows two sources of legal difference between two right computations of one value:

* rounding of a result (or of an intermediate value that was cast down) to a narrow type: two units in the last place;
* sums of `k` FP32 terms in another order: about sqrt(k) unit roundoffs, times a margin of 16 that also covers the few
  ulp by which two implementations of exp, rsqrt and the like differ.

Integers and booleans are exact. The absolute part is the relative part times the size (root mean square) of the
expected tensor, because a sum that cancels keeps the error of its terms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MANTISSA_BITS: Mapping[str, int] = {
    "float64": 52,
    "float32": 23,
    "float16": 10,
    "bfloat16": 7,
    "float8_e4m3fn": 3,
    "float8_e5m2": 2,
    "float8_e8m0fnu": 0,
}
"""Explicit mantissa bits of the floating types, by torch name without `torch.`; a type that is not listed is exact."""

MARGIN = 16
ROUNDINGS = 2


@dataclass(frozen=True)
class Tolerance:
    """What one output may differ by: `|actual - expected| <= atol + rtol * |expected|`.

    Attributes:
        rtol, atol: both finite and not negative.
        rtol_source, atol_source: where each number came from, for the report.
    """

    rtol: float
    atol: float
    rtol_source: str = "argument"
    atol_source: str = "argument"

    def describe(self) -> str:
        """`rtol=1e-03 (marker) atol=1e-05 (policy: fp32, k=64)`."""
        return f"rtol={self.rtol:.3g} ({self.rtol_source}) atol={self.atol:.3g} ({self.atol_source})"


def checked(name: str, value: object) -> float:
    """A tolerance number given by a user.

    Raises:
        ValueError: not a number, a bool, negative, NaN or infinite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}={value!r} is no tolerance: give a finite number >= 0")
    return float(value)


def relative(dtype: str, length: int = 1, narrowest: str | None = None) -> float:
    """The policy's relative tolerance.

    Args:
        dtype: torch name of the output's type, e.g. "float32".
        length: number of terms in the longest sum that feeds the output.
        narrowest: the narrowest floating type that values pass through on their way, if narrower than the output.
    """
    bits = MANTISSA_BITS.get(dtype)
    if bits is None:
        return 0.0
    if narrowest is not None:
        bits = min(bits, MANTISSA_BITS.get(narrowest, bits))
    rounding = ROUNDINGS * 2.0**-bits if bits < MANTISSA_BITS["float32"] else 0.0
    summing = MARGIN * 2.0**-23 * math.sqrt(max(1, length))
    return max(rounding, summing)


def policy(dtype: str, scale: float, length: int = 1, narrowest: str | None = None) -> Tolerance:
    """The policy for one output.

    Args:
        dtype: torch name of the output's type.
        scale: root mean square of the expected values (0 for an empty tensor).
        length, narrowest: see `relative`.
    """
    rtol = relative(dtype, length, narrowest)
    via = f" via {narrowest}" if narrowest and narrowest != dtype else ""
    source = f"policy: {dtype}{via}, k={length}" if dtype in MANTISSA_BITS else f"policy: {dtype} is exact"
    return Tolerance(rtol, rtol * scale, source, source)


@dataclass(frozen=True)
class Source:
    """One place that may set a tolerance; None leaves that number to the next place."""

    name: str
    rtol: float | None = None
    atol: float | None = None


def first_set(sources: Sequence[Source], fallback: Tolerance) -> Tolerance:
    """The tolerance after the order of precedence: the first source that sets a number wins, for each number alone."""
    rtol = next(((s.rtol, s.name) for s in sources if s.rtol is not None), (fallback.rtol, fallback.rtol_source))
    atol = next(((s.atol, s.name) for s in sources if s.atol is not None), (fallback.atol, fallback.atol_source))
    return Tolerance(rtol[0], atol[0], rtol[1], atol[1])
