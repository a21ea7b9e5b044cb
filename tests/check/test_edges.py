"""Edges of the number checks: the last value on each side of every limit."""

from __future__ import annotations

import pytest

from pytest_pypto.check.tolerance import Tolerance, policy, relative

torch = pytest.importorskip("torch")

from pytest_pypto.check import locate, ulp  # noqa: E402
from pytest_pypto.check.compare import compare  # noqa: E402


def test_single_precision_is_judged_by_its_sum_alone() -> None:
    """16 unit roundoffs of 2**-23 and no rounding step of its own, with none or one term."""
    assert relative("float32") == relative("float32", 0) == 16 * 2.0**-23
    assert relative("float64") == 16 * 2.0**-23


def test_a_bare_exponent_is_allowed_two_steps() -> None:
    assert relative("float8_e8m0fnu") == 2.0


@pytest.mark.parametrize(
    ("narrowest", "source"),
    [
        (None, "policy: float32, k=4"),
        ("float32", "policy: float32, k=4"),
        ("bfloat16", "policy: float32 via bfloat16, k=4"),
    ],
)
def test_the_source_names_a_narrower_type_only(narrowest: str | None, source: str) -> None:
    assert policy("float32", 1.0, 4, narrowest).rtol_source == source


def test_each_bin_holds_its_upper_edge() -> None:
    b = torch.ones(8)
    a = b + torch.tensor([0, 1, 2, 4, 5, 16, 17, 18]) * 2.0**-23
    assert ulp.histogram(a, b) == {"0": 1, "<=1": 1, "<=4": 2, "<=16": 2, ">16": 2}


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([0, 2], "0, 2"),
        ([0, 2, 4], "every 2nd from 0 to 4"),
        ([0, 3, 6, 9], "every 3rd from 0 to 9"),
        ([0, 1, 2], "0-2"),
        ([0, 2, 5, 7], "0, 2, 5, 7"),
        ([0, 2, 5, 7, 11], "0, 2, 5, 7 and 1 more run"),
        ([0, 2, 5, 7, 11, 13, 14], "0, 2, 5, 7 and 2 more runs"),
    ],
)
def test_runs_of_rows(rows: list[int], text: str) -> None:
    bad = torch.zeros(64, 4, dtype=torch.bool)
    bad[rows] = True
    assert locate.pattern(bad, locate.Layout()) == f"all {4 * len(rows)} fill rows {text}"


def test_every_row_of_some_columns_is_a_band_of_columns() -> None:
    bad = torch.zeros(4, 8, dtype=torch.bool)
    bad[:, 1:4] = True
    assert locate.pattern(bad, locate.Layout()) == "all 12 fill columns 1-3"


@pytest.mark.parametrize("rows", [48, 64], ids=["ragged", "whole"])
def test_the_last_row_of_tiles(rows: int) -> None:
    """Row 32 starts the second row of 32-row tiles, whether the tensor ends inside of it or with it."""
    bad = torch.zeros(rows, 64, dtype=torch.bool)
    bad[32:, ::2] = True
    found = locate.pattern(bad, locate.Layout((32, 32), "NONE"))
    assert found == f"all {32 * (rows - 32)} lie in the last row of tiles"


@pytest.mark.parametrize("equal_nan", [False, True])
def test_one_element_of_each_kind(equal_nan: bool) -> None:
    """Equal, close, far, NaN on both sides, NaN on one side, equal and opposite infinities."""
    inf, nan = float("inf"), float("nan")
    want = torch.tensor([1.0, 1.0, 1.0, nan, nan, inf, inf])
    got = torch.tensor([1.0, 1.25, 2.0, nan, 1.0, inf, -inf])
    found = compare("o", got, want, Tolerance(0.5, 0.0), equal_nan=equal_nan)
    assert found.mismatched == 4 - int(equal_nan)
    assert found.headroom == 2.0, "the far element uses twice its allowance; what is not finite has no share"
