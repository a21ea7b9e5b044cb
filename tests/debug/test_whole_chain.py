"""Programs of kinds that went wrong for others: as written, after every pass, printed and read, and on the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.structural import assert_structural_equal

from ..passes_back.whole import check_device, check_stages, out, program, randn

X = randn(8, 16)
COUNT = "k = pl.cast(pl.read(n, [0]), pl.INDEX)\n"


def count(value: int) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.int32)


def ties() -> torch.Tensor:
    return torch.tensor([[1.5, 2.5, -1.7, 0.6, -2.5, -0.5, 0.5, 3.49] * 2])


PROGRAMS: dict[str, tuple[str, str, dict[str, Any], dict[str, torch.Tensor]]] = {
    "a call in a call": (
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "o = pl.assemble(o, pl.add(pl.exp(x), pl.mul(x, 2.0)), [0, 0])",
        {"x": X, "o": out(8, 16)},
        {"o": X.exp() + 2 * X},
    ),
    "branches in branches in loops": (
        "x: [8, 16] FP32\nn: [1] INT32\no: [8, 16] FP32 Out",
        COUNT + "for i in pl.range(2):\n"
        "    for j in pl.range(4):\n"
        "        if i == 0:\n"
        "            if j > k:\n"
        "                o = pl.assemble(o, pl.add(pl.slice(x, [1, 16], [j, 0]), 1.0), [j, 0])\n"
        "            elif j == k:\n"
        "                o = pl.assemble(o, pl.mul(pl.slice(x, [1, 16], [j, 0]), 2.0), [j, 0])\n"
        "        else:\n"
        "            o = pl.assemble(o, pl.neg(pl.slice(x, [1, 16], [i * 4 + j, 0])), [i * 4 + j, 0])",
        {"x": X, "n": count(1), "o": out(8, 16)},
        {"o": torch.cat([out(1, 16), 2 * X[1:2], X[2:4] + 1, -X[4:]])},
    ),
    "two values that change places": (
        "x: [8, 16] FP32\no: [8, 16] FP32 Out\nq: [8, 16] FP32 Out",
        "a = pl.add(x, 0.0)\nb = pl.neg(x)\nfor i in pl.range(3):\n    t = a\n    a = b\n    b = t\n"
        "o = pl.assemble(o, a, [0, 0])\nq = pl.assemble(q, b, [0, 0])",
        {"x": X, "o": out(8, 16), "q": out(8, 16)},
        {"o": -X, "q": X},
    ),
    "each value from both": (
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "a = pl.mul(x, 1.0)\nb = pl.mul(x, 1.0)\nfor i in pl.range(5):\n    c = pl.add(a, b)\n    a = b\n    b = c\n"
        "o = pl.assemble(o, pl.add(pl.mul(a, 100.0), b), [0, 0])",
        {"x": X, "o": out(8, 16)},
        {"o": 813 * X},
    ),
    "a window read before its tensor is written": (
        "x: [8, 16] FP32\no: [8, 16] FP32 InOut\nq: [8, 16] FP32 Out",
        "t = pl.slice(o, [4, 16], [0, 0])\no = pl.assemble(o, pl.slice(x, [4, 16], [0, 0]), [0, 0])\n"
        "q = pl.assemble(q, pl.add(t, 1.0), [0, 0])",
        {"x": X, "o": -X, "q": out(8, 16)},
        {"o": torch.cat([X[:4], -X[4:]]), "q": torch.cat([1 - X[:4], out(4, 16)])},
    ),
    "later stores into one row": (
        "x: [8, 16] FP32\no: [2, 16] FP32 Out",
        "for step in pl.range(4):\n    t = pl.slice(x, [1, 16], [step, 0])\n"
        "    o = pl.assemble(o, pl.add(t, 1.0), [step // 2, 0])",
        {"x": X, "o": out(2, 16)},
        {"o": X[[1, 3]] + 1},
    ),
    "valid rows through a reshape": (
        "x: [1, 8, 16] FP32\no: [8, 16] FP32 Out",
        "t = pl.slice(x, [1, 8, 16], [0, 0, 0], valid_shape=[1, 5, 16])\n"
        "o = pl.assemble(o, pl.exp(pl.reshape(t, [8, 16])), [0, 0])",
        {"x": X[None], "o": out(8, 16)},
        {"o": torch.cat([X[:5].exp(), out(3, 16)])},
    ),
    "a dropped axis, and adding to memory": (
        "x: [2, 4, 16] FP32\no: [4, 16] FP32 Out\nq: [4, 16] FP32 InOut",
        "t = pl.slice(x, [1, 4, 16], [1, 0, 0], drop_dims=[0])\no = pl.assemble(o, t, [0, 0])\n"
        "q = pl.assemble(q, t, [0, 0], atomic=pl.AtomicType.Add)",
        {"x": X.reshape(2, 4, 16), "o": out(4, 16), "q": torch.ones(4, 16)},
        {"o": X[4:], "q": 1 + X[4:]},
    ),
    "names of builtins and modules": (
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "max = pl.maximum(x, 0.0)\nmin = pl.minimum(max, 0.5)\nrange = pl.add(min, 0.5)\ntorch = pl.mul(range, 2.0)\n"
        "o = pl.assemble(o, torch, [0, 0])",
        {"x": X, "o": out(8, 16)},
        {"o": 2 * (X.clamp(0, 0.5) + 0.5)},
    ),
} | {
    f"rounding {mode}": (
        "x: [1, 16] FP32\no: [1, 16] INT32 Out",
        f"o = pl.assemble(o, pl.cast(x, pl.INT32, mode='{mode}'), [0, 0])",
        {"x": ties(), "o": out(1, 16, dtype=torch.int32)},
        {"o": rounded.int()},
    )
    for mode, rounded in {
        "rint": ties().round(),
        "round": ties().sign() * (ties().abs() + 0.5).floor(),
        "trunc": ties().trunc(),
    }.items()
}


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_form_of_a_program(name: str, platform: str, tmp_path: Path) -> None:
    params, body, values, want = PROGRAMS[name]
    text = program(params, body)
    for node in check_stages(text, values, want, platform).values():
        assert_structural_equal(pl.parse(str(node)), node)
    check_device(text, values, want, platform, tmp_path)
