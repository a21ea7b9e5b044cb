"""Slots of a ring are given back in the order of the tiles, so tiles that stay longer are copied out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.passes.mixed.slot_order import freed_tile

from .support import PLATFORMS as BACKENDS
from .support import calls, function, kernel, run_pass
from .whole import check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
SPLITS = pytest.mark.parametrize("split", ["NONE", "UP_DOWN"])
A, B, W = randn(32, 32), randn(32, 32, seed=1), randn(32, 32, seed=2)
PARAMS = "a: [32, 32] FP32\nb: [32, 32] FP32\nw: [32, 32] FP32\no: [32, 32] FP32 Out\np: [32, 32] FP32 Out"
BODIES: dict[str, tuple[str, torch.Tensor, torch.Tensor]] = {
    "three at once": (
        "k = pl.matmul(a, w)\nm = pl.matmul(b, w)\nn = pl.matmul(w, w)\nt = pl.add(k, m)\nu = pl.add(m, n)\n"
        "o = pl.assemble(o, pl.add(n, k), [0, 0])\np = pl.assemble(p, pl.mul(t, u), [0, 0])",
        W @ W + A @ W,
        (A @ W + B @ W) * (B @ W + W @ W),
    ),
    "over a loop": (
        "k = pl.matmul(a, w)\no = pl.assemble(o, pl.add(k, 1.0), [0, 0])\nt = pl.mul(b, 1.0)\nfor i in pl.range(3):\n"
        "    t = pl.mul(pl.matmul(t, w), 0.5)\np = pl.assemble(p, pl.add(t, k), [0, 0])",
        A @ W + 1,
        B @ W @ W @ W * 0.125 + A @ W,
    ),
    "in a loop": (
        "k = pl.matmul(a, w)\nt = pl.mul(k, 1.0)\nfor i in pl.range(3):\n"
        "    t = pl.add(pl.mul(pl.matmul(t, w), 0.5), k)\n"
        "o = pl.assemble(o, t, [0, 0])\np = pl.assemble(p, k, [0, 0])",
        ((A @ W @ W * 0.5 + A @ W) @ W * 0.5 + A @ W) @ W * 0.5 + A @ W,
        A @ W,
    ),
    "through a branch": (
        "k = pl.matmul(a, w)\no = pl.assemble(o, pl.mul(k, 2.0), [0, 0])\nn = pl.read(w, [0, 0])\n"
        "t = pl.mul(b, 1.0)\nfor i in pl.range(4):\n    if i % 2 == 0:\n        t = pl.mul(pl.matmul(t, w), 0.5)\n"
        "p = pl.assemble(p, pl.sub(k, t), [0, 0])",
        A @ W * 2,
        A @ W - B @ W @ W * 0.25,
    ),
}


@PLATFORMS
@SPLITS
@pytest.mark.parametrize("case", BODIES)
def test_products_that_stay(case: str, split: str, platform: str, tmp_path: Path) -> None:
    body, first, second = BODIES[case]
    text = program(PARAMS, body, split)
    inputs = {"a": A, "b": B, "w": W, "o": out(32, 32), "p": out(32, 32)}
    check_stages(text, inputs, {"o": first, "p": second}, platform)
    check_device(text, inputs, {"o": first, "p": second}, platform, tmp_path)


@pytest.mark.parametrize(("slots", "copies"), [(2, 1), (3, 0)])
def test_a_larger_ring_needs_no_copy(slots: int, copies: int, tmp_path: Path) -> None:
    body, first, second = BODIES["three at once"]
    head = f"level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num={slots})]"
    text = program(PARAMS, body).replace("level=pl.Level.CORE_GROUP", head)
    vector = function(stages(text, "a5sim")["ExpandMixedKernel"], "main_incore_0_aiv")
    assert len(calls(vector, "tile.move")) == copies
    inputs = {"a": A, "b": B, "w": W, "o": out(32, 32), "p": out(32, 32)}
    check_device(text, inputs, {"o": first, "p": second}, "a5sim", tmp_path)


RECEIVE = (
    "p: pl.Tile[[16, 16], pl.FP32, pl.Mem.{0}] = pl.tpop_from_{1}(split=0)\n"
    "q: pl.Tile[[16, 16], pl.FP32, pl.Mem.{0}] = pl.tpop_from_{1}(split=0)\n"
)


def frees(text: str, kind: str) -> list[str]:
    node = kernel(text, "o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]", kind=kind, returns="pl.Tensor[[16, 16], pl.FP32]")
    with selected_backend(BACKENDS["a2a3sim"]):
        body = function(run_pass("ExpandMixedKernel", node), "k").body
    found = (freed_tile(x) for x in s.stmts_of(body))
    return [v.name_hint for v in found if v is not None]


def test_frees_are_in_the_order_of_the_tiles() -> None:
    """The younger tile has its last use first; a ring of two can wait."""
    text = RECEIVE.format("Vec", "aic") + "t = pl.add(q, 1.0)\nu = pl.add(p, t)\nreturn pl.store(u, [0, 0], o)"
    assert frees(text, "AIV") == ["p", "q"]
    given = text.replace("u = pl", "pl.tfree_to_aic(q)\nu = pl").replace("return", "pl.tfree_to_aic(p)\nreturn")
    assert frees(given, "AIV") == ["p", "q"]


def test_a_tile_of_the_cube_core_has_no_copy() -> None:
    text = RECEIVE.format("Mat", "aiv").split("\n")[0] + (
        "\nfor i in pl.range(2):\n    q: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)\n"
        "    l = pl.move(p, target_memory=pl.Mem.Left)\n    r = pl.move(q, target_memory=pl.Mem.Right)\n"
        "    o = pl.store(pl.matmul(l, r), [0, 0], o)\nreturn o"
    )
    with pytest.raises(
        ValueError, match="'p' was received from the vector core and is used after tiles that came later"
    ):
        frees(text, "AIC")
