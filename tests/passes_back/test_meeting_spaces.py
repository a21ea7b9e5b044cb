"""Values that start as products and go on as vectors, or the other way round: one memory space holds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest
import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.enums import MemorySpace as M
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.types import TileType
from pytest_pypto.pypto.ir.visitor import walk_stmts
from pytest_pypto.pypto.passes._util import PassError
from pytest_pypto.pypto.passes.device_ir import op_call

from .random_kernels import Kernel
from .whole import check_device, check_stages, execute, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
COPIES = {(M.Acc, M.Mat), (M.Mat, M.Left), (M.Mat, M.Right), (M.Mat, M.Bias), (M.Vec, M.Vec)}
"""Copies that both architectures make on one core."""
A, B = randn(32, 32), randn(32, 32, seed=1)
PRODUCT = A @ B
Value = torch.Tensor


def moves(node: Program) -> set[tuple[M | None, M | None]]:
    """(from, to) of every move of a program."""
    calls = [op_call(x) for f in node.functions.values() for x in walk_stmts(f.body)]
    pairs = [(c.args[0].type, c.type) for c in calls if c is not None and c.op.name == "tile.move"]
    return {(a.space, b.space) for a, b in pairs if isinstance(a, TileType) and isinstance(b, TileType)}


def turns(f: Callable[[Value], Value], start: Value) -> Value:
    """Three turns of a loop."""
    return reduce(lambda v, _: f(v), range(3), start)


LOOP = "for i in pl.range(n):\n    "
CASES: dict[str, tuple[str, Callable[[], Value]]] = {
    "product, then vectors": (f"v = pl.matmul(a, b)\n{LOOP}v = pl.add(v, b)", lambda: PRODUCT + 3 * B),
    "while": (
        "v = pl.matmul(a, b)\ni = 0\nwhile i < n:\n    v = pl.add(v, b)\n    i = i + 1",
        lambda: PRODUCT + 3 * B,
    ),
    "products of products": (
        f"v = pl.matmul(a, b)\n{LOOP}v = pl.matmul(v, b)",
        lambda: turns(lambda v: v @ B, PRODUCT),
    ),
    "the start is needed again": (
        f"m = pl.matmul(a, b)\nv = m\n{LOOP}v = pl.add(pl.mul(v, 0.5), m)\nv = pl.add(v, m)",
        lambda: turns(lambda v: v * 0.5 + PRODUCT, PRODUCT) + PRODUCT,
    ),
    "sum of products with vector work between": (
        f"v = pl.matmul(a, b)\n{LOOP}for j in pl.range(2):\n        v = pl.matmul_acc(v, a, b)\n    v = pl.mul(v, 0.5)",
        lambda: turns(lambda v: (v + 2 * PRODUCT) * 0.5, PRODUCT),
    ),
    "sum that starts from zeros": (
        f"v = pl.full([32, 32], dtype=pl.FP32, value=0.0)\n{LOOP}v = pl.matmul_acc(v, a, b)",
        lambda: 3 * PRODUCT,
    ),
    "created sum, not every turn adds": (
        f"v = pl.create_tensor([32, 32], dtype=pl.FP32)\n{LOOP}if i == 0:\n        v = pl.matmul(a, b)\n"
        "    if i > 1:\n        v = pl.matmul_acc(v, a, b)",
        lambda: 2 * PRODUCT,
    ),
    "factor that becomes a product": (
        f"v = pl.slice(a, [32, 32], [0, 0])\n{LOOP}v = pl.matmul(v, b)\nv = pl.mul(v, 1.0)",
        lambda: turns(lambda v: v @ B, A),
    ),
    "factor that becomes a vector": (
        f"w = pl.slice(a, [32, 32], [0, 0])\n{LOOP}v = pl.matmul(w, b)\n    w = pl.add(w, 1.0)\nv = pl.matmul(w, b)",
        lambda: (A + 3) @ B,
    ),
    "branch of a product and a vector": (
        "if n > 2:\n    v = pl.matmul(a, b)\nelse:\n    v = pl.exp(a)",
        lambda: PRODUCT,
    ),
    "branch of a vector and a product": (
        "if n < 2:\n    v = pl.matmul(a, b)\nelse:\n    v = pl.exp(a)",
        lambda: A.exp(),
    ),
    "branch of a product and a factor": (
        "v = pl.matmul(a, b)\nif n > 2:\n    w = v\nelse:\n    w = pl.slice(a, [32, 32], [0, 0])\nv = pl.matmul(w, b)",
        lambda: PRODUCT @ B,
    ),
    "exchanged product and vector": (
        f"v = pl.matmul(a, b)\nu = pl.mul(b, 1.0)\n{LOOP}t = v\n    v = u\n    u = pl.add(t, u)",
        lambda: turns_of_two(PRODUCT, B),
    ),
}


def turns_of_two(v: Value, u: Value) -> Value:
    for _ in range(3):
        v, u = u, v + u
    return v


@PLATFORMS
@pytest.mark.parametrize("split", ["NONE", "UP_DOWN"])
@pytest.mark.parametrize("case", CASES)
def test_meeting(case: str, split: str, platform: str, tmp_path: Path) -> None:
    body, want = CASES[case]
    params = "a: [32, 32] FP32\nb: [32, 32] FP32\nc: [1] INT32\no: [32, 32] FP32 Out"
    text = program(params, f"n = pl.read(c, [0])\n{body}\no = pl.assemble(o, v, [0, 0])", split)
    inputs = {"a": A, "b": B, "c": torch.tensor([3], dtype=torch.int32), "o": out(32, 32)}
    found = check_stages(text, inputs, {"o": want()}, platform)
    assert moves(list(found.values())[-1]) <= COPIES
    check_device(text, inputs, {"o": want()}, platform, tmp_path)


@PLATFORMS
def test_random_kernel_with_a_product_that_becomes_a_vector(platform: str, tmp_path: Path) -> None:
    kernel = Kernel(637, n=32)
    text, inputs = kernel.text("UP_DOWN"), kernel.inputs()
    want = {"o": execute(pl.parse(text), inputs)["o"]}
    found = check_stages(text, inputs, want, platform, 2e-3)
    assert moves(list(found.values())[-1]) <= COPIES
    check_device(text, inputs, want, platform, tmp_path, 2e-3)


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        (
            "v = pl.load(a, [0, 0], [32, 32])\nw = pl.move(v, target_memory=pl.Mem.Acc)\no = pl.store(w, [0, 0], o)",
            9,
            "needs 'v' in Acc.*lies in Vec",
        ),
        (
            "v = pl.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)\nw = pl.move(v, target_memory=pl.Mem.Left)\n"
            "u = pl.move(w, target_memory=pl.Mem.Vec)\no = pl.store(u, [0, 0], o)",
            10,
            "needs 'w' in Vec.*lies in Left",
        ),
        (
            "v = pl.create_tensor([32, 32], dtype=pl.FP32)\nfor i in pl.range(2):\n"
            "    v = pl.matmul_acc(v, a, b, init_cond=(i == 0))\n    v = pl.mul(v, 2.0)\no = pl.assemble(o, v, [0, 0])",
            10,
            "needs 'v' in Acc.*lies in Vec.*start the sum from pl.matmul",
        ),
    ],
)
def test_nothing_goes_into_the_accumulator(body: str, line: int, words: str) -> None:
    params = "a: [32, 32] FP32\nb: [32, 32] FP32\no: [32, 32] FP32 Out"
    text = program(params, body)
    with pytest.raises(PassError, match=rf"(?s)(?=.*:{line}:).*{words}"):
        stages(text, "a2a3sim")
