"""Proofs about extents, against brute force over small values."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import extents as x
from pytest_pypto.pypto.ir.dtypes import INDEX
from pytest_pypto.pypto.ir.types import ScalarType

M, N = (e.Var(n, ScalarType(INDEX)) for n in "MN")
_MAKERS: dict[type[e.Expr], Callable[[int, int], int]] = {
    e.Add: lambda a, b: a + b,
    e.Sub: lambda a, b: a - b,
    e.Mul: lambda a, b: a * b,
    e.Min: min,
    e.Max: max,
    e.FloorDiv: lambda a, b: a // b if b else 0,
    e.FloorMod: lambda a, b: a % b if b else 0,
}


def value(node: e.Expr, m: int, n: int) -> int:
    """`node` with numbers for the symbols."""
    if isinstance(node, e.ConstInt):
        return node.value
    if isinstance(node, e.Var):
        return m if node is M else n
    assert isinstance(node, e.BinaryExpr)
    return _MAKERS[type(node)](value(node.left, m, n), value(node.right, m, n))


def _nodes() -> st.SearchStrategy[e.Expr]:
    leaves = st.one_of(st.integers(-4, 9).map(e.index), st.sampled_from([M, N]))

    def grow(inner: st.SearchStrategy[e.Expr]) -> st.SearchStrategy[e.Expr]:
        both = st.tuples(st.sampled_from([e.Add, e.Sub, e.Mul, e.Min, e.Max]), inner, inner)
        by = st.tuples(st.sampled_from([e.FloorDiv, e.FloorMod]), inner, st.integers(1, 4).map(e.index))
        return st.one_of(both, by).map(lambda t: t[0](t[1], t[2], INDEX))

    return st.recursive(leaves, grow, max_leaves=6)


_POINTS = list(itertools.product((-3, -1, 0, 1, 2, 5), repeat=2))


@given(_nodes(), _nodes())
def test_what_is_proved_is_true(a: e.Expr, b: e.Expr) -> None:
    pairs = [(value(a, m, n), value(b, m, n)) for m, n in _POINTS]
    if x.equal(a, b):
        assert all(p == q for p, q in pairs)
    if x.at_most(a, b):
        assert all(p <= q for p, q in pairs)
    if x.less(a, b):
        assert all(p < q for p, q in pairs)
    if x.never_negative(a):
        assert all(p >= 0 for p, _ in pairs)
    if x.negative(a):
        assert all(p < 0 for p, _ in pairs)


@given(_nodes(), _nodes())
def test_folding_keeps_the_value(a: e.Expr, b: e.Expr) -> None:
    folded = {x.add: e.Add, x.sub: e.Sub, x.mul: e.Mul, x.minimum: e.Min, x.maximum: e.Max}
    for m, n in _POINTS:
        for fold, cls in folded.items():
            assert value(fold(a, b), m, n) == _MAKERS[cls](value(a, m, n), value(b, m, n))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (M + N, N + M),
        (M * 2 + 3, 3 + 2 * M),
        ((M + 1) - (M - 1), e.index(2)),
        (M * N, N * M),
        (e.Min(M, N, INDEX), e.Min(N, M, INDEX)),
        ((M + 4) // 2, (4 + M) // 2),
    ],
)
def test_equal(a: e.Expr, b: e.Expr) -> None:
    assert x.equal(a, b)


@pytest.mark.parametrize(("a", "b"), [(M, N), (M * 2, M), (M // 2, N // 2), (e.Min(M, N, INDEX), e.Max(M, N, INDEX))])
def test_not_provably_equal(a: e.Expr, b: e.Expr) -> None:
    assert not x.equal(a, b)


def test_order() -> None:
    assert x.at_most(e.Min(M, e.index(8), INDEX), e.index(8))
    assert x.at_most(M % 8, e.index(7))
    assert not x.at_most(M, e.index(8))
    assert x.less(M, M + 1)
    assert x.text((e.index(4), M)) == "[4, M]"
    assert [e.const_value(x.ceil_div(e.index(v), 8)) for v in (0, 1, 7, 8, 300)] == [0, 1, 1, 1, 38]
