"""An integer analyser: intervals of scalar expressions, facts of branches, and rewriting to a normal form.

Nothing is assumed about the sign of a named scalar: only loop bounds, constants and branch conditions give intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..ir import expr as e
from ..ir.dtypes import BOOL, INDEX, INT64, DataType
from ..ir.types import ScalarType


class Interval(NamedTuple):
    """All integers from `lo` to `hi`, both included; None is no limit."""

    lo: int | None = None
    hi: int | None = None

    def meet(self, other: Interval) -> Interval:
        """The common part."""
        return Interval(_pick(max, self.lo, other.lo), _pick(min, self.hi, other.hi))


ANY = Interval()
Linear = tuple[int, dict[object, tuple[int, e.Expr]]]
"""constant, and per atom its coefficient and expression"""


def _pick(best: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else best(a, b)


def _add(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def key_of(x: e.Expr) -> object:
    """A hashable key; equal keys mean equal structure (variables and calls by identity)."""
    if isinstance(x, (e.ConstInt, e.ConstFloat, e.ConstBool)):
        return type(x), x.value, x.dtype
    if isinstance(x, e.BinaryExpr):
        return type(x), key_of(x.left), key_of(x.right)
    if isinstance(x, e.UnaryExpr):
        return type(x), key_of(x.operand), x.dtype
    return e.Var, id(x)


def is_int(x: e.Expr) -> bool:
    """An integer scalar."""
    return isinstance(x.type, ScalarType) and x.type.dtype.is_int()


def _wide(x: e.Expr) -> bool:
    """An index-like integer, for which overflow is not a concern."""
    return isinstance(x.type, ScalarType) and x.type.dtype in (INDEX, INT64)


class Analyzer:
    """Knows intervals of variables and conditions that hold at the current place."""

    def __init__(self) -> None:
        self.ranges: dict[e.Var, Interval] = {}
        self.steps: dict[e.Var, tuple[int, int]] = {}
        self.truths: dict[object, bool] = {}
        self.undo: list[tuple[e.Var, Interval | None]] = []

    # facts -----------------------------------------------------------------------------------------------------

    def bind(self, var: e.Var, interval: Interval) -> None:
        """`var` lies in `interval`."""
        if interval != ANY:
            self.undo.append((var, self.ranges.get(var)))
            self.ranges[var] = interval

    def bind_loop(self, var: e.Var, start: e.Expr, stop: e.Expr, step: e.Expr) -> None:
        """`var` runs over a loop's range. Facts hold inside the body only, where the loop has made a trip."""
        by = e.const_value(step)
        if by is None or by == 0:
            return
        first, last = self.interval(start), self.interval(stop)
        if by > 0:
            interval = Interval(first.lo, _add(last.hi, -1))
        else:
            interval = Interval(_add(last.lo, 1), first.hi)
        begin = e.const_value(start)
        if begin is not None:
            self.steps[var] = (abs(by), begin)
            end = interval.hi if by > 0 else interval.lo
            if end is not None:
                end = begin + (end - begin) // by * by
                interval = Interval(interval.lo, end) if by > 0 else Interval(end, interval.hi)
        self.bind(var, interval)

    @contextmanager
    def region(self) -> Iterator[None]:
        """Facts found inside the block are forgotten at its end."""
        mark, truths = len(self.undo), self.truths
        self.truths = dict(truths)
        try:
            yield
        finally:
            self.truths = truths
            while len(self.undo) > mark:
                var, old = self.undo.pop()
                if old is None:
                    del self.ranges[var]
                else:
                    self.ranges[var] = old

    @contextmanager
    def assuming(self, condition: e.Expr, truth: bool) -> Iterator[None]:
        """Inside the block `condition` has the value `truth`."""
        with self.region():
            self._assume(condition, truth)
            yield

    def _assume(self, x: e.Expr, truth: bool) -> None:
        self.truths[key_of(x)] = truth
        if isinstance(x, e.Not):
            self._assume(x.operand, not truth)
        elif isinstance(x, (e.And, e.Or)):
            if isinstance(x, e.And) is truth:
                self._assume(x.left, truth)
                self._assume(x.right, truth)
        elif isinstance(x, e.BinaryExpr) and is_int(x.left) and is_int(x.right):
            self._assume_comparison(x, truth)

    def _assume_comparison(self, x: e.BinaryExpr, truth: bool) -> None:
        """Narrow the variable of a comparison that has one variable with factor 1 or -1."""
        kind = type(x)
        if not truth:
            kind = {e.Lt: e.Ge, e.Le: e.Gt, e.Gt: e.Le, e.Ge: e.Lt, e.Eq: e.Ne, e.Ne: e.Eq}.get(kind, kind)
        const, terms = self.linear(x.left, x.right)
        if len(terms) != 1:
            return
        ((factor, var),) = terms.values()
        if abs(factor) != 1 or not isinstance(var, e.Var):
            return
        limit = -const * factor
        if factor < 0:
            kind = {e.Lt: e.Gt, e.Le: e.Ge, e.Gt: e.Lt, e.Ge: e.Le}.get(kind, kind)
        interval = {
            e.Lt: Interval(None, limit - 1),
            e.Le: Interval(None, limit),
            e.Gt: Interval(limit + 1, None),
            e.Ge: Interval(limit, None),
            e.Eq: Interval(limit, limit),
        }.get(kind, ANY)
        self.bind(var, self.ranges.get(var, ANY).meet(interval))

    # intervals -------------------------------------------------------------------------------------------------

    def linear(self, a: e.Expr, minus: e.Expr | None = None) -> Linear:
        """`a` (minus another expression) as constant + sum of factors times atoms."""
        terms: dict[object, tuple[int, e.Expr]] = {}
        const = self._collect(a, 1, terms)
        if minus is not None:
            const += self._collect(minus, -1, terms)
        return const, {k: t for k, t in terms.items() if t[0]}

    def _collect(self, x: e.Expr, factor: int, terms: dict[object, tuple[int, e.Expr]]) -> int:
        if isinstance(x, e.ConstInt):
            return factor * x.value
        if not _wide(x):
            key = key_of(x)
            terms[key] = (terms.get(key, (0, x))[0] + factor, x)
            return 0
        if isinstance(x, e.Add):
            return self._collect(x.left, factor, terms) + self._collect(x.right, factor, terms)
        if isinstance(x, e.Sub):
            return self._collect(x.left, factor, terms) + self._collect(x.right, -factor, terms)
        if isinstance(x, e.Neg):
            return self._collect(x.operand, -factor, terms)
        if isinstance(x, e.Mul) and isinstance(x.right, e.ConstInt):
            return self._collect(x.left, factor * x.right.value, terms)
        if isinstance(x, e.Mul) and isinstance(x.left, e.ConstInt):
            return self._collect(x.right, factor * x.left.value, terms)
        key = key_of(x)
        terms[key] = (terms.get(key, (0, x))[0] + factor, x)
        return 0

    def difference(self, a: e.Expr, b: e.Expr) -> Interval:
        """Interval of `a - b`."""
        const, terms = self.linear(a, b)
        total = Interval(const, const)
        for factor, atom in terms.values():
            part = self._scale(self._atom(atom), factor)
            total = Interval(_add(total.lo, part.lo), _add(total.hi, part.hi))
        return total

    def interval(self, x: e.Expr) -> Interval:
        """Interval of an integer expression."""
        if isinstance(x, e.ConstInt):
            return Interval(x.value, x.value)
        if isinstance(x, e.Var):
            return self.ranges.get(x, ANY)
        return self.difference(x, e.index(0)) if is_int(x) else ANY

    def _scale(self, i: Interval, factor: int) -> Interval:
        ends = [None if end is None else end * factor for end in i]
        return Interval(ends[0], ends[1]) if factor >= 0 else Interval(ends[1], ends[0])

    def _atom(self, x: e.Expr) -> Interval:
        """Interval of something that is no sum."""
        if isinstance(x, e.Var):
            return self.ranges.get(x, ANY)
        if isinstance(x, (e.Min, e.Max)):
            a, b = self.interval(x.left), self.interval(x.right)
            if isinstance(x, e.Min):
                return Interval(None if None in (a.lo, b.lo) else min(a.lo, b.lo), _pick(min, a.hi, b.hi))  # type: ignore[type-var]
            return Interval(_pick(max, a.lo, b.lo), None if None in (a.hi, b.hi) else max(a.hi, b.hi))  # type: ignore[type-var]
        if isinstance(x, e.Mul):
            return _product(self.interval(x.left), self.interval(x.right))
        if isinstance(x, (e.FloorDiv, e.FloorMod)):
            by = e.const_value(x.right)
            if by is not None and by > 0:
                return self._divided(x, by)
        if isinstance(x, e.Cast) and is_int(x.operand) and _wide(x):
            return self.interval(x.operand)
        if isinstance(x, e.Abs):
            return Interval(0, None)
        return ANY

    def _divided(self, x: e.FloorDiv | e.FloorMod, by: int) -> Interval:
        i = self.interval(x.left)
        if isinstance(x, e.FloorDiv):
            return Interval(None if i.lo is None else i.lo // by, None if i.hi is None else i.hi // by)
        if i.lo is not None and i.hi is not None and i.lo // by == i.hi // by:
            return Interval(i.lo % by, i.hi % by)
        return Interval(0, by - 1)

    def multiple_of(self, x: e.Expr) -> tuple[int, int]:
        """(m, r): `x` is r more than a multiple of m; m is 0 for a constant."""
        const, terms = self.linear(x)
        modulus, rest = 0, const
        for factor, atom in terms.values():
            m, r = self.steps.get(atom, (1, 0)) if isinstance(atom, e.Var) else (1, 0)
            modulus = _gcd(modulus, factor * m)
            rest += factor * r
        return modulus, rest % modulus if modulus else rest

    # proofs ----------------------------------------------------------------------------------------------------

    def decide(self, x: e.Expr) -> bool | None:
        """The value of a condition, when it is known."""
        if isinstance(x, e.ConstBool):
            return x.value
        known = self.truths.get(key_of(x))
        if known is not None:
            return known
        if isinstance(x, e.Not):
            inner = self.decide(x.operand)
            return None if inner is None else not inner
        if isinstance(x, (e.And, e.Or)):
            return self._decide_pair(x)
        if isinstance(x, e.BinaryExpr) and x.dtype is BOOL and is_int(x.left) and is_int(x.right):
            return self._decide_comparison(x)
        return None

    def _decide_pair(self, x: e.BinaryExpr) -> bool | None:
        stop = isinstance(x, e.Or)
        a, b = self.decide(x.left), self.decide(x.right)
        if a is stop or b is stop:
            return stop
        return None if a is None or b is None else not stop

    def _decide_comparison(self, x: e.BinaryExpr) -> bool | None:
        lo, hi = self.difference(x.left, x.right)
        if isinstance(x, (e.Gt, e.Ge)):
            lo, hi = (None if hi is None else -hi), (None if lo is None else -lo)
        if isinstance(x, (e.Lt, e.Gt)):
            return True if hi is not None and hi < 0 else False if lo is not None and lo >= 0 else None
        if isinstance(x, (e.Le, e.Ge)):
            return True if hi is not None and hi <= 0 else False if lo is not None and lo > 0 else None
        if isinstance(x, (e.Eq, e.Ne)):
            apart = (lo is not None and lo > 0) or (hi is not None and hi < 0) or self._residues_differ(x)
            same = lo == 0 and hi == 0
            return isinstance(x, e.Eq) is same if apart or same else None
        return None

    def _residues_differ(self, x: e.BinaryExpr) -> bool:
        modulus, rest = self.multiple_of(e.Sub(x.left, x.right, INDEX))
        return modulus > 1 and rest != 0


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return abs(a)


def _product(a: Interval, b: Interval) -> Interval:
    if None in a or None in b:
        if a.lo is not None and a.lo >= 0 and b.lo is not None and b.lo >= 0:
            return Interval(a.lo * b.lo, None if a.hi is None or b.hi is None else a.hi * b.hi)
        return ANY
    corners = [p * q for p in a for q in b]  # type: ignore[operator]
    return Interval(min(corners), max(corners))


def const(value: int, dtype: DataType, like: e.Expr) -> e.ConstInt:
    """A constant at the place of `like`, wrapped around at the width of its type."""
    bits = dtype.get_bit()
    if not -(1 << (bits - 1)) <= value < (1 << (bits - 1)) or (dtype.is_unsigned_int() and value < 0):
        value &= (1 << bits) - 1
        if not dtype.is_unsigned_int() and value >> (bits - 1):
            value -= 1 << bits
    return e.ConstInt(value, dtype, like.span)
