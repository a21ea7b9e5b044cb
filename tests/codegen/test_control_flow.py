"""Loops and branches: what is carried, and when carried tiles are copied."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.codegen import CodegenError
from tests.codegen.kernels import allocs, kernel, lines, tile

LOAD = "pl.tile.load(x, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)"


def test_tiles_carried_in_their_own_buffer_need_no_copy() -> None:
    body = f"""
        mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2048)
        t: {tile(2, 0)} = {LOAD}
        for i, (c,) in pl.range(4, init_values=(t,)):
            u: {tile(2, 0)} = pl.tile.adds(c, 1.0)
            r = pl.yield_(u)
        s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(r, [0, 0], o)
    """
    found = lines(kernel(body))
    assert not [w for w in found if w.startswith("pto.tmov")]
    assert "pto.tadds ins(%t, %cst_9 : T, f32) outs(%u : T)" in _numberless(found)
    assert "pto.tstore ins(%t : T) outs(%o_pview : !pto.partition_tensor_view<16x32xf32>)" in found


def _numberless(found: list[str]) -> list[str]:
    import re

    return [re.sub(r"%cst_\d+", "%cst_9", w) for w in found]


def _while_kernel(yielded: str, carry: str = "t") -> list[str]:
    body = [
        allocs(2, 3),
        f"t: {tile(2, 0)} = {LOAD}",
        f"for (c, n) in pl.while_(init_values=({carry}, m)):",
        "    pl.cond(n < 5)",
        f"    u: {tile(3, 2048)} = pl.tile.adds(c, 1.0)",
        f"    r, q = pl.yield_({yielded}, n + 1)",
        "s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(r, [0, 0], o)",
    ]
    return lines(kernel("\n".join(body), "m: pl.Scalar[pl.INDEX]"))


def test_a_while_carried_tile_in_another_buffer_is_copied_back() -> None:
    found = _while_kernel("u")
    inside = found.index("pto.tmov ins(%u : T) outs(%t : T)")
    assert found[inside - 1] != "}"
    assert found[inside + 1].startswith("%") or found[inside + 1].startswith("scf.yield")
    assert "pto.tstore ins(%t : T) outs(%o_pview : !pto.partition_tensor_view<16x32xf32>)" in found


def test_a_while_loop_passes_its_scalars_through_condition_and_body() -> None:
    found = _while_kernel("u")
    start = next(i for i, w in enumerate(found) if "scf.while" in w)
    assert found[start] == "%2 = scf.while (%0 = %arg2) : (index) -> (index) {"
    assert found[start + 1 : start + 3] == [
        "%3 = arith.cmpi slt, %0, %c5_index : index",
        "scf.condition(%3) %0 : index",
    ]
    assert found[start + 3 : start + 5] == ["} do {", "^bb0(%1 : index):"]
    assert "scf.yield %4 : index" in found


def _two_carries(first: str, second: str) -> list[str]:
    body = [
        allocs(2, 3),
        f"a: {tile(2, 0)} = {LOAD}",
        f"b: {tile(3, 2048)} = {LOAD}",
        "for i, (p, q) in pl.range(4, init_values=(a, b)):",
        f"    u: {tile(3, 2048)} = pl.tile.adds(q, 1.0)",
        f"    r, s = pl.yield_({first}, {second})",
        "t: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(r, [0, 0], o)",
    ]
    return lines(kernel("\n".join(body)))


def test_parallel_carries_are_copied_in_an_order_that_loses_nothing() -> None:
    found = _two_carries("q", "u")
    assert [w for w in found if w.startswith("pto.tmov")] == ["pto.tmov ins(%b : T) outs(%a : T)"]


def test_carries_that_swap_are_refused_with_the_way_out() -> None:
    with pytest.raises(CodegenError, match=r"exchange their values.*tmp = pl\.move"):
        _two_carries("q", "p")


def test_two_scalar_carries_of_a_for_loop() -> None:
    body = """
        for i, (a, b) in pl.range(4, init_values=(n, m)):
            r, s = pl.yield_(b, a + b)
        pl.tensor.write(o, [r, s], f)
    """
    params = "n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32]"
    found = lines(kernel(body, params))
    head = "%r, %s = scf.for %i = %c0_index to %c4_index step %c1_index iter_args(%a = %arg2, %b = %arg3)"
    assert f"{head} -> (index, index) {{" in found
    assert "scf.yield %b, %0 : index, index" in found


def test_a_carry_may_start_from_a_literal() -> None:
    body = """
        for i, (total,) in pl.range(5, init_values=(0,)):
            r = pl.yield_(total + i)
        pl.tensor.write(o, [r, 0], f)
    """
    found = lines(kernel(body, "f: pl.Scalar[pl.FP32]"))
    head = "%r = scf.for %i = %c0_index to %c5_index step %c1_index iter_args(%total = %c0_index) -> (index) {"
    assert head in found
    assert "scf.yield %0 : index" in found


def test_the_tile_result_of_a_branch_is_allocated_before_it() -> None:
    body = [
        allocs(2, 3),
        f"t: {tile(2, 0)} = {LOAD}",
        "if 3 < n:",
        f"    u: {tile(3, 2048)} = pl.tile.exp(t)",
        f"    y: {tile(3, 2048)} = pl.yield_(u)",
        "else:",
        f"    y: {tile(3, 2048)} = pl.yield_(t)",
        "s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(y, [0, 0], o)",
    ]
    found = lines(kernel("\n".join(body), "n: pl.Scalar[pl.INDEX]"))
    hoisted = found.index("%y = pto.alloc_tile addr = %c2048_i64 valid_row = %c16_index valid_col = %c32_index : T")
    branch = next(i for i, w in enumerate(found) if w.startswith("scf.if"))
    assert hoisted < found.index("%t = pto.alloc_tile addr = %c0_i64 valid_row = %c16_index valid_col = %c32_index : T")
    assert found[found.index("} else {", branch) + 1] == "pto.tmov ins(%t : T) outs(%y : T)"


def test_a_jump_in_a_kernel_is_refused_with_its_place() -> None:
    body = """
        for i in pl.range(4):
            if i == 2:
                break
    """
    with pytest.raises(CodegenError, match=r":\d+:\d+: kernel 'k': BreakStmt cannot be written as .pto.*passes"):
        lines(kernel(body))


def test_a_tensor_chosen_by_a_branch_is_refused() -> None:
    body = """
        if n < 3:
            y: pl.Tensor[[16, 32], pl.FP32] = pl.yield_(x)
        else:
            y: pl.Tensor[[16, 32], pl.FP32] = pl.yield_(o)
        pl.tensor.write(y, [0, 0], f)
    """
    with pytest.raises(CodegenError, match="'y' would stand for different tensors"):
        lines(kernel(body, "n: pl.Scalar[pl.INDEX], f: pl.Scalar[pl.FP32]"))
