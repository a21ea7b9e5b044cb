"""Programs that the runtime tests compile."""

from __future__ import annotations

import pypto.language as pl
import torch


@pl.program
class HostSum:
    """Runs on the host alone: no kernels."""

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
        return n + m


@pl.program
class AddOne:
    """`out = x + 1`, one vector kernel."""

    @pl.function
    def main(
        self, x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(x, 1.0), [0, 0])
        return out


@pl.program
class Scale:
    """`out = x * s` with a scalar parameter, `total += x`."""

    @pl.function
    def main(
        self,
        x: pl.Tensor[[32, 64], pl.FP32],
        s: pl.Scalar[pl.FP32],
        total: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
        out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.mul(x, s), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.assemble(total, pl.add(total, x), [0, 0])
        return out


def sample() -> torch.Tensor:
    """A [32, 64] tensor of distinct values."""
    return torch.arange(32 * 64, dtype=torch.float32).reshape(32, 64)
