"""Programs for the tests of the harness."""

from __future__ import annotations

from typing import Any

import pypto.language as pl


def vector_add(rows: int = 32, columns: int = 64) -> Any:
    """out = a + b."""

    @pl.program
    class VectorAdd:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[rows, columns], pl.FP32],
            b: pl.Tensor[[rows, columns], pl.FP32],
            out: pl.Out[pl.Tensor[[rows, columns], pl.FP32]],
        ) -> pl.Tensor[[rows, columns], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.assemble(out, pl.add(a, b), [0, 0])
            return out

    return VectorAdd


def add_reference(t: dict[str, Any]) -> None:
    t["out"][:] = t["a"] + t["b"]


def mixed(split: Any = pl.SplitMode.UP_DOWN) -> Any:
    """c += a @ b in two column blocks: the product crosses from cube to vector."""

    @pl.program
    class Mixed:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 128], pl.FP32],
            c: pl.InOut[pl.Tensor[[32, 128], pl.FP32]],
        ) -> pl.Tensor[[32, 128], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                for block in pl.range(2):
                    product = pl.matmul(a, pl.slice(b, [64, 64], [0, block * 64]))
                    old = pl.slice(c, [32, 64], [0, block * 64])
                    c = pl.assemble(c, pl.add(old, product), [0, block * 64])
            return c

    return Mixed


def mixed_reference(t: dict[str, Any]) -> None:
    t["c"] += t["a"] @ t["b"]


def two_outputs() -> Any:
    """twice = 2 x, more = x + 1."""

    @pl.program
    class TwoOutputs:
        @pl.function
        def main(
            self,
            x: pl.Tensor[[16, 32], pl.FP32],
            twice: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
            more: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        ):
            with pl.at(level=pl.Level.CORE_GROUP):
                twice = pl.assemble(twice, pl.mul(x, 2.0), [0, 0])
                more = pl.assemble(more, pl.add(x, 1.0), [0, 0])
            return twice, more

    return TwoOutputs


def two_references(t: dict[str, Any]) -> None:
    t["twice"][:] = t["x"] * 2
    t["more"][:] = t["x"] + 1


OPEN_ROWS = pl.dynamic("M")


@pl.program
class OpenRows:
    """out = x + x for any number of rows, with a scalar factor."""

    @pl.function
    def main(
        self,
        x: pl.Tensor[[OPEN_ROWS, 32], pl.FP32],
        factor: pl.Scalar[pl.FP32],
        out: pl.Out[pl.Tensor[[OPEN_ROWS, 32], pl.FP32]],
    ) -> pl.Tensor[[OPEN_ROWS, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            tile = pl.slice(x, [8, 32], [0, 0])
            out = pl.assemble(out, pl.mul(tile, factor), [0, 0])
        return out
