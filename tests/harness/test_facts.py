"""What the tolerance policy is told about a program."""

from __future__ import annotations

from typing import Any

import pypto.language as pl
import pytest

from pytest_pypto.harness.facts import facts_of
from tests.harness import programs
from tests.kit import dump_files, needs_kit


def test_a_matrix_product_adds_up_its_inner_extent() -> None:
    found = facts_of(programs.mixed(), "UP_DOWN")
    assert (found.length, found.narrowest) == (64, None)
    assert dict(found.tiles) == {"c": (32, 64)}
    assert found.layout("c").split == "UP_DOWN"


def test_elementwise_programs_add_nothing_up() -> None:
    found = facts_of(programs.vector_add())
    assert (found.length, found.narrowest, dict(found.tiles)) == (1, None, {"out": (32, 64)})


def test_without_a_program() -> None:
    found = facts_of(None, "NONE")
    assert (found.length, found.narrowest, dict(found.tiles)) == (1, None, {})


def test_sums_in_carried_loops_multiply() -> None:
    @pl.program
    class Sums:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 1], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                first = pl.row_sum(pl.slice(x, [8, 32], [0, 0]))
                for i, (total,) in pl.range(1, 8, init_values=(first,)):
                    part = pl.row_sum(pl.slice(x, [8, 32], [i * 8, 0]))
                    result = pl.yield_(pl.add(total, part))
                o = pl.assemble(o, result, [0, 0])
            return o

    assert facts_of(Sums).length == 7 * 32


LOADED = [("matmul", 512, None), ("mm_bf16", 64, "bfloat16"), ("scope3", None, "bfloat16"), ("softmax", 128, None)]


@needs_kit
@pytest.mark.parametrize(("name", "length", "narrowest"), LOADED)
def test_programs_of_the_kit(name: str, length: int | None, narrowest: str | None) -> None:
    found: Any = facts_of(pl.loads(str(next(p for p in dump_files() if p.parts[-4] == name))))
    assert length is None or found.length == length
    assert found.narrowest == narrowest
