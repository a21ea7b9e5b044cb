"""The comparator against a table of cases worked out by hand, for every dtype, and against torch.testing."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.check.compare import compare, rms  # noqa: E402
from pytest_pypto.check.locate import Layout  # noqa: E402
from pytest_pypto.check.tolerance import Tolerance  # noqa: E402
from tests.kit import torch_type  # noqa: E402

EXACT = Tolerance(0.0, 0.0)
NAN, INF = math.nan, math.inf

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64]
SHAPES = [(), (0,), (0, 4), (1,), (3,), (2, 3), (2, 2, 3)]


def values(*numbers: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64).to(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool], ids=str)
def test_a_tensor_equals_its_copy_and_differs_from_another(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    a = torch.ones(shape).to(dtype)
    assert compare("o", a, a.clone(), EXACT).passed
    b = torch.zeros(shape).to(dtype)
    diff = compare("o", b, a, EXACT)
    assert diff.mismatched == a.numel()
    assert diff.passed == (a.numel() == 0)


@pytest.mark.parametrize(
    ("actual", "expected", "equal_nan", "passed", "nonfinite"),
    [
        ([1.0, NAN], [1.0, NAN], False, False, 0),
        ([1.0, NAN], [1.0, NAN], True, True, 0),
        ([1.0, 2.0], [1.0, NAN], True, False, 1),
        ([1.0, NAN], [1.0, 2.0], True, False, 1),
        ([INF, -INF], [INF, -INF], False, True, 0),
        ([INF, 1.0], [-INF, 1.0], False, False, 0),
        ([INF, 1.0], [1e30, 1.0], False, False, 1),
        ([1.0, 1.0], [INF, 1.0], False, False, 1),
        ([NAN, 1.0], [INF, 1.0], False, False, 1),
        ([0.0, 1.0], [-0.0, 1.0], False, True, 0),
    ],
)
def test_not_a_number_and_infinity(
    actual: list[float], expected: list[float], equal_nan: bool, passed: bool, nonfinite: int
) -> None:
    """One side only is a mismatch however wide the tolerance."""
    diff = compare("o", values(*actual), values(*expected), Tolerance(1e6, 1e6), equal_nan=equal_nan)
    assert (diff.passed, diff.nonfinite) == (passed, nonfinite)


def test_shapes_never_broadcast() -> None:
    diff = compare("o", torch.ones(1, 4), torch.ones(3, 4), Tolerance(1.0, 1.0))
    assert (diff.passed, diff.reason) == (False, "shape")
    assert "(1, 4)" in diff.detail
    assert "(3, 4)" in diff.detail


def test_dtypes_are_never_converted() -> None:
    diff = compare("o", torch.ones(3, dtype=torch.float16), torch.ones(3), Tolerance(1.0, 1.0))
    assert (diff.passed, diff.reason) == (False, "dtype")
    assert diff.detail.startswith("dtype float16, expected float32")


def test_the_rule_is_atol_plus_rtol_times_expected() -> None:
    """|1.10 - 1| = 0.1 is allowed by 0.05 + 0.06 * 1, |2.18 - 2| = 0.18 not by 0.05 + 0.06 * 2 = 0.17."""
    a, b = values(1.1, 2.18, dtype=torch.float64), values(1.0, 2.0, dtype=torch.float64)
    diff = compare("o", a, b, Tolerance(0.06, 0.05))
    assert diff.mismatched == 1
    assert diff.worst is not None
    assert diff.worst.index == (1,)
    assert diff.worst.error == pytest.approx(0.18)
    assert diff.worst.allowed == pytest.approx(0.17)
    assert diff.headroom == pytest.approx(0.18 / 0.17)


@pytest.mark.parametrize("seed", range(20))
def test_it_agrees_with_torch(seed: int) -> None:
    g = torch.Generator().manual_seed(seed)
    b = torch.randn(7, 5, generator=g)
    a = b + 1e-3 * torch.randn(7, 5, generator=g) * (torch.rand(7, 5, generator=g) < 0.3)
    rtol, atol = 10 ** -float(torch.randint(2, 5, (), generator=g)), 1e-4
    want = int((~torch.isclose(a.double(), b.double(), rtol=rtol, atol=atol)).sum())
    diff = compare("o", a, b, Tolerance(rtol, atol))
    assert (diff.mismatched, diff.passed) == (want, want == 0)


def test_unsigned_differences_do_not_wrap() -> None:
    diff = compare("o", torch.tensor([3], dtype=torch.uint8), torch.tensor([5], dtype=torch.uint8), EXACT)
    assert diff.worst is not None
    assert diff.worst.error == 2.0


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint64], ids=str)
def test_wide_integers_are_compared_exactly(dtype: torch.dtype) -> None:
    """2**53 and 2**53 + 1 are one number in float64."""
    a, b = torch.tensor([2**53 + 1], dtype=dtype), torch.tensor([2**53], dtype=dtype)
    diff = compare("o", a, b, EXACT)
    assert diff.mismatched == 1
    assert diff.worst is not None
    assert diff.worst.error == 1.0
    assert compare("o", a, b, Tolerance(0.0, 1.0)).passed
    assert compare("o", a, a.clone(), EXACT).passed


def test_packed_four_bit_numbers_are_equal_or_not() -> None:
    bits = torch.tensor([0x11, 0x22], dtype=torch.uint8)
    packed = torch_type("float4_e2m1fn_x2")
    a = bits.view(packed)
    b = torch.tensor([0x11, 0x23], dtype=torch.uint8).view(packed)
    assert compare("o", a, bits.clone().view(packed), EXACT).passed
    diff = compare("o", a, b, Tolerance(100.0, 100.0))
    assert diff.mismatched == 1
    assert diff.worst is not None
    assert (diff.worst.actual, diff.worst.expected) == ("bits 0x22", "bits 0x23")


def test_the_worst_element_is_the_one_that_exceeds_its_allowance_most() -> None:
    """Off by 5 at 1000 (allowed 10) is fine; off by 0.5 at 1 (allowed 0.01) is the worst, not off by 20 at 1500."""
    b = values(1000.0, 1.0, 1500.0)
    a = b + values(5.0, 0.5, 20.0)
    diff = compare("o", a, b, Tolerance(0.01, 0.0))
    assert diff.mismatched == 2
    assert diff.worst is not None
    assert diff.worst.index == (2,)
    assert [e.index for e in diff.first] == [(1,), (2,)]


def test_one_nan_in_a_million_fails_and_is_found() -> None:
    b = torch.zeros(1000, 1000)
    a = b.clone()
    a[123, 456] = NAN
    diff = compare("o", a, b, Tolerance(1.0, 1.0))
    assert (diff.mismatched, diff.nonfinite) == (1, 1)
    assert diff.worst is not None
    assert diff.worst.index == (123, 456)


def test_places_are_given_in_tile_and_lane_terms() -> None:
    b = torch.zeros(64, 64)
    a = b.clone()
    a[50, 33] = 1.0
    diff = compare("o", a, b, EXACT, layout=Layout((32, 32), "UP_DOWN"))
    assert diff.worst is not None
    assert diff.worst.place == "tile (1, 1) element (18, 1) lane 1"


def test_strided_and_grad_tensors_are_fine() -> None:
    b = torch.arange(12.0).reshape(3, 4).t()
    a = b.clone().requires_grad_()
    assert compare("o", a, b, EXACT).passed


def test_rms() -> None:
    assert rms(values(3.0, 4.0)) == pytest.approx(math.sqrt(12.5))
    assert rms(torch.empty(0)) == 0.0
    assert rms(values(NAN, INF, 2.0)) == 2.0


def test_elements_that_were_not_written_are_told() -> None:
    before, want = torch.full((4, 4), -7.0), torch.arange(16.0).reshape(4, 4)
    half = torch.where(torch.arange(4)[:, None] < 2, want, before)
    told = "still hold what was there before the run (such as -7): not written?"
    assert compare("o", half, want, EXACT, before=before).detail == f"all of them {told}"
    half[3] = 5.0
    assert compare("o", half, want, EXACT, before=before).detail == f"4 of them {told}"
    assert compare("o", want + 1, want, EXACT, before=before).detail == ""
    assert compare("o", half, want, EXACT, before=before[:2]).detail == ""
    assert compare("o", half, want, EXACT, before=3).detail == ""
