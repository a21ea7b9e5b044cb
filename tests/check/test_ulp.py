"""Distances in units in the last place, against numpy's nextafter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.check import ulp  # noqa: E402
from tests.kit import torch_type  # noqa: E402


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
@pytest.mark.parametrize("start", [1.0, -1.0, 0.0, 1e-45, -1e-45, 3.4e38, 1.9999999])
def test_steps_of_nextafter(start: float, steps: int) -> None:
    a = torch.tensor([start], dtype=torch.float32)
    b = a.clone()
    for _ in range(steps):
        b = torch.nextafter(b, torch.tensor([float("inf")]))
    assert int(ulp.distance(a, b)) == steps


def test_across_zero() -> None:
    """From the smallest negative to the smallest positive number there are two steps."""
    tiny = torch.tensor([1e-45])
    assert int(ulp.distance(-tiny, tiny)) == 2
    assert int(ulp.distance(torch.tensor([-0.0]), torch.tensor([0.0]))) == 0


@pytest.mark.parametrize(
    ("dtype", "a", "b", "steps"),
    [
        ("bfloat16", 1.0, 1.0078125, 1),
        ("bfloat16", 1.0, 1.015625, 2),
        ("float16", 1.0, 1.0009765625, 1),
        ("float8_e4m3fn", 1.0, 1.25, 2),
        ("float8_e5m2", 1.0, 1.25, 1),
        ("float8_e8m0fnu", 1.0, 4.0, 2),
        ("float64", 1.0, 1.0 + 2**-52, 1),
    ],
    ids=str,
)
def test_other_types(dtype: str, a: float, b: float, steps: int) -> None:
    kind = torch_type(dtype)
    x, y = (torch.tensor([v], dtype=torch.float64).to(kind) for v in (a, b))
    assert int(ulp.distance(x, y)) == steps


def test_the_extremes_do_not_overflow() -> None:
    big = torch.tensor([1.7e308], dtype=torch.float64)
    assert int(ulp.distance(-big, big)) == 1 << 62


def test_histogram() -> None:
    b = torch.ones(6)
    a = b.clone()
    a[1:] += torch.tensor([1, 3, 4, 10, 100]) * 2.0**-23
    assert ulp.histogram(a, b) == {"0": 1, "<=1": 1, "<=4": 2, "<=16": 1, ">16": 1}
