"""Operators that return the storage of their first operand: a result at another address is found, at its own it is
silent."""

from __future__ import annotations

import pypto.language as pl
import pytest

from pytest_pypto.harness.memory import check_program

KERNEL = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind}, level=pl.Level.{kind}, role=pl.Role.SubWorker)
    def k(
        x: pl.Tensor[[16, 64], pl.FP32],
        y: pl.Tensor[[16, 64], pl.INT32],
        b: pl.Tensor[[64, 64], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ) -> pl.Tensor[[16, 64], pl.FP32]:
{body}
        o_1: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store(r, [0, 0], o)
        return o
"""
SIZE = 16 * 64 * 4
SPACES = {"vec": "Vec", "acc": "Acc", "left": "Left", "right": "Right", "mat": "Mat"}


def tile(name: str, where: str, at: int, value: str, rows: int = 16, dtype: str = "FP32") -> list[str]:
    """An allocation of its own and a [rows, 64] tile in it."""
    base, size = f"mem_{where}_{name}", rows * 64 * 4
    kind = f"pl.Tile[[{rows}, 64], pl.{dtype}, pl.MemRef({base}, pl.const({at}, pl.INT64), {size}), pl.Mem."
    space = SPACES[where]
    return [f"{base}: pl.Ptr = pl.tile.alloc(pl.Mem.{space}, {size})", f"{name}: {kind}{space}] = {value}"]


def load(source: str, rows: int = 16, space: str = "Vec") -> str:
    return f"pl.tile.load({source}, [0, 0], [{rows}, 64], [{rows}, 64], target_memory=pl.Mem.{space})"


def kinds(lines: list[str], kind: str) -> list[str]:
    body = "\n".join(f"        {line}" for line in lines)
    return [f.kind for f in check_program(pl.parse(KERNEL.format(kind=kind, body=body)), "a2a3sim").findings]


def vector(call: str, at: int) -> list[str]:
    return [
        *tile("a", "vec", 0, load("x")),
        *tile("s", "vec", SIZE, load("x")),
        *tile("i", "vec", 2 * SIZE, load("y"), dtype="INT32"),
        *tile("r", "vec", at, call),
    ]


@pytest.mark.parametrize(
    "call",
    [
        "pl.tile.assemble(a, s, [0, 0])",
        "pl.tile.write(a, [0, 0], 1.0)",
        "pl.tile.scatter(a, s, i)",
        "pl.tile.fillpad_inplace(a)",
    ],
)
@pytest.mark.parametrize(("at", "found"), [(0, []), (3 * SIZE, ["moved in place"])], ids=["its own", "another"])
def test_vector_operators(call: str, at: int, found: list[str]) -> None:
    assert kinds(vector(call, at), "AIV") == found


@pytest.mark.parametrize(("at", "found"), [(3 * SIZE, []), (0, [])], ids=["apart", "in its operand"])
def test_an_operator_with_a_result_of_its_own_may_lie_anywhere(at: int, found: list[str]) -> None:
    assert kinds(vector("pl.tile.add(a, s)", at), "AIV") == found


@pytest.mark.parametrize(("at", "found"), [(0, []), (SIZE, ["moved in place"])], ids=["its own", "another"])
def test_a_sum_of_products_stays_in_its_accumulator(at: int, found: list[str]) -> None:
    lines = [
        *tile("ma", "mat", 0, load("x", 16, "Mat")),
        *tile("mb", "mat", SIZE, load("b", 64, "Mat"), 64),
        *tile("la", "left", 0, "pl.tile.move(ma, target_memory=pl.Mem.Left)"),
        *tile("rb", "right", 0, "pl.tile.move(mb, target_memory=pl.Mem.Right)", 64),
        *tile("c", "acc", 0, "pl.tile.matmul(la, rb)"),
        *tile("r", "acc", at, "pl.tile.matmul_acc(c, la, rb)"),
    ]
    assert kinds(lines, "AIC") == found


@pytest.mark.parametrize(("other", "found"), [("c", []), ("d", ["overlap"])], ids=["of one", "of two"])
def test_two_updated_windows(other: str, found: list[str]) -> None:
    """Windows of one accumulator may both be needed; those of two accumulators in one place may not."""

    def window(name: str, of: str, row: int) -> list[str]:
        memref = f"pl.MemRef(mem_acc_{of}, pl.const(0, pl.INT64), {2 * SIZE})"
        kind = f"pl.Tile[[16, 64], pl.FP32, {memref}, pl.Mem.Acc]"
        cut = f"pl.tile.slice({of}, [16, 64], [{row}, 0])"
        return [f"{name}_0: {kind} = {cut}", f"{name}: {kind} = pl.tile.matmul_acc({name}_0, la, rb)"]

    whole = "pl.tile.create([32, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)"
    lines = [
        *tile("ma", "mat", 0, load("x", 16, "Mat")),
        *tile("mb", "mat", SIZE, load("b", 64, "Mat"), 64),
        *tile("la", "left", 0, "pl.tile.move(ma, target_memory=pl.Mem.Left)"),
        *tile("rb", "right", 0, "pl.tile.move(mb, target_memory=pl.Mem.Right)", 64),
        *tile("c", "acc", 0, whole, 32),
        *window("r", "c", 0),
        *(tile(other, "acc", 0, whole, 32) if other != "c" else []),
        *window("w", other, 16),
        "o_0: pl.Tensor[[16, 64], pl.FP32] = pl.tile.store(w, [0, 0], o)",
    ]
    assert sorted(set(kinds(lines, "AIC"))) == found
