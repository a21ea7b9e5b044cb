"""A value carried by a loop: the running sum of the row blocks of a matrix."""

from __future__ import annotations

import pypto.language as pl
import pytest

pytestmark = pytest.mark.pypto_platform("a2a3sim", "a5sim")

BLOCKS, ROWS, COLS = 8, 16, 64


@pl.program
class SumOfBlocks:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[BLOCKS * ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            first = pl.slice(x, [ROWS, COLS], [0, 0])
            for i, (total,) in pl.range(1, BLOCKS, init_values=(first,)):
                block = pl.slice(x, [ROWS, COLS], [i * ROWS, 0])
                result = pl.yield_(pl.add(total, block))
            out = pl.assemble(out, result, [0, 0])
        return out


def reference(t):
    t["out"][:] = t["x"].view(BLOCKS, ROWS, COLS).sum(dim=0)


def test_sum_of_blocks(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(SumOfBlocks)
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
