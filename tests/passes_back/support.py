"""Loading IR for the tests of the later passes, running passes on it, and comparing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pytest_pypto.pypto.backend import BackendType, selected_backend
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import PtrType
from pytest_pypto.pypto.ir.visitor import IRMutator, walk_stmts
from pytest_pypto.pypto.language.parser import parse_program
from pytest_pypto.pypto.passes.base import Pass
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext
from pytest_pypto.pypto.passes.pipeline import ORDER, load_pass

PLATFORMS = {"a2a3sim": BackendType.Ascend910B, "a5sim": BackendType.Ascend950}
BACK = (
    *("LowerAutoVectorSplit", "ExpandMixedKernel", "InjectGMPipeBuffer", "SplitVectorKernel", "StampTfreeSplit"),
    *("NormalizeReturnOrder", "SkewCrossCorePipeline", "LowerPipelineToSlots", "LowerPipelineLoops"),
    *("CanonicalizeIOOrder", "InitMemRef", "MaterializeSemanticAliases", "MemoryReuse", "AllocateMemoryAddr"),
)
"""The passes under test, in order."""


def run_pass(name: str, program: Program) -> Program:
    """One pass applied by itself."""
    found = load_pass(name, dict(ORDER)[name])
    assert found is not None, name
    one: Pass = found()
    return one.apply(program)


def run_passes(program: Program, first: str, last: str, platform: str = "a2a3sim", **context: Any) -> Program:
    """The passes under test from `first` to `last`."""
    names = BACK[BACK.index(first) : BACK.index(last) + 1]
    if context.get("memory_planner") is MemoryPlanner.DSA_RP:
        names = tuple(n for n in names if n != "MemoryReuse")
    with selected_backend(PLATFORMS[platform]), PassContext(**context):
        for name in names:
            program = run_pass(name, program)
    return program


def kernel(text: str, params: str, attrs: str = "", kind: str = "InCore", returns: str = "") -> Program:
    """A program with one device function `k`; `text` is its body in printed form."""
    body = "\n".join(f"        {line}" for line in text.strip("\n").split("\n"))
    head = f"        pl.func_attr({{{attrs}}})\n" if attrs else ""
    back = f" -> {returns}" if returns else ""
    decorator = f"@pl.function(type=pl.FunctionType.{kind})"
    top = f"import pypto.language as pl\n\n@pl.program\nclass P:\n    {decorator}\n    def k({params}){back}:\n"
    made: Program = parse_program(f"{top}{head}{body}\n")
    return made


def function(program: Program, name: str) -> Function:
    """A function that must exist."""
    found = program.get_function(name)
    assert found is not None, [f.name for f in program.functions.values()]
    return found


def lines(func: Function) -> list[str]:
    """The printed statements of a function, without types and indentation."""
    text = func.as_python(concise=True).split("\n")
    return [line.strip() for line in text[2:] if line.strip() and "func_attr" not in line]


def calls(func: Function, op: str) -> list[e.Call]:
    """Calls of one operator, in program order."""
    found = []
    for stmt in walk_stmts(func.body):
        value = stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr if isinstance(stmt, s.EvalStmt) else None
        if isinstance(value, e.Call) and value.op.name == op:
            found.append(value)
    return found


def var_types(func: Function) -> dict[str, str]:
    """Printed type of each assigned variable."""
    return {x.var.name_hint: str(x.var.type) for x in walk_stmts(func.body) if isinstance(x, s.AssignStmt)}


class _Rename(IRMutator):
    """Numbers all variables, so that two programs print alike when they differ in names only."""

    def visit_function(self, func: Function) -> Function:
        self.count, self.var_map = 0, {}
        return super().visit_function(func)

    def define(self, var: e.Var) -> e.Var:
        mapped = self.var_map.get(var)
        if isinstance(mapped, e.Var):
            return mapped
        if isinstance(var.type, PtrType):
            return var
        type_ = self.visit_type(var.type)
        self.count += 1
        name = f"v{self.count}"
        fresh: e.Var
        if isinstance(var, e.IterArg):
            fresh = e.IterArg(name, type_, self.visit_expr(var.initValue), var.span)
        else:
            fresh = e.Var(name, type_, var.span)
        self.var_map[var] = fresh
        return fresh


def neutral(program: Program) -> str:
    """The program's text without comments and with numbered names; MemRefs and addresses are in it."""
    text = str(_Rename().visit_program(program))
    return "\n".join(line for line in text.split("\n") if line.strip() and not line.strip().startswith("#"))


@cache
def _index(passes: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((passes / "index.json").read_text())
    return found


def dump_of(passes: Path, stage: int) -> Path:
    """The file with the reference's text after stage number `stage`."""
    index = _index(passes)
    name = index["passes"][stage]
    kept: dict[str, list[str]] = index["kept"]
    return next(passes / file for file, stages in kept.items() if name in stages)


def stages(passes: Path) -> Iterator[tuple[str, Path, Path]]:
    """(pass, dump before, dump after) for every pass under test that the reference ran."""
    names = _index(passes)["passes"]
    for number, name in enumerate(names):
        short = name.partition("_after_")[2]
        if short in BACK:
            yield short, dump_of(passes, number - 1), dump_of(passes, number)


def planner_of(kit: Path, program: str) -> MemoryPlanner:
    """The planner that the reference's texts of a kit program were made with."""
    record = json.loads((kit / "index.json").read_text())[program]
    return MemoryPlanner[record.get("compile_options", {}).get("memory_planner", "PYPTO")]
