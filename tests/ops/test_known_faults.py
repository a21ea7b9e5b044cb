"""Faults reported against real operator type rules; each test fails when the fault is made again."""

from __future__ import annotations

from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import FP32, INDEX
from pytest_pypto.pypto.ir.op_table import all_ops
from pytest_pypto.pypto.language.op.dispatch import call_op
from pytest_pypto.pypto.language.parser.diagnostics import InvalidOperationError
from tests.ops.vectors import Reader, describe, infer

UNARY = sorted(
    f"{level}.{name}"
    for level in ("tensor", "tile")
    for name in ("neg", "exp", "abs", "sqrt", "rsqrt", "recip", "log", "relu")
    if f"{level}.{name}" in all_ops()
)


def _x(op: str, valid: str) -> str:
    return f"T[8,16]fp32 v[{valid}]" if op.startswith("tensor") else f"t[8,16]fp32 v[{valid}]"


@pytest.mark.parametrize("valid", ["8,4", "5,16", "n,4"])
@pytest.mark.parametrize("op", UNARY)
def test_unary_operators_keep_the_valid_extent(op: str, valid: str) -> None:
    """pypto#1395: the result was valid in the whole box."""
    assert describe(infer(op, [_x(op, valid)]))["valid"] == [int(v) if v.isdigit() else v for v in valid.split(",")]


@pytest.mark.parametrize("op", ["tensor.cast", "tile.cast"])
def test_conversion_keeps_the_valid_extent(op: str) -> None:
    """pypto#1395."""
    assert describe(infer(op, [_x(op, "8,4")], {"target_type": "fp16"}))["valid"] == [8, 4]


@pytest.mark.parametrize("op", ["tensor.adds", "tile.muls"])
def test_an_operand_that_is_a_number_leaves_padding_alone(op: str) -> None:
    """pypto#2390: padding became data."""
    assert describe(infer(op, [_x(op, "5,16"), "f1.0"]))["valid"] == [5, 16]


@pytest.mark.parametrize("level", ["tensor", "tile"])
def test_row_reductions_have_as_many_results_as_valid_rows(level: str) -> None:
    """pypto#1412: rows without data were summed."""
    scratch = [] if level == "tensor" else ["t[8,32]fp32"]
    one = "T[8,32]fp32 v[4,32]" if level == "tensor" else "t[8,32]fp32 v[4,32]"
    found = describe(infer(f"{level}.row_sum", [one, *scratch]))
    assert (found["shape"], found["valid"]) == ([8, 1], [4, 1])


def test_column_reductions_have_as_many_results_as_valid_columns() -> None:
    """pypto#1412."""
    assert describe(infer("tensor.col_sum", ["T[8,32]fp32 v[8,20]"]))["valid"] == [1, 20]


@pytest.mark.parametrize("one", ["T[1,8,16]fp32 v[1,5,16]", "t[1,8,16]fp32 v[1,5,16]"])
def test_reshape_keeps_the_valid_region(one: str) -> None:
    """pypto#2149."""
    op = "tensor.reshape" if one[0] == "T" else "tile.reshape"
    assert describe(infer(op, [one, "(8,16)"]))["valid"] == [5, 16]


def test_a_slice_over_the_edge_can_name_its_padding() -> None:
    """pypto#2363: the padding was reachable only in the long form."""
    x = Reader().operand("T[10,16]fp32")
    made = call_op("slice", [x, [8, 16], [8, 0]], {"valid_shape": [2, 16], "pad_value": pl.PadValue.min})
    assert isinstance(made.type, t.TensorType)
    view = made.type.tensor_view
    assert view is not None
    assert (describe(made.type)["valid"], view.pad) == ([2, 16], pl.PadValue.min)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("tile.set_validshape", ["t[64,64]fp32", "i64", "i68"]),
        ("tensor.set_validshape", ["T[64,64]fp32", "i64", "i68"]),
        ("tensor.slice", ["T[64,64]fp32", "(64,64)", "(0,0)", "(64,68)"]),
        ("tile.load", ["T[64,64]fp32", "(0,0)", "(64,64)", "(64,68)"]),
    ],
)
def test_a_valid_extent_larger_than_the_box_is_refused_at_once(op: str, args: list[str]) -> None:
    """pypto#2037: it lived on until a late pass."""
    with pytest.raises(ValueError, match=r"valid|window"):
        infer(op, args, {"target_memory": "Vec"} if op == "tile.load" else {})


def test_a_narrow_product_keeps_its_box() -> None:
    """pypto#1535: the written box was narrowed as well."""
    found = describe(infer("tile.matmul", ["t[32,64]fp16 v[5,64] @Left", "t[64,48]fp16 v[64,40] @Right"]))
    assert (found["shape"], found["valid"]) == ([32, 48], [5, 40])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_bytes_are_accumulated_in_32_bits(dtype: str) -> None:
    """A product of 64 times 100 * 100 does not fit in a byte."""
    found = describe(infer("tile.matmul", [f"t[16,64]{dtype} @Left", f"t[64,16]{dtype} @Right"]))
    assert found["dtype"] == "int32"


def test_gather_doubles_the_axis_that_the_lanes_split() -> None:
    """pypto#2129: another axis, or an operand that was whole, was doubled."""
    assert describe(infer("tile.aic_gather", ["t[1,8]fp32"], {"split": 2}))["shape"] == [1, 16]
    assert describe(infer("tile.aic_gather", ["t[1,8]fp32"], {"split": 1}))["shape"] == [2, 8]
    assert describe(infer("tile.aic_gather", ["t[1,8]fp32"], {"split": 0}))["shape"] == [1, 8]


CROSS = ["aiv_shard", "aic_gather", "tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv"]


@pytest.mark.parametrize("split", [7, -1, "up", 0.5])
@pytest.mark.parametrize("name", CROSS)
def test_unknown_split_codes_are_refused(name: str, split: Any) -> None:
    """pypto#1117: they were taken as no split."""
    args = [] if "pop" in name else [Reader().operand("t[16,32]fp32")]
    with pytest.raises((TypeError, ValueError), match="split"):
        call_op(f"tile.{name}", args, {"split": split})


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [("sync_src", {"set_pipe": 9, "wait_pipe": 1, "event_id": 0}), ("sync_set", {"pipe": -1, "event_id": 0})],
)
def test_unknown_pipes_are_refused(name: str, kwargs: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"pipe 0 \(MTE1\), .* but got (9|-1)"):
        infer(f"system.{name}", [], kwargs)


@pytest.mark.parametrize("name", ["and", "or", "not"])
def test_operators_named_like_words_of_python(name: str) -> None:
    """pypto#2226: their printed form could not be read."""
    made = call_op(f"tile.{name}_", [Reader().operand("t[4,8]int16")] * (1 if name == "not" else 2), {})
    assert isinstance(made, e.Call)
    assert (made.op.name, str(made).split("(")[0]) == (f"tile.{name}", f"pl.tile.{name}_")


def test_constants_keep_their_type() -> None:
    """pypto#1709: an INT64 constant written to an INT64 tensor became INDEX."""
    x = Reader().operand("T[4]int64")
    made = call_op("write", [x, [0], 5], {})
    assert isinstance(made, e.Call)
    assert made.args[-1].type == t.ScalarType(pl.INT64)


def test_maximum_with_a_number() -> None:
    """The scalar forms of minimum and maximum exist and keep the shape."""
    made = call_op("maximum", [Reader().operand("t[4,8]fp32"), 0.0], {})
    assert str(made) == "pl.tile.maximums(x, 0.0)"


def test_extents_that_are_sums_are_not_folded() -> None:
    """pypto#1731: `32 + 32` was folded or refused, so the text read back was another tree."""
    total = e.Add(e.index(32), e.index(32), INDEX)
    made = call_op("exp", [e.Var("x", t.TensorType((total,), FP32))], {})
    assert isinstance(made.type, t.TensorType)
    assert made.type.shape[0] is total


@pytest.mark.parametrize(
    "line",
    [
        "pl.load(x, [0, 0], [-4, 16])",
        "pl.slice(x, [-4, 16], [0, 0])",
        "pl.reshape(x, [-4, -8])",
        "pl.create_tensor([-4, 16], dtype=pl.FP32)",
        "pl.full([-4, 16], pl.FP32, 0.0)",
        "pl.tensor.fillpad_expand(x, [-4, 16])",
        "pl.tile.create([-4, 16], dtype=pl.FP32)",
        "pl.tile.full([-4, 16], pl.FP32, 0.0)",
        "pl.tile.slice(pl.load(x, [0, 0], [2, 16]), [-2, 16], [0, 0])",
        "pl.tile.reshape(pl.load(x, [0, 0], [2, 16]), [-4, -8])",
        "pl.tile.extract(pl.load(x, [0, 0], [2, 16]), 0, 0, [-2, 16], target_memory=pl.Mem.Left)",
    ],
)
def test_a_negative_extent_is_refused_where_it_is_written(line: str) -> None:
    """It came through all passes, and overflowed when memory was taken for it."""
    head = "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
    with pytest.raises(
        InvalidOperationError, match=r"requires (extents of at least 0|a shape of positive constants), but got \[-\d"
    ) as said:
        pl.parse(f"{head}def f(x: pl.Tensor[[2, 16], pl.FP32]):\n    y = {line}\n    return x\n")
    assert said.value.span is not None
    assert said.value.span["line"] == 4
