"""Serialisation, questions to the op table, user conversions, and helpers for hand-built IR."""

from __future__ import annotations

from pathlib import Path

import pypto.language as pl
import pytest
from pypto import DataType, ir
from pypto.ir import conversions, utils

SPAN = ir.Span.unknown()
CODE = "import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    return pl.exp(x)\n"


def test_files(tmp_path: Path) -> None:
    func = pl.parse(CODE)
    ir.serialize_to_file(func, tmp_path / "f.bin")
    assert ir.structural_equal(ir.deserialize_from_file(tmp_path / "f.bin"), func)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "were not written by"),
        (b"import os", "were not written by"),
        (b"pypto-ir 1 program\n\xff", "is damaged at byte 19"),
        (b"pypto-ir 1 program\nx = 1\n", "it holds no program"),
    ],
)
def test_damaged_bytes(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ir.deserialize(data)


def test_a_function_that_calls_others() -> None:
    program = pl.parse(
        "import pypto.language as pl\n@pl.program\nclass P:\n"
        "    @pl.function\n    def f(self, x: pl.Tensor[[4], pl.FP32]):\n        return pl.exp(x)\n"
        "    @pl.function\n    def g(self, x: pl.Tensor[[4], pl.FP32]):\n        y = self.f(x)\n        return y\n"
    )
    assert isinstance(program, ir.Program)
    again = ir.deserialize(ir.serialize(program["g"]))
    assert isinstance(again, ir.Function)
    assert ir.structural_equal(again, program["g"])


def test_only_programs_and_functions_are_bytes() -> None:
    with pytest.raises(TypeError, match="serialize takes a Program or a Function, got ConstInt"):
        ir.serialize(ir.ConstInt(1, DataType.INDEX, SPAN))


def test_effects_of_operators() -> None:
    assert ir.get_op_arg_effect("tile.store", 0) is ir.ArgEffect.Read
    assert ir.get_op_arg_effect("tile.store", 2) is ir.ArgEffect.Write
    assert ir.get_op_arg_effect("tile.store", 2, atomic=1) is ir.ArgEffect.ReadWrite
    assert ir.get_op_arg_effect("tile.matmul_acc", 0) is ir.ArgEffect.ReadWrite
    assert ir.op_has_declared_arg_effects("tile.store")
    assert not ir.op_has_declared_arg_effects("tile.exp")
    assert ir.op_has_declared_arg_effect("tile.store", 2)
    assert ir.get_op_write_channel("tile.store") is ir.WriteChannel.Dma
    assert ir.get_op_write_channel("tensor.write") is ir.WriteChannel.Scalar
    assert ir.get_op_write_channel("tile.exp") is None
    with pytest.raises(ValueError, match="Operator 'zz' not found in registry"):
        ir.get_op_arg_effect("zz", 0)
    with pytest.raises(IndexError, match=r"operator 'tile\.exp' has 1 operands, asked for number 3"):
        ir.get_op_arg_effect("tile.exp", 3)
    assert ir.get_op_memory_spec("tile.matmul")["output"] == "Acc"


def test_user_conversions() -> None:
    x = ir.Var("x", ir.TensorType([4], DataType.FP32), SPAN)
    call = ir.create_op_call("tensor.exp", [x], SPAN)
    try:
        assert not ir.has_op_conversion("tensor.exp")
        ir.register_op_conversion("tensor.exp", "tensor.neg")
        assert conversions.convert(call, [x])[1].op.name == "tensor.neg"

        @ir.op_conversion("tensor.exp")
        def rule(args, kwargs, context):
            first = context.let("first", ir.create_op_call("tensor.neg", list(args), context.span))
            return ir.create_op_call("tensor.exp", [first], context.span)

        stmts, value = conversions.convert(call, [x])
        assert [s.var.name_hint for s in stmts] == ["first"]
        assert value.args[0] is stmts[0].var
        assert ir.has_op_conversion("tensor.exp")
        assert conversions.convert(ir.create_op_call("tensor.neg", [x], SPAN), [x]) is None
    finally:
        conversions.clear_op_conversions()


def test_result_type_of_calls() -> None:
    rows = ir.Var("rows", ir.ScalarType(DataType.INDEX), SPAN)
    param = ir.Var("p", ir.TensorType([rows, 8], DataType.FP32), SPAN)
    arg = ir.Var("a", ir.TensorType([24, 8], DataType.FP32), SPAN)
    made = ir.deduce_call_return_type([param], [arg], [ir.TensorType([rows, 2], DataType.FP32)])
    assert str(made) == "pl.Tensor[[24, 2], pl.FP32]"
    both = ir.deduce_call_return_type([param], [arg], [param.type, ir.ScalarType(DataType.INDEX)])
    assert str(both) == "pl.Tuple[pl.Tensor[[24, 8], pl.FP32], pl.Scalar[pl.INDEX]]"
    assert ir.deduce_call_return_type([param], [arg], []) is ir.UnknownType.get()


def test_utilities() -> None:
    assert utils.to_expr(3).dtype is DataType.INDEX
    assert [x.value for x in utils.to_make_tuple([1, 2]).elements] == [1, 2]
    assert utils.resolve_cast_mode("rint") == utils.resolve_cast_mode(1) == 1
    with pytest.raises(ValueError, match="unknown rounding mode 'up'"):
        utils.resolve_cast_mode("up")
    assert utils.get_span().filename == __file__
