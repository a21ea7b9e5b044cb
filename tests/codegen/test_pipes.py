"""Transfers between the cores, and the buffer they go through."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.backend.handler import handler_for
from pytest_pypto.pypto.codegen import CodegenError, CodegenOptions
from pytest_pypto.pypto.codegen.pto.function import module_text
from tests.codegen.kernels import allocs, kernel, lines, program, tile

GM = '__gm_pipe_buffer: pl.Out[pl.Tensor[[1], pl.FP32, pl.MemRef("mem_ddr_9", pl.const(0, pl.INT64), 4)]]'
HALF = "pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[24, 64])]"


def test_a_constant_partial_tile_travels_as_its_whole_box() -> None:
    body = f"""
        t: {HALF} = pl.tile.tpop_from_aic(split=0)
        pl.system.tfree_to_aic(t, split=0)
    """
    found = lines(kernel(body))
    assert found[-6:-2] == [
        "%tpop_transport = pto.tpop_from_aic(%c32_index, %c64_index) {split = 0} -> T",
        "%tpop_logical = pto.treshape %tpop_transport : T -> T",
        "pto.tfree_from_aic {split = 0}",
        "return",
    ]


def test_the_sender_of_a_constant_partial_tile_widens_it_around_the_push() -> None:
    partial = tile(2, 0, "[32, 64]", space="Acc").replace(
        "pl.Mem.Acc]",
        "pl.Mem.Acc, pl.TileView(valid_shape=[24, 64], blayout=pl.TileLayout.col_major, "
        "slayout=pl.TileLayout.row_major, fractal=1024)]",
    )
    body = f"""
        {allocs(2, space="Acc")}
        t: {partial} = pl.tile.create([32, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
        pl.tile.tpush_to_aiv(t, split=0)
    """
    found = [w for w in lines(kernel(body, core="AIC")) if w.startswith("pto.")]
    assert found == [
        "pto.set_validshape %t, %c32_index, %c64_index : T",
        "pto.tpush_to_aiv(%t : T) {split = 0}",
        "pto.set_validshape %t, %c24_index, %c64_index : T",
    ]


def test_a_full_tile_needs_no_operands_and_an_empty_one_says_so() -> None:
    body = """
        a: pl.Tile[[32, 64], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=1)
        b: EMPTY = pl.tile.tpop_from_aic(split=0, id=2)
    """.replace("EMPTY", HALF.replace("24, 64", "0, 0"))
    found = [w for w in lines(kernel(body)) if "tpop" in w]
    assert found == [
        "%a = pto.tpop_from_aic {split = 1} -> T",
        "%b = pto.tpop_from_aic(%c0_index, %c0_index) {id = 2, split = 0} -> T",
    ]


ZEROS = "pl.const(0, pl.INT32), pl.const(0, pl.INT32)"
PIPE = f"pl.system.aiv_initialize_pipe({ZEROS}, dir_mask={{mask}}, slot_size=4096{{more}})"


def test_pipes_share_the_buffer_in_the_order_of_their_ids() -> None:
    # id 0 has both directions, 2 rings of 4 slots of 4096 bytes: 8192 words; id 1 starts behind it
    body = PIPE.format(mask=3, more="") + "\n" + PIPE.format(mask=1, more=", slot_num=2, id=1")
    found = lines(kernel(body, GM))
    assert "%0 = pto.addptr %arg1, %c8192_index : <f32> -> <f32>" in found
    second = found.index("pto.aiv_initialize_pipe {id = 1, dir_mask = 1, slot_size = 4096, slot_num = 2}")
    assert found[second + 1].startswith("(gm_slot_buffer = %0 : !pto.ptr<f32>, c2v_consumer_buf = %c0_i32 : i32,")
    first = found.index("pto.aiv_initialize_pipe {dir_mask = 3, slot_size = 4096}")
    assert found[first + 1].startswith("(gm_slot_buffer = %arg1 : !pto.ptr<f32>, ")


def test_the_950_has_no_buffer_in_global_memory() -> None:
    found = lines(kernel(PIPE.format(mask=1, more="")), BackendType.Ascend950)
    line = next(w for w in found if "initialize_pipe" in w)
    assert line == (
        "pto.aiv_initialize_pipe {dir_mask = 1, slot_size = 4096} "
        "(c2v_consumer_buf = %c0_i32 : i32, v2c_consumer_buf = %c0_i32 : i32)"
    )


def test_a_pipe_without_its_buffer_is_refused_with_the_pass_that_adds_it() -> None:
    with pytest.raises(CodegenError, match="no parameter __gm_pipe_buffer; run InjectGMPipeBuffer"):
        lines(kernel(PIPE.format(mask=1, more="")))


def test_pipe_offsets_are_those_of_the_whole_unit() -> None:
    member = """
        @pl.function(type=pl.FunctionType.{core}, level=pl.Level.{core}, role=pl.Role.SubWorker)
        def k_{core}({gm}):
            pl.system.{small}_initialize_pipe({zeros}, dir_mask={mask}, slot_size=1024, slot_num=2, id={id})
    """
    text = member.format(core="AIC", small="aic", gm=GM, zeros=ZEROS, mask=1, id=1)
    text += member.format(core="AIV", small="aiv", gm=GM, zeros=ZEROS, mask=2, id=0)
    made = program(text)
    functions = [f for f in (made.get_function("k_AIC"), made.get_function("k_AIV")) if f is not None]
    module = module_text(functions, handler_for(BackendType.Ascend910B), CodegenOptions(emit_source_loc=False))
    assert "pto.addptr %arg0, %c512_index" in module.split("func.func")[1]
    assert "addptr" not in module.split("func.func")[2]
