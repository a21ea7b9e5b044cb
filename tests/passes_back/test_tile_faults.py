"""Kernels on one core whose results were once wrong: valid regions, carries, and buffers that share bytes."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.passes.context import MemoryPlanner

from .whole import check_stages, out, program, randn

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
PLANNERS = pytest.mark.parametrize("planner", [MemoryPlanner.PYPTO, MemoryPlanner.DSA_RP], ids=lambda p: p.name)


@PLATFORMS
def test_valid_columns_survive_a_chain(platform: str) -> None:
    text = program(
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "t = pl.slice(x, [8, 16], [0, 0], valid_shape=[8, 4])\no = pl.assemble(o, pl.neg(pl.mul(t, 2.0)), [0, 0])",
    )
    x, want = randn(8, 16), out(8, 16)
    want[:, :4] = -2 * x[:, :4]
    check_stages(text, {"x": x, "o": out(8, 16)}, {"o": want}, platform)


@PLATFORMS
def test_reduction_of_valid_rows_only(platform: str) -> None:
    text = program(
        "x: [8, 32] BF16\no: [8, 1] FP32 Out",
        "t = pl.slice(x, [8, 32], [0, 0], valid_shape=[4, 32])\n"
        "f = pl.mul(pl.cast(t, target_type=pl.FP32), 2.0)\no = pl.assemble(o, pl.row_sum(f), [0, 0])",
    )
    x, want = randn(8, 32).bfloat16(), out(8, 1)
    want[:4] = 2 * x[:4].float().sum(1, keepdim=True)
    check_stages(text, {"x": x, "o": out(8, 1)}, {"o": want}, platform)


@PLATFORMS
def test_padding_does_not_become_data(platform: str) -> None:
    text = program(
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "t = pl.slice(x, [8, 16], [0, 0], valid_shape=[5, 16])\no = pl.assemble(o, pl.add(t, 1.0), [0, 0])",
    )
    x, want = randn(8, 16), out(8, 16)
    want[:5] = x[:5] + 1
    check_stages(text, {"x": x, "o": out(8, 16)}, {"o": want}, platform)


@PLATFORMS
@PLANNERS
def test_accumulators_of_one_loop_do_not_share(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [96, 64] FP32\nb: [96, 64] FP32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out",
        "u = pl.full([32, 64], dtype=pl.FP32, value=0.0)\nv = pl.full([32, 64], dtype=pl.FP32, value=0.0)\n"
        "for i in pl.range(3):\n    u = pl.add(u, pl.slice(a, [32, 64], [i * 32, 0]))\n"
        "    v = pl.add(v, pl.slice(b, [32, 64], [i * 32, 0]))\n"
        "o = pl.assemble(o, u, [0, 0])\nq = pl.assemble(q, v, [0, 0])",
    )
    a, b = randn(96, 64), randn(96, 64, seed=1)
    want = {"o": a.view(3, 32, 64).sum(0), "q": b.view(3, 32, 64).sum(0)}
    check_stages(text, {"a": a, "b": b, "o": out(32, 64), "q": out(32, 64)}, want, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_loop_result_outlives_a_later_load(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "x: [32, 64] FP32\nz: [32, 64] FP32\no: [32, 64] FP32 Out",
        "acc = pl.add(x, 0.0)\nfor i in pl.range(3):\n    acc = pl.add(acc, 1.0)\n"
        "y = pl.mul(z, 1.0)\no = pl.assemble(o, pl.add(acc, y), [0, 0])",
    )
    x, z = randn(32, 64), randn(32, 64, seed=1)
    check_stages(text, {"x": x, "z": z, "o": out(32, 64)}, {"o": x + 3 + z}, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_exchanged_carries(platform: str, planner: MemoryPlanner) -> None:
    """`x, y = y, x + y` for three turns: the two cannot both stay in their buffer."""
    text = program(
        "a: [32, 64] FP32\nb: [32, 64] FP32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out",
        "x = pl.add(a, 1.0)\ny = pl.add(b, 2.0)\nfor i in pl.range(3):\n    t = pl.add(x, y)\n    x = y\n    y = t\n"
        "o = pl.assemble(o, x, [0, 0])\nq = pl.assemble(q, y, [0, 0])",
    )
    a, b = randn(32, 64), randn(32, 64, seed=1)
    x, y = a + 1, b + 2
    for _ in range(3):
        x, y = y, x + y
    check_stages(
        text, {"a": a, "b": b, "o": out(32, 64), "q": out(32, 64)}, {"o": x, "q": y}, platform, planner=planner
    )


@PLATFORMS
@PLANNERS
def test_initial_value_used_again_after_the_loop(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [32, 64] FP32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out\nr: [32, 64] FP32 Out",
        "z = pl.add(a, 0.5)\nu = z\nv = z\nfor i in pl.range(3):\n    u = pl.add(u, a)\n    v = pl.sub(v, a)\n"
        "o = pl.assemble(o, u, [0, 0])\nq = pl.assemble(q, v, [0, 0])\nr = pl.assemble(r, z, [0, 0])",
    )
    a = randn(32, 64)
    want = {"o": 4 * a + 0.5, "q": 0.5 - 2 * a, "r": a + 0.5}
    inputs = {"a": a, "o": out(32, 64), "q": out(32, 64), "r": out(32, 64)}
    check_stages(text, inputs, want, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_branch_keeps_what_is_used_after_it(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [32, 64] FP32\nc: [1] INT32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out",
        "m = pl.add(a, 1.0)\nn = pl.read(c, [0])\ny = m\nif n > 2:\n    y = pl.mul(m, 3.0)\n"
        "o = pl.assemble(o, y, [0, 0])\nq = pl.assemble(q, m, [0, 0])",
    )
    a = randn(32, 64)
    for n in (1, 3):
        inputs = {"a": a, "c": torch.tensor([n], dtype=torch.int32), "o": out(32, 64), "q": out(32, 64)}
        want = {"o": (a + 1) * (3 if n > 2 else 1), "q": a + 1}
        check_stages(text, inputs, want, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_slices_keep_their_offset_when_the_buffer_moves(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "x: [32, 4] FP32\ny: [32, 64] FP32\no: [32, 4] FP32 Out",
        "w = pl.mul(y, 2.0)\ns = pl.row_sum(w)\nt = pl.add(x, pl.mul(s, 0.0))\n"
        "for h in pl.range(4):\n    c = pl.slice(x, [32, 1], [0, h])\n"
        "    o = pl.assemble(o, pl.mul(c, 10.0), [0, h])",
    )
    x = randn(32, 4)
    inputs = {"x": x, "y": randn(32, 64, seed=1), "o": out(32, 4)}
    check_stages(text, inputs, {"o": 10 * x}, platform, planner=planner)


@PLATFORMS
@PLANNERS
@pytest.mark.parametrize("rows", [1, 2, 16])
def test_column_halves_of_a_tile(platform: str, planner: MemoryPlanner, rows: int) -> None:
    text = program(
        f"x: [{rows}, 128] FP32\nf: [1, 64] FP32\no: [{rows}, 64] FP32 Out\nq: [{rows}, 64] FP32 Out",
        f"t = pl.add(x, 1.0)\na = pl.slice(t, [{rows}, 64], [0, 0])\nb = pl.slice(t, [{rows}, 64], [0, 64])\n"
        "o = pl.assemble(o, pl.col_expand_mul(a, f), [0, 0])\nq = pl.assemble(q, pl.col_expand_mul(b, f), [0, 0])",
    )
    x, f = randn(rows, 128), randn(1, 64, seed=1)
    inputs = {"x": x, "f": f, "o": out(rows, 64), "q": out(rows, 64)}
    want = {"o": (x + 1)[:, :64] * f, "q": (x + 1)[:, 64:] * f}
    check_stages(text, inputs, want, platform, planner=planner)


@PLATFORMS
@PLANNERS
@pytest.mark.parametrize("rows", [1, 8, 16])
def test_concat_does_not_write_onto_an_operand(platform: str, planner: MemoryPlanner, rows: int) -> None:
    text = program(
        f"a: [{rows}, 64] FP32\nb: [{rows}, 64] FP32\no: [{rows}, 128] FP32 Out",
        "o = pl.assemble(o, pl.concat(pl.add(a, 1.0), pl.mul(b, 2.0)), [0, 0])",
    )
    a, b = randn(rows, 64), randn(rows, 64, seed=1)
    want = torch.cat([a + 1, 2 * b], 1)
    check_stages(text, {"a": a, "b": b, "o": out(rows, 128)}, {"o": want}, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_column_slice_that_is_not_aligned(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "x: [8, 64] FP32\no: [8, 32] FP32 Out",
        "t = pl.add(x, 1.0)\ns = pl.slice(t, [8, 32], [0, 3])\no = pl.assemble(o, pl.mul(s, 2.0), [0, 0])",
    )
    x = randn(8, 64)
    check_stages(text, {"x": x, "o": out(8, 32)}, {"o": 2 * (x + 1)[:, 3:35]}, platform, planner=planner)


@PLATFORMS
@PLANNERS
def test_weights_loaded_again_in_a_loop(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [192, 64] FP32\no: [32, 192] FP32 Out",
        "for j in pl.range(3):\n    w = pl.slice(b, [64, 64], [j * 64, 0])\n"
        "    m = pl.matmul(a, w, b_trans=True)\n    o = pl.assemble(o, m, [0, j * 64])",
    )
    a, b = randn(32, 64), randn(192, 64, seed=1)
    inputs = {"a": a, "b": b, "o": out(32, 192)}
    check_stages(text, inputs, {"o": a @ b.T}, platform, planner=planner, tolerance=1e-2)


@PLATFORMS
@PLANNERS
def test_two_accumulators_one_after_the_other(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [32, 128] FP32\nb: [128, 64] FP32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out",
        "for t in pl.range(2):\n    u = pl.matmul(pl.slice(a, [32, 64], [0, 0]), pl.slice(b, [64, 64], [0, 0]))\n"
        "    u = pl.matmul_acc(u, pl.slice(a, [32, 64], [0, 64]), pl.slice(b, [64, 64], [64, 0]))\n"
        "    o = pl.assemble(o, u, [0, 0])\n"
        "    v = pl.matmul(pl.slice(a, [32, 64], [0, 64]), pl.slice(b, [64, 64], [0, 0]))\n"
        "    v = pl.matmul_acc(v, pl.slice(a, [32, 64], [0, 0]), pl.slice(b, [64, 64], [64, 0]))\n"
        "    q = pl.assemble(q, v, [0, 0])",
    )
    a, b = randn(32, 128), randn(128, 64, seed=1)
    want = {"o": a @ b, "q": torch.cat([a[:, 64:], a[:, :64]], 1) @ b}
    inputs = {"a": a, "b": b, "o": out(32, 64), "q": out(32, 64)}
    check_stages(text, inputs, want, platform, planner=planner, tolerance=1e-2)


@PLATFORMS
@PLANNERS
def test_accumulators_in_nested_loops(platform: str, planner: MemoryPlanner) -> None:
    text = program(
        "a: [32, 64] FP32\no: [96, 64] FP32 Out",
        "z = pl.full([32, 64], dtype=pl.FP32, value=0.0)\nfor j in pl.range(3):\n    acc = z\n"
        "    for i in pl.range(2):\n        acc = pl.add(acc, a)\n    o = pl.assemble(o, acc, [j * 32, 0])",
    )
    a = randn(32, 64)
    check_stages(text, {"a": a, "o": out(96, 64)}, {"o": (2 * a).repeat(3, 1)}, platform, planner=planner)


@PLATFORMS
def test_descending_loop(platform: str) -> None:
    text = program(
        "a: [8, 16] FP32\no: [8, 16] FP32 Out",
        "acc = pl.full([8, 16], dtype=pl.FP32, value=0.0)\nfor i in pl.range(8, 0, -1):\n"
        "    acc = pl.add(acc, pl.cast(i, pl.FP32))\no = pl.assemble(o, acc, [0, 0])",
    )
    check_stages(text, {"a": randn(8, 16), "o": out(8, 16)}, {"o": torch.full((8, 16), 36.0)}, platform)


@PLATFORMS
def test_cast_of_an_accumulator_merged_by_a_branch_in_a_loop(platform: str) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [64, 64] FP32\nd: [64, 64] FP32\no: [64, 64] BF16 Out",
        "for i in pl.range(2):\n    if i == 0:\n        m = pl.matmul(a, b)\n    else:\n        m = pl.matmul(a, d)\n"
        "    o = pl.assemble(o, pl.cast(m, target_type=pl.BF16), [i * 32, 0])",
    )
    a, b, d = randn(32, 64), randn(64, 64, seed=1), randn(64, 64, seed=2)
    inputs = {"a": a, "b": b, "d": d, "o": out(64, 64, dtype=torch.bfloat16)}
    check_stages(text, inputs, {"o": torch.cat([a @ b, a @ d])}, platform, tolerance=3e-2)
