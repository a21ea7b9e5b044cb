"""What must hold after a pass, whatever the program: checked on every program of the kit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_pypto.harness.memory import check_program
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.enums import ForKind, FunctionType, MemorySpace
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import TileType
from pytest_pypto.pypto.ir.visitor import exprs_of, uses_of, walk_stmts
from pytest_pypto.pypto.language.parser import loads
from pytest_pypto.pypto.passes.context import MemoryPlanner
from tests.kit import KIT, needs_kit

from .support import planner_of
from .test_kit import UNREADABLE
from .whole import stages

pytestmark = needs_kit
FRONT = sorted(p for p in KIT.glob("*/*/passes/00_frontend.py") if p.parents[2].name not in UNREADABLE)
PUSH = {"tile.tpush_to_aiv": "to vector", "tile.tpush_to_aic": "to cube"}
POP = {"tile.tpop_from_aic": "to vector", "tile.tpop_from_aiv": "to cube"}
FREE = {"system.tfree_to_aic": "to vector", "system.tfree_to_aiv": "to cube"}
PRODUCTS = ("tile.matmul", "tile.matmul_acc", "tile.matmul_bias", "tile.batch_matmul", "tile.gemv")

Path_ = tuple[str, ...]
Key = tuple[str, int, Path_]


def call(stmt: s.Stmt) -> e.Call | None:
    value = stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr if isinstance(stmt, s.EvalStmt) else None
    return value if isinstance(value, e.Call) else None


def places(body: s.Stmt | None, path: Path_ = (), times: int = 1) -> Iterator[tuple[s.Stmt, Path_, int]]:
    """Every statement with the branches and open-ended loops around it, and how often constant loops run it."""
    for stmt in s.stmts_of(body):
        yield stmt, path, times
        if isinstance(stmt, s.ForStmt):
            turns = trip_count(stmt)
            inner = path if turns is not None else (*path, f"for {stmt.start} {stmt.stop} {stmt.step}")
            yield from places(stmt.body, inner, times * (1 if turns is None else turns))
        elif isinstance(stmt, s.WhileStmt):
            yield from places(stmt.body, (*path, "while"), times)
        elif isinstance(stmt, s.IfStmt):
            yield from places(stmt.then_body, (*path, "then"), times)
            yield from places(stmt.else_body, (*path, "else"), times)


def trip_count(loop: s.ForStmt) -> int | None:
    start, stop, step = (e.const_value(x) for x in (loop.start, loop.stop, loop.step))
    return None if start is None or stop is None or step is None else len(range(start, stop, step))


def lanes(func: Function) -> list[s.Stmt]:
    """The bodies of the lanes: two where lane 0 works and lane 1 only takes part in the transfers."""
    stmts = s.stmts_of(func.body)
    for at, stmt in enumerate(stmts):
        if isinstance(stmt, s.IfStmt) and str(stmt.condition) == "subblock_idx == 0":
            bodies = (stmt.then_body, stmt.else_body)
            return [s.SeqStmts((*stmts[:at], *s.stmts_of(b), *stmts[at + 1 :])) for b in bodies]
    return [func.body]


def transfers(body: s.Stmt, ops: dict[str, str]) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for stmt, path, times in places(body):
        one = call(stmt)
        if one is not None and one.op.name in ops:
            found[ops[one.op.name], int(one.kwargs.get("id") or 0), path] += times
    return found


def pairs(node: Program) -> Iterator[tuple[Function, Function]]:
    for func in node.functions.values():
        cube, vector = node.get_function(f"{func.name}_aic"), node.get_function(f"{func.name}_aiv")
        if func.func_type is FunctionType.Group and cube is not None and vector is not None:
            yield cube, vector


def check_transfers(node: Program) -> None:
    """Each push has its pop in the same loops; a pop is freed once, after its last use."""
    for cube, vector in pairs(node):
        for lane in lanes(vector):
            for sender, receiver in ((cube.body, lane), (lane, cube.body)):
                sent, got = transfers(sender, PUSH), transfers(receiver, POP)
                assert sent == got, cube.name
                assert transfers(receiver, FREE) == got, cube.name
        for func in (cube, vector):
            check_frees(func)


def check_frees(func: Function) -> None:
    space = MemorySpace.Mat if func.func_type is FunctionType.AIC else MemorySpace.Vec
    last: dict[e.Var, int] = {}
    freed: dict[e.Var, list[int]] = {}
    popped: list[e.Var] = []
    for number, stmt in enumerate(walk_stmts(func.body)):
        one = call(stmt)
        if one is not None and one.op.name in POP and isinstance(stmt, s.AssignStmt):
            popped.append(stmt.var)
            assert isinstance(stmt.var.type, TileType)
            assert stmt.var.type.space is space
        for expr in exprs_of(stmt):
            for var in uses_of(expr):
                if one is not None and one.op.name in FREE:
                    freed.setdefault(var, []).append(number)
                else:
                    last[var] = number
    for var in popped:
        assert len(freed.get(var, ())) == 1, (func.name, var.name_hint)
        assert freed[var][0] > last.get(var, -1), (func.name, var.name_hint)


def products(node: Program) -> list[tuple[str, ...]]:
    """Shapes of the operands of every product, in order."""
    found = []
    for func in node.functions.values():
        for stmt in walk_stmts(func.body):
            one = call(stmt)
            if one is not None and one.op.name in PRODUCTS:
                found.append(tuple(str(a.type) for a in one.args if isinstance(a.type, TileType)))
    return found


@pytest.mark.parametrize("front", FRONT, ids=lambda p: f"{p.parents[2].name}-{p.parents[1].name}")
def test_programs_of_the_kit(front: Path) -> None:
    name, platform = front.parents[2].name, front.parents[1].name
    planner = planner_of(KIT, name)
    node = loads(front)
    assert isinstance(node, Program)
    found = stages(node, platform, planner)
    order = list(found)
    if "LowerAutoVectorSplit" in found:
        before = found[order[order.index("LowerAutoVectorSplit") - 1]]
        assert products(found["LowerAutoVectorSplit"]) == products(before), "a product on halved tiles"
    for after in found.values():
        check_transfers(after)
    last = found[order[-1]]
    every = [x for f in last.functions.values() for x in walk_stmts(f.body)]
    assert not [x for x in every if isinstance(x, s.ForStmt) and x.kind is ForKind.Pipeline]
    assert not [x for x in every if isinstance(x, s.SplitAivScopeStmt)]
    if planner is not MemoryPlanner.PTOAS:
        assert not check_program(last, platform).findings
