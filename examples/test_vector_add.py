"""Vector add, written as a program and as a jit kernel."""

from __future__ import annotations

import pypto.language as pl
import pytest

pytestmark = pytest.mark.pypto_platform("a2a3sim", "a5sim")

ROWS, COLS = 64, 128


def vector_add():
    @pl.program
    class VectorAdd:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[ROWS, COLS], pl.FP32],
            b: pl.Tensor[[ROWS, COLS], pl.FP32],
            out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.assemble(out, pl.add(a, b), [0, 0])
            return out

    return VectorAdd


@pl.jit
def vector_add_kernel(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(a, b)
    return out


def reference(t):
    t["out"][:] = t["a"] + t["b"]


def test_program(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(vector_add())
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))


def test_jit(pypto_config, pypto_inputs, pypto_golden, pypto_check):
    import torch

    a, b, out = (torch.zeros(ROWS, COLS) for _ in range(3))
    compiled = vector_add_kernel.compile(a, b, out, config=pypto_config)
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))


def test_jit_call(pypto_config):
    import torch

    a, b, out = torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)
    vector_add_kernel(a, b, out, config=pypto_config)
    assert torch.equal(out, a + b)
