"""Structural comparison and hashing."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pytest
from pypto import DataType, ir

SPAN = ir.Span.unknown()
INDEX = ir.ScalarType(DataType.INDEX)


def function(body: str, params: str = "x: pl.Tensor[[M, 64], pl.FP32], k: pl.Scalar[pl.INDEX]") -> ir.Function:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    made = pl.parse(f"import pypto.language as pl\n@pl.function\ndef f({params}):\n{lines}")
    assert isinstance(made, ir.Function)
    return made


def same(one: str, two: str, **params: str) -> bool:
    a, b = function(one, **params), function(two, **params)
    equal = ir.structural_equal(a, b)
    if equal:
        assert ir.structural_hash(a) == ir.structural_hash(b)
    return equal


def test_names_comments_and_places_do_not_count() -> None:
    assert same("y = pl.exp(x)\nreturn y", "# why\n\nother = pl.exp(x)\nreturn other")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("return x", "return k"),
        ("y = k + 1", "y = k + 2"),
        ("y = k + 1", "y = k - 1"),
        ("y = k + 1", "y = 1 + k"),
        ("y = pl.exp(x)", "y = pl.neg(x)"),
        ("y = 1.0", "y = 2.0"),
        ("y = 0.0", "y = -0.0"),
        ("y = pl.const(1, pl.INT32)", "y = pl.const(1, pl.INT16)"),
        ("y = True", "y = False"),
        ("y = pl.cast(x, pl.BF16)", "y = pl.cast(x, pl.FP16)"),
        ("y = pl.tensor.exp(x, attrs={'a': 1})", "y = pl.tensor.exp(x, attrs={'a': 2})"),
        ("y = pl.tensor.exp(x, attrs={'a': 1})", "y = pl.tensor.exp(x)"),
        ("y = pl.tensor.exp(x, attrs={'a': 1})", "y = pl.tensor.exp(x, attrs={'a': True})"),
        ("for i in pl.range(3):\n    y = x", "for i in pl.parallel(3):\n    y = x"),
        ("for i in pl.range(3):\n    y = x", "for i in pl.range(4):\n    y = x"),
        ("for i in pl.range(3):\n    y = i", "for i in pl.range(3):\n    y = k"),
        ("if k > 0:\n    y = x", "if k > 0:\n    y = x\nelse:\n    y = x"),
        ("with pl.cluster(name_hint='a'):\n    y = x", "with pl.cluster(name_hint='b'):\n    y = x"),
        ("a = k\nb = k\nreturn a", "a = k\nb = k\nreturn b"),
        ("pl.func_attr({'a': 1})\nreturn x", "pl.func_attr({'a': 2})\nreturn x"),
    ],
)
def test_differences(one: str, two: str) -> None:
    assert not same(one, two)
    assert same(one, one)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("x: pl.Tensor[[4], pl.FP32]", "x: pl.Tensor[[5], pl.FP32]"),
        ("x: pl.Tensor[[4], pl.FP32]", "x: pl.Tensor[[4], pl.FP16]"),
        ("x: pl.Tensor[[4], pl.FP32]", "x: pl.Out[pl.Tensor[[4], pl.FP32]]"),
        ("x: pl.Tensor[[A, A], pl.FP32]", "x: pl.Tensor[[A, B], pl.FP32]"),
        ("x: pl.Tensor[[4], pl.FP32]", "x: pl.Tensor[[4], pl.FP32, pl.NZ]"),
        ("x: pl.Tensor[[4], pl.FP32]", "x: pl.Tensor[[4], pl.FP32], y: pl.Tensor[[4], pl.FP32]"),
    ],
)
def test_differences_of_signatures(one: str, two: str) -> None:
    assert not ir.structural_equal(function("return x", one), function("return x", two))
    assert ir.structural_equal(function("return x", one), function("return x", one))


def test_symbols_pair_by_position() -> None:
    one = function("return x", "x: pl.Tensor[[A, B], pl.FP32]")
    assert ir.structural_equal(one, function("return x", "x: pl.Tensor[[P, Q], pl.FP32]"))
    assert ir.structural_equal(one, function("return x", "x: pl.Tensor[[B, A], pl.FP32]"))


def test_index_and_int64_are_one_type_for_constants_and_loops() -> None:
    a, b = ir.ConstInt(3, DataType.INDEX, SPAN), ir.ConstInt(3, DataType.INT64, SPAN)
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, ir.ConstInt(3, DataType.INT32, SPAN))


def test_free_variables_equal_only_themselves() -> None:
    a, b = ir.Var("a", INDEX, SPAN), ir.Var("a", INDEX, SPAN)
    assert ir.structural_equal(a + 1, a + 1)
    assert not ir.structural_equal(a + 1, b + 1)
    assert ir.structural_equal(a + 1, b + 1, enable_auto_mapping=True)
    assert not ir.structural_equal(a + b, a + a, enable_auto_mapping=True)
    assert ir.structural_hash(a + 1, enable_auto_mapping=True) == ir.structural_hash(b + 1, enable_auto_mapping=True)


def test_memory_does_not_count_views_do() -> None:
    plain = ir.TileType([8, 16], DataType.FP32, None, None, ir.MemorySpace.Vec)
    placed = ir.TileType([8, 16], DataType.FP32, ir.MemRef("mem_vec_1", 64, 512), None, ir.MemorySpace.Vec)
    valid = ir.TileType([8, 16], DataType.FP32, None, ir.TileView(valid_shape=[4, 16]), ir.MemorySpace.Vec)
    assert plain == placed
    assert hash(plain) == hash(placed)
    assert plain != valid


ALL_TYPES = [
    ir.ScalarType(DataType.FP32),
    ir.TensorType([8, ir.Var("n", INDEX, SPAN)], DataType.FP32),
    ir.TensorType([8], DataType.FP32, None, ir.TensorView([1], ir.TensorLayout.ND, [4])),
    ir.DistributedTensorType([8], DataType.FP32),
    ir.TileType([8, 16], DataType.FP32, None, ir.TileView(valid_shape=[4, 16]), ir.MemorySpace.Vec),
    ir.ArrayType(DataType.INT32, 4),
    ir.TupleType([ir.ScalarType(DataType.FP32), ir.PtrType.get()]),
    ir.TupleType([]),
    *(
        t.get()
        for t in (
            *(ir.UnknownType, ir.PtrType, ir.MemRefType, ir.WindowBufferType, ir.CommCtxType),
            *(ir.PrefetchAsyncContextType, ir.AsyncEventType, ir.AsyncSessionType),
        )
    ),
]


@pytest.mark.parametrize("one", range(len(ALL_TYPES)))
def test_equal_types_have_equal_hashes(one: int) -> None:
    for two, other in enumerate(ALL_TYPES):
        assert (ALL_TYPES[one] == other) is (one == two)
        if one == two:
            assert hash(ALL_TYPES[one]) == hash(other)


def test_assertion_names_the_path_and_the_reason() -> None:
    one, two = function("y = k + 1\nreturn y"), function("y = k + 2\nreturn y")
    with pytest.raises(ValueError, match=r"^Structural equality assertion failed at: ") as caught:
        ir.assert_structural_equal(one, two)
    text = str(caught.value)
    assert text.endswith("\n\nReason: constant mismatch (1 != 2)")
    assert "body[0].value.right" in text
    other = one.with_(type=ir.FunctionType.InCore)
    with pytest.raises(ValueError, match=r"Reason: FunctionType mismatch \(Opaque != InCore\)"):
        ir.assert_structural_equal(one, other)


def test_expressions_have_no_truth_value() -> None:
    a = ir.Var("a", INDEX, SPAN)
    assert isinstance(a == 1, ir.Eq)
    with pytest.raises(TypeError, match="has no truth value"):
        bool(a == 1)


@pytest.mark.parametrize(
    ("shape", "valid", "message"),
    [
        ((64, 64), (64, 68), "valid_shape 68 on axis 1 does not lie inside the extent 64"),
        ((64, 64), (65, 64), "valid_shape 65 on axis 0"),
        ((64, 64), (64,), "valid_shape has 1 extents for a shape of 2"),
        ((64, 64), (-1, 64), "valid_shape -1 on axis 0"),
    ],
)
@pytest.mark.parametrize("kind", ["tensor", "tile"])
def test_a_valid_region_outside_its_box_cannot_be_built(
    kind: str, shape: tuple[int, ...], valid: Any, message: str
) -> None:
    view: Any = ir.TileView(valid_shape=valid) if kind == "tile" else ir.TensorView(valid_shape=valid)
    make = ir.TileType if kind == "tile" else ir.TensorType
    with pytest.raises(ValueError, match=message):
        make(shape, DataType.FP32, None, view)


def test_half_bytes_come_in_pairs() -> None:
    with pytest.raises(ValueError, match="the last extent must be even, got 3"):
        ir.TensorType([4, 3], DataType.FP4)
    assert ir.TileType([3, 4], DataType.FP4).shape


@pytest.mark.parametrize("dtype", [3, None, "fp32"])
def test_an_element_type_is_a_dtype(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"is a DataType such as pl\.FP32, got"):
        ir.TensorType([4], dtype)
    with pytest.raises(TypeError, match=r"is a DataType such as pl\.FP32, got"):
        ir.TileType([4, 4], dtype)


@pytest.mark.parametrize("operand", [3, None, "x"])
def test_operands_of_a_call_are_expressions(operand: Any) -> None:
    with pytest.raises(TypeError, match=r"tensor\.exp takes expressions, got .* as 'input'"):
        ir.create_op_call("tensor.exp", [operand], ir.Span.unknown())
