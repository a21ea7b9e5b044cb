"""Iterations of `pl.parallel` that meet in memory: one reads what another writes.

Only what can be told from the text is reported: windows whose extents are constants and whose offsets, apart from the
loop's variable, differ by constants. Everything else is passed over in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ForKind
from ..ir.program import Program
from ..ir.types import ScalarType
from ..ir.visitor import collect_def_vars, uses_of, walk_stmts
from .diagnostic_types import Diagnostic, DiagnosticSeverity
from .tensor_accesses import Access, Facts, accesses

RULE = "ParallelLoopCarriesMemory"
_TRIPS = 64
"""Iterations of a loop that are looked at; dependencies over longer distances are not seen."""
_TRIPS_OF_DYNAMIC = 2
"""The same where the number of iterations is known at run time only."""

Form = tuple[int, tuple[tuple[int, int], ...]]
"""constant, and per variable (its id) a factor"""


class _Unknown(Exception):
    """The value cannot be told."""


def parallel_loop_carries_memory(program: Program) -> Iterator[Diagnostic]:
    """A parallel loop whose body reads, in one iteration, a part of a tensor that another iteration writes."""
    for func in program.functions.values():
        loops = [x for x in walk_stmts(func.body) if isinstance(x, s.ForStmt) and x.kind is ForKind.Parallel]
        if loops:
            facts = Facts(func)
            for loop in loops:
                yield from _check(loop, facts)


def _check(loop: s.ForStmt, facts: Facts) -> Iterator[Diagnostic]:
    reads, writes = accesses(loop.body, facts)
    shared = {w.tensor for w in writes if not facts.is_local(w.tensor, loop.body)}
    if not any(r.tensor in shared for r in reads):
        return
    turns = _Turns(loop, facts)
    told: set[tuple[e.Var, int]] = set()
    for read in reads:
        for write in writes:
            key = (read.tensor, id(read.stmt))
            if read.tensor is write.tensor and read.tensor in shared and key not in told:
                met = turns.meet(write, read)
                if met is not None:
                    told.add(key)
                    yield Diagnostic(DiagnosticSeverity.Warning, RULE, _message(loop, write, read, met), read.span)


def _message(loop: s.ForStmt, write: Access, read: Access, met: tuple[str, str]) -> str:
    name, var = read.tensor.name_hint, loop.loop_var.name_hint
    return (
        f"iterations of the pl.parallel loop over '{var}' ({loop.span}) are not independent: '{name}' is written at "
        f"{write.text()} and read at {read.text()}; {var} = {met[1]} reads what {var} = {met[0]} writes, and "
        "pl.parallel promises no order. Use pl.range, or read from another tensor than the one that is written"
    )


class _Turns:
    """The first iterations of a loop, and the windows in each."""

    def __init__(self, loop: s.ForStmt, facts: Facts) -> None:
        self.facts, self.var = facts, loop.loop_var
        self.own = set(collect_def_vars(loop.body))
        start, stop, step = (e.const_value(x) for x in (loop.start, loop.stop, loop.step))
        self.base = 0 if start is None else start
        self.symbolic = start is None
        self.step = step or 0
        dynamic = start is None or stop is None
        known = 0 if not self.step else len(range(0 if dynamic else start or 0, 0 if dynamic else stop or 0, self.step))
        self.trips = 0 if not self.step else _TRIPS_OF_DYNAMIC if dynamic else min(known, _TRIPS)
        self.inner = {x.loop_var for x in walk_stmts(loop.body) if isinstance(x, s.ForStmt) and self._alike(x)}

    def _alike(self, inner: s.ForStmt) -> bool:
        """True when an inner loop has the same range in every iteration."""
        used = {v for x in (inner.start, inner.stop, inner.step) for v in uses_of(x)}
        return not used & (self.own | {self.var})

    def meet(self, write: Access, read: Access) -> tuple[str, str] | None:
        """The nearest two iterations of which one reads what the other writes, or None."""
        if len(write.offsets) != len(read.offsets):
            return None
        written, seen = self._windows(write), self._windows(read)
        if len({tuple(w) for w in written.values()}) < 2:
            return None
        pairs = ((a, b) for a in written for b in seen if a != b and _overlap(written[a], seen[b], write, read))
        found = min(pairs, key=lambda p: (abs(p[0] - p[1]), p[0]), default=None)
        return None if found is None else (self._name(found[0]), self._name(found[1]))

    def _name(self, trip: int) -> str:
        value = self.base + trip * self.step
        return f"start + {value}" if self.symbolic else str(value)

    def _windows(self, access: Access) -> dict[int, list[Form]]:
        """Offsets by iteration; without the iterations in which the statement is not reached or not understood."""
        found = {}
        for trip in range(self.trips):
            try:
                if all(bool(self._number(c, trip)) is truth for c, truth in access.guards):
                    found[trip] = [self._form(x, trip) for x in access.offsets]
            except _Unknown:
                return {}
        return found

    def _number(self, x: e.Expr, trip: int) -> int:
        const, terms = self._form(x, trip)
        if terms:
            raise _Unknown
        return const

    def _form(self, x: e.Expr, trip: int) -> Form:
        """`x` in one iteration, as a linear form of what stays the same in all iterations."""
        if isinstance(x, (e.ConstInt, e.ConstBool)):
            return int(x.value), ()
        if isinstance(x, e.Var):
            return self._variable(x, trip)
        if isinstance(x, e.Cast) and isinstance(x.operand.type, ScalarType) and x.operand.type.dtype.is_int():
            return self._form(x.operand, trip)
        if isinstance(x, (e.Add, e.Sub)):
            return _plus(self._form(x.left, trip), self._form(x.right, trip), 1 if isinstance(x, e.Add) else -1)
        if isinstance(x, e.Mul):
            a, b = self._form(x.left, trip), self._form(x.right, trip)
            if a[1] and b[1]:
                raise _Unknown
            scale, form = (b[0], a) if a[1] else (a[0], b)
            return _plus((0, ()), form, scale)
        fold = _FOLDS.get(type(x))
        if fold is None or not isinstance(x, e.BinaryExpr):
            raise _Unknown
        left, right = self._number(x.left, trip), self._number(x.right, trip)
        try:
            return int(fold(left, right)), ()
        except ZeroDivisionError:
            raise _Unknown from None

    def _variable(self, x: e.Var, trip: int) -> Form:
        if x is self.var:
            value = self.base + trip * self.step
            return value, ((x.unique_id, 1),) if self.symbolic else ()
        if x in self.facts.changing:
            raise _Unknown
        if x in self.facts.scalars:
            return self._form(self.facts.scalars[x], trip)
        # An inner loop's variable takes the same value in both iterations, among others.
        if x in self.own and x not in self.inner:
            raise _Unknown
        return 0, ((x.unique_id, 1),)


_FOLDS: dict[type[e.Expr], Callable[[int, int], int]] = {
    e.Min: min,
    e.Max: max,
    e.FloorDiv: lambda a, b: a // b,
    e.FloorMod: lambda a, b: a % b,
    e.Eq: lambda a, b: a == b,
    e.Ne: lambda a, b: a != b,
    e.Lt: lambda a, b: a < b,
    e.Le: lambda a, b: a <= b,
    e.Gt: lambda a, b: a > b,
    e.Ge: lambda a, b: a >= b,
    e.And: lambda a, b: bool(a) and bool(b),
    e.Or: lambda a, b: bool(a) or bool(b),
}


def _plus(a: Form, b: Form, scale: int) -> Form:
    terms = dict(a[1])
    for key, factor in b[1]:
        terms[key] = terms.get(key, 0) + scale * factor
    return a[0] + scale * b[0], tuple(sorted((k, v) for k, v in terms.items() if v))


def _overlap(written: list[Form], seen: list[Form], write: Access, read: Access) -> bool:
    """True when two windows certainly share a cell."""
    for w, r, size, extent in zip(written, seen, write.extents, read.extents, strict=True):
        if w[1] != r[1] or not (w[0] < r[0] + extent and r[0] < w[0] + size):
            return False
    return True
