"""Dropping scalars that nobody reads: assignments, branch results and loop carries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function
from ..ir.types import ScalarType
from ..ir.visitor import exprs_of, walk_exprs
from ._util import attr_vars, expr_vars, type_vars

Loop = s.ForStmt | s.WhileStmt


def drop_dead_scalars(func: Function) -> Function:
    """The function without scalar assignments, branch results and carries whose value nobody reads.

    Assignments of calls, submits and their parts (task ids) are kept; a tensor or tile is never dropped.
    """
    live = _Liveness(func)
    if not live.dead:
        return func
    body = _Sweep(live.dead).block(func.body)
    return func if body is func.body else func.with_(body=body)


class _Liveness:
    """Marks what is read, starting from calls, control flow and results; the rest is dead."""

    def __init__(self, func: Function) -> None:
        self.needs: dict[e.Var, list[e.Var]] = {}
        self.roots: list[e.Var] = []
        self.candidates: set[e.Var] = set()
        for type_ in (*(p.type for p in func.params), *func.return_types):
            self.roots += type_vars(type_)
        for value in func.attrs.values():
            if isinstance(value, e.Expr):
                self.roots += expr_vars(value)
        self.scan(func.body, ())
        self.dead = self.candidates - self.reached()

    def reached(self) -> set[e.Var]:
        seen: set[e.Var] = set()
        todo = list(self.roots)
        while todo:
            var = todo.pop()
            if var not in seen:
                seen.add(var)
                todo += self.needs.get(var, ())
        return seen

    def scan(self, body: s.Stmt | None, owners: tuple[tuple[e.Var, ...], ...]) -> None:
        """`owners[i]` are the variables that the i-th value of the body's yield feeds."""
        for stmt in s.stmts_of(body):
            self.stmt(stmt, owners)

    def stmt(self, stmt: s.Stmt, owners: tuple[tuple[e.Var, ...], ...]) -> None:
        if isinstance(stmt, s.AssignStmt):
            self.assign(stmt)
        elif isinstance(stmt, s.YieldStmt) and len(owners) == len(stmt.value):
            for value, fed in zip(stmt.value, owners, strict=True):
                self.feed(fed, expr_vars(value))
        elif isinstance(stmt, s.IfStmt):
            self.roots += expr_vars(stmt.condition)
            self.results(stmt.return_vars)
            results = tuple((v,) for v in stmt.return_vars)
            self.scan(stmt.then_body, results)
            self.scan(stmt.else_body, results)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self.loop(stmt)
        else:
            self.roots += [v for root in exprs_of(stmt) for v in expr_vars(root)]
            self.roots += attr_vars(stmt)
            if isinstance(stmt, s.ScopeStmt):
                self.scan(stmt.body, owners)

    def assign(self, stmt: s.AssignStmt) -> None:
        uses = [*expr_vars(stmt.value), *type_vars(stmt.var.type)]
        scalar = isinstance(stmt.var.type, ScalarType) and not isinstance(stmt.value, e.TupleGetItemExpr)
        if scalar and not _has_call(stmt.value):
            self.candidates.add(stmt.var)
            self.needs[stmt.var] = uses
        else:
            self.roots += uses

    def loop(self, stmt: Loop) -> None:
        if isinstance(stmt, s.WhileStmt):
            self.roots += expr_vars(stmt.condition)
        else:
            bounds = (stmt.start, stmt.stop, stmt.step)
            self.roots += [v for x in (*bounds, *_exprs(stmt.attrs.values())) for v in expr_vars(x)]
        self.results(stmt.iter_args)
        self.results(stmt.return_vars)
        paired = len(stmt.iter_args) == len(stmt.return_vars)
        fed = tuple(zip(stmt.iter_args, stmt.return_vars, strict=True)) if paired else ()
        for arg in stmt.iter_args:
            self.feed((arg,), expr_vars(arg.initValue))
        for arg, result in fed:
            self.needs.setdefault(result, []).append(arg)
        self.scan(stmt.body, fed)

    def results(self, found: Iterable[e.Var]) -> None:
        for var in found:
            self.roots += type_vars(var.type)
            if isinstance(var.type, ScalarType):
                self.candidates.add(var)
            else:
                self.roots.append(var)

    def feed(self, fed: tuple[e.Var, ...], uses: Iterator[e.Var]) -> None:
        """Who reads one of `fed` reads `uses`."""
        values = list(uses)
        for var in fed:
            self.needs.setdefault(var, []).extend(values)


def _exprs(values: Iterable[object]) -> Iterator[e.Expr]:
    return (v for v in values if isinstance(v, e.Expr))


def _has_call(expr: e.Expr) -> bool:
    return any(isinstance(x, (e.Call, e.Submit)) for x in walk_exprs(expr))


class _Sweep:
    """Rebuilds bodies without the dead variables."""

    def __init__(self, dead: set[e.Var]) -> None:
        self.dead = dead

    def block(self, body: s.Stmt, keep: tuple[bool, ...] | None = None) -> s.Stmt:
        """The body; `keep[i]` says whether the i-th value of its yield stays."""
        stmts = s.stmts_of(body)
        made: list[s.Stmt] = []
        for stmt in stmts:
            made += self.stmt(stmt, keep)
        same = len(made) == len(stmts) and all(a is b for a, b in zip(made, stmts, strict=True))
        return body if same else s.SeqStmts(tuple(made), body.span)

    def stmt(self, stmt: s.Stmt, keep: tuple[bool, ...] | None) -> list[s.Stmt]:
        if isinstance(stmt, s.AssignStmt):
            return [] if stmt.var in self.dead else [stmt]
        if isinstance(stmt, s.YieldStmt):
            return self.yield_(stmt, keep)
        if isinstance(stmt, s.IfStmt):
            return self.branch(stmt)
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            return [self.loop(stmt)]
        if isinstance(stmt, s.ScopeStmt):
            body = self.block(stmt.body, keep)
            made: s.Stmt = stmt if body is stmt.body else replace(stmt, body=body)  # type: ignore[type-var]
            return [made]
        return [stmt]

    def yield_(self, stmt: s.YieldStmt, keep: tuple[bool, ...] | None) -> list[s.Stmt]:
        if keep is None or all(keep) or len(keep) != len(stmt.value):
            return [stmt]
        kept = tuple(v for v, k in zip(stmt.value, keep, strict=True) if k)
        return [replace(stmt, value=kept)] if kept else []

    def branch(self, stmt: s.IfStmt) -> list[s.Stmt]:
        keep = tuple(v not in self.dead for v in stmt.return_vars)
        then = self.block(stmt.then_body, keep)
        other = None if stmt.else_body is None else self.block(stmt.else_body, keep)
        if not s.stmts_of(then) and not s.stmts_of(other) and not _has_call(stmt.condition):
            return []
        if then is stmt.then_body and other is stmt.else_body and all(keep):
            return [stmt]
        if other is not None and not s.stmts_of(other) and stmt.return_vars and not any(keep):
            other = None
        results = tuple(v for v, k in zip(stmt.return_vars, keep, strict=True) if k)
        return [replace(stmt, then_body=then, else_body=other, return_vars=results)]

    def loop(self, stmt: Loop) -> s.Stmt:
        if len(stmt.iter_args) != len(stmt.return_vars):
            body = self.block(stmt.body)
            return stmt if body is stmt.body else replace(stmt, body=body)
        pairs = list(zip(stmt.iter_args, stmt.return_vars, strict=True))
        keep = tuple(arg not in self.dead for arg, _ in pairs)
        body = self.block(stmt.body, keep)
        if body is stmt.body and all(keep):
            return stmt
        args = tuple(a for (a, _), k in zip(pairs, keep, strict=True) if k)
        results = tuple(r for (_, r), k in zip(pairs, keep, strict=True) if k)
        return replace(stmt, body=body, iter_args=args, return_vars=results)
