"""Sums of products into a window: of an accumulator it is part of it, of any other tensor a value of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ..passes_back.whole import check_device, check_stages, execute, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
SQUARE = "a: [16, 16] FP32\nb: [32, 16] FP32\no: [32, 16] FP32 Out\nq: [16, 16] FP32 Out"

BODIES = {
    "of a parameter, in a loop": (
        """
v = pl.slice(b, [16, 16], [16, 0])
for i in pl.range(3):
    v = pl.matmul_acc(v, a, a)
q = pl.assemble(q, v, [0, 0])
o = pl.assemble(o, pl.slice(b, [32, 16], [0, 0]), [0, 0])
""",
        lambda a, b: (b, b[16:] + 3 * a @ a),
    ),
    "of a sum": (
        """
whole = pl.mul(b, 2.0)
v = pl.slice(whole, [16, 16], [0, 0])
v = pl.matmul_acc(v, a, a)
q = pl.assemble(q, v, [0, 0])
o = pl.assemble(o, whole, [0, 0])
""",
        lambda a, b: (2 * b, 2 * b[:16] + a @ a),
    ),
    "of a new tensor": (
        """
whole = pl.create_tensor([32, 16], dtype=pl.FP32)
v = pl.slice(whole, [16, 16], [0, 0])
v = pl.matmul_acc(v, a, a, init_cond=True)
q = pl.assemble(q, v, [0, 0])
w = pl.slice(whole, [16, 16], [16, 0])
w = pl.matmul_acc(w, a, a, init_cond=True)
w = pl.matmul_acc(w, a, a)
o = pl.assemble(o, whole, [0, 0])
""",
        lambda a, b: (torch.cat([a @ a, 2 * a @ a]), a @ a),
    ),
    "two at once": (
        """
whole = pl.create_tensor([32, 16], dtype=pl.FP32)
v = pl.slice(whole, [16, 16], [0, 0])
v = pl.matmul_acc(v, a, a, init_cond=True)
w = pl.slice(whole, [16, 16], [16, 0])
w = pl.matmul_acc(w, a, a, init_cond=True)
w = pl.matmul_acc(w, a, a)
q = pl.assemble(q, v, [0, 0])
o = pl.assemble(o, whole, [0, 0])
""",
        lambda a, b: (torch.cat([a @ a, 2 * a @ a]), a @ a),
    ),
}


@PLATFORMS
@pytest.mark.parametrize("kind", BODIES)
def test_products_added_to_a_window(kind: str, platform: str, tmp_path: Path) -> None:
    body, made = BODIES[kind]
    a, b = randn(16, 16), randn(32, 16, seed=1)
    o, q = made(a, b)
    values = {"a": a, "b": b, "o": out(32, 16), "q": out(16, 16)}
    want = {"a": a, "b": b, "o": o, "q": q}
    text = program(SQUARE, body)
    check_stages(text, values, want, platform)
    check_device(text, values, want, platform, tmp_path)


def test_a_new_tensor_that_is_filled_first_is_read() -> None:
    body = """
whole = pl.create_tensor([32, 16], dtype=pl.FP32)
whole = pl.assemble(whole, b, [0, 0])
v = pl.slice(whole, [16, 16], [0, 0])
v = pl.matmul_acc(v, a, a)
q = pl.assemble(q, v, [0, 0])
o = pl.assemble(o, whole, [0, 0])
"""
    a, b = randn(16, 16), randn(32, 16, seed=1)
    values = {"a": a, "b": b, "o": out(32, 16), "q": out(16, 16)}
    for name, node in stages(program(SQUARE, body), "a2a3sim").items():
        found = execute(node, values)
        torch.testing.assert_close(found["o"], b, msg=name)
        torch.testing.assert_close(found["q"], b[:16] + a @ a, msg=name)


@PLATFORMS
def test_a_row_added_to_a_window(platform: str, tmp_path: Path) -> None:
    body = """
a = pl.load(x, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
c = pl.load(v, [0, 0], [1, 32], target_memory=pl.Mem.Mat)
b = pl.load(w, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
acc = pl.matmul(pl.move(a, target_memory=pl.Mem.Left), pl.move(b, target_memory=pl.Mem.Right))
half = pl.tile.slice(acc, [16, 16], [16, 0])
row = pl.tile.gemv_acc(half, pl.move(c, target_memory=pl.Mem.Left), pl.move(b, target_memory=pl.Mem.Right))
o = pl.store(acc, [0, 0], o)
"""
    x, v, w = randn(32, 32), randn(1, 32, seed=2), randn(32, 16, seed=1)
    want = x @ w
    want[16] += (v @ w)[0]
    text = program("x: [32, 32] FP32\nv: [1, 32] FP32\nw: [32, 16] FP32\no: [32, 16] FP32 Out", body)
    values = {"x": x, "v": v, "w": w, "o": out(32, 16)}
    check_stages(text, values, {"o": want}, platform)
    check_device(text, values, {"o": want}, platform, tmp_path)
