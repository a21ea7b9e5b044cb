"""Layouts of results: whose view a tile operator inherits, and which operators have one of their own."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import FP32, DataType
from pytest_pypto.pypto.ir.enums import MemorySpace, PadValue, TileLayout
from pytest_pypto.pypto.ir.op_table import create_op_call

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
Vec, Mat, Acc, Left = MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc, MemorySpace.Left


def _tile(*shape: int, space: MemorySpace = Vec, view: t.TileView | None = None, dtype: DataType = FP32) -> e.Expr:
    return e.Var("x", t.TileType(shape, dtype, None, view, space))


def _layout(op: str, *args: e.Expr, **kwargs: object) -> tuple[str, str, int]:
    made = create_op_call(op, args, kwargs).type
    assert isinstance(made, t.TileType)
    view = made.get_effective_tile_view()
    return view.blayout.name, view.slayout.name, view.fractal


NZ = t.TileView(blayout=COL, slayout=ROW)
PLAIN = ("row_major", "none_box", 512)
BOXED = ("col_major", "row_major", 512)


@pytest.mark.parametrize("op", ["add", "mul", "maximum", "part_max", "fmod"])
def test_binary_inherits_the_first_operand(op: str) -> None:
    assert _layout(f"tile.{op}", _tile(32, 64, view=NZ), _tile(32, 64)) == BOXED
    assert _layout(f"tile.{op}", _tile(32, 64), _tile(32, 64, view=NZ)) == PLAIN


@pytest.mark.parametrize("op", ["exp", "neg", "recip", "relu"])
def test_unary_inherits(op: str) -> None:
    assert _layout(f"tile.{op}", _tile(32, 64, view=NZ)) == BOXED


def test_an_operator_on_the_accumulator_gives_its_layout_with_the_vector_fractal() -> None:
    assert _layout("tile.muls", _tile(32, 64, space=Acc), e.ConstFloat(0.125, FP32)) == BOXED
    assert _layout("tile.cast", _tile(32, 64, space=Acc), target_type=DataType.FP16, mode=2) == BOXED


def test_select_inherits_the_first_value_not_the_mask() -> None:
    mask, tmp = _tile(32, 32, dtype=DataType.UINT8), _tile(1, 32, dtype=DataType.UINT8)
    assert _layout("tile.sel", mask, _tile(32, 64, view=NZ), _tile(32, 64), tmp) == BOXED
    assert _layout("tile.sels", mask, _tile(32, 64, view=NZ), tmp, e.ConstFloat(1.0, FP32)) == BOXED


def test_expands_inherit_the_main_operand() -> None:
    assert _layout("tile.row_expand_mul", _tile(32, 64, view=NZ), _tile(32, 1)) == BOXED
    assert _layout("tile.col_expand_mul", _tile(32, 64, view=NZ), _tile(1, 64)) == BOXED


def test_reductions_have_layouts_of_their_own() -> None:
    assert _layout("tile.row_sum", _tile(32, 64, view=NZ), _tile(32, 64)) == ("col_major", "none_box", 512)
    assert _layout("tile.col_max", _tile(32, 64, view=NZ)) == PLAIN


def test_column_made_in_place_is_row_major() -> None:
    shape = e.make_tuple([32, 1])
    assert _layout("tile.create", shape, dtype=FP32, target_memory=Vec) == PLAIN
    assert _layout("tile.full", shape, e.ConstFloat(0.0, FP32), dtype=FP32) == PLAIN
    source = e.Var("x", t.TensorType((64, 1), FP32))
    zero = e.make_tuple([0, 0])
    assert _layout("tile.load", source, zero, shape, shape, target_memory=Vec) == ("col_major", "none_box", 512)


def test_chain_from_a_row_major_column_stays_row_major() -> None:
    column = create_op_call("tile.full", [e.make_tuple([32, 1]), e.ConstFloat(0.0, FP32)], {"dtype": FP32})
    assert _layout("tile.add", column, _tile(32, 1)) == PLAIN
    assert _layout("tile.add", _tile(32, 1), column) == ("col_major", "none_box", 512)


def test_reshape_takes_the_implicit_layout_and_keeps_the_pad() -> None:
    padded = t.TileView(blayout=COL, slayout=ROW, pad=PadValue.min)
    made = create_op_call("tile.reshape", [_tile(32, 64, view=padded), e.make_tuple([64, 32])]).type
    assert isinstance(made, t.TileType)
    assert made.tile_view == t.TileView(pad=PadValue.min)


def test_slice_keeps_an_explicit_layout_only() -> None:
    window, zero = e.make_tuple([16, 64]), e.make_tuple([0, 0])
    assert _layout("tile.slice", _tile(32, 64, view=NZ), window, zero) == BOXED
    assert _layout("tile.slice", _tile(32, 64), window, zero) == PLAIN
    assert _layout("tile.slice", _tile(32, 64, space=Mat), window, zero) == BOXED


def test_transpose_view_swaps_both_layouts() -> None:
    assert _layout("tile.transpose_view", _tile(48, 64, space=Mat)) == ("row_major", "col_major", 512)


def test_move_takes_the_layout_of_the_target_unless_told() -> None:
    source = _tile(32, 64, space=Acc)
    assert _layout("tile.move", source, target_memory=Vec) == PLAIN
    assert _layout("tile.move", source, target_memory=Vec, blayout=COL, slayout=ROW) == BOXED
    assert _layout("tile.move", _tile(32, 64), target_memory=Left) == BOXED


def test_extract_to_left_is_row_major_outside() -> None:
    made = _layout(
        "tile.extract", _tile(64, 64, space=Mat), e.index(0), e.index(0), e.make_tuple([16, 32]), target_memory=Left
    )
    assert made == ("row_major", "row_major", 512)


def test_fillpad_records_the_pad() -> None:
    made = create_op_call("tile.fillpad", [_tile(16, 32)], {"pad_value": PadValue.max}).type
    assert isinstance(made, t.TileType)
    assert made.tile_view == t.TileView(pad=PadValue.max)


def test_in_place_results_share_the_storage_of_their_operand() -> None:
    memref = e.MemRef("mem_acc_0", 0, 1024)
    acc = e.Var("acc", t.TileType((16, 16), FP32, memref, None, Acc))
    left = _tile(16, 32, space=Left, dtype=DataType.BF16)
    right = _tile(32, 16, space=MemorySpace.Right, dtype=DataType.BF16)
    made = create_op_call("tile.matmul_acc", [acc, left, right]).type
    assert isinstance(made, t.TileType)
    assert made.memref is memref
