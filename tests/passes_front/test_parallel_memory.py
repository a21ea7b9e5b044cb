"""Iterations of `pl.parallel` that meet in memory: found with the place; independent ones pass in silence."""

from __future__ import annotations

import textwrap

import pytest

from pytest_pypto.pypto.ir.enums import ForKind
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.stmt import ForStmt
from pytest_pypto.pypto.ir.visitor import walk_stmts
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.diagnostic_types import Diagnostic, DiagnosticSeverity
from pytest_pypto.pypto.passes.diagnostics import DiagnosticCheckRegistry
from pytest_pypto.pypto.passes.parallel_memory import RULE, parallel_loop_carries_memory
from pytest_pypto.pypto.runtime.compile import lower_program

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, n: pl.Scalar[pl.INDEX], y: pl.Tensor[[64, 64], pl.FP32],
             x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
"""


def found(body: str) -> list[Diagnostic]:
    return list(parallel_loop_carries_memory(program(body)))


def program(body: str) -> Program:
    made = parse(HEAD + textwrap.indent(textwrap.dedent(body).strip(), " " * 8) + "\n        return x\n")
    assert isinstance(made, Program)
    assert any(isinstance(x, ForStmt) and x.kind is ForKind.Parallel for x in walk_stmts(made.functions["main"].body))
    return made


IN_KERNEL = """
with pl.at(level=pl.Level.CORE_GROUP):
    for i in pl.parallel(1, 64):
        t = pl.load({source}, [{read}, 0], [1, 64])
        x = pl.store(pl.add(t, 1.0), [{write}, 0], x)
"""


def test_the_place_and_the_iterations_are_named() -> None:
    (one,) = found(IN_KERNEL.format(source="x", read="i - 1", write="i"))
    assert (one.severity, one.rule_name) == (DiagnosticSeverity.Warning, RULE)
    assert one.span.begin_line == 10
    assert "pl.parallel loop over 'i' (<string>:9:13)" in one.message
    assert "'x' is written at [i, 0] (extents [1, 64], <string>:11:" in one.message
    assert "read at [i - 1, 0] (extents [1, 64], <string>:10:" in one.message
    assert "i = 2 reads what i = 1 writes" in one.message


@pytest.mark.parametrize(
    ("read", "write", "meets"),
    [
        ("i - 1", "i", True),
        ("i", "i - 1", True),
        ("i + 3", "i", True),
        ("i", "i", False),
        ("0", "i", False),  # row 0 is written by no iteration
        ("5", "i", True),
        ("i", "0", False),  # iterations begin at 1: row 0 is read by none
        ("pl.max(i - 1, 0)", "i", True),
        ("i // 2", "i", True),
        ("n", "i", False),  # cannot be told
        ("i + n - 1", "i + n", True),
        ("i + n", "i", False),  # cannot be told
    ],
)
def test_rows_of_a_kernel(read: str, write: str, meets: bool) -> None:
    assert bool(found(IN_KERNEL.format(source="x", read=read, write=write))) is meets


def test_another_tensor_is_no_dependency() -> None:
    assert found(IN_KERNEL.format(source="y", read="i - 1", write="i")) == []


def test_an_ordered_loop_may_carry() -> None:
    text = IN_KERNEL.format(source="x", read="i - 1", write="i").replace("pl.parallel", "pl.range")
    made = parse(HEAD + textwrap.indent(text, " " * 8) + "\n        return x\n")
    assert list(parallel_loop_carries_memory(made)) == []


BLOCKS = """
for i in pl.parallel({loop}):
    with pl.at(level=pl.Level.CORE_GROUP):
        r = i * {stride}
        x = pl.assemble(x, pl.add(pl.slice(x, [{rows}, 64], [{read}, 0]), 1.0), [r, 0])
"""


@pytest.mark.parametrize(
    ("loop", "stride", "rows", "read", "meets"),
    [
        ("0, 4", 16, 16, "r", False),
        ("0, 4", 16, 17, "r", True),
        ("0, 4", 8, 16, "r", True),
        ("0, 4", 16, 16, "r + 16", True),
        ("0, 4", 16, 8, "r + 8", False),
        ("0, 64, 16", 1, 16, "r", False),
        ("0, 64, 8", 1, 16, "r", True),
        ("0, n", 16, 16, "r", False),
        ("0, n", 16, 16, "r - 16", True),
        ("n, 64", 1, 1, "r - 1", True),
        ("n, 64", 1, 1, "r", False),
        ("0, 1", 1, 16, "r + 1", False),
    ],
)
def test_blocks_over_several_tasks(loop: str, stride: int, rows: int, read: str, meets: bool) -> None:
    assert bool(found(BLOCKS.format(loop=loop, stride=stride, rows=rows, read=read))) is meets


@pytest.mark.parametrize(("guard", "meets"), [("i > 1", True), ("i == 1", False), ("i < 1", False), ("n > 1", False)])
def test_branches_decide_which_iterations_read(guard: str, meets: bool) -> None:
    """With `i == 1` row 0 is read, which no iteration writes; what `n` is cannot be told."""
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(1, 64):
            if {guard}:
                pl.write(x, [i, 0], pl.read(x, [i - 1, 0]) + 1.0)
            else:
                pl.write(x, [i, 0], 1.0)
    """
    assert bool(found(body)) is meets


@pytest.mark.parametrize(
    ("columns", "read", "meets"),
    [("0, 4", "i - 1, j * 16", True), ("0, 4", "i, j * 16", False), ("0, i", "i - 1, j * 16", False)],
)
def test_inner_loops(columns: str, read: str, meets: bool) -> None:
    """An inner loop of the same range everywhere meets itself; one whose range changes cannot be told."""
    body = f"""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(1, 64):
            for j in pl.range({columns}):
                t = pl.load(x, [{read}], [1, 16])
                x = pl.store(t, [i, j * 16], x)
    """
    assert bool(found(body)) is meets


@pytest.mark.parametrize(("read", "meets"), [("i - 1", True), ("i", False)])
def test_carried_tensors_are_followed(read: str, meets: bool) -> None:
    body = f"""
    for i, (c,) in pl.parallel(1, 64, init_values=(x,)):
        with pl.at(level=pl.Level.CORE_GROUP):
            d = pl.assemble(c, pl.slice(c, [1, 64], [{read}, 0]), [i, 0])
        x = pl.yield_(d)
    """
    assert bool(found(body)) is meets


def test_memory_that_an_iteration_makes_is_its_own() -> None:
    body = """
    for i in pl.parallel(1, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            w = pl.create_tensor([64, 64], dtype=pl.FP32)
            w = pl.assemble(w, pl.slice(y, [1, 64], [i, 0]), [i, 0])
            x = pl.assemble(x, pl.slice(w, [1, 64], [i - 1, 0]), [i, 0])
    """
    assert found(body) == []


@pytest.mark.parametrize(("target", "meets"), [("row", False), ("w", True)])
def test_slices_that_are_written_count_as_no_read(target: str, meets: bool) -> None:
    """The slice `row` is a place to write to; beside it `w` is written, and the slice is read."""
    body = f"""
    w = pl.create_tensor([1, 64], dtype=pl.FP32)
    for i in pl.parallel(1, 63):
        with pl.at(level=pl.Level.CORE_GROUP):
            row = pl.slice(x, [1, 64], [i + 1, 0])
            row2 = pl.assemble({target}, pl.slice(y, [1, 64], [i, 0]), [0, 0])
            x = pl.assemble(x, row2, [i, 0])
    """
    assert bool(found(body)) is meets


def test_scalars_that_change_cannot_be_told() -> None:
    body = """
    r = 0
    for i in pl.parallel(1, 64):
        r = r + 1
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.assemble(x, pl.slice(x, [1, 64], [r, 0]), [i, 0])
    """
    assert found(body) == []


@pytest.mark.parametrize(("read", "meets"), [("i - 1", True), ("i", False)])
def test_a_build_warns(read: str, meets: bool, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="pypto.passes"):
        lowered = lower_program(program(IN_KERNEL.format(source="x", read=read, write="i")), platform="a2a3sim")
    assert any(RULE in record.getMessage() for record in caplog.records) is meets
    assert bool(list(parallel_loop_carries_memory(lowered))) is meets


def test_it_is_one_of_the_warnings() -> None:
    (check,) = [c for c in DiagnosticCheckRegistry.get_warning_checks() if c.name == RULE]
    assert check not in set(DiagnosticCheckRegistry.get_perf_hint_checks())
