"""Matrix product in half precision, accumulated in single precision."""

from __future__ import annotations

import pypto.language as pl
import pytest

pytestmark = pytest.mark.pypto_platform("a2a3sim", "a5sim")

M, K, N = 128, 256, 128


def matmul(dtype: pl.DataType):
    @pl.program
    class Matmul:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[M, K], dtype],
            b: pl.Tensor[[K, N], dtype],
            out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
        ) -> pl.Tensor[[M, N], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.assemble(out, pl.matmul(a, b, out_dtype=pl.FP32), [0, 0])
            return out

    return Matmul


def reference(t):
    t["out"][:] = t["a"].float() @ t["b"].float()


@pytest.mark.parametrize("dtype", [pl.FP16, pl.BF16], ids=str)
def test_matmul(dtype, pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(matmul(dtype))
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
