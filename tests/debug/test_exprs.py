"""Scalar expressions, tuples, symbols and calls."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import FunctionType
from pytest_pypto.pypto.ir.program import Function, Program

from .build import (
    F32,
    I32,
    I64,
    INDEX,
    Body,
    call,
    code_of,
    function,
    invoke,
    program,
    run,
    scalar,
    space_of,
    tensor,
    tile,
)

BOOL = DataType.BOOL


def value_of(x: e.Expr) -> Any:
    return run(Function("f", [], [x.type], s.ReturnStmt((x,))))


BINARY: dict[type[e.BinaryExpr], Any] = {
    e.Add: lambda a, b: a + b,
    e.Sub: lambda a, b: a - b,
    e.Mul: lambda a, b: a * b,
    e.FloorDiv: lambda a, b: a // b,
    e.FloorMod: lambda a, b: a % b,
    e.FloatDiv: lambda a, b: a / b,
    e.Min: min,
    e.Max: max,
    e.Eq: lambda a, b: a == b,
    e.Ne: lambda a, b: a != b,
    e.Lt: lambda a, b: a < b,
    e.Le: lambda a, b: a <= b,
    e.Gt: lambda a, b: a > b,
    e.Ge: lambda a, b: a >= b,
    e.BitAnd: lambda a, b: a & b,
    e.BitOr: lambda a, b: a | b,
    e.BitXor: lambda a, b: a ^ b,
}


@pytest.mark.parametrize("cls", BINARY)
@given(a=st.integers(-100, 100), b=st.integers(-100, 100).filter(bool))
@settings(deadline=None, max_examples=10)
def test_binary(cls: type[e.BinaryExpr], a: int, b: int) -> None:
    assert value_of(cls(e.index(a), e.index(b), INDEX)) == BINARY[cls](a, b)


def test_other_operators() -> None:
    two, three = e.index(2), e.index(3)
    t, f = e.ConstBool(True), e.ConstBool(False)
    assert value_of(e.Pow(two, three, INDEX)) == 8
    assert value_of(e.BitShiftLeft(three, two, INDEX)) == 12
    assert value_of(e.BitShiftRight(e.index(-8), two, INDEX)) == -2
    assert value_of(e.Neg(three, INDEX)) == -3
    assert value_of(e.Abs(e.index(-3), INDEX)) == 3
    assert value_of(e.BitNot(three, INDEX)) == -4
    assert value_of(e.And(t, f, BOOL)) is False
    assert value_of(e.Or(t, f, BOOL)) is True
    assert value_of(e.Xor(t, t, BOOL)) is False
    assert value_of(e.Not(f, BOOL)) is True


def test_precedence_is_explicit() -> None:
    x = e.Mul(e.Add(e.index(1), e.index(2), INDEX), e.Sub(e.index(7), e.Neg(e.index(1), INDEX), INDEX), INDEX)
    assert value_of(x) == 24


@pytest.mark.parametrize(
    "value", [0.1, 1e-45, 3.4028234663852886e38, 1.2566370614359172e-05, -0.0, math.inf, -math.inf]
)
def test_float_constants_keep_every_bit(value: float) -> None:
    assert struct.pack("<d", value_of(e.ConstFloat(value, F32))) == struct.pack("<d", value)


def test_nan_constants() -> None:
    assert math.isnan(value_of(e.ConstFloat(math.nan, F32)))


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        (300, DataType.INT8, 44),
        (-1, DataType.UINT8, 255),
        (2**31, I32, -(2**31)),
        (2**63, DataType.UINT64, 2**63),
        (-1, DataType.UINT64, 2**64 - 1),
        (7, F32, 7.0),
        (2**24 + 1, F32, float(2**24)),
        (0, BOOL, False),
        (5, BOOL, True),
    ],
)
def test_integer_casts(value: int, dtype: DataType, want: Any) -> None:
    have = value_of(e.Cast(e.ConstInt(value, I64), dtype))
    assert have == want
    assert type(have) is type(want)


@pytest.mark.parametrize(
    ("value", "dtype", "want"),
    [
        (2.7, I32, 2),
        (-2.7, I32, -2),
        (1e30, I32, 2**31 - 1),
        (-1e30, DataType.INT8, -128),
        (math.nan, I64, 0),
        (math.inf, DataType.UINT8, 255),
        (0.1, DataType.FP16, float(np.float16(0.1))),
        (1.00390625, DataType.BF16, 1.0),
        (1.06, DataType.FP8E4M3FN, 1.0),
    ],
)
def test_float_casts(value: float, dtype: DataType, want: Any) -> None:
    assert value_of(e.Cast(e.ConstFloat(value, F32), dtype)) == want


def test_casts_that_change_nothing_are_not_written() -> None:
    n = e.Var("n", scalar(I32))
    text = code_of(Function("f", [n], [scalar()], s.ReturnStmt((e.Cast(n, INDEX),))))
    assert "return n" in text


def test_tuples() -> None:
    a, b = e.index(1), e.index(2)
    pair = e.MakeTuple((a, b))
    assert value_of(pair) == (1, 2)
    assert value_of(e.MakeTuple((a,))) == (1,)
    assert value_of(e.TupleGetItemExpr(pair, 1)) == 2


def test_scalars_may_arrive_as_tensors_of_rank_zero() -> None:
    def body(b: Body, x: e.Var, n: e.Var) -> None:
        b.ret(b.op("y", "tile.load", x, (n, 0), (2, 2), (2, 2)))

    f = function("f", [("x", tensor((4, 2))), ("n", scalar())], body)
    x = torch.arange(8.0).reshape(4, 2)
    assert torch.equal(run(f, x, torch.tensor(1)), x[1:3])


DYNAMIC = """
M = pl.dynamic("M")


@pl.program
class P:
    @pl.function{kind}
    def main(self, x: pl.Tensor[[M, 8], pl.FP32]) -> pl.Tensor[[M, 8], pl.FP32]:
        t = pl.create_tensor([M, 8], dtype=pl.FP32)
        for i in pl.range(2):
            t = pl.add(x, 1.0)
        return t
"""


@pytest.mark.parametrize("kind", ["", "(type=pl.FunctionType.Orchestration)", "(type=pl.FunctionType.InCore)"])
@pytest.mark.parametrize("rows", [7, 16])
def test_symbols_are_bound_where_they_are_read(kind: str, rows: int) -> None:
    from pytest_pypto.pypto.language.parser import parse

    p = parse("import pypto.language as pl\n" + DYNAMIC.format(kind=kind))
    x = torch.randn(rows, 8)
    assert torch.equal(run(p, x), x + 1)
    assert "M = x.shape[0]" in code_of(p)


def test_host_programs_bind_every_extent() -> None:
    m = e.Var("M", scalar())
    x = e.Var("x", tensor((m, 4)))
    f = Function("main", [x], [x.type], s.ReturnStmt((x,)), type=FunctionType.Orchestration)
    kernel = Function("k", [x], [x.type], s.ReturnStmt((x,)), type=FunctionType.InCore)
    assert "M = x.shape[0]" in code_of(f)
    assert "M = x.shape[0]" not in code_of(kernel)


def test_a_symbol_that_is_also_a_parameter_is_the_parameter() -> None:
    m = e.Var("n", scalar())

    def body(b: Body, x: e.Var, n: e.Var) -> None:
        b.ret(b.op("t", "tensor.create", (m, 4), dtype=F32))

    f = function("f", [("x", tensor((m, 4))), ("n", scalar())], body)
    assert run(f, torch.zeros(5, 4), 3).shape == (3, 4)


def test_calls_pass_tensors_and_results() -> None:
    ty = tensor((2, 2))

    def helper(b: Body, a: e.Var) -> None:
        b.ret(b.op("p", "tensor.adds", a, 1.0), b.op("q", "tensor.muls", a, 2.0))

    def main(b: Body, a: e.Var) -> None:
        from pytest_pypto.pypto.ir.types import TupleType

        both = b.let("both", invoke("helper", [a], TupleType((ty, ty))))
        b.ret(b.let("r", call("tensor.add", [e.TupleGetItemExpr(both, 0), e.TupleGetItemExpr(both, 1)])))

    p = Program([function("helper", [("a", ty)], helper), function("main", [("a", ty)], main)], "P")
    assert run(p, torch.ones(2, 2)).tolist() == [[4.0, 4.0]] * 2


def test_results_of_a_kernel_that_returns_nothing_are_its_outputs() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[2, 2], pl.FP32], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]):
    t = pl.load(a, [0, 0], [2, 2])
    u = pl.store(pl.add(t, 1.0), [0, 0], o)
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[2, 2], pl.FP32], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    self.k(a, o)
    return o
"""
    )
    out = torch.zeros(2, 2)
    assert run(p, torch.ones(2, 2), out) is out
    assert out.tolist() == [[2.0, 2.0]] * 2


@pytest.mark.parametrize("given", [torch.float64, torch.int32])
def test_checks_name_the_argument(given: torch.dtype) -> None:
    def body(b: Body, a: e.Var) -> None:
        b.ret(b.op("t", "tensor.neg", a))

    f = function("f", [("a", tensor((2, 3)))], body)
    with pytest.raises(AssertionError, match=rf"Dtype mismatch for a: expected torch.float32, got {given}"):
        run(f, torch.zeros(2, 3, dtype=given))
    with pytest.raises(AssertionError, match="Expected a to be a Tensor, got list"):
        run(f, [1.0])
    with pytest.raises(AssertionError, match=r"Shape mismatch for t: expected \(2, 3\), got \(4, 3\)"):
        run(f, torch.zeros(4, 3))
    assert "_chk" not in code_of(f)


def test_checks_of_dynamic_shapes() -> None:
    m = e.Var("M", scalar())

    def body(b: Body, a: e.Var) -> None:
        b.ret(b.op("t", "tensor.neg", a))

    f = function("f", [("a", tensor((m, 16)))], body)
    assert run(f, torch.zeros(9, 16)).shape == (9, 16)
    with pytest.raises(AssertionError, match="Dim 1 mismatch for t: expected 16, got 8"):
        run(f, torch.zeros(9, 8))
    with pytest.raises(AssertionError, match="Rank mismatch for t: expected 2D, got 3D"):
        run(f, torch.zeros(1, 9, 16))


def test_carried_values_are_checked() -> None:
    x = e.Var("x", tile((2, 2)))
    arg, out = e.IterArg("acc", tile((2, 2)), x), e.Var("r", tile((2, 3)))
    loop = s.ForStmt(e.Var("i", scalar()), e.index(0), e.index(1), e.index(1), (arg,), s.YieldStmt((x,)), (out,))
    f = Function("f", [x], [], s.SeqStmts((loop, s.ReturnStmt((out,)))))
    with pytest.raises(AssertionError, match=r"Shape mismatch for acc: expected \(2, 3\)"):
        run(f, torch.zeros(2, 2))


def test_traces_and_source_comments() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, a: pl.Tensor[[2, 2], pl.FP32], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    t = pl.load(a, [0, 0], [2, 2])
    o = pl.store(pl.add(t, 1.0), [0, 0], o)
    return o
"""
    )
    seen: list[tuple[str, str, float]] = []
    space = space_of(p, trace=True)
    space["_TRACE"] = lambda function, name, value: seen.append((function, name, value[0, 0].item()))
    space["main"](torch.ones(2, 2), torch.zeros(2, 2))
    assert seen == [("main", "t", 1.0), ("main", "o", 2.0)]
    text = code_of(p, source_positions=True)
    assert any("_tile_load" in line and "# <string>:" in line for line in text.splitlines())


def test_the_text_is_the_same_every_time() -> None:
    """In this process, whose hash seed is what it is, and in one with a known other seed."""
    import os
    import subprocess
    import sys

    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    source = "from tests.debug.test_exprs import sample_text; print(sample_text())"
    other = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONHASHSEED": seed, "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert other == sample_text() + "\n" == sample_text() + "\n"


def sample_text() -> str:
    """The script of a small program with several functions and a group."""
    from pytest_pypto.pypto.debug import torch_codegen

    from .test_groups import UP_DOWN_BOTH

    return torch_codegen(program(UP_DOWN_BOTH), check_shapes=True)


def test_tiles_of_partial_parameters_are_tagged() -> None:
    def body(b: Body, a: e.Var) -> None:
        b.ret(b.op("t", "tile.neg", a))

    f = function("f", [("a", tile((4, 4), F32, (2, 3)))], body)
    x = torch.ones(4, 4)
    assert run(f, x)._pypto_valid_shape == (2, 3)
    assert not hasattr(x, "_pypto_valid_shape")
