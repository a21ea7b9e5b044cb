"""Comparing what a run left behind with what was expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """One compared value: its key, the largest difference, whether it is close, and what else is wrong with it."""

    key: str
    max_abs_diff: float
    close: bool
    problem: str = ""

    def line(self) -> str:
        """The line the validator prints."""
        return f"validate tensor: '{self.key}', max_abs_diff: {self.max_abs_diff:.6e}, pass: {self.close}"


def compare(key: str, have: Any, want: Any, rtol: float, atol: float, equal_nan: bool) -> Difference:
    """Compare a tensor or number with the expected one; shape and element type must be equal."""
    import torch

    if not isinstance(want, torch.Tensor):
        close = have == want or (isinstance(have, (int, float)) and abs(have - want) <= atol + rtol * abs(want))
        gap = abs(float(have) - float(want)) if isinstance(have, (int, float)) else float("nan")
        return Difference(key, gap, bool(close), "" if close else f"got {have!r}, expected {want!r}")
    if not isinstance(have, torch.Tensor):
        return Difference(key, float("nan"), False, f"got {type(have).__name__}, expected a tensor")
    for what, a, b in (("shape", tuple(have.shape), tuple(want.shape)), ("dtype", have.dtype, want.dtype)):
        if a != b:
            return Difference(key, float("nan"), False, f"{what} mismatch: got {a}, expected {b}")
    if have.element_size() > 1 and torch.equal(have, want):
        return Difference(key, 0.0, True)
    a, b = _wide(have), _wide(want)
    gap = _gap(a, b)
    return Difference(key, gap, gap <= atol or torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def _wide(t: Any) -> Any:
    import torch

    return t.to(torch.float32).double() if t.dtype.is_floating_point and t.element_size() == 1 else t.double()


def _gap(a: Any, b: Any) -> float:
    """The largest difference; equal infinities differ by nothing, NaN on one side or both by NaN."""
    import torch

    if a.numel() == 0:
        return 0.0
    gap = float((a - b).abs_().max())
    if gap == gap:
        return gap
    gaps = torch.where(a == b, torch.zeros_like(a), (a - b).abs_())
    return float("nan") if bool(gaps.isnan().any()) else float(gaps.max())


def flat_return(returned: Any) -> dict[str, Any]:
    """What a function returned, under the keys `return` and, for a tuple, `return[i]`."""
    values = {"return": returned}
    if isinstance(returned, tuple):
        values |= {f"return[{i}]": v for i, v in enumerate(returned)}
    return values
