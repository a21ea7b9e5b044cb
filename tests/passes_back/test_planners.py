"""The three planners give the same numbers on the device."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.enums import MemorySpace
from pytest_pypto.pypto.ir.types import PtrType
from pytest_pypto.pypto.passes.context import MemoryPlanner
from pytest_pypto.pypto.passes.memory.liveness import Buffer
from pytest_pypto.pypto.passes.memory.packing import pack

from .whole import check_device, check_stages, out, program, randn

PLANNERS = pytest.mark.parametrize("planner", list(MemoryPlanner), ids=lambda p: p.name)
A, B, D = randn(32, 64), randn(64, 64, seed=1), randn(64, 64, seed=2)
TWO = "a: [32, 64] FP32\nb: [64, 64] FP32\nd: [64, 64] FP32\nc: [1] INT32\no: [32, 64] FP32 Out\nq: [32, 64] FP32 Out"
BODIES: dict[str, tuple[str, Callable[[int], tuple[torch.Tensor, torch.Tensor]]]] = {
    "accumulator_from_branches": (
        "n = pl.read(c, [0])\nif n > 2:\n    m = pl.matmul(a, b)\nelse:\n    m = pl.matmul(a, d)\n"
        "o = pl.assemble(o, pl.add(m, 1.0), [0, 0])\nq = pl.assemble(q, a, [0, 0])",
        lambda n: (A @ (B if n > 2 else D) + 1, A),
    ),
    "value_kept_through_a_branch": (
        "m = pl.add(pl.matmul(a, b), 1.0)\nn = pl.read(c, [0])\ny = m\nif n > 2:\n    y = pl.mul(m, 3.0)\n"
        "o = pl.assemble(o, y, [0, 0])\nq = pl.assemble(q, m, [0, 0])",
        lambda n: ((A @ B + 1) * (3 if n > 2 else 1), A @ B + 1),
    ),
    "column_from_branches": (  # the column is used as a row, so one buffer has two shapes
        "x = pl.row_max(a)\nx = pl.mul(x, 1.0)\ny = pl.mul(pl.row_sum(a), 0.5)\nn = pl.read(c, [0])\n"
        "if n > 2:\n    x = pl.add(y, x)\nelse:\n    y = pl.add(x, 1.0)\n"
        "o = pl.assemble(o, pl.row_expand_mul(a, x), [0, 0])\nq = pl.assemble(q, pl.row_expand_mul(a, y), [0, 0])",
        lambda n: _columns(n > 2),
    ),
    "exchanged_carries": (
        "x = pl.add(a, 1.0)\ny = pl.mul(a, 2.0)\nfor i in pl.range(3):\n    t = pl.add(x, y)\n    x = y\n    y = t\n"
        "o = pl.assemble(o, x, [0, 0])\nq = pl.assemble(q, y, [0, 0])",
        lambda n: _fibonacci(),
    ),
    "carry_of_a_while_loop": (
        "acc = pl.full([32, 64], dtype=pl.FP32, value=0.0)\nk = 0\n"
        "while k < 3:\n    acc = pl.add(acc, a)\n    k = k + 1\n"
        "o = pl.assemble(o, acc, [0, 0])\nq = pl.assemble(q, a, [0, 0])",
        lambda n: (3 * A, A),
    ),
    "columns_at_a_run_time_place": (
        "t = pl.add(a, 1.0)\nfor i in pl.range(4):\n    s = pl.slice(t, [32, 16], [0, i * 16])\n"
        "    o = pl.assemble(o, pl.mul(s, 2.0), [0, i * 16])\nq = pl.assemble(q, a, [0, 0])",
        lambda n: (2 * (A + 1), A),
    ),
    "rows_at_a_run_time_place": (
        "t = pl.add(a, 1.0)\nf = pl.mul(pl.slice(b, [1, 64], [0, 0]), 1.0)\nfor i in pl.range(4):\n"
        "    s = pl.slice(t, [8, 64], [i * 8, 0])\n    o = pl.assemble(o, pl.col_expand_mul(s, f), [i * 8, 0])\n"
        "q = pl.assemble(q, a, [0, 0])",
        lambda n: ((A + 1) * B[:1], A),
    ),
    "rotating_loads": (
        "for i in pl.pipeline(4, stage=2):\n    t = pl.slice(a, [8, 64], [i * 8, 0])\n"
        "    o = pl.assemble(o, pl.mul(t, 2.0), [i * 8, 0])\nq = pl.assemble(q, a, [0, 0])",
        lambda n: (2 * A, A),
    ),
}


def _columns(added: bool) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = A.max(1, keepdim=True).values, A.sum(1, keepdim=True) * 0.5
    return (A * (x + y), A * y) if added else (A * x, A * (x + 1))


def _fibonacci() -> tuple[torch.Tensor, torch.Tensor]:
    x, y = A + 1, 2 * A
    for _ in range(3):
        x, y = y, x + y
    return x, y


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@PLANNERS
@pytest.mark.parametrize("name", list(BODIES))
def test_same_numbers(platform: str, planner: MemoryPlanner, name: str, tmp_path: Path) -> None:
    body, golden = BODIES[name]
    text = program(TWO, body)
    for n in (1, 3) if "n =" in body else (1,):
        inputs = {"a": A, "b": B, "d": D, "c": torch.tensor([n], dtype=torch.int32)}
        inputs |= {"o": out(32, 64), "q": out(32, 64)}
        first, second = golden(n)
        want = {"o": first, "q": second}
        check_stages(text, inputs, want, platform, tolerance=1e-2, planner=planner)
        check_device(text, inputs, want, platform, tmp_path / str(n), tolerance=1e-2, planner=planner)


def _random_buffers(seed: int) -> list[Buffer]:
    r = random.Random(seed)
    made = []
    for i in range(r.choice([3, 6, 12])):
        var, start = e.Var(f"m{i}", PtrType()), r.randrange(12)
        stmt = s.AssignStmt(var, e.index(0))
        buffer = Buffer(var, MemorySpace.Vec, 32 * r.randint(1, 9), False, i, stmt, start, start + r.randint(0, 6))
        made.append(buffer)
    return made


@pytest.mark.parametrize("seed", range(40))
def test_buffers_that_meet_in_one_statement_are_the_same_bytes_or_apart(seed: int) -> None:
    """An operator may write over its operand cell for cell, but not a few cells further on."""
    buffers = _random_buffers(seed)
    address = pack(buffers, 64, {}).address
    for a, b in combinations(buffers, 2):
        at, bt = address[a.base], address[b.base]
        if at + a.size <= bt or bt + b.size <= at:
            continue
        assert not (a.start < b.end and b.start < a.end)
        assert at == bt or not (a.end == b.start or b.end == a.start)
