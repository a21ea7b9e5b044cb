"""Tiles that cross between cube and vector cores: three directions, three splits, two platforms, one test."""

from __future__ import annotations

import pypto.language as pl
import pytest


def v2c(split: pl.SplitMode):
    """out = (a + b) @ (a - b): both operands are made on the vector cores."""

    @pl.program
    class VectorToCube:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 32], pl.FP32],
            b: pl.Tensor[[32, 32], pl.FP32],
            out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                out = pl.assemble(out, pl.matmul(pl.add(a, b), pl.sub(a, b)), [0, 0])
            return out

    return VectorToCube


def c2v(split: pl.SplitMode):
    """c += a @ b in blocks of 64 columns: the vector cores add the product to what was there."""

    @pl.program
    class CubeToVector:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 512], pl.FP32],
            c: pl.InOut[pl.Tensor[[32, 512], pl.FP32]],
        ) -> pl.Tensor[[32, 512], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                for block in pl.range(8):
                    product = pl.matmul(a, pl.slice(b, [64, 64], [0, block * 64]))
                    old = pl.slice(c, [32, 64], [0, block * 64])
                    c = pl.assemble(c, pl.add(old, product), [0, block * 64])
            return c

    return CubeToVector


def bidir(split: pl.SplitMode):
    """c += (a + 1) @ b: one operand goes to the cube, the product comes back."""

    @pl.program
    class BothWays:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 512], pl.FP32],
            c: pl.InOut[pl.Tensor[[32, 512], pl.FP32]],
        ) -> pl.Tensor[[32, 512], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                for block in pl.range(8):
                    grown = pl.add(a, 1.0)
                    product = pl.matmul(grown, pl.slice(b, [64, 64], [0, block * 64]))
                    old = pl.slice(c, [32, 64], [0, block * 64])
                    c = pl.assemble(c, pl.add(old, product), [0, block * 64])
            return c

    return BothWays


def v2c_reference(t):
    t["out"][:] = (t["a"] + t["b"]) @ (t["a"] - t["b"])


def c2v_reference(t):
    t["c"] += t["a"] @ t["b"]


def bidir_reference(t):
    t["c"] += (t["a"] + 1.0) @ t["b"]


CASES = {"V2C": (v2c, v2c_reference), "C2V": (c2v, c2v_reference), "BIDIR": (bidir, bidir_reference)}


@pytest.mark.pypto_platform("a2a3sim", "a5sim")
@pytest.mark.pypto_split("NONE", "UP_DOWN", "LEFT_RIGHT")
@pytest.mark.pypto_direction("V2C", "C2V", "BIDIR")
def test_cross_core(pypto_split, pypto_direction, pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    build, reference = CASES[str(pypto_direction)]
    compiled = pypto_compile(build(pypto_split))
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs))
