"""Kernels on both cores whose results were once wrong: each is run after every pass and compared with torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .whole import SENTINEL, check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
SPLITS = pytest.mark.parametrize("split", ["NONE", "UP_DOWN", "LEFT_RIGHT"])
HALVED = pytest.mark.parametrize("split", ["UP_DOWN", "LEFT_RIGHT"])


@PLATFORMS
@SPLITS
@pytest.mark.parametrize("rows", [1, 5, 8, 13])
def test_valid_rows_that_end_inside_a_lane(platform: str, split: str, rows: int) -> None:
    """Neither are rows lost nor is padding written."""
    text = program(
        "a: [16, 64] FP32\nb: [64, 64] FP32\no: [16, 64] FP32 Out",
        f"t = pl.slice(a, [16, 64], [0, 0], valid_shape=[{rows}, 64])\nm = pl.matmul(t, b)\n"
        "o = pl.assemble(o, pl.add(m, 0.0), [0, 0])",
        split,
    )
    a, b = randn(16, 64), randn(64, 64, seed=1)
    want = out(16, 64)
    want[:rows] = (a @ b)[:rows]
    check_stages(text, {"a": a, "b": b, "o": out(16, 64)}, {"o": want}, platform)


@PLATFORMS
@SPLITS
@pytest.mark.parametrize("rows", [0, 3, 10, 16])
def test_valid_rows_known_at_run_time(platform: str, split: str, rows: int) -> None:
    """10 of 16 rows are 8 in the first lane and 2 in the second, not 5 and 5."""
    text = program(
        "a: [16, 64] FP32\nb: [64, 64] FP32\nn: [1] INT32\no: [16, 64] FP32 Out",
        "v = pl.cast(pl.read(n, [0]), pl.INDEX)\nm = pl.matmul(a, b)\n"
        "y = pl.set_validshape(pl.mul(m, 2.0), v, 64)\no = pl.assemble(o, y, [0, 0])",
        split,
    )
    a, b = randn(16, 64), randn(64, 64, seed=1)
    want = out(16, 64)
    want[:rows] = 2 * (a @ b)[:rows]
    n = torch.tensor([rows], dtype=torch.int32)
    check_stages(text, {"a": a, "b": b, "n": n, "o": out(16, 64)}, {"o": want}, platform)


@PLATFORMS
@SPLITS
def test_valid_shape_set_after_the_product(platform: str, split: str) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [64, 64] FP32\no: [32, 64] FP32 Out",
        "m = pl.matmul(a, b)\ny = pl.set_validshape(pl.add(m, 1.0), 24, 48)\no = pl.assemble(o, y, [0, 0])",
        split,
    )
    a, b = randn(32, 64), randn(64, 64, seed=1)
    want = out(32, 64)
    want[:24, :48] = (a @ b + 1)[:24, :48]
    check_stages(text, {"a": a, "b": b, "o": out(32, 64)}, {"o": want}, platform)


@PLATFORMS
@SPLITS
def test_vector_of_factors_reshaped_to_a_row(platform: str, split: str) -> None:
    """Each lane takes its own half of a rank-1 operand."""
    text = program(
        "a: [16, 16] FP32\nb: [16, 64] FP32\nscale: [64] FP32\no: [16, 64] FP32 Out",
        "m = pl.matmul(a, b)\ns = pl.reshape(scale, [1, 64])\no = pl.assemble(o, pl.col_expand_mul(m, s), [0, 0])",
        split,
    )
    scale = torch.arange(1.0, 65.0)
    inputs = {"a": torch.eye(16), "b": torch.ones(16, 64), "scale": scale, "o": out(16, 64)}
    check_stages(text, inputs, {"o": scale.expand(16, 64)}, platform)


@PLATFORMS
@SPLITS
def test_broadcast_row_is_whole_in_each_lane(platform: str, split: str) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [64, 128] FP32\nbias: [1, 128] FP32\no: [32, 128] FP32 Out",
        "m = pl.matmul(a, b)\no = pl.assemble(o, pl.add(m, bias), [0, 0])",
        split,
    )
    a, b, bias = randn(32, 64), randn(64, 128, seed=1), randn(1, 128, seed=2)
    check_stages(text, {"a": a, "b": b, "bias": bias, "o": out(32, 128)}, {"o": a @ b + bias}, platform)


@PLATFORMS
@pytest.mark.parametrize(
    ("split", "op"), [("UP_DOWN", "col_sum"), ("LEFT_RIGHT", "row_sum"), ("LEFT_RIGHT", "row_max")]
)
def test_reduction_along_the_split_axis_is_refused(platform: str, split: str, op: str) -> None:
    shape = "[1, 64]" if op.startswith("col") else "[32, 1]"
    text = program(
        f"a: [32, 64] FP32\nb: [64, 64] FP32\no: {shape} FP32 Out",
        f"m = pl.matmul(a, b)\no = pl.assemble(o, pl.{op}(pl.add(m, 1.0)), [0, 0])",
        split,
    )
    with pytest.raises(ValueError, match="split axis") as caught:
        check_stages(text, {"a": randn(32, 64), "b": randn(64, 64), "o": out(32, 64)}, {}, platform)
    assert op in str(caught.value)
    assert "<string>:" in str(caught.value)


@PLATFORMS
@pytest.mark.parametrize(("split", "op"), [("UP_DOWN", "row_sum"), ("LEFT_RIGHT", "col_sum")])
def test_reduction_along_the_other_axis(platform: str, split: str, op: str) -> None:
    shape = (1, 64) if op.startswith("col") else (32, 1)
    text = program(
        f"a: [32, 64] FP32\nb: [64, 64] FP32\no: {list(shape)} FP32 Out",
        f"m = pl.matmul(a, b)\no = pl.assemble(o, pl.{op}(pl.add(m, 1.0)), [0, 0])",
        split,
    )
    a, b = randn(32, 64), randn(64, 64, seed=1)
    want = (a @ b + 1).sum(0 if op.startswith("col") else 1, keepdim=True)
    check_stages(text, {"a": a, "b": b, "o": out(*shape)}, {"o": want}, platform, tolerance=1e-2)


@PLATFORMS
@HALVED
def test_transpose_that_swaps_the_split_axis_is_refused(platform: str, split: str) -> None:
    text = program(
        "a: [16, 64] FP32\nb: [64, 32] FP32\no: [32, 16] FP32 Out",
        "m = pl.matmul(a, b)\no = pl.assemble(o, pl.transpose(pl.add(m, 1.0), 0, 1), [0, 0])",
        split,
    )
    with pytest.raises(ValueError, match="transpose") as caught:
        check_stages(text, {"a": randn(16, 64), "b": randn(64, 32), "o": out(32, 16)}, {}, platform)
    assert "split axis" in str(caught.value)


@PLATFORMS
def test_transpose_without_a_split(platform: str) -> None:
    """The idle lane has nothing to transpose, and still takes part in the transfers."""
    text = program(
        "a: [16, 64] FP32\nb: [64, 32] FP32\no: [32, 16] FP32 Out",
        "m = pl.matmul(a, b)\no = pl.assemble(o, pl.transpose(pl.add(m, 1.0), 0, 1), [0, 0])",
    )
    a, b = randn(16, 64), randn(64, 32, seed=1)
    check_stages(text, {"a": a, "b": b, "o": out(32, 16)}, {"o": (a @ b + 1).T}, platform)


@PLATFORMS
@SPLITS
def test_tiles_of_different_size_each_way(platform: str, split: str) -> None:
    text = program(
        "a: [32, 256] FP32\nb: [256, 16] FP32\no: [32, 16] FP32 Out",
        "e = pl.mul(a, 2.0)\nm = pl.matmul(e, b)\no = pl.assemble(o, pl.mul(m, 0.5), [0, 0])",
        split,
    )
    a, b = randn(32, 256), randn(256, 16, seed=1)
    check_stages(text, {"a": a, "b": b, "o": out(32, 16)}, {"o": a @ b}, platform, tolerance=1e-2)


@PLATFORMS
@SPLITS
def test_two_guarded_outputs_of_one_loop(platform: str, split: str) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [64, 64] FP32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out",
        "u = pl.full([32, 64], dtype=pl.FP32, value=1.0)\nv = pl.full([32, 64], dtype=pl.FP32, value=2.0)\n"
        "for i in pl.range(4):\n    m = pl.matmul(a, b)\n    if i < 2:\n        u = pl.add(u, m)\n"
        "    if i > 0:\n        v = pl.mul(v, 1.5)\no = pl.assemble(o, u, [0, 0])\nq = pl.assemble(q, v, [0, 0])",
        split,
    )
    a, b = randn(32, 64), randn(64, 64, seed=1)
    want = {"o": 1 + 2 * (a @ b), "q": torch.full((32, 64), 2 * 1.5**3)}
    check_stages(text, {"a": a, "b": b, "o": out(32, 64), "q": out(32, 64)}, want, platform, tolerance=1e-2)


@PLATFORMS
@SPLITS
def test_accumulator_merged_by_a_branch(platform: str, split: str) -> None:
    """Each half of the kernel has only names that it defines."""
    text = program(
        "a: [32, 64] FP32\nb: [64, 64] FP32\nd: [64, 64] FP32\nc: [1] INT32\no: [32, 64] BF16 Out",
        "n = pl.read(c, [0])\nif n > 2:\n    m = pl.matmul(a, b)\nelse:\n    m = pl.matmul(a, d)\n"
        "o = pl.assemble(o, pl.cast(m, target_type=pl.BF16), [0, 0])",
        split,
    )
    a, b, d = randn(32, 64), randn(64, 64, seed=1), randn(64, 64, seed=2)
    for n, factor in ((3, b), (2, d)):
        inputs = {"a": a, "b": b, "d": d, "c": torch.tensor([n], dtype=torch.int32)}
        inputs["o"] = out(32, 64, dtype=torch.bfloat16)
        check_stages(text, inputs, {"o": a @ factor}, platform, tolerance=3e-2)


@PLATFORMS
@SPLITS
def test_pushed_ones_reach_the_cube(platform: str, split: str) -> None:
    """The second lane does not push zeros over the data of the first."""
    text = program(
        "x: [32, 32] FP32\ni: [32, 32] FP32\no: [32, 32] FP32 Out",
        "t = pl.add(x, 1.0)\no = pl.assemble(o, pl.matmul(t, i), [0, 0])",
        split,
    )
    inputs = {"x": torch.zeros(32, 32), "i": torch.eye(32), "o": out(32, 32)}
    check_stages(text, inputs, {"o": torch.ones(32, 32)}, platform)


@PLATFORMS
@SPLITS
@pytest.mark.parametrize(("rows", "cols"), [(17, 15), (17, 16), (16, 15), (1, 16), (3, 5)])
def test_extents_that_do_not_halve(platform: str, split: str, rows: int, cols: int) -> None:
    text = program(
        f"a: [{rows}, 32] FP32\nb: [32, {cols}] FP32\ng: [{rows}, {cols}] FP32\no: [{rows}, {cols}] FP32 Out",
        "y = pl.add(pl.matmul(a, b), g)\no = pl.assemble(o, y, [0, 0])",
        split,
    )
    a, b, g = randn(rows, 32), randn(32, cols, seed=1), randn(rows, cols, seed=2)
    check_stages(text, {"a": a, "b": b, "g": g, "o": out(rows, cols)}, {"o": a @ b + g}, platform)


@PLATFORMS
@SPLITS
def test_odd_rows_of_a_larger_output(platform: str, split: str) -> None:
    text = program(
        "a: [32, 64] FP32\nb: [64, 64] FP32\ng: [32, 64] FP32\no: [32, 64] FP32 Out",
        "p = pl.matmul(pl.slice(a, [17, 64], [0, 0]), b)\n"
        "o = pl.assemble(o, pl.mul(p, pl.slice(g, [17, 64], [0, 0])), [0, 0])",
        split,
    )
    a, b, g = randn(32, 64), randn(64, 64, seed=1), randn(32, 64, seed=2)
    want = out(32, 64)
    want[:17] = (a[:17] @ b) * g[:17]
    found = check_stages(text, {"a": a, "b": b, "g": g, "o": out(32, 64)}, {"o": want}, platform)
    assert float(want[31, 0]) == SENTINEL
    assert "AllocateMemoryAddr" in found


@PLATFORMS
def test_single_row_goes_whole_to_both_lanes_and_back(platform: str) -> None:
    """One row cannot be divided: it crosses undivided, also beside tiles that are divided."""
    text = program(
        "a: [1, 32] FP32\nb: [32, 16] FP32\nx: [32, 16] FP32\nw: [16, 16] FP32\no: [32, 16] FP32 Out",
        "y = pl.col_expand_mul(x, pl.matmul(pl.mul(a, 2.0), b))\n"
        "o = pl.assemble(o, pl.add(pl.matmul(y, w), 1.0), [0, 0])",
        "UP_DOWN",
    )
    a, b, x, w = randn(1, 32), randn(32, 16, seed=1), randn(32, 16, seed=2), randn(16, 16, seed=3)
    inputs = {"a": a, "b": b, "x": x, "w": w, "o": out(32, 16)}
    check_stages(text, inputs, {"o": ((2 * a @ b) * x) @ w + 1}, platform)


@PLATFORMS
@pytest.mark.parametrize("split", ["NONE", "UP_DOWN", "LEFT_RIGHT"])
@pytest.mark.parametrize("rows", [1, 16, 17, 32])
def test_valid_rows_that_are_an_int32_of_run_time(rows: int, split: str, platform: str, tmp_path: Path) -> None:
    """The lanes' shares are index arithmetic on a number of another type."""
    body = (
        "n = pl.read(c, [0])\nt = pl.add(pl.slice(x, [32, 32], [0, 0], valid_shape=[n, 32]), 1.0)\n"
        "m = pl.mul(pl.matmul(t, w), 2.0)\n"
        "o = pl.assemble(o, pl.slice(m, [32, 32], [0, 0], valid_shape=[n, 32]), [0, 0])"
    )
    text = program("x: [48, 32] FP32\nw: [32, 32] FP32\nc: [1] INT32\no: [32, 32] FP32 Out", body, split)
    x, w, want = randn(48, 32), randn(32, 32, seed=1), out(32, 32)
    want[:rows] = (x[:rows] + 1) @ w * 2
    inputs = {"x": x, "w": w, "c": torch.tensor([rows], dtype=torch.int32), "o": out(32, 32)}
    check_stages(text, inputs, {"o": want}, platform)
    check_device(text, inputs, {"o": want}, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("rows", [16, 17])
def test_factors_of_the_rows_are_whole_when_the_columns_are_split(rows: int, platform: str, tmp_path: Path) -> None:
    """The vector operators turn the factors into a row and back; no lane may take half of them on the way."""
    text = program(
        f"a: [{rows}, 64] FP32\nb: [64, 64] FP32\nf: [{rows}, 1] FP32\n"
        f"o: [{rows}, 64] FP32 Out\np: [{rows}, 1] FP32 Out",
        "g = pl.add(pl.mul(f, 0.5), f)\no = pl.assemble(o, pl.row_expand_mul(pl.matmul(a, b), g), [0, 0])\n"
        "p = pl.assemble(p, g, [0, 0])",
        "LEFT_RIGHT",
    )
    a, b, f = randn(rows, 64), randn(64, 64, seed=1), randn(rows, 1, seed=2)
    inputs = {"a": a, "b": b, "f": f, "o": out(rows, 64), "p": out(rows, 1)}
    want = {"o": a @ b * (1.5 * f), "p": 1.5 * f}
    check_stages(text, inputs, want, platform)
    check_device(text, inputs, want, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("shape", ["[{}]", "[{}, 1]"])
@pytest.mark.parametrize("columns", [24, 40, 64])
def test_bias_turned_into_a_row_of_split_columns(columns: int, shape: str, platform: str, tmp_path: Path) -> None:
    """Half of 24 or 40 numbers ends inside a block of 32 bytes, so lane 1 gets a copy."""
    text = program(
        f"a: [16, 64] FP32\nb: [64, {columns}] FP32\nf: {shape.format(columns)} FP32\no: [16, {columns}] FP32 Out",
        f"g = pl.reshape(f, [1, {columns}])\no = pl.assemble(o, pl.col_expand_add(pl.matmul(a, b), g), [0, 0])",
        "LEFT_RIGHT",
    )
    a, b, f = randn(16, 64), randn(64, columns, seed=1), randn(columns, seed=2)
    inputs = {"a": a, "b": b, "f": f if shape == "[{}]" else f[:, None], "o": out(16, columns)}
    check_stages(text, inputs, {"o": a @ b + f}, platform)
    check_device(text, inputs, {"o": a @ b + f}, platform, tmp_path)


def test_an_odd_row_made_by_a_reshape_is_not_split() -> None:
    text = program(
        "a: [16, 64] FP32\nb: [64, 33] FP32\nf: [33] FP32\no: [16, 33] FP32 Out",
        "g = pl.reshape(f, [1, 33])\no = pl.assemble(o, pl.col_expand_add(pl.matmul(a, b), g), [0, 0])",
        "LEFT_RIGHT",
    )
    with pytest.raises(ValueError, match="a tile with 33 columns, which the vector lanes cannot share evenly"):
        stages(text, "a2a3sim")
