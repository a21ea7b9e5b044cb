"""Control flow: nesting, carried values, jumps, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_pypto.pypto.debug import run_oracle, torch_codegen
from pytest_pypto.pypto.device.settings import DeviceSettings
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.program import Function
from pytest_pypto.pypto.ir.visitor import walk_stmts

from .build import INDEX, program, run, scalar

BOOL = DataType.BOOL


def index(name: str) -> e.Var:
    return e.Var(name, scalar())


def counting(make: Callable[[s.Stmt], s.Stmt], inner: Callable[[s.Stmt], s.Stmt], n: e.Var) -> Function:
    """A function that counts how often the innermost statement of two nested ones runs; no sequence in between."""
    total = index("total")
    bump = s.AssignStmt(total, e.Add(total, e.index(1), INDEX))
    stmts = (s.AssignStmt(total, e.index(0)), make(inner(bump)), s.ReturnStmt((total,)))
    return Function("f", [n], [scalar()], s.SeqStmts(stmts))


def loop_of(var: e.Var) -> Callable[[s.Stmt], s.Stmt]:
    return lambda body: s.ForStmt(var, e.index(0), e.index(3), e.index(1), (), body)


def branch_of(n: e.Var, limit: int) -> Callable[[s.Stmt], s.Stmt]:
    return lambda body: s.IfStmt(e.Gt(n, e.index(limit), BOOL), body)


def while_of(limit: e.Var, counter: e.Var) -> Callable[[s.Stmt], s.Stmt]:
    step = s.AssignStmt(counter, e.Add(counter, e.index(1), INDEX))
    return lambda body: s.WhileStmt(e.Lt(counter, e.index(3), BOOL), (), s.SeqStmts((body, step)))


@pytest.mark.parametrize(("n", "want"), [(0, 0), (1, 1), (5, 9)])
def test_a_loop_directly_in_a_loop(n: int, want: int) -> None:
    limit = index("n")
    i, j = index("i"), index("j")
    inner = lambda body: s.ForStmt(j, e.index(0), e.Min(limit, e.index(3), INDEX), e.index(1), (), body)  # noqa: E731
    outer = lambda body: s.ForStmt(i, e.index(0), e.Min(limit, e.index(3), INDEX), e.index(1), (), body)  # noqa: E731
    assert run(counting(outer, inner, limit), n) == want


@pytest.mark.parametrize(("n", "want"), [(0, 0), (1, 0), (3, 1)])
def test_a_branch_directly_in_a_branch(n: int, want: int) -> None:
    var = index("n")
    assert run(counting(branch_of(var, 0), branch_of(var, 1), var), n) == want


@pytest.mark.parametrize(("n", "want"), [(0, 0), (2, 3)])
def test_loops_and_branches_in_each_other(n: int, want: int) -> None:
    var = index("n")
    assert run(counting(branch_of(var, 0), loop_of(index("i")), var), n) == want
    assert run(counting(loop_of(index("i")), branch_of(var, 0), var), n) == want


NESTS = ["for", "while", "if"]


@pytest.mark.parametrize("outer", NESTS)
@pytest.mark.parametrize("inner", NESTS)
def test_all_nine_nestings(outer: str, inner: str) -> None:
    """Written without a sequence node in between, as the parser gives a body of one statement."""
    heads = {"for": ("for {v} in pl.range(3):", 3), "while": ("while {c} < 3:", 3), "if": ("if n > 0:", 1)}

    def lines(kind: str, depth: int, body: list[str]) -> list[str]:
        head = heads[kind][0].format(v=f"i{depth}", c=f"c{depth}")
        step = [f"    c{depth} = c{depth} + 1"] if kind == "while" else []
        start = [f"c{depth}: pl.Scalar[pl.INT64] = 0"] if kind == "while" else []
        return [*start, head, *(f"    {line}" for line in body), *step]

    nest = lines(outer, 0, lines(inner, 1, ["total = total + 1"]))
    text = "\n".join(f"    {line}" for line in nest)
    p = program(
        f"""
@pl.function
def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
    total: pl.Scalar[pl.INT64] = 0
{text}
    return total
"""
    )
    assert run(p, 1) == heads[outer][1] * heads[inner][1]
    assert run(p, 0) == (0 if "if" in (outer, inner) else 9)


@pytest.mark.parametrize(("n", "want"), [(1, 10), (2, 20), (3, 30), (4, 40)])
def test_a_chain_of_elif_takes_one_branch(n: int, want: int) -> None:
    p = program(
        """
@pl.function
def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
    r: pl.Scalar[pl.INT64] = 0
    if n == 1:
        r = r + 10
    elif n == 2:
        r = r + 20
    elif n == 3:
        r = r + 30
    else:
        r = r + 40
    return r
"""
    )
    assert run(p, n) == want


def carried(
    trips: int, rule: Callable[[e.IterArg, e.IterArg], tuple[e.Expr, e.Expr]], init: tuple[int, int]
) -> tuple[int, int]:
    """Two carried numbers after `trips` steps of `rule`."""
    a, b = (e.IterArg(n, scalar(), e.index(v)) for n, v in zip("ab", init, strict=True))
    results = (index("ra"), index("rb"))
    loop = s.ForStmt(index("i"), e.index(0), e.index(trips), e.index(1), (a, b), s.YieldStmt(rule(a, b)), results)
    out: tuple[int, int] = run(Function("f", [], [scalar()] * 2, s.SeqStmts((loop, s.ReturnStmt(results)))))
    return out


def test_carried_values_are_updated_together() -> None:
    assert carried(5, lambda a, b: (b, e.Add(a, b, INDEX)), (1, 1)) == (8, 13)
    assert carried(1, lambda a, b: (b, a), (1, 0)) == (0, 1)
    assert carried(0, lambda a, b: (b, a), (1, 0)) == (1, 0)


@given(st.integers(0, 6), st.tuples(st.integers(-5, 5), st.integers(-5, 5)), st.integers(0, 3))
@settings(deadline=None, max_examples=25)
def test_carried_values_against_python(trips: int, init: tuple[int, int], which: int) -> None:
    rules: list[tuple[Any, Any]] = [
        (lambda a, b: (b, a), lambda a, b: (b, a)),
        (lambda a, b: (e.Add(a, b, INDEX), a), lambda a, b: (a + b, a)),
        (lambda a, b: (a, e.Sub(b, a, INDEX)), lambda a, b: (a, b - a)),
        (lambda a, b: (b, b), lambda a, b: (b, b)),
    ]
    made, python = rules[which]
    a, b = init
    for _ in range(trips):
        a, b = python(a, b)
    assert carried(trips, made, init) == (a, b)


def test_a_single_carried_value_is_a_plain_assignment() -> None:
    from .build import code_of

    a = e.IterArg("a", scalar(), e.index(0))
    b = index("b")
    loop = s.ForStmt(index("i"), e.index(0), e.index(2), e.index(1), (a,), s.YieldStmt((b,)), (index("r"),))
    assert "        a = b\n" in code_of(Function("f", [b], [], loop))


@pytest.mark.parametrize(("bounds", "want"), [((64, 0, -1), 2080), ((0, 10, 3), 18), ((5, 5, 1), 0), ((3, 1, 1), 0)])
def test_bounds_and_steps(bounds: tuple[int, int, int], want: int) -> None:
    acc, i = e.IterArg("acc", scalar(), e.index(0)), index("i")
    loop = s.ForStmt(i, *map(e.index, bounds), (acc,), s.YieldStmt((e.Add(acc, i, INDEX),)), (index("r"),))
    assert run(Function("f", [], [scalar()], s.SeqStmts((loop, s.ReturnStmt(loop.return_vars))))) == want


def test_bounds_are_evaluated_once() -> None:
    n, i = index("n"), index("i")
    shrink = s.AssignStmt(n, e.Sub(n, e.index(1), INDEX))
    count = index("count")
    bump = s.AssignStmt(count, e.Add(count, e.index(1), INDEX))
    loop = s.ForStmt(i, e.index(0), n, e.index(1), (), s.SeqStmts((shrink, bump)))
    f = Function("f", [n], [scalar()], s.SeqStmts((s.AssignStmt(count, e.index(0)), loop, s.ReturnStmt((count,)))))
    assert run(f, 4) == 4


def test_a_while_condition_sees_the_carried_values() -> None:
    p = program(
        """
@pl.function
def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
    c0: pl.Scalar[pl.INT64] = 0
    t0: pl.Scalar[pl.INT64] = 1
    for (c, t) in pl.while_(init_values=(c0, t0)):
        pl.cond(c < n)
        c1, t1 = pl.yield_(c + 1, t * 2)
    return t1
"""
    )
    assert [run(p, n) for n in (0, 1, 5)] == [1, 2, 32]


ENDLESS = """
@pl.function
def main(self, n: pl.Scalar[pl.INT64], x: pl.Tensor[[2, 2], pl.FP32]) -> pl.Scalar[pl.INT64]:
    c0: pl.Scalar[pl.INT64] = 0
    for (c, t) in pl.while_(init_values=(c0, x)):
        pl.cond(c < n)
        c1, t1 = pl.yield_(c + STEP, pl.add(t, 1.0))
    return c1
"""


def test_an_endless_while_is_stopped_with_its_place_and_values() -> None:
    p = program(ENDLESS.replace("STEP", "0"))
    with pytest.raises(RuntimeError) as caught:
        run_oracle(p, [5, torch.zeros(2, 2)], while_limit=100)
    loop = next(x for x in walk_stmts(p.functions["main"].body) if isinstance(x, s.WhileStmt))
    text = str(caught.value)
    assert f"the while loop in 'main' ({loop.span}) has made 100 rounds and does not end" in text
    assert "c = 0" in text
    assert "n = 5" in text
    assert "t = tensor[2, 2] of torch.float32 starting with 100.0" in text
    ends = program(ENDLESS.replace("STEP", "1"))
    assert run_oracle(ends, [100, torch.zeros(2, 2)], while_limit=100) == 100
    assert run_oracle(ends, [101, torch.zeros(2, 2)]) == 101
    with pytest.raises(RuntimeError, match="does not end"):
        run_oracle(ends, [101, torch.zeros(2, 2)], while_limit=100)


def test_a_script_on_its_own_carries_the_limit_of_the_device() -> None:
    space: dict[str, Any] = {}
    exec(torch_codegen(program(ENDLESS.replace("STEP", "0"))), space)
    assert space["_WHILE_LIMIT"] == DeviceSettings().while_limit
    space["_WHILE_LIMIT"] = 10
    with pytest.raises(RuntimeError, match=r"\(script line \d+\) has made 10 rounds"):
        space["main"](5, torch.zeros(2, 2))


def test_variables_that_a_while_reassigns_are_shown() -> None:
    count, other = index("count"), index("other")
    loop = s.WhileStmt(e.Lt(count, e.index(3), BOOL), (), s.AssignStmt(other, e.index(1)))
    f = Function("f", [count], [], loop)
    with pytest.raises(RuntimeError, match=r"in 'f' .* carried values: count = 2\."):
        run_oracle(f, [2], while_limit=5)
    run_oracle(f, [3], while_limit=5)


def test_break_and_continue() -> None:
    p = program(
        """
@pl.function
def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
    r: pl.Scalar[pl.INT64] = 0
    for i in pl.range(10):
        if i == 7:
            break
        if i == 3:
            continue
        r = r + n
    return r
"""
    )
    assert run(p, 2) == 12


def test_values_defined_in_branches() -> None:
    p = program(
        """
@pl.function
def main(self, x: pl.Tensor[[2, 2], pl.FP32], n: pl.Scalar[pl.INT64]) -> pl.Tensor[[2, 2], pl.FP32]:
    if n > 3:
        if n > 5:
            y = pl.add(x, 1.0)
        else:
            y = pl.add(x, 2.0)
    else:
        y = pl.mul(x, 3.0)
    for i in pl.range(2):
        if i == 1:
            y = pl.add(y, 10.0)
    return y
"""
    )
    x = torch.ones(2, 2)
    assert [run(p, x, n)[0, 0].item() for n in (0, 4, 6)] == [13.0, 13.0, 12.0]


def test_every_kind_of_loop_runs_in_order() -> None:
    p = program(
        """
@pl.function
def main(self, x: pl.Tensor[[4, 2], pl.FP32], o: pl.Out[pl.Tensor[[4, 2], pl.FP32]]) -> pl.Tensor[[4, 2], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(4):
            o = pl.assemble(o, pl.add(pl.slice(x, [1, 2], [i, 0]), 1.0), [i, 0])
        for j in pl.unroll(2):
            o = pl.assemble(o, pl.add(pl.slice(o, [1, 2], [j, 0]), 1.0), [j, 0])
        for k in pl.pipeline(4, stage=2):
            o = pl.assemble(o, pl.mul(pl.slice(o, [1, 2], [k, 0]), 2.0), [k, 0])
    return o
"""
    )
    assert run(p, torch.zeros(4, 2), torch.full((4, 2), -7.0))[:, 0].tolist() == [4.0, 4.0, 2.0, 2.0]


def test_a_carry_of_a_literal() -> None:
    p = program(
        """
@pl.function
def main(self, n: pl.Scalar[pl.INT64]) -> pl.Scalar[pl.INT64]:
    acc: pl.Scalar[pl.INT64] = 0
    for i in pl.range(5):
        acc = acc + pl.cast(i, pl.INT64)
    return acc
"""
    )
    assert run(p, 0) == 10
