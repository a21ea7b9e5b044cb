"""Vector operators after a product, for every split: halved, whole in both lanes, or replayed by the idle lane.

Without a split the second lane of the older architecture only takes part in the transfers; the device shows that it
touches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from .whole import check_device, check_stages, out, program, randn

A, B, G = randn(32, 64), randn(64, 64, seed=1), randn(40, 70, seed=4)
M = A @ B
BACK = "o = pl.assemble(o, {}, [0, 0])"
ACC = "acc = pl.full([32, 64], dtype=pl.FP32, value=0.0)\n"


def _pad() -> torch.Tensor:
    return torch.nn.functional.pad((M + 1)[:20, :40], (0, 24, 0, 12))


def _inside() -> torch.Tensor:
    want = out(40, 80)
    want[5:37, 8:72] = M + 1
    return want


CASES: dict[str, tuple[str, Callable[[], torch.Tensor], str]] = {
    "transpose": (BACK.format("pl.transpose(pl.add(m, 1.0), 0, 1)"), lambda: (M + 1).T, "NONE"),
    "columns": (
        "z = pl.slice(pl.add(m, 1.0), [32, 32], [0, 32])\n" + BACK.format("pl.mul(z, 2.0)"),
        lambda: 2 * (M + 1)[:, 32:],
        "NONE UP_DOWN",
    ),
    "rows": (
        "z = pl.slice(pl.add(m, 1.0), [16, 64], [16, 0])\n" + BACK.format("pl.mul(z, 2.0)"),
        lambda: 2 * (M + 1)[16:],
        "NONE LEFT_RIGHT",
    ),
    "concat": (BACK.format("pl.concat(pl.add(m, 1.0), m)"), lambda: torch.cat([M + 1, M], 1), "NONE UP_DOWN"),
    "softmax": (
        "e = pl.exp(pl.row_expand_sub(m, pl.row_max(m)))\n" + BACK.format("pl.row_expand_div(e, pl.row_sum(e))"),
        lambda: M.softmax(1),
        "NONE UP_DOWN",
    ),
    "col_sum": (BACK.format("pl.col_sum(m)"), lambda: M.sum(0, keepdim=True), "NONE LEFT_RIGHT"),
    "reshape": (
        BACK.format("pl.reshape(pl.add(m, 1.0), [64, 32])"),
        lambda: (M + 1).reshape(64, 32),
        "NONE UP_DOWN",
    ),
    "mask": (
        "c = pl.cmp(m, 0.0, cmp_type=4)\n" + BACK.format("pl.mul(m, c)"),
        lambda: M.clamp(min=0),
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "fillpad": (
        "y = pl.set_validshape(pl.add(m, 1.0), 20, 40)\n" + BACK.format("pl.fillpad(y, pad_value=pl.PadValue.zero)"),
        _pad,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "loop": (
        f"{ACC}for i in pl.range(3):\n    acc = pl.add(acc, m)\n" + BACK.format("acc"),
        lambda: 3 * M,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "while": (
        f"{ACC}c = 0\nwhile c < 3:\n    acc = pl.add(acc, m)\n    c = c + 1\n" + BACK.format("acc"),
        lambda: 3 * M,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "break": (
        f"{ACC}for i in pl.range(5):\n    acc = pl.add(acc, m)\n    if i == 2:\n        break\n" + BACK.format("acc"),
        lambda: 3 * M,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "products_in_branches": (
        f"{ACC}for i in pl.range(2):\n    for j in pl.range(2):\n        r = pl.matmul(a, b)\n        if i == j:\n"
        "            acc = pl.add(acc, r)\n" + BACK.format("acc"),
        lambda: 2 * M,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "there_and_back": (
        "e = pl.mul(m, 0.1)\nf = pl.mul(pl.matmul(e, b), 0.1)\n" + BACK.format("pl.add(pl.matmul(f, b), e)"),
        lambda: ((0.1 * M @ B) * 0.1) @ B + 0.1 * M,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "window_of_another": (
        BACK.format("pl.add(m, pl.slice(g, [32, 64], [1, 2]))"),
        lambda: M + G[1:33, 2:66],
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "atomic": (
        "o = pl.assemble(o, pl.add(m, 1.0), [0, 0], atomic=pl.AtomicType.Add)",
        lambda: out(32, 64) + M + 1,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "inside_a_larger_output": (
        "o = pl.assemble(o, pl.add(m, 1.0), [5, 8])",
        _inside,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
    "scratch_in_memory": (
        "z = pl.create_tensor([32, 64], dtype=pl.FP32)\nz = pl.assemble(z, pl.add(m, 1.0), [0, 0])\n"
        + BACK.format("z"),
        lambda: M + 1,
        "NONE UP_DOWN LEFT_RIGHT",
    ),
}
RUNS = [(name, split) for name, (_, _, splits) in CASES.items() for split in splits.split()]


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize(("name", "split"), RUNS, ids=lambda v: str(v))
def test_after_a_product(platform: str, name: str, split: str, tmp_path: Path) -> None:
    body, golden, _ = CASES[name]
    want = golden()
    rows, cols = want.shape
    text = program(
        f"a: [32, 64] FP32\nb: [64, 64] FP32\ng: [40, 70] FP32\no: [{rows}, {cols}] FP32 Out",
        f"m = pl.matmul(a, b)\n{body}",
        split,
    )
    inputs = {"a": A, "b": B, "g": G, "o": out(rows, cols)}
    check_stages(text, inputs, {"o": want}, platform, tolerance=1e-2)
    if platform == "a2a3sim":
        check_device(text, inputs, {"o": want}, platform, tmp_path, tolerance=1e-2)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize(("dtype", "text"), [("FP32", "f32"), ("FP16", "f16")])
def test_a_number_meets_elements_of_its_type(dtype: str, text: str, platform: str, tmp_path: Path) -> None:
    """An INT32 scalar and a floating-point tile: the instruction takes one type."""
    kind = {"FP32": torch.float32, "FP16": torch.float16}[dtype]
    params = f"x: [16, 16] {dtype}\nc: [1] INT32\no: [16, 16] {dtype} Out"
    source = program(params, "n = pl.read(c, [0])\no = pl.assemble(o, pl.mul(pl.add(x, n), n), [0, 0])")
    x = randn(16, 16).to(kind)
    inputs = {"x": x, "c": torch.tensor([3], dtype=torch.int32), "o": out(16, 16, dtype=kind)}
    check_device(source, inputs, {"o": (x + 3) * 3}, platform, tmp_path)
    (kernel,) = (tmp_path / "kernels").rglob("*.pto")
    lines = [line for line in kernel.read_text().split("\n") if "pto.tadds" in line or "pto.tmuls" in line]
    assert len(lines) == 2
    assert all(f">, {text}) outs" in line for line in lines)
