"""RMS norm with a weight per column."""

from __future__ import annotations

import pypto.language as pl
import pytest

pytestmark = pytest.mark.pypto_platform("a2a3sim", "a5sim")

ROWS, COLS, EPS = 32, 128, 1e-6


@pl.program
class RmsNorm:
    @pl.function
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        weight: pl.Tensor[[1, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / COLS)
            scale = pl.rsqrt(pl.add(mean, EPS))
            normed = pl.col_expand_mul(pl.row_expand_mul(x, scale), weight)
            out = pl.assemble(out, normed, [0, 0])
        return out


def reference(t):
    import torch

    mean = t["x"].pow(2).mean(dim=-1, keepdim=True)
    t["out"][:] = t["x"] * torch.rsqrt(mean + EPS) * t["weight"]


def test_rms_norm(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(RmsNorm)
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
