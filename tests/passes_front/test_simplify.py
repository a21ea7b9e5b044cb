"""Simplify: expressions keep their values for every integer, and what can be decided is decided."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import scalar_ops as ops
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import BOOL, INDEX
from pytest_pypto.pypto.ir.enums import FunctionType, ParamDirection
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import ScalarType
from pytest_pypto.pypto.ir.visitor import walk_stmts
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.convert_to_ssa import ConvertToSSA
from pytest_pypto.pypto.passes.simplify import Simplify

MEANING: dict[type, Callable[..., Any]] = {
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
    e.FloorDiv: operator.floordiv,
    e.FloorMod: operator.mod,
    e.Min: min,
    e.Max: max,
    e.Eq: operator.eq,
    e.Ne: operator.ne,
    e.Lt: operator.lt,
    e.Le: operator.le,
    e.Gt: operator.gt,
    e.Ge: operator.ge,
    e.And: lambda a, b: bool(a and b),
    e.Or: lambda a, b: bool(a or b),
    e.Not: operator.not_,
    e.Neg: operator.neg,
}
N, M, LOOP = (e.Var(name, ScalarType(INDEX)) for name in "nmi")


def value(x: e.Expr, given_: dict[e.Var, int]) -> Any:
    """What an expression is for these values."""
    if isinstance(x, (e.ConstInt, e.ConstBool)):
        return x.value
    if isinstance(x, e.Var):
        return given_[x]
    if isinstance(x, e.BinaryExpr):
        return MEANING[type(x)](value(x.left, given_), value(x.right, given_))
    if isinstance(x, e.Cast):
        return value(x.operand, given_)
    assert isinstance(x, e.UnaryExpr), x
    return MEANING[type(x)](value(x.operand, given_))


def simplified(x: e.Expr, bounds: tuple[int, int, int] = (0, 8, 1)) -> e.Expr:
    """The expression after the pass, computed in a loop over `i` with these bounds."""
    t = e.Var("t", x.type)
    o = e.Var("o", x.type)
    start, stop, step = (e.index(b) for b in bounds)
    arg = e.IterArg("c", x.type, o)
    inner = s.SeqStmts((s.AssignStmt(t, x), s.YieldStmt((t,))))
    result = e.Var("r", x.type)
    loop = s.ForStmt(LOOP, start, stop, step, body=inner, iter_args=(arg,), return_vars=(result,))
    body = s.SeqStmts((loop, s.ReturnStmt((result,))))
    params = [(v, ParamDirection.In) for v in (N, M, o)]
    func = Function("f", params, [x.type], body, type=FunctionType.InCore)
    made = Simplify().apply(Program([func], "P"))["f"]
    found = [y.value for y in walk_stmts(made.body) if isinstance(y, s.YieldStmt)]
    if not found:  # one trip: the loop is gone
        (last,) = [y.value for y in walk_stmts(made.body) if isinstance(y, s.ReturnStmt)]
        found = [last]
    answer = found[0][0]
    for stmt in walk_stmts(made.body):
        if isinstance(stmt, s.AssignStmt) and stmt.var is answer:
            return stmt.value
    return answer


LEAF = st.one_of(st.sampled_from([N, M, LOOP]), st.integers(-5, 9).map(lambda v: e.index(v)))
CONST = st.integers(-4, 8).filter(bool).map(lambda v: e.index(v))


def _extend(inner: st.SearchStrategy[e.Expr]) -> st.SearchStrategy[e.Expr]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda p: ops.add(*p)),
        two.map(lambda p: ops.sub(*p)),
        st.tuples(inner, CONST).map(lambda p: ops.mul(*p)),
        st.tuples(inner, CONST).map(lambda p: ops.floordiv(*p)),
        st.tuples(inner, CONST).map(lambda p: ops.mod(*p)),
        two.map(lambda p: e.Min(*p, INDEX)),
        two.map(lambda p: e.Max(*p, INDEX)),
    )


INTS = st.recursive(LEAF, _extend, max_leaves=8)
COMPARISONS = st.tuples(INTS, INTS, st.sampled_from([ops.lt, ops.le, ops.gt, ops.ge, ops.eq, ops.ne]))
NUMBERS = st.tuples(st.integers(-20, 20), st.integers(-20, 20))


@settings(max_examples=400, deadline=None, derandomize=True)
@given(x=INTS, numbers=NUMBERS, bounds=st.sampled_from([(0, 8, 1), (3, 20, 4), (7, -1, -1), (-5, 5, 2)]))
def test_integers_keep_their_values(x: e.Expr, numbers: tuple[int, int], bounds: tuple[int, int, int]) -> None:
    made = simplified(x, bounds)
    for i in range(*bounds):
        given_ = {N: numbers[0], M: numbers[1], LOOP: i}
        assert value(made, given_) == value(x, given_), f"{x} became {made} for {given_}"


@settings(max_examples=400, deadline=None, derandomize=True)
@given(parts=COMPARISONS, numbers=NUMBERS, bounds=st.sampled_from([(0, 8, 1), (3, 20, 4), (7, -1, -1), (-5, 5, 2)]))
def test_comparisons_keep_their_truth(parts: Any, numbers: tuple[int, int], bounds: tuple[int, int, int]) -> None:
    x = parts[2](parts[0], parts[1])
    made = simplified(x, bounds)
    for i in range(*bounds):
        given_ = {N: numbers[0], M: numbers[1], LOOP: i}
        assert bool(value(made, given_)) == value(x, given_), f"{x} became {made} for {given_}"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ops.add(ops.mul(LOOP, e.index(4)), e.index(0)), "i * 4"),
        (lambda: ops.floordiv(ops.mul(LOOP, e.index(8)), e.index(4)), "i * 2"),
        (lambda: ops.mod(ops.mul(LOOP, e.index(8)), e.index(4)), "0"),
        (lambda: ops.lt(LOOP, e.index(8)), "True"),
        (lambda: ops.lt(LOOP, e.index(4)), "i < 4"),
        (lambda: e.Max(LOOP, e.index(0), INDEX), "i"),
        (lambda: ops.sub(ops.add(N, LOOP), N), "i"),
    ],
)
def test_what_is_known_is_used(make: Callable[[], e.Expr], text: str) -> None:
    assert str(simplified(make())) == text


@pytest.mark.parametrize(
    "make",
    [
        lambda: ops.ge(N, e.index(0)),
        lambda: e.Max(N, e.index(0), INDEX),
        lambda: ops.lt(ops.add(N, e.index(1)), e.index(1)),
        lambda: ops.gt(ops.mul(N, N), N),
    ],
)
def test_nothing_is_known_about_a_named_scalar(make: Callable[[], e.Expr]) -> None:
    assert "n" in str(simplified(make())).replace("min(", "")


# statements -----------------------------------------------------------------------------------------------------

KERNEL = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 16])
{body}
        o = pl.store(t, [0, 0], o)
        return o
"""


def kernel(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    made = Simplify().apply(ConvertToSSA().apply(parse(KERNEL.format(body=lines))))
    return str(made)


@pytest.mark.parametrize(
    ("body", "present", "absent"),
    [
        ("if 2 > 1:\n    t = pl.neg(t)\nelse:\n    t = pl.abs(t)", ["neg"], ["abs", "if "]),
        ("for i in pl.range(1):\n    t = pl.neg(t)", ["neg"], ["for "]),
        ("for i in pl.range(3, 3):\n    t = pl.neg(t)", [], ["for ", "neg"]),
        ("for i in pl.range(5):\n    if i < 5:\n        t = pl.neg(t)", ["for ", "neg"], ["if "]),
        ("for i in pl.range(n):\n    if i < n:\n        t = pl.neg(t)", ["for ", "neg"], []),
        ("k: pl.Scalar[pl.INDEX] = n * 3\nm: pl.Scalar[pl.INDEX] = k + 1", [], ["n__ssa_v0 * 3", "+ 1"]),
        ("k: pl.Scalar[pl.INDEX] = 4\nif k > n:\n    t = pl.neg(t)", ["if n__ssa_v0 < 4"], ["k__"]),
        ("if n > 3:\n    if n > 2:\n        t = pl.neg(t)", ["neg"], ["2:"]),
        ("if n > 2:\n    if n > 3:\n        t = pl.neg(t)", ["3", "2", "neg"], []),
    ],
)
def test_statements(body: str, present: list[str], absent: list[str]) -> None:
    text = kernel(body)
    for part in present:
        assert part in text
    for part in absent:
        assert part not in text


def test_an_unchanged_function_is_the_same_object() -> None:
    program = Simplify().apply(ConvertToSSA().apply(parse(KERNEL.format(body="        t = pl.neg(t)"))))
    assert Simplify().apply(program) is program


def test_types_of_conditions_stay_boolean() -> None:
    made = simplified(ops.lt(ops.add(N, e.index(0)), M))
    assert isinstance(made.type, ScalarType)
    assert made.type.dtype is BOOL
