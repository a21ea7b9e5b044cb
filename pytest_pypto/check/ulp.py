"""Distance in units in the last place."""

from __future__ import annotations

import torch

_INT_OF_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
BINS = (0, 1, 4, 16)


def ordered(x: torch.Tensor) -> torch.Tensor:
    """Bit patterns as int64 in the order of the numbers, so that neighbours differ by one; -0.0 equals 0.0.

    Args:
        x: any floating tensor of 1, 2, 4 or 8 bytes an element.
    """
    if str(x.dtype) == "torch.float8_e8m0fnu":  # an exponent without a sign; older torch has no such type
        return x.contiguous().view(torch.uint8).to(torch.int64)
    bits = x.contiguous().view(_INT_OF_SIZE[x.element_size()]).to(torch.int64)
    magnitude = bits & ((1 << (8 * x.element_size() - 1)) - 1)
    return torch.where(bits < 0, -magnitude, magnitude)


def distance(actual: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Elementwise distance in ulp (int64) of two tensors of one floating type; differences are clamped at 2**62."""
    a, b = ordered(actual), ordered(expected)
    limit = 1 << 62
    far = (a.double() - b.double()).abs() > limit
    return torch.where(far, torch.full_like(a, limit), (a - b).abs())


def histogram(actual: torch.Tensor, expected: torch.Tensor) -> dict[str, int]:
    """How many elements lie at 0, <=1, <=4, <=16 and >16 ulp; elements that are not finite are left out."""
    keep = torch.isfinite(actual.double()) & torch.isfinite(expected.double())
    d = distance(actual, expected)[keep]
    counts: dict[str, int] = {}
    last = -1
    for edge in BINS:
        counts[f"<={edge}" if edge else "0"] = int(((d > last) & (d <= edge)).sum())
        last = edge
    counts[f">{BINS[-1]}"] = int((d > last).sum())
    return counts
