"""`pl.pipeline` loops: unrolled, skewed between the cores, or turned into rotating slots; the result is the same."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.enums import ForKind
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.visitor import walk_stmts
from pytest_pypto.pypto.passes.context import MemoryPlanner

from .whole import check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
X, Y = randn(224, 64), randn(224, 64, seed=2)
LOAD = "    t = pl.slice(x, [32, 64], [i * 32, 0])\n"


def loops(node: Program) -> list[s.ForStmt]:
    return [x for f in node.functions.values() for x in walk_stmts(f.body) if isinstance(x, s.ForStmt)]


def rows(n: int) -> torch.Tensor:
    want = out(224, 64)
    want[: 32 * n] = X[: 32 * n].exp()
    return want


def check(text: str, inputs: dict[str, torch.Tensor], want: torch.Tensor, platform: str) -> None:
    found = check_stages(text, inputs, {"o": want}, platform, tolerance=1e-2)
    assert all(loop.kind is not ForKind.Pipeline for loop in loops(list(found.values())[-1]))


@PLATFORMS
@pytest.mark.parametrize("stage", [2, 3, 4])
def test_turns_that_the_stages_do_not_divide(platform: str, stage: int) -> None:
    text = program(
        "x: [224, 64] FP32\ny: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline(7, stage={stage}):\n{LOAD}    u = pl.slice(y, [32, 64], [i * 32, 0])\n"
        "    o = pl.assemble(o, pl.add(pl.exp(t), u), [i * 32, 0])",
    )
    check(text, {"x": X, "y": Y, "o": out(224, 64)}, X.exp() + Y, platform)


@PLATFORMS
@pytest.mark.parametrize("turns", [1, 2])
def test_fewer_turns_than_stages(platform: str, turns: int) -> None:
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline({turns}, stage=3):\n{LOAD}    o = pl.assemble(o, pl.exp(t), [i * 32, 0])",
    )
    check(text, {"x": X, "o": out(224, 64)}, rows(turns), platform)


@PLATFORMS
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 7])
def test_turns_known_at_run_time(platform: str, turns: int) -> None:
    text = program(
        "x: [224, 64] FP32\nn: [1] INT32\no: [224, 64] FP32 Out",
        "k = pl.cast(pl.read(n, [0]), pl.INDEX)\n"
        f"for i in pl.pipeline(k, stage=2):\n{LOAD}    o = pl.assemble(o, pl.exp(t), [i * 32, 0])",
    )
    n = torch.tensor([turns], dtype=torch.int32)
    check(text, {"x": X, "n": n, "o": out(224, 64)}, rows(turns), platform)


@PLATFORMS
@pytest.mark.parametrize("stop", [2, 5])
def test_carry_over_turns_known_at_run_time(platform: str, stop: int) -> None:
    text = program(
        "x: [224, 64] FP32\nn: [1] INT32\no: [32, 64] FP32 Out",
        "k = pl.cast(pl.read(n, [0]), pl.INDEX)\nacc = pl.full([32, 64], dtype=pl.FP32, value=1.0)\n"
        f"for i in pl.pipeline(1, k, stage=3):\n{LOAD}    acc = pl.add(acc, t)\no = pl.assemble(o, acc, [0, 0])",
    )
    n = torch.tensor([stop], dtype=torch.int32)
    check(text, {"x": X, "n": n, "o": out(32, 64)}, 1 + X.view(7, 32, 64)[1:stop].sum(0), platform)


@PLATFORMS
def test_step(platform: str) -> None:
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline(1, 7, 2, stage=2):\n{LOAD}    o = pl.assemble(o, pl.exp(t), [i * 32, 0])",
    )
    want = out(224, 64).view(7, 32, 64)
    want[1::2] = X.view(7, 32, 64)[1::2].exp()
    check(text, {"x": X, "o": out(224, 64)}, want.view(224, 64), platform)


@PLATFORMS
def test_pipeline_in_a_pipeline(platform: str) -> None:
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        "for j in pl.pipeline(2, stage=2):\n    for i in pl.pipeline(3, stage=2):\n"
        "        t = pl.slice(x, [32, 64], [j * 96 + i * 32, 0])\n"
        "        o = pl.assemble(o, pl.exp(t), [j * 96 + i * 32, 0])",
    )
    check(text, {"x": X, "o": out(224, 64)}, rows(6), platform)


@PLATFORMS
def test_branch_in_a_pipeline(platform: str) -> None:
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline(7, stage=2):\n{LOAD}    if i % 2 == 0:\n        y = pl.exp(t)\n    else:\n"
        "        y = pl.mul(t, 2.0)\n    o = pl.assemble(o, y, [i * 32, 0])",
    )
    want = X.clone().view(7, 32, 64)
    want[0::2], want[1::2] = want[0::2].exp(), 2 * want[1::2]
    check(text, {"x": X, "o": out(224, 64)}, want.view(224, 64), platform)


@PLATFORMS
def test_turns_that_read_what_the_last_one_wrote(platform: str) -> None:
    """Loads are not moved ahead of the store that they depend on."""
    text = program(
        "o: [224, 64] FP32 InOut",
        "for i in pl.pipeline(6, stage=2):\n    t = pl.slice(o, [32, 64], [i * 32, 0])\n"
        "    o = pl.assemble(o, pl.add(t, 1.0), [i * 32 + 32, 0])",
    )
    want = X.clone().view(7, 32, 64)
    for i in range(6):
        want[i + 1] = want[i] + 1
    check(text, {"o": X}, want.view(224, 64), platform)


@PLATFORMS
def test_accumulator(platform: str) -> None:
    text = program(
        "a: [32, 224] FP32\nb: [224, 64] FP32\no: [32, 64] FP32 Out",
        "m = pl.matmul(pl.slice(a, [32, 32], [0, 0]), pl.slice(b, [32, 64], [0, 0]))\n"
        "for i in pl.pipeline(1, 7, stage=2):\n"
        "    m = pl.matmul_acc(m, pl.slice(a, [32, 32], [0, i * 32]), pl.slice(b, [32, 64], [i * 32, 0]))\n"
        "o = pl.assemble(o, m, [0, 0])",
    )
    a = randn(32, 224)
    check(text, {"a": a, "b": X, "o": out(32, 64)}, a @ X, platform)


@PLATFORMS
@pytest.mark.parametrize("split", ["NONE", "UP_DOWN", "LEFT_RIGHT"])
@pytest.mark.parametrize("turns", [0, 1, 4, 7])
def test_cores_run_ahead_of_each_other(platform: str, split: str, turns: int) -> None:
    """Two products with a vector step between them; the turns are constant for 7."""
    count = "7" if turns == 7 else "pl.cast(pl.read(n, [0]), pl.INDEX)"
    text = program(
        "a: [224, 64] FP32\nb: [64, 64] FP32\nc: [64, 64] FP32\nn: [1] INT32\no: [224, 64] FP32 Out",
        f"k = {count}\nfor i in pl.pipeline(k, stage=2):\n    m = pl.matmul(pl.slice(a, [32, 64], [i * 32, 0]), b)\n"
        "    r = pl.matmul(pl.mul(m, 0.1), c)\n    o = pl.assemble(o, pl.add(r, 1.0), [i * 32, 0])",
        split,
    )
    b, c = randn(64, 64, seed=1), randn(64, 64, seed=3)
    want = out(224, 64)
    want[: 32 * turns] = ((0.1 * X @ b) @ c + 1)[: 32 * turns]
    n = torch.tensor([turns], dtype=torch.int32)
    check(text, {"a": X, "b": b, "c": c, "n": n, "o": out(224, 64)}, want, platform)


@PLATFORMS
def test_eight_loads_of_two_stages_have_their_own_buffers(platform: str) -> None:
    body = "".join(f"    t{k} = pl.slice(x, [4, 64], [i * 32 + {4 * k}, 0])\n" for k in range(8))
    total = "".join(f"    s = pl.add(s, t{k})\n" for k in range(1, 8))
    text = program(
        "x: [224, 64] FP32\no: [28, 64] FP32 Out",
        f"for i in pl.pipeline(7, stage=2):\n{body}    s = pl.mul(t0, 1.0)\n{total}"
        "    o = pl.assemble(o, s, [i * 4, 0])",
    )
    want = X.view(7, 8, 4, 64).sum(1).reshape(28, 64)
    check(text, {"x": X, "o": out(28, 64)}, want, platform)


@PLATFORMS
def test_rotating_slots_with_planner_ptoas(platform: str) -> None:
    """The loop stays, and its loads rotate through slots."""
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline(7, stage=2):\n{LOAD}    o = pl.assemble(o, pl.exp(t), [i * 32, 0])",
    )
    inputs = {"x": X, "o": out(224, 64)}
    found = check_stages(text, inputs, {"o": X.exp()}, platform, planner=MemoryPlanner.PTOAS)
    last = str(list(found.values())[-1])
    assert "slots=2)[i__idx_v0 % 2]" in last
    assert "AllocateMemoryAddr" not in found
    assert "MemoryReuse" not in found


def test_error_names_the_stage() -> None:
    text = program(
        "x: [224, 64] FP32\no: [224, 64] FP32 Out",
        f"for i in pl.pipeline(7, stage=0):\n{LOAD}    o = pl.assemble(o, pl.exp(t), [i * 32, 0])",
    )
    with pytest.raises(Exception, match="stage"):
        stages(text, "a2a3sim")
