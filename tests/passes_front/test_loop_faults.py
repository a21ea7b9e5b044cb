"""Names, loops and merged values that were once wrong: every stage runs and gives the expected numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.ir.enums import ForKind
from pytest_pypto.pypto.ir.stmt import ForStmt
from pytest_pypto.pypto.ir.visitor import walk_stmts
from tests.passes_back.whole import check_stages, out, program, randn, stages

ROOT = Path(__file__).resolve().parents[2]
PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])


@PLATFORMS
def test_names_that_end_in_numbers_are_different_names(platform: str) -> None:
    text = program(
        "x: [16, 16] FP32\no: [16, 16] FP32 Out",
        "tmp_0 = pl.add(x, 1.0)\ntmp_1 = pl.mul(x, 2.0)\no = pl.assemble(o, pl.add(tmp_1, tmp_0), [0, 0])",
    )
    x = randn(16, 16)
    check_stages(text, {"x": x, "o": out(16, 16)}, {"o": 3 * x + 1}, platform)


@PLATFORMS
def test_one_name_in_two_loops_is_two_variables(platform: str) -> None:
    text = program(
        "x: [16, 16] FP32\no: [8, 8] FP32 Out\nq: [16, 16] FP32 Out",
        "for i in pl.range(2):\n    t = pl.slice(x, [8, 8], [i * 8, 0])\n"
        "    o = pl.assemble(o, pl.add(t, 1.0), [0, 0])\n"
        "for i in pl.range(2):\n    t = pl.slice(x, [16, 16], [0, 0])\n    q = pl.assemble(q, pl.mul(t, 2.0), [0, 0])",
    )
    x = randn(16, 16)
    values = {"x": x, "o": out(8, 8), "q": out(16, 16)}
    check_stages(text, values, {"o": x[8:, :8] + 1, "q": 2 * x}, platform)


@PLATFORMS
@pytest.mark.parametrize(("start", "stop", "step"), [(64, 0, -1), (0, 64, 1), (10, 0, -3), (3, 3, -1), (0, 5, -1)])
def test_trip_counts_of_descending_loops(platform: str, start: int, stop: int, step: int) -> None:
    text = program(
        "o: [1] INT32 Out",
        f"acc: pl.Scalar[pl.INT32] = 0\nfor i in pl.range({start}, {stop}, {step}):\n"
        "    acc = acc + pl.cast(i, pl.INT32)\npl.write(o, [0], acc)",
    )
    want = torch.tensor([sum(range(start, stop, step))], dtype=torch.int32)
    check_stages(text, {"o": torch.zeros(1, dtype=torch.int32)}, {"o": want}, platform)


def test_the_same_text_in_every_process() -> None:
    """Nothing is ordered by hashes."""
    script = (
        "import sys\nfrom tests.passes_front.random_programs import kernel_program\n"
        "from tests.passes_back.whole import stages\n"
        "found = stages(kernel_program([(k * 37) % 1000 for k in range(200)], 14), 'a2a3sim')\n"
        "sys.stdout.write('\\n'.join(str(p) for p in found.values()))\n"
    )
    texts = []
    for seed in ("1", "2"):
        env = {"PYTHONHASHSEED": seed, "PATH": "", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True, cwd=ROOT
        )
        texts.append(done.stdout)
    assert len(texts[0]) > 1000
    assert texts[0] == texts[1]


@PLATFORMS
def test_names_in_scopes_and_valid_shapes_are_renamed(platform: str) -> None:
    text = program(
        "x: [8, 16] FP32\no: [8, 16] FP32 Out",
        "k: pl.Scalar[pl.INDEX] = 3\nk = k + 1\nt = pl.slice(x, [8, 16], [0, 0], valid_shape=[k, 16])\nk = 8\n"
        "u = pl.slice(x, [8, 16], [0, 0], valid_shape=[k, 16])\n"
        "o = pl.assemble(o, pl.mul(u, 2.0), [0, 0])\no = pl.assemble(o, pl.neg(t), [0, 0])",
    )
    x = randn(8, 16)
    want = 2 * x
    want[:4] = -x[:4]
    check_stages(text, {"x": x, "o": out(8, 16)}, {"o": want}, platform)


@PLATFORMS
def test_number_of_blocks_from_a_variable(platform: str) -> None:
    text = program(
        "x: [64, 16] FP32\no: [64, 16] FP32 Out",
        "n = 2\nn = n + 2\nwith pl.spmd(core_num=n):\n    i = pl.tile.get_block_idx()\n"
        "    t = pl.slice(x, [16, 16], [i * 16, 0])\n    o = pl.assemble(o, pl.add(t, 1.0), [i * 16, 0])\nn = 7",
        plain=True,
    )
    x = randn(64, 16)
    check_stages(text, {"x": x, "o": out(64, 16)}, {"o": x + 1}, platform)


@PLATFORMS
def test_an_operator_inside_a_yield(platform: str) -> None:
    text = program(
        "x: [4, 64] FP32\no: [1, 64] FP32 Out",
        "first = pl.slice(x, [1, 64], [0, 0])\n"
        "for i, (acc,) in pl.range(1, 4, init_values=(first,)):\n"
        "    total = pl.yield_(pl.add(acc, pl.slice(x, [1, 64], [i, 0])))\n"
        "o = pl.assemble(o, total, [0, 0])",
    )
    x = randn(4, 64)
    check_stages(text, {"x": x, "o": out(1, 64)}, {"o": x.sum(0, keepdim=True)}, platform)


@PLATFORMS
def test_a_carry_that_starts_with_a_number(platform: str) -> None:
    text = program(
        "o: [1] INT32 Out",
        "acc: pl.Scalar[pl.INT32] = 0\nfor i in pl.range(5):\n    acc = acc + pl.cast(i, pl.INT32)\n"
        "pl.write(o, [0], acc)",
    )
    want = torch.tensor([10], dtype=torch.int32)
    check_stages(text, {"o": torch.zeros(1, dtype=torch.int32)}, {"o": want}, platform)


@PLATFORMS
def test_unrolled_loops_are_gone(platform: str) -> None:
    text = program(
        "x: [64, 16] FP32\no: [64, 16] FP32 Out",
        "for i in pl.unroll(4):\n    t = pl.slice(x, [16, 16], [i * 16, 0])\n"
        "    o = pl.assemble(o, pl.mul(t, 2.0), [i * 16, 0])",
    )
    x = randn(64, 16)
    found = check_stages(text, {"x": x, "o": out(64, 16)}, {"o": 2 * x}, platform)
    last = list(found.values())[-1]
    assert not [x for f in last.functions.values() for x in walk_stmts(f.body) if isinstance(x, ForStmt)]


def test_parallel_loops_stay_parallel() -> None:
    text = program(
        "x: [64, 16] FP32\no: [64, 16] FP32 Out",
        "for i in pl.parallel(4):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        for j in pl.range(2):\n            t = pl.slice(x, [8, 16], [i * 16 + j * 8, 0])\n"
        "            o = pl.assemble(o, pl.exp(t), [i * 16 + j * 8, 0])",
        plain=True,
    )
    last = list(stages(text, "a2a3sim").values())[-1]
    main = last.get_function("main")
    assert main is not None
    kinds = [x.kind for x in walk_stmts(main.body) if isinstance(x, ForStmt)]
    assert kinds == [ForKind.Parallel]


@PLATFORMS
def test_later_stores_into_one_place_win(platform: str) -> None:
    text = program(
        "o: [2, 16] FP32 InOut",
        "for step in pl.range(4):\n    t = pl.full([1, 16], dtype=pl.FP32, value=0.0)\n"
        "    u = pl.add(t, pl.cast(step, pl.FP32))\n    o = pl.assemble(o, u, [step // 2, 0])",
    )
    want = torch.tensor([[1.0], [3.0]]).expand(2, 16)
    check_stages(text, {"o": out(2, 16)}, {"o": want}, platform)


@PLATFORMS
def test_what_a_region_reads_and_rewrites_is_its_parameter(platform: str) -> None:
    text = program(
        "a: [16, 16] FP32\nc: [16, 16] FP32 InOut",
        "t = pl.add(pl.slice(c, [16, 16], [0, 0]), a)\nc = pl.assemble(c, t, [0, 0])",
    )
    a = randn(16, 16)
    found = check_stages(text, {"a": a, "c": out(16, 16)}, {"c": a - 7}, platform)
    kernel = next(f for f in found["OutlineIncoreScopes"].functions.values() if f.name != "main")
    pairs = {p.name_hint.partition("__")[0]: d.name for p, d in kernel.pairs}
    assert pairs == {"a": "In", "c": "InOut"}


@PLATFORMS
def test_a_first_step_apart_from_the_loop(platform: str) -> None:
    text = program(
        "x: [16, 64] FP32\nw: [64, 16] FP32\no: [16, 16] FP32 Out",
        "a = pl.slice(x, [16, 16], [0, 0])\nb = pl.slice(w, [16, 16], [0, 0])\nc = pl.matmul(a, b)\n"
        "for k in pl.range(1, 4):\n    a = pl.slice(x, [16, 16], [0, k * 16])\n"
        "    b = pl.slice(w, [16, 16], [k * 16, 0])\n    c = pl.matmul_acc(c, a, b)\no = pl.assemble(o, c, [0, 0])",
    )
    x, w = randn(16, 64), randn(64, 16, seed=1)
    check_stages(text, {"x": x, "w": w, "o": out(16, 16)}, {"o": x @ w}, platform)


@PLATFORMS
def test_products_into_the_halves_of_one_accumulator(platform: str) -> None:
    kernel = """
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: X, w: W, o: pl.Out[O]) -> O:
        a = pl.load(x, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
        b = pl.load(w, [0, 0], [32, 16], target_memory=pl.Mem.Mat)
        acc = pl.tile.create([32, 16], dtype=pl.FP32, target_memory=pl.Mem.Acc)
        c = pl.matmul_acc(pl.tile.slice(acc, [16, 16], [0, 0]), a, b, init_cond=True)
        d = pl.matmul_acc(pl.tile.slice(acc, [16, 16], [16, 0]), a, b, init_cond=True)
        d = pl.matmul_acc(d, a, b)
        o = pl.store(acc, [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: X, w: W, o: pl.Out[O]) -> O:
        o = self.k(x, w, o)
        return o
"""
    for name, shape in {"X": "16, 32", "W": "32, 16", "O": "32, 16"}.items():
        kernel = re.sub(rf"\b{name}\b", f"pl.Tensor[[{shape}], pl.FP32]", kernel)
    x, w = randn(16, 32), randn(32, 16, seed=1)
    want = torch.cat([x @ w, 2 * (x @ w)])
    text = f"import pypto.language as pl\n\n@pl.program\nclass P:{kernel}"
    check_stages(text, {"x": x, "w": w, "o": out(32, 16)}, {"o": want}, platform)
