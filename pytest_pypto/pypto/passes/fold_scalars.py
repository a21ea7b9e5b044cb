"""Folding of scalar expressions with an `Analyzer`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..ir import expr as e
from ..ir.dtypes import BOOL
from .integers import Analyzer, const, is_int, key_of

_CONST: dict[type, Callable[[Any, Any], Any]] = {
    e.Add: operator.add,
    e.Sub: operator.sub,
    e.Mul: operator.mul,
    e.Min: min,
    e.Max: max,
    e.Eq: operator.eq,
    e.Ne: operator.ne,
    e.Lt: operator.lt,
    e.Le: operator.le,
    e.Gt: operator.gt,
    e.Ge: operator.ge,
}
_TURNED: dict[type[e.BinaryExpr], type[e.BinaryExpr]] = {e.Gt: e.Lt, e.Ge: e.Le}
_NEGATED: dict[type[e.BinaryExpr], type[e.BinaryExpr]] = {
    e.Eq: e.Ne,
    e.Ne: e.Eq,
    e.Lt: e.Ge,
    e.Le: e.Gt,
    e.Gt: e.Le,
    e.Ge: e.Lt,
}


def fold_binary(x: e.BinaryExpr, known: Analyzer) -> e.Expr:
    """`x`, whose operands are folded, in normal form: constants on the right, `<` instead of `>`."""
    a, b = x.left, x.right
    if isinstance(x, (e.And, e.Or)):
        return _fold_logic(x)
    if isinstance(a, e.ConstBool) and isinstance(b, e.ConstBool) and type(x) in (e.Eq, e.Ne):
        return e.ConstBool((a.value == b.value) is (type(x) is e.Eq), x.span)
    if not (is_int(a) and is_int(b)):
        return x
    if x.dtype is BOOL:
        return _fold_comparison(x, known)
    rule = _RULES.get(type(x))
    return x if rule is None else rule(x, a, b, known)


def fold_unary(x: e.UnaryExpr) -> e.Expr:
    """`x`, whose operand is folded."""
    inner = x.operand
    if isinstance(x, e.Not):
        return _fold_not(x)
    if isinstance(inner, e.ConstInt):
        if isinstance(x, e.Neg):
            return const(-inner.value, x.dtype, x)
        if isinstance(x, e.Abs):
            return const(abs(inner.value), x.dtype, x)
        if isinstance(x, e.Cast) and x.dtype.is_int() and _fits(inner.value, x.dtype.get_bit()):
            return const(inner.value, x.dtype, x)
    if isinstance(x, e.Cast) and getattr(inner.type, "dtype", None) is x.dtype:
        return inner
    return x


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < (1 << (bits - 1))


def _fold_not(x: e.UnaryExpr) -> e.Expr:
    inner = x.operand
    if isinstance(inner, e.ConstBool):
        return e.ConstBool(not inner.value, x.span)
    if isinstance(inner, e.Not):
        return inner.operand
    if isinstance(inner, e.BinaryExpr) and type(inner) in _NEGATED and is_int(inner.left) and is_int(inner.right):
        made = _NEGATED[type(inner)](inner.left, inner.right, BOOL, x.span)
        return _turn(made)
    return x


def _turn(x: e.BinaryExpr) -> e.BinaryExpr:
    kind = _TURNED.get(type(x))
    return x if kind is None else kind(x.right, x.left, x.dtype, x.span)


def _fold_logic(x: e.BinaryExpr) -> e.Expr:
    stop = isinstance(x, e.Or)
    for one, other in ((x.left, x.right), (x.right, x.left)):
        if isinstance(one, e.ConstBool):
            return e.ConstBool(stop, x.span) if one.value is stop else other
    return x.left if key_of(x.left) == key_of(x.right) else x


def _fold_comparison(x: e.BinaryExpr, known: Analyzer) -> e.Expr:
    truth = known.decide(x)
    return _turn(x) if truth is None else e.ConstBool(truth, x.span)


Rule = Callable[[e.BinaryExpr, e.Expr, e.Expr, Analyzer], e.Expr]


def _consts(x: e.BinaryExpr, a: e.Expr, b: e.Expr) -> e.Expr | None:
    if isinstance(a, e.ConstInt) and isinstance(b, e.ConstInt):
        return const(_CONST[type(x)](a.value, b.value), x.dtype, x)
    return None


def _sum(a: e.Expr, value: int, x: e.BinaryExpr) -> e.Expr:
    """a + value."""
    return a if value == 0 else e.Add(a, const(value, x.dtype, x), x.dtype, x.span)


def _fold_add(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    if (done := _consts(x, a, b)) is not None:
        return done
    if isinstance(a, e.ConstInt):
        a, b = b, a
    if isinstance(b, e.ConstInt):
        if b.value == 0:
            return a
        if isinstance(a, e.Add) and isinstance(a.right, e.ConstInt):
            return _sum(a.left, a.right.value + b.value, x)
        if isinstance(a, e.Sub) and isinstance(a.right, e.ConstInt):
            return _fold_shift(a.left, b.value - a.right.value, x)
        return e.Add(a, b, x.dtype, x.span)
    if isinstance(a, e.Add) and isinstance(a.right, e.ConstInt):
        return _sum(_fold_add(x, a.left, b, known), a.right.value, x)
    if isinstance(b, e.Add) and isinstance(b.right, e.ConstInt):
        return _sum(_fold_add(x, a, b.left, known), b.right.value, x)
    if isinstance(a, e.Sub) and key_of(a.right) == key_of(b):
        return a.left
    if isinstance(b, e.Sub) and key_of(b.right) == key_of(a):
        return b.left
    return e.Add(a, b, x.dtype, x.span)


def _fold_shift(a: e.Expr, value: int, x: e.BinaryExpr) -> e.Expr:
    """a + value, written as a - (-value) when value is negative."""
    if value < 0:
        return e.Sub(a, const(-value, x.dtype, x), x.dtype, x.span)
    return _sum(a, value, x)


def _fold_sub(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    if (done := _consts(x, a, b)) is not None:
        return done
    if key_of(a) == key_of(b):
        return const(0, x.dtype, x)
    if isinstance(b, e.ConstInt):
        if b.value == 0:
            return a
        if isinstance(a, e.Add) and isinstance(a.right, e.ConstInt):
            return _fold_shift(a.left, a.right.value - b.value, x)
        if isinstance(a, e.Sub) and isinstance(a.right, e.ConstInt):
            return _fold_shift(a.left, -a.right.value - b.value, x)
        return e.Sub(a, b, x.dtype, x.span)
    if isinstance(a, e.Add):
        if key_of(a.left) == key_of(b):
            return a.right
        if key_of(a.right) == key_of(b):
            return a.left
    if isinstance(b, e.Sub):
        plus = fold_binary(e.Add(a, b.right, x.dtype, x.span), known)
        return e.Sub(plus, b.left, x.dtype, x.span)
    if isinstance(a, (e.Max, e.Min)) and x.dtype.get_bit() == 64:
        for one, other in ((a.left, a.right), (a.right, a.left)):
            if key_of(one) == key_of(b):
                inner = fold_binary(e.Sub(other, b, x.dtype, x.span), known)
                return fold_binary(type(a)(inner, const(0, x.dtype, x), x.dtype, x.span), known)
    return e.Sub(a, b, x.dtype, x.span)


def _fold_mul(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    if (done := _consts(x, a, b)) is not None:
        return done
    if isinstance(a, e.ConstInt):
        a, b = b, a
    if isinstance(b, e.ConstInt):
        if b.value == 0:
            return const(0, x.dtype, x)
        if b.value == 1:
            return a
        if isinstance(a, e.Mul) and isinstance(a.right, e.ConstInt):
            return e.Mul(a.left, const(a.right.value * b.value, x.dtype, x), x.dtype, x.span)
        if isinstance(a, e.Add) and isinstance(a.right, e.ConstInt):
            return _sum(e.Mul(a.left, b, x.dtype, x.span), a.right.value * b.value, x)
    return e.Mul(a, b, x.dtype, x.span)


def _fold_div(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    by = e.const_value(b)
    if by is None or by == 0:
        return x
    if isinstance(a, e.ConstInt):
        return const(a.value // by, x.dtype, x)
    if by == 1:
        return a
    if by > 0 and x.dtype.get_bit() == 64:
        lo, hi = known.interval(a)
        if lo is not None and hi is not None and lo // by == hi // by:
            return const(lo // by, x.dtype, x)
        if isinstance(a, e.Mul) and isinstance(a.right, e.ConstInt) and a.right.value % by == 0:
            return fold_binary(e.Mul(a.left, const(a.right.value // by, x.dtype, x), x.dtype, x.span), known)
    return x


def _fold_mod(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    by = e.const_value(b)
    if by is None or by == 0:
        return x
    if isinstance(a, e.ConstInt):
        return const(a.value % by, x.dtype, x)
    if by > 0 and x.dtype.get_bit() == 64:
        lo, hi = known.interval(a)
        if lo is not None and hi is not None and lo >= 0 and hi < by:
            return a
        modulus, rest = known.multiple_of(a)
        if modulus % by == 0 and modulus:
            return const(rest % by, x.dtype, x)
    return x


def _fold_min_max(x: e.BinaryExpr, a: e.Expr, b: e.Expr, known: Analyzer) -> e.Expr:
    if (done := _consts(x, a, b)) is not None:
        return done
    low = isinstance(x, e.Min)
    gap = known.difference(a, b)
    if gap.hi is not None and gap.hi <= 0:
        return a if low else b
    if gap.lo is not None and gap.lo >= 0:
        return b if low else a
    if isinstance(a, e.ConstInt):
        a, b = b, a
    if isinstance(b, e.ConstInt) and isinstance(a, type(x)) and isinstance(a.right, e.ConstInt):
        best = min(a.right.value, b.value) if low else max(a.right.value, b.value)
        return type(x)(a.left, const(best, x.dtype, x), x.dtype, x.span)
    return type(x)(a, b, x.dtype, x.span)


_RULES: dict[type[e.BinaryExpr], Rule] = {
    e.Add: _fold_add,
    e.Sub: _fold_sub,
    e.Mul: _fold_mul,
    e.FloorDiv: _fold_div,
    e.FloorMod: _fold_mod,
    e.Min: _fold_min_max,
    e.Max: _fold_min_max,
}
