"""Operands of products are widened once per loop where that cannot change a number."""

from __future__ import annotations

import pytest
import torch

from .build import code_of, program, run

LOOP = """
@pl.function
def main(self, a: pl.Tensor[[16, 32], pl.BF16], w: pl.InOut[pl.Tensor[[32, 64], pl.BF16]],
         o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    for i in pl.range({trips}):
        {inside}
        o = pl.assemble(o, pl.matmul(a, pl.slice(w, [32, 16], [0, {at}]), out_dtype=pl.FP32), [0, i * 16])
    return o
"""
FILL = "w = pl.assemble(w, pl.full([32, 16], pl.BF16, 2.0), [0, 16])"


@pytest.mark.parametrize(
    ("trips", "at", "inside", "once"),
    [
        (4, "i * 16", "pass_ = i + 1", True),
        (2, "i * 16", "pass_ = i + 1", False),
        (4, "i * 16", FILL, False),
        (4, "0", "pass_ = i + 1", True),
    ],
    ids=["all of it", "half of it", "written meanwhile", "one window again and again"],
)
def test_windows_that_add_up_to_a_factor_are_widened_once(trips: int, at: str, inside: str, once: bool) -> None:
    node = program(LOOP.format(trips=trips, at=at, inside=inside))
    assert ("w_f32 = w.float()" in code_of(node)) is once
    g = torch.Generator().manual_seed(1)
    a, w = (torch.randn(shape, generator=g).to(torch.bfloat16) for shape in ((16, 32), (32, 64)))
    want, weights = torch.full((16, 64), -7.0), w.clone()
    for i in range(trips):
        if inside == FILL:
            weights[:, 16:32] = 2.0
        column = i * 16 if at != "0" else 0
        want[:, i * 16 : i * 16 + 16] = a.float() @ weights[:, column : column + 16].float()
    got = torch.full((16, 64), -7.0)
    run(node, a, w, got)
    torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-6)
    assert torch.equal(w, weights)
