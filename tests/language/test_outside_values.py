"""Values from outside a function: numbers of every kind, things that are none, and names that a mistake left unset."""

from __future__ import annotations

import enum
from typing import Any

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import ParserError

np = pytest.importorskip("numpy")


class Rows(enum.IntEnum):
    FEW = 3


@pytest.mark.parametrize(
    ("factor", "printed"),
    [
        pytest.param(np.float64(0.5), "0.5", id="float64"),
        pytest.param(np.float32(0.5), "0.5", id="float32"),
        pytest.param(np.int64(3), "3.0", id="int64"),
        pytest.param(Rows.FEW, "3.0", id="enum"),
        pytest.param(np.array(3), "3.0", id="array of one"),
    ],
)
def test_numbers_of_other_types(factor: Any, printed: str) -> None:
    @pl.function
    def main(x: pl.Tensor[[16, 16], pl.FP32]):
        return pl.mul(x, factor)

    assert f"pl.tensor.muls(x, {printed})" in str(main)


@pytest.mark.parametrize("value", [np.ones(3), np.arange(3), 1j, len], ids=lambda v: type(v).__name__)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ParserError, match=f"'value' is a {type(value).__name__} from outside the function") as caught:

        @pl.function
        def main(x: pl.Tensor[[16, 16], pl.FP32]):
            return pl.mul(x, value)

    assert "usable values: int, float, bool" in str(caught.value.hint)


def test_tensors_of_torch_are_arguments() -> None:
    torch = pytest.importorskip("torch")
    for value in (torch.ones(3), torch.arange(3), torch.tensor(0.5)):
        with pytest.raises(ParserError, match="'value' is a Tensor from outside the function"):

            @pl.function
            def main(x: pl.Tensor[[16, 16], pl.FP32]):
                return pl.mul(x, value)  # noqa: B023


def test_a_name_that_a_mistake_left_unset_is_not_looked_up_outside() -> None:
    """`g` is assigned by the line with the mistake; the `g` outside has nothing to do with it."""
    g = np.ones(3)
    with pytest.raises(ParserError, match="Unsupported expression type: IfExp") as caught:

        @pl.function
        def main(x: pl.Tensor[[16, 16], pl.FP32]):
            g = x if x else None
            return pl.mul(g, 2.0)

    assert "from outside" not in str(caught.value)
    assert g.sum() == 3
