"""A NaN on both sides is a difference that the report explains."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.check.compare import compare  # noqa: E402
from pytest_pypto.check.tolerance import Tolerance  # noqa: E402
from pytest_pypto.report.text import difference  # noqa: E402


@pytest.mark.parametrize(("equal_nan", "passed"), [(False, False), (True, True)])
def test_nan_on_both_sides(equal_nan: bool, passed: bool) -> None:
    x = torch.ones(4, 4)
    x[1, 2] = x[3, 0] = float("nan")
    diff = compare("o", x, x.clone(), Tolerance(0.0, 0.0), equal_nan=equal_nan)
    assert diff.passed is passed
    assert (
        any("NaN on both sides (2 elements)" in row and "equal_nan=True" in row for row in difference(diff)) != passed
    )


def test_nan_on_one_side_only_has_no_such_advice() -> None:
    x, y = torch.ones(2, 2), torch.full((2, 2), float("nan"))
    diff = compare("o", x, y, Tolerance(0.0, 0.0), equal_nan=True)
    assert not diff.passed
    assert diff.detail == ""
