"""Source of a test module that inner sessions run."""

ADD = """
import pypto.language as pl
import pytest


def program(rows=32):
    @pl.program
    class Add:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[rows, 64], pl.FP32],
            b: pl.Tensor[[rows, 64], pl.FP32],
            out: pl.Out[pl.Tensor[[rows, 64], pl.FP32]],
        ) -> pl.Tensor[[rows, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.assemble(out, pl.add(a, b), [0, 0])
            return out

    return Add


def reference(t):
    t["out"][:] = t["a"] + t["b"]


def off_by_one(t):
    t["out"][:] = t["a"] + t["b"]
    t["out"][5, 7] += 1.0

"""

MIXED = """
import pypto.language as pl
import pytest


def program(split):
    @pl.program
    class Mixed:
        @pl.function
        def main(
            self,
            a: pl.Tensor[[32, 64], pl.FP32],
            b: pl.Tensor[[64, 64], pl.FP32],
            c: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
        ) -> pl.Tensor[[32, 64], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(split)]):
                c = pl.assemble(c, pl.add(c, pl.matmul(a, b)), [0, 0])
            return c

    return Mixed


def reference(t):
    t["c"] += t["a"] @ t["b"]

"""
