"""Matrix product, bias and activation in one mixed kernel."""

from __future__ import annotations

import pypto.language as pl
import pytest

ROWS, K, COLS = 64, 128, 64


def fused_linear(split: pl.SplitMode):
    @pl.program
    class FusedLinear:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[ROWS, K], pl.BF16],
            w: pl.Tensor[[K, COLS], pl.BF16],
            bias: pl.Tensor[[1, COLS], pl.FP32],
            out: pl.Out[pl.Tensor[[ROWS, COLS], pl.BF16]],
        ) -> pl.Tensor[[ROWS, COLS], pl.BF16]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                h = pl.col_expand_add(pl.matmul(x, w, out_dtype=pl.FP32), bias)
                gate = pl.recip(pl.add(pl.exp(pl.neg(h)), 1.0))
                out = pl.assemble(out, pl.cast(pl.mul(h, gate), pl.BF16), [0, 0])
            return out

    return FusedLinear


def reference(t):
    import torch

    h = t["x"].float() @ t["w"].float() + t["bias"]
    t["out"][:] = torch.nn.functional.silu(h).bfloat16()


@pytest.mark.pypto_platform("a2a3sim", "a5sim")
@pytest.mark.pypto_split("NONE", "UP_DOWN")
@pytest.mark.pypto_direction("C2V")
def test_fused_linear(pypto_split, pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(fused_linear(pypto_split))
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
