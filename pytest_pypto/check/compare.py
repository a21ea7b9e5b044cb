"""Comparison of one tensor with its expected value; the result is data.

Shapes and dtypes must be equal: nothing broadcasts and nothing is promoted. A NaN or an infinity on one side only is a
mismatch whatever the tolerance; equal NaNs pass only with `equal_nan`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from pytest_pypto.check import locate, ulp
from pytest_pypto.check.tolerance import MANTISSA_BITS, Tolerance

PACKED = "float4_e2m1fn_x2"
ULP_TYPES = frozenset(MANTISSA_BITS)
UNCOMPARED = frozenset({"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", PACKED})
"""Types for which torch has no equality of its own."""

FIRST = 5
"""How many mismatching elements a difference lists."""


@dataclass(frozen=True)
class Element:
    """One mismatching element.

    Attributes:
        index: n-dimensional index.
        actual, expected: the two values as Python numbers (or text for types without one).
        error: absolute difference, None where it is not a number.
        allowed: what the tolerance allows there.
        ulp: distance in units in the last place, None for integers.
        place: the same place in tile and lane terms, "" when the tile is not known.
    """

    index: tuple[int, ...]
    actual: Any
    expected: Any
    error: float | None
    allowed: float
    ulp: int | None = None
    place: str = ""


@dataclass(frozen=True)
class TensorDiff:
    """Result of one comparison.

    Attributes:
        name: the output.
        passed: whether everything agrees.
        reason: why not: `shape`, `dtype`, `values`; "" when passed.
        detail: one sentence for `shape` and `dtype`, for NaN on both sides, and for elements that were not written.
        total, mismatched: numbers of elements compared and found different.
        headroom: worst error as a fraction of what is allowed (1.0 is the limit); 0 when nothing was compared.
        worst, first: the element with the greatest excess, and the first few in memory order.
        nonfinite: elements that are NaN or infinite on one side only.
        ulps: histogram of ulp distances over all elements, for floating types.
        pattern: where the mismatches lie, in words.
        heat: mismatch density on a coarse grid, rows of digits 0..9, for the report.
    """

    name: str
    passed: bool
    tolerance: Tolerance
    dtype: str
    shape: tuple[int, ...]
    reason: str = ""
    detail: str = ""
    total: int = 0
    mismatched: int = 0
    headroom: float = 0.0
    worst: Element | None = None
    first: tuple[Element, ...] = ()
    nonfinite: int = 0
    ulps: dict[str, int] = field(default_factory=dict)
    pattern: str = ""
    heat: tuple[str, ...] = ()


def dtype_name(dtype: torch.dtype) -> str:
    """`torch.float32` -> `float32`."""
    return str(dtype).removeprefix("torch.")


def rms(x: torch.Tensor) -> float:
    """Root mean square of the finite elements; 0 for none."""
    values = wide(x)
    values = values[torch.isfinite(values)]
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def wide(x: torch.Tensor) -> torch.Tensor:
    """The values in float64; packed 4-bit types give their two bit patterns a byte."""
    if dtype_name(x.dtype) == PACKED:
        return x.view(torch.uint8).to(torch.float64)
    return x.to(torch.float64)


def compare(
    name: str,
    actual: torch.Tensor,
    expected: torch.Tensor,
    tolerance: Tolerance,
    *,
    equal_nan: bool = False,
    layout: locate.Layout | None = None,
    before: torch.Tensor | None = None,
) -> TensorDiff:
    """Compare one output with its expected value.

    Args:
        name: name of the output, for the report.
        actual, expected: tensors of one shape and dtype, any dtype, any rank; never broadcast.
        tolerance: see `Tolerance`.
        equal_nan: whether a NaN on both sides counts as equal.
        layout: tile and split of the output, for places in tile and lane terms.
        before: what the output held before the run; a mismatch that still holds it is told as such.
    """
    kind, shape = dtype_name(expected.dtype), tuple(expected.shape)
    if actual.shape != expected.shape:
        return TensorDiff(
            name, False, tolerance, kind, shape, "shape", _unlike("shape", _dims(actual), _dims(expected))
        )
    if actual.dtype != expected.dtype:
        text = _unlike("dtype", dtype_name(actual.dtype), kind)
        return TensorDiff(name, False, tolerance, kind, shape, "dtype", text)
    if kind not in UNCOMPARED and torch.equal(actual, expected):  # the usual case, without temporaries
        return TensorDiff(name, True, tolerance, kind, shape, total=expected.numel())
    found = _Compared(actual.detach(), expected.detach(), tolerance, equal_nan)
    if not found.bad.any():
        return TensorDiff(
            name, True, tolerance, kind, shape, total=expected.numel(), headroom=found.headroom(), ulps={}
        )
    return found.describe(name, layout or locate.Layout(), before)


def _unlike(what: str, actual: str, expected: str) -> str:
    return f"{what} {actual}, expected {expected} (nothing is broadcast or converted)"


def _both_nan(count: int) -> str:
    if not count:
        return ""
    places = f"{count} element{'s'[: count != 1]}"
    return f"NaN on both sides ({places}) counts as different (rule of the harness); pass equal_nan=True to accept it"


def _dims(x: torch.Tensor) -> str:
    return str(tuple(x.shape))


class _Compared:
    """The elementwise arrays of one comparison."""

    def __init__(self, actual: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, equal_nan: bool) -> None:
        self.actual, self.expected, self.tolerance = actual, expected, tolerance
        a, b = wide(actual), wide(expected)
        same = _same_bits(actual, expected, a, b)
        self.error = _error(actual, expected, a, b)
        packed = dtype_name(expected.dtype) == PACKED  # bit patterns, which are equal or not
        self.allowed = torch.zeros_like(b) if packed else tolerance.atol + tolerance.rtol * b.abs()
        finite = torch.isfinite(a) & torch.isfinite(b)
        close = finite & (self.error <= self.allowed)
        both_nan = torch.isnan(a) & torch.isnan(b)
        self.bad = ~(same | close | both_nan) if equal_nan else ~(same | close)
        self.one_sided = (torch.isfinite(a) != torch.isfinite(b)) | (torch.isnan(a) != torch.isnan(b))
        self.finite, self.same = finite, same
        self.both_nan = both_nan & self.bad

    def headroom(self) -> float:
        """Worst error as a fraction of the allowance, over finite elements that are not identical."""
        if not self.error.numel():
            return 0.0
        ratio = torch.where(self.same | ~self.finite, 0.0, self.error / self.allowed)
        return float(torch.nan_to_num(ratio, nan=0.0, posinf=float("inf")).max())

    def describe(self, name: str, layout: locate.Layout, before: torch.Tensor | None = None) -> TensorDiff:
        excess = torch.where(self.bad, self.error - self.allowed, torch.full_like(self.error, -torch.inf))
        excess = torch.where(self.bad & ~self.finite, torch.full_like(excess, torch.inf), excess)
        flat = self.bad.flatten().nonzero().flatten()
        worst = int(excess.flatten().argmax())
        floating = dtype_name(self.expected.dtype) in ULP_TYPES
        return TensorDiff(
            name,
            False,
            self.tolerance,
            dtype_name(self.expected.dtype),
            tuple(self.expected.shape),
            "values",
            "; ".join(filter(None, (_both_nan(int(self.both_nan.sum())), self._untouched(before)))),
            total=self.expected.numel(),
            mismatched=int(flat.numel()),
            headroom=self.headroom(),
            worst=self.element(worst, layout),
            first=tuple(self.element(int(i), layout) for i in flat[:FIRST]),
            nonfinite=int((self.one_sided & self.bad).sum()),
            ulps=ulp.histogram(self.actual, self.expected) if floating else {},
            pattern=locate.pattern(self.bad, layout),
            heat=locate.heat(self.bad),
        )

    def _untouched(self, before: torch.Tensor | None) -> str:
        """How many of the mismatches hold what was there before the run."""
        like = self.actual.shape, self.actual.dtype
        if not isinstance(before, torch.Tensor) or (before.shape, before.dtype) != like:
            return ""
        old = wide(before.detach())
        same = _same_bits(self.actual, before, wide(self.actual), old) & self.bad
        count = int(same.sum())
        if not count:
            return ""
        what = "all" if count == int(self.bad.sum()) else str(count)
        value = number_text(old[same][0].item())
        verb = "holds" if count == 1 and what != "all" else "hold"
        return f"{what} of them still {verb} what was there before the run (such as {value}): not written?"

    def element(self, flat: int, layout: locate.Layout) -> Element:
        """The element at a position in memory order."""
        index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), self.bad.shape))
        error = float(self.error.flatten()[flat])
        return Element(
            index,
            _number(self.actual, flat),
            _number(self.expected, flat),
            error if error == error and error != float("inf") else None,
            float(self.allowed.flatten()[flat]),
            self._ulp(flat),
            locate.place(index, layout),
        )

    def _ulp(self, flat: int) -> int | None:
        if dtype_name(self.expected.dtype) not in ULP_TYPES or not bool(self.finite.flatten()[flat]):
            return None
        one = slice(flat, flat + 1)
        return int(ulp.distance(self.actual.flatten()[one], self.expected.flatten()[one]))


def _same_bits(actual: torch.Tensor, expected: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where both sides are equal; exact for 64-bit integers, which float64 cannot hold."""
    if actual.dtype in (torch.int64, torch.uint64):
        return actual.view(torch.int64) == expected.view(torch.int64)
    return a == b


def _error(actual: torch.Tensor, expected: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Absolute difference in float64; of 64-bit integers exactly, as far as float64 can say it."""
    error = (a - b).abs()
    if actual.dtype in (torch.int64, torch.uint64):
        exact = (actual.view(torch.int64) - expected.view(torch.int64)).abs().double()
        return torch.where(error < 2.0**52, exact, error)
    return error


def number_text(value: float) -> str:
    """Short form of a number."""
    return f"{value:.6g}"


def _number(x: torch.Tensor, flat: int) -> Any:
    value = x.flatten()[flat : flat + 1]
    if dtype_name(x.dtype) == PACKED:
        return f"bits 0x{int(value.view(torch.uint8)):02x}"
    return value.to(torch.float64).item() if x.dtype.is_floating_point else value.item()
