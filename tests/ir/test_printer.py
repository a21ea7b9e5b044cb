"""Printed form of what the language itself never writes: awkward names, constants, precedence, special operators."""

from __future__ import annotations

import math

import pypto.language as pl
import pytest
from pypto import DataType, ir

SPAN = ir.Span.unknown()
INDEX = ir.ScalarType(DataType.INDEX)
A, B, C = (ir.Var(n, INDEX, SPAN) for n in "abc")
P, Q = (ir.Var(n, ir.ScalarType(DataType.BOOL), SPAN) for n in "pq")
DT = DataType.INDEX


def const(value: int, dtype: DataType = DT) -> ir.ConstInt:
    return ir.ConstInt(value, dtype, SPAN)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (A - (B - C), "a - (b - c)"),
        ((A - B) - C, "a - b - c"),
        (A * (B + C), "a * (b + c)"),
        ((A * B) // C, "a * b // c"),
        (A % (B * C), "a % (b * c)"),
        (ir.Neg(A + B, DT, SPAN), "-(a + b)"),
        (ir.Not(A > B, DataType.BOOL, SPAN), "not a > b"),
        (ir.And(P, ir.Or(P, Q, DataType.BOOL, SPAN), DataType.BOOL, SPAN), "p and (p or q)"),
        (ir.Or(ir.And(P, Q, DataType.BOOL, SPAN), P, DataType.BOOL, SPAN), "p and q or p"),
        ((A & B) << C, "(a & b) << c"),
        (A | (B & C), "a | b & c"),
        (ir.Pow(A, ir.Pow(B, C, DT, SPAN), DT, SPAN), "a ** b ** c"),
        (ir.Pow(ir.Pow(A, B, DT, SPAN), C, DT, SPAN), "(a ** b) ** c"),
        (ir.Xor(P, Q, DataType.BOOL, SPAN), "p ^ q"),
        (ir.Abs(A, DT, SPAN), "abs(a)"),
        (ir.cast(A, DataType.INT32, SPAN), "pl.cast(a, pl.INT32)"),
        (ir.min_(A, ir.max_(B, const(3), SPAN), SPAN), "pl.min(a, pl.max(b, 3))"),
        (const(5), "5"),
        (const(-3), "-3"),
        (const(5, DataType.INT32), "pl.const(5, pl.INT32)"),
        (ir.Add(const(2), const(3), DT, SPAN), "pl.const(2, pl.INDEX) + pl.const(3, pl.INDEX)"),
        (A + ir.Mul(const(2), const(3), DT, SPAN), "a + pl.const(2, pl.INDEX) * pl.const(3, pl.INDEX)"),
        (ir.ConstFloat(0.5, DataType.FP16, SPAN), "pl.const(0.5, pl.FP16)"),
        (ir.ConstFloat(math.inf, DataType.FP32, SPAN), 'float("inf")'),
        (ir.ConstFloat(-math.inf, DataType.BF16, SPAN), 'pl.const(float("-inf"), pl.BF16)'),
        (ir.MakeTuple([A, const(2)], SPAN), "[a, 2]"),
        (ir.TupleGetItemExpr(ir.MakeTuple([A, B], SPAN), 1, SPAN), "[a, b][1]"),
    ],
)
def test_expression(expr: ir.Expr, text: str) -> None:
    assert str(expr) == text


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16])
def test_numbers_without_a_literal_load_again(value: float, dtype: DataType) -> None:
    ib = ir.IRBuilder()
    with ib.program("P") as p:
        with ib.function("f") as f:
            ib.return_stmt(ib.let("y", ir.ConstFloat(value, dtype, SPAN)))
        p.add_function(f.get_result())
    ir.assert_structural_equal(p.get_result(), pl.parse(str(p.get_result())))


def test_names_are_made_legal_and_distinct() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        for hint in ("a", "a", "a_1", "a.b", "a_b", "lambda", "1x", "pl"):
            ib.let(hint, 1)
    names = [line.strip().partition(":")[0] for line in str(f.get_result()).splitlines()[2:]]
    assert names == ["a", "a_2", "a_1", "a_b", "a_b_1", "lambda_", "_1x", "pl_"]
    assert len(set(names)) == len(names)


def test_a_used_name_that_nothing_defines_is_marked() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        ib.return_stmt(ir.Var("ghost", INDEX, SPAN))
    assert str(f.get_result()).endswith("return ghost__FREE_VAR")


def test_order_of_functions() -> None:
    code = (
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function\n    def z(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n"
        "    @pl.function\n    def a(self, x: pl.Tensor[[4], pl.FP32]):\n        return self.m(x)\n"
        "    @pl.function\n    def m(self, x: pl.Tensor[[4], pl.FP32]):\n        return self.z(x)\n"
    )
    text = str(pl.parse(code))
    assert [line.split("(")[0].split()[-1] for line in text.splitlines() if "def " in line] == ["z", "m", "a"]
    cyclic = code.replace("return x", "return self.a(x)")
    text = str(pl.parse(cyclic))
    assert [line.split("(")[0].split()[-1] for line in text.splitlines() if "def " in line] == ["a", "m", "z"]


def test_self_is_left_out_of_workers() -> None:
    code = (
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.AIV)\n    def k(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n"
        "    @pl.function\n    def m(self, x: pl.Tensor[[4], pl.FP32]):\n        return self.k(x)\n"
    )
    lines = [line.strip() for line in str(pl.parse(code)).splitlines() if "def " in line]
    assert lines == ["def k(x: pl.Tensor[[4], pl.FP32]):", "def m(self, x: pl.Tensor[[4], pl.FP32]):"]


def test_format_callback() -> None:
    ir.register_format_callback(str.upper)
    try:
        assert ir.python_print(A + 1) == "A + 1"
        assert ir.python_print(A + 1, format=False) == "a + 1"
    finally:
        ir.register_format_callback(None)
    assert ir.python_print(A + 1) == "a + 1"


def test_concise_leaves_annotations_out() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        ib.let("y", 1)
    assert ir.python_print(f.get_result(), concise=True).endswith("    y = 1")


def test_not_ir() -> None:
    with pytest.raises(TypeError, match="python_print expects a program, function, statement, expression or type"):
        ir.python_print(3)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (ir.ScalarType(DT), "pl.Scalar[pl.INDEX]"),
        (ir.ArrayType(DataType.INT32, 4), "pl.Array[4, pl.INT32]"),
        (ir.TupleType([]), "pl.Tuple[()]"),
        (ir.PtrType.get(), "pl.Ptr"),
        (ir.UnknownType.get(), "pl.UnknownType"),
        (ir.CommCtxType.get(), "pld.CommCtxType"),
        (ir.TensorType([A // 2, 64], DataType.FP32), "pl.Tensor[[a // pl.const(2, pl.INDEX), 64], pl.FP32]"),
        (
            ir.TensorType([4], DataType.FP32, None, ir.TensorView([], ir.TensorLayout.NZ, [2], ir.PadValue.zero)),
            "pl.Tensor[[4], pl.FP32, pl.TensorView(valid_shape=[2], stride=[], layout=pl.TensorLayout.NZ, "
            "pad=pl.PadValue.zero)]",
        ),
        (ir.TileType([8, 16], DataType.FP32), "pl.Tile[[8, 16], pl.FP32]"),
        (
            ir.TileType([8, 16], DataType.FP32, ir.MemRef("mem_acc_1", 0, 64), None, ir.MemorySpace.Acc),
            'pl.Tile[[8, 16], pl.FP32, pl.MemRef("mem_acc_1", pl.const(0, pl.INT64), 64), pl.Mem.Acc]',
        ),
        (
            ir.TileType([8, 1], DataType.FP32, None, ir.TileView(), ir.MemorySpace.Vec),
            "pl.Tile[[8, 1], pl.FP32, pl.Mem.Vec, pl.TileView(blayout=pl.TileLayout.row_major)]",
        ),
    ],
)
def test_type(type_: ir.Type, text: str) -> None:
    assert str(type_) == text


def test_explicit_layout() -> None:
    tile = ir.TileType([8, 16], DataType.FP32, None, None, ir.MemorySpace.Acc)
    assert ir.python_print_type(tile, explicit_layout=True) == (
        "pl.Tile[[8, 16], pl.FP32, pl.Mem.Acc, pl.TileView(blayout=pl.TileLayout.col_major, "
        "slayout=pl.TileLayout.row_major, fractal=1024)]"
    )


def test_the_developer_s_view_of_a_node_names_its_fields() -> None:
    span = ir.Span("f.py", 2, 3)
    assert repr(ir.BreakStmt(span=span)).startswith("BreakStmt(span=Span(filename='f.py', begin_line=2, ")
    shown = repr(ir.Add(ir.Var("n", INDEX, span), ir.ConstInt(1, DT, span), DT, span))
    assert shown.startswith("Add(left=Var(name_hint='n', type=ScalarType(")
    assert "right=ConstInt(value=1, " in shown
