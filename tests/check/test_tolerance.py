"""The policy and its order of precedence."""

from __future__ import annotations

import math

import pytest

from pytest_pypto.check.tolerance import Source, Tolerance, checked, first_set, policy, relative


def test_exact_types() -> None:
    for dtype in ("int8", "int64", "uint32", "bool"):
        found = policy(dtype, 10.0, length=1000)
        assert (found.rtol, found.atol) == (0.0, 0.0)
        assert "exact" in found.rtol_source


def test_longer_sums_are_allowed_more() -> None:
    """Random rounding errors of k terms grow with the root of k."""
    assert relative("float32", 256) == pytest.approx(16 * relative("float32", 1))


@pytest.mark.parametrize(("dtype", "unit"), [("bfloat16", 2**-7), ("float16", 2**-10), ("float8_e4m3fn", 2**-3)])
def test_narrow_types_are_allowed_two_units(dtype: str, unit: float) -> None:
    assert relative(dtype) == 2 * unit


def test_a_narrow_intermediate_counts() -> None:
    assert relative("float32", 1, "bfloat16") == relative("bfloat16")
    assert relative("bfloat16", 1, "float32") == relative("bfloat16")


def test_the_absolute_part_follows_the_size_of_the_values() -> None:
    assert policy("float32", 100.0).atol == pytest.approx(100 * relative("float32"))
    assert policy("float32", 0.0).atol == 0.0


torch = pytest.importorskip("torch")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [16, 256, 2048])
def test_the_policy_admits_other_orders_of_summation(k: int, seed: int) -> None:
    """FP32 products summed in blocks agree with the plain product; one wrong term in k does not."""
    from pytest_pypto.check.compare import compare, rms

    g = torch.Generator().manual_seed(seed)
    a, b = torch.randn(16, k, generator=g), torch.randn(k, 16, generator=g)
    want = a @ b
    blocks = sum((a[:, i : i + 16] @ b[i : i + 16] for i in range(0, k, 16)), torch.zeros(16, 16))
    tolerance = policy("float32", rms(want), k)
    assert compare("o", blocks, want, tolerance).passed
    wrong = want.clone()
    wrong -= a[:, :1] * b[:1]
    assert not compare("o", wrong, want, tolerance).passed


def test_order_of_precedence_is_per_number() -> None:
    policy_ = Tolerance(1.0, 2.0, "policy", "policy")
    sources = [Source("argument", rtol=0.1), Source("marker", rtol=0.2, atol=0.3), Source("ini", atol=0.4)]
    found = first_set(sources, policy_)
    assert found == Tolerance(0.1, 0.3, "argument", "marker")
    assert first_set([], policy_) == policy_
    assert first_set([Source("ini", rtol=0.0)], policy_).rtol == 0.0


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, "1e-3", True, None])
def test_what_is_no_tolerance(wrong: object) -> None:
    with pytest.raises(ValueError, match="is no tolerance: give a finite number >= 0"):
        checked("rtol", wrong)


def test_both_numbers_say_where_they_came_from() -> None:
    text = Tolerance(1e-3, 0.5, "marker", "policy: float32, k=8").describe()
    assert text == "rtol=0.001 (marker) atol=0.5 (policy: float32, k=8)"
