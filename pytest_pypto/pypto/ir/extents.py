"""Small proofs about extents and offsets: equality, order, and folding of min, max, sums and products.

Everything here is one-sided: True means proved, False means not proved. Symbolic extents count as arbitrary integers
unless the caller states that they are not negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import expr as e
from .dtypes import INDEX

Linear = tuple[int, dict[Any, int]]
"""constant + sum of coefficient * atom; an atom is a variable or the key of a non-linear node."""


def linear(x: e.Expr) -> Linear:
    """`x` as a linear form."""
    if isinstance(x, e.ConstInt):
        return x.value, {}
    if isinstance(x, (e.Add, e.Sub)):
        a, b = linear(x.left), linear(x.right)
        return _combine(a, b, 1 if isinstance(x, e.Add) else -1)
    if isinstance(x, e.Neg):
        return _combine((0, {}), linear(x.operand), -1)
    if isinstance(x, e.Mul):
        a, b = linear(x.left), linear(x.right)
        if not a[1] or not b[1]:
            scale, form = (a[0], b) if not a[1] else (b[0], a)
            return scale * form[0], {k: scale * v for k, v in form[1].items() if scale}
    return 0, {_atom(x): 1}


def _combine(a: Linear, b: Linear, sign: int) -> Linear:
    terms = dict(a[1])
    for key, value in b[1].items():
        total = terms.pop(key, 0) + sign * value
        if total:
            terms[key] = total
    return a[0] + sign * b[0], terms


def _key(x: e.Expr) -> object:
    const, terms = linear(x)
    return const, frozenset(terms.items())


def _atom(x: e.Expr) -> object:
    if isinstance(x, e.BinaryExpr):
        keys = (_key(x.left), _key(x.right))
        return type(x), frozenset(keys) if isinstance(x, (e.Min, e.Max, e.Mul)) else keys
    if isinstance(x, e.Cast):
        return e.Cast, x.dtype, _key(x.operand)
    if isinstance(x, e.UnaryExpr):
        return type(x), _key(x.operand)
    if isinstance(x, e.Call) and not x.kwargs:
        return x.op.name, tuple(_key(a) for a in x.args)
    return x


def difference(a: e.Expr, b: e.Expr) -> int | None:
    """`a - b` when it is a known constant."""
    if a is b:
        return 0
    if isinstance(a, e.ConstInt) and isinstance(b, e.ConstInt):
        return a.value - b.value
    const, terms = _combine(linear(a), linear(b), -1)
    return None if terms else const


def equal(a: e.Expr, b: e.Expr) -> bool:
    """`a == b` is proved."""
    return difference(a, b) == 0


def all_equal(a: Sequence[e.Expr], b: Sequence[e.Expr]) -> bool:
    """Both lists have the same length and provably equal elements."""
    return len(a) == len(b) and all(map(equal, a, b))


def at_most(a: e.Expr, b: e.Expr) -> bool:
    """`a <= b` is proved."""
    gap = difference(b, a)
    if gap is not None:
        return gap >= 0
    if isinstance(a, e.Max):
        return at_most(a.left, b) and at_most(a.right, b)
    if isinstance(b, e.Min):
        return at_most(a, b.left) and at_most(a, b.right)
    if isinstance(a, e.Min) and (at_most(a.left, b) or at_most(a.right, b)):
        return True
    if isinstance(b, e.Max) and (at_most(a, b.left) or at_most(a, b.right)):
        return True
    if isinstance(a, e.FloorMod) and isinstance(a.right, e.ConstInt) and a.right.value > 0:
        return at_most(e.index(a.right.value - 1), b)
    return False


def less(a: e.Expr, b: e.Expr) -> bool:
    """`a < b` is proved."""
    return at_most(add(a, e.index(1)), b)


def never_negative(x: e.Expr) -> bool:
    """`x >= 0` is proved."""
    if isinstance(x, e.ConstInt):
        return x.value >= 0
    if isinstance(x, e.FloorMod) and isinstance(x.right, e.ConstInt):
        return x.right.value > 0
    if isinstance(x, (e.Min, e.Add, e.Mul)):
        return never_negative(x.left) and never_negative(x.right)
    if isinstance(x, e.Max):
        return never_negative(x.left) or never_negative(x.right)
    return False


def negative(x: e.Expr) -> bool:
    """`x < 0` is proved."""
    if isinstance(x, e.ConstInt):
        return x.value < 0
    return less(x, e.index(0))


def add(a: e.Expr, b: e.Expr) -> e.Expr:
    """a + b, folded when both are constants or one is 0."""
    if isinstance(a, e.ConstInt) and isinstance(b, e.ConstInt):
        return e.index(a.value + b.value)
    if isinstance(b, e.ConstInt) and b.value == 0:
        return a
    if isinstance(a, e.ConstInt) and a.value == 0:
        return b
    return e.Add(a, b, INDEX)


def sub(a: e.Expr, b: e.Expr) -> e.Expr:
    """a - b, folded when it is constant or b is 0."""
    gap = difference(a, b)
    if gap is not None:
        return e.index(gap)
    if isinstance(b, e.ConstInt) and b.value == 0:
        return a
    return e.Sub(a, b, INDEX)


def mul(a: e.Expr, b: e.Expr) -> e.Expr:
    """a * b, folded when both are constants or one is 1."""
    if isinstance(a, e.ConstInt) and isinstance(b, e.ConstInt):
        return e.index(a.value * b.value)
    if isinstance(b, e.ConstInt) and b.value == 1:
        return a
    if isinstance(a, e.ConstInt) and a.value == 1:
        return b
    return e.Mul(a, b, INDEX)


def ceil_div(a: e.Expr, by: int) -> e.Expr:
    """a divided by a positive constant, rounded up."""
    if isinstance(a, e.ConstInt):
        return e.index(-(-a.value // by))
    return a if by == 1 else e.FloorDiv(add(a, e.index(by - 1)), e.index(by), INDEX)


def minimum(a: e.Expr, b: e.Expr) -> e.Expr:
    """The smaller of a and b, folded when the order is proved."""
    if at_most(a, b):
        return a
    return b if at_most(b, a) else e.Min(a, b, INDEX)


def maximum(a: e.Expr, b: e.Expr) -> e.Expr:
    """The larger of a and b, folded when the order is proved."""
    if at_most(b, a):
        return a
    return b if at_most(a, b) else e.Max(a, b, INDEX)


def volume(dims: Sequence[e.Expr]) -> e.Expr:
    """Product of the extents; 1 for none."""
    total: e.Expr = e.index(1)
    for dim in dims:
        total = mul(total, dim)
    return total


def text(dims: Sequence[e.Expr]) -> str:
    """Extents as they appear in messages: `[64, M]`."""
    return "[" + ", ".join(_text(d) for d in dims) + "]"


def _text(x: e.Expr) -> str:
    if isinstance(x, e.ConstInt):
        return str(x.value)
    return x.name_hint if isinstance(x, e.Var) else str(x)
