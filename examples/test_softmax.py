"""Softmax over the rows of a matrix."""

from __future__ import annotations

import pypto.language as pl
import pytest

pytestmark = pytest.mark.pypto_platform("a2a3sim", "a5sim")

ROWS, COLS = 64, 128


@pl.program
class RowSoftmax:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            top = pl.row_max(x)
            grown = pl.exp(pl.row_expand_sub(x, top))
            total = pl.row_sum(grown)
            out = pl.assemble(out, pl.row_expand_div(grown, total), [0, 0])
        return out


def reference(t):
    t["out"][:] = t["x"].softmax(dim=-1)


def test_row_softmax(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(RowSoftmax)
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
