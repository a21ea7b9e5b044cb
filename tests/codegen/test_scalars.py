"""Scalar expressions in kernels."""

from __future__ import annotations

import math
import struct
from dataclasses import replace

import pytest

from pytest_pypto.pypto.codegen import CodegenError
from pytest_pypto.pypto.codegen.pto.names import ConstantTable, NamePool, float_text
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import INDEX
from pytest_pypto.pypto.ir.span import Span
from tests.codegen.kernels import allocs, kernel, lines, tile


def _arith(
    body: str, params: str = "n: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32], i: pl.Scalar[pl.INT32]"
) -> list[str]:
    wanted = lines(kernel(body, params))
    return [w for w in wanted if "arith." in w and "arith.constant" not in w]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n + 1", ["%0 = arith.addi %arg2, %c1_index : index"]),
        ("pl.max(n, 0) // 4", ["%0 = arith.maxsi %arg2, %c0_index : index", "%1 = arith.divsi %0, %c4_index : index"]),
        ("n // 4", ["%0 = arith.floordivsi %arg2, %c4_index : index"]),
        (
            "n % 4",
            [
                "%0 = arith.floordivsi %arg2, %c4_index : index",
                "%1 = arith.muli %0, %c4_index : index",
                "%2 = arith.subi %arg2, %1 : index",
            ],
        ),
        ("pl.min(n, 7)", ["%0 = arith.minsi %arg2, %c7_index : index"]),
        ("pl.cast(i, pl.INDEX)", ["%0 = arith.index_cast %arg4 : i32 to index"]),
        ("-n", ["%0 = arith.subi %c0_index, %arg2 : index"]),
    ],
)
def test_index_arithmetic(expression: str, expected: list[str]) -> None:
    assert _arith(f"y: pl.Scalar[pl.INDEX] = {expression}") == expected


def test_loop_variables_are_not_negative_so_division_truncates() -> None:
    body = """
        for j in pl.range(8):
            y: pl.Scalar[pl.INDEX] = j // 3 + j % 2
    """
    assert _arith(body) == [
        "%0 = arith.divsi %j, %c3_index : index",
        "%1 = arith.remsi %j, %c2_index : index",
        "%2 = arith.addi %0, %1 : index",
    ]


def test_a_remainder_compared_with_zero_needs_no_floor() -> None:
    body = """
        if n % 2 != 0:
            pl.tensor.write(o, [0, 0], f)
    """
    assert _arith(body) == ["%0 = arith.remsi %arg2, %c2_index : index", "%1 = arith.cmpi ne, %0, %c0_index : index"]


def test_float_operators_and_comparisons() -> None:
    body = """
        y: pl.Scalar[pl.FP32] = f * 2.0 + 1.0
        if y < 0.5:
            pl.tensor.write(o, [0, 0], y)
    """
    assert _arith(body) == [
        "%0 = arith.mulf %arg3, %cst_3 : f32",
        "%1 = arith.addf %0, %cst_4 : f32",
        "%2 = arith.cmpf olt, %1, %cst_5 : f32",
    ]


def test_truth_values_combine_as_bits() -> None:
    body = """
        if 1 < n and n < 9 or n == 20:
            pl.tensor.write(o, [0, 0], f)
    """
    assert [w.split(" = ")[1] for w in _arith(body)] == [
        "arith.cmpi slt, %c1_index, %arg2 : index",
        "arith.cmpi slt, %arg2, %c9_index : index",
        "arith.andi %0, %1 : i1",
        "arith.cmpi eq, %arg2, %c20_index : index",
        "arith.ori %2, %3 : i1",
    ]


def test_an_operator_without_instruction_is_refused_with_the_place_and_the_next_step() -> None:
    func = kernel("y: pl.Scalar[pl.INDEX] = n + 1", "n: pl.Scalar[pl.INDEX]")
    (assign, *rest) = s.stmts_of(func.body)
    assert isinstance(assign, s.AssignStmt)
    power = e.Pow(func.params[1], e.index(2), INDEX, Span("kernel.py", 7, 11))
    broken = func.with_(body=s.seq([replace(assign, value=power), *rest]))
    with pytest.raises(CodegenError, match=r"^kernel.py:7:11: kernel 'k': operator '\*\*' on index .* as a scalar"):
        lines(broken)


@pytest.mark.parametrize("value", [1.0, 1e-6, -2.5, 1.2566370614359172e-05, 3.4028234663852886e38, 1e-45])
def test_float_constants_keep_their_bits(value: float) -> None:
    assert struct.pack("<d", float(float_text(value, "f32"))) == struct.pack("<d", value)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (math.inf, "f32", "0x7F800000"),
        (-math.inf, "f32", "0xFF800000"),
        (math.inf, "bf16", "0x7F80"),
        (-math.inf, "f16", "0xFC00"),
    ],
)
def test_infinities_are_bit_patterns(value: float, kind: str, expected: str) -> None:
    assert float_text(value, kind) == expected


def test_nan_is_a_bit_pattern_of_a_nan() -> None:
    bits = int(float_text(math.nan, "f32"), 16)
    assert math.isnan(struct.unpack("<f", struct.pack("<I", bits))[0])


def test_constants_are_declared_once_and_named_after_their_value() -> None:
    table = ConstantTable(NamePool())
    assert table.integer(5, "index") == "%c5_index" == table.integer(5, "index")
    assert table.integer(-5, "i32") == "%cn5_i32"
    assert table.floating(2.0, "f32") == "%cst_2"
    assert table.integer(7, "ui32") == "%c7_ui32"
    assert table.lines == [
        "%c5_index = arith.constant 5 : index",
        "%cn5_i32 = arith.constant -5 : i32",
        "%cst_2 = arith.constant 2.00000000000000000e+00 : f32",
        "%0 = arith.constant 7 : i32",
        "%c7_ui32 = builtin.unrealized_conversion_cast %0 : i32 to ui32",
    ]


def test_the_first_float_of_an_empty_table_has_no_number() -> None:
    assert ConstantTable(NamePool()).floating(1.0, "f32") == "%cst"


def test_names_fall_back_to_numbers_and_are_cleaned() -> None:
    names = NamePool()
    assert [names.take("x"), names.take("x"), names.take("a b"), names.take(), names.take("1x")] == [
        "%x",
        "%0",
        "%a_b",
        "%1",
        "%2",
    ]


def test_places_and_extents_are_indices_whatever_type_they_have() -> None:
    """`scf.for`, windows, valid extents and array places take `index` operands only."""
    kind = tile(1, 0).replace("pl.Mem.Vec", "pl.Mem.Vec, pl.TileView(valid_shape=[i, 32])")
    body = f"""
    {allocs(1)}
    a: pl.Array[4, pl.INT32] = pl.array.create(4, pl.INT32)
    a1: pl.Array[4, pl.INT32] = pl.array.update_element(a, i, 5)
    for j in pl.range(0, i, i):
        t: {kind} = pl.tile.load(x, [i, 0], [16, 32], [i, 32], target_memory=pl.Mem.Vec)
        o1 = pl.tile.store(t, [i, 0], o)
    y: pl.Scalar[pl.FP32] = pl.tensor.read(x, [i, i])
    """
    found = lines(kernel(body, "i: pl.Scalar[pl.INT32]"))
    wrong = [line for line in found if "%arg2" in line and "index_cast" not in line]
    assert len([line for line in found if "index_cast" in line]) >= 8
    assert not [line for line in wrong if "func.func" not in line]


def test_elements_of_an_array_have_its_type() -> None:
    body = """
    a: pl.Array[4, pl.INT32] = pl.array.create(4, pl.INT32)
    for j in pl.range(4):
        a1: pl.Array[4, pl.INT32] = pl.array.update_element(a, j, j)
    """
    found = lines(kernel(body))
    assert next(line for line in found if "local_array_set" in line).endswith("%0 : !pto.local_array<4xi32>, i32")
    assert "%0 = arith.index_cast %j : index to i32" in found


def test_carried_and_merged_numbers_keep_the_type_of_their_variable() -> None:
    body = """
    for j, (s,) in pl.range(4, init_values=(i,)):
        if j > 2:
            r: pl.Scalar[pl.INT32] = pl.yield_(s)
        else:
            r: pl.Scalar[pl.INT32] = pl.yield_(j + 1)
        q: pl.Scalar[pl.INT32] = pl.yield_(r)
    """
    found = lines(kernel(body, "i: pl.Scalar[pl.INT32]"))
    yields = [line for line in found if line.startswith("scf.yield")]
    assert len(yields) == 3
    assert all(line.endswith(": i32") for line in yields)
    assert any("arith.index_cast" in line and "index to i32" in line for line in found)
