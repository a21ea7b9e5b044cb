"""Attention over blocks of keys with a running maximum: two products and the vectors between them in one loop.

The state of the softmax (row maximum, row sum, weighted sum) is carried from block to block. The weights of a block go
from the vector cores back to the cube core for the second product, so tiles cross in both directions in each turn.
"""

from __future__ import annotations

import math
from typing import Any

import pypto.language as pl
import pytest

QUERIES, KEYS, WIDTH, BLOCK = 32, 128, 64, 32
SCALE = 1.0 / math.sqrt(WIDTH)


def attention(split: pl.SplitMode) -> Any:
    @pl.program
    class FlashAttention:
        @pl.function
        def main(
            self,
            q: pl.Tensor[[QUERIES, WIDTH], pl.BF16],
            k: pl.Tensor[[KEYS, WIDTH], pl.BF16],
            v: pl.Tensor[[KEYS, WIDTH], pl.BF16],
            out: pl.Out[pl.Tensor[[QUERIES, WIDTH], pl.FP32]],
        ) -> pl.Tensor[[QUERIES, WIDTH], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                top = pl.full([QUERIES, 1], dtype=pl.FP32, value=-1e30)
                total = pl.full([QUERIES, 1], dtype=pl.FP32, value=0.0)
                blend = pl.full([QUERIES, WIDTH], dtype=pl.FP32, value=0.0)
                for i in pl.range(KEYS // BLOCK):
                    keys = pl.slice(k, [BLOCK, WIDTH], [i * BLOCK, 0])
                    values = pl.slice(v, [BLOCK, WIDTH], [i * BLOCK, 0])
                    scores = pl.mul(pl.matmul(q, keys, out_dtype=pl.FP32, b_trans=True), SCALE)
                    new_top = pl.maximum(top, pl.row_max(scores))
                    weights = pl.exp(pl.row_expand_sub(scores, new_top))
                    shrink = pl.exp(pl.sub(top, new_top))
                    total = pl.add(pl.mul(total, shrink), pl.row_sum(weights))
                    part = pl.matmul(pl.cast(weights, pl.BF16), values, out_dtype=pl.FP32)
                    blend = pl.add(pl.row_expand_mul(blend, shrink), part)
                    top = new_top
                out = pl.assemble(out, pl.row_expand_div(blend, total), [0, 0])
            return out

    return FlashAttention


def reference(t: dict[str, Any]) -> None:
    scores = t["q"].float() @ t["k"].float().T * SCALE
    t["out"][:] = scores.softmax(-1) @ t["v"].float()


@pytest.mark.pypto_platform("a2a3sim", "a5sim")
@pytest.mark.pypto_split("NONE", "UP_DOWN")  # LEFT_RIGHT would cut the rows of which the softmax needs the sums
@pytest.mark.pypto_direction("BIDIR")
def test_flash_attention(pypto_split, pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(attention(pypto_split))
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
