"""Dumps print what changed, and only that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import printer
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import FP32
from pytest_pypto.pypto.ir.same_nodes import same_nodes
from pytest_pypto.pypto.language.parser import loads, parse
from pytest_pypto.pypto.passes.base import create_function_pass
from pytest_pypto.pypto.passes.dumps import DumpInstrument, PassDumpLevel
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager
from tests.kit import KIT, needs_kit
from tests.passes_back.support import PLATFORMS

TEXT = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(x: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        t: pl.Tile[[16, 16], pl.FP32] = pl.tile.load(x, [0, 0], [16, 16])
        u: pl.Tile[[16, 16], pl.FP32] = pl.tile.muls(t, 2.0)
        o2: pl.Tensor[[16, 16], pl.FP32] = pl.tile.store(u, [0, 0], o)
        return o2

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        r: pl.Tensor[[16, 16], pl.FP32] = self.kernel(x, o)
        return r
"""


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Names and texts of functions in the order of being printed."""
    found: list[tuple[str, str]] = []
    lines = printer._Function.lines

    def noted(self: Any, indent: str) -> list[str]:
        made = lines(self, indent)
        found.append((self.func.name, "\n".join(made)))
        return made

    monkeypatch.setattr(printer._Function, "lines", noted)
    return found


def anew(stmt: s.Stmt) -> s.Stmt:
    """The statements as other objects, of the same variables."""
    parts = [replace(x, value=replaced(x.value)) if isinstance(x, s.AssignStmt) else x for x in s.stmts_of(stmt)]
    return s.SeqStmts(tuple(parts))


def replaced(value: e.Expr) -> e.Expr:
    assert isinstance(value, e.Call)
    args = [e.ConstFloat(a.value, a.dtype) if isinstance(a, e.ConstFloat) else a for a in value.args]
    return e.Call(value.op, args, kwargs=value.kwargs, attrs=value.attrs, type=value.type)


def doubled(stmt: s.Stmt) -> s.Stmt:
    """The statements with another factor."""
    made = []
    for x in s.stmts_of(stmt):
        if isinstance(x, s.AssignStmt) and isinstance(x.value, e.Call) and x.value.op.name == "tile.muls":
            args = (x.value.args[0], e.ConstFloat(4.0, FP32))
            x = replace(x, value=e.Call(x.value.op, args, type=x.value.type))
        made.append(x)
    return s.SeqStmts(tuple(made))


@pytest.mark.parametrize(("change", "more"), [(anew, []), (doubled, ["kernel"])])
def test_a_function_is_printed_again_only_when_it_says_something_else(
    tmp_path: Path, printed: list[tuple[str, str]], change: Callable[[s.Stmt], s.Stmt], more: list[str]
) -> None:
    program = parse(TEXT)
    dumps = DumpInstrument(tmp_path, program, PassDumpLevel.CONCISE)
    assert sorted(name for name, _ in printed) == ["kernel", "main"]
    printed.clear()
    step = create_function_pass(lambda f: f.with_(body=change(f.body)) if f.name == "kernel" else f, "Step")
    made = step(program)
    assert made is not program
    dumps.run_after_pass(step, made)
    assert [name for name, _ in printed] == more
    shown = (tmp_path / "01_after_Step.py").read_text()
    assert shown == printer.python_print(made) + "\n"
    assert ("4.0" in shown) == bool(more)


@needs_kit
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", ["brk", "scal_if", "scalar_ops", "bi_up_down"])
def test_no_unchanged_function_is_printed_twice(
    tmp_path: Path, printed: list[tuple[str, str]], name: str, platform: str
) -> None:
    program = loads(str(KIT / name / platform / "passes" / "00_frontend.py"))
    printed.clear()
    with selected_backend(PLATFORMS[platform]):
        PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program, True, str(tmp_path))
    texts: dict[str, str] = {}
    for function, text in printed:
        assert texts.get(function) != text
        texts[function] = text
    assert len(texts) >= len(program.functions)


def test_trees_that_differ_in_one_place_are_not_the_same() -> None:
    kernel = parse(TEXT).get_function("kernel")
    assert kernel is not None
    assert same_nodes(kernel, kernel.with_())
    assert same_nodes(kernel, kernel.with_(body=anew(kernel.body)))
    assert not same_nodes(kernel, kernel.with_(body=doubled(kernel.body)))
    assert not same_nodes(kernel, kernel.with_(name="other"))
    assert not same_nodes(kernel, kernel.with_(attrs={"split": 1}))
    assert not same_nodes(e.ConstFloat(0.0, FP32), e.ConstFloat(-0.0, FP32))
    assert not same_nodes(e.Var("a", kernel.params[0].type), e.Var("a", kernel.params[0].type))
