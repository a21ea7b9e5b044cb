"""Removal of what nothing needs: pure statements, loop carries, branch results, empty shells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.visitor import exprs_of
from ..device_ir import body_like, nested_bodies, op_call, type_vars, vars_in, with_bodies

_EFFECT_OPS = frozenset(
    {
        *("tile.store", "tile.mscatter", "tile.write", "tile.tpop_from_aic", "tile.tpop_from_aiv", "tile.alloc"),
        *("tensor.write", "tensor.assemble", "system.reserve_buffer", "system.import_peer_buffer"),
    }
)


def has_effect(stmt: s.Stmt) -> bool:
    """True when a statement must stay even if nobody reads what it defines."""
    if not isinstance(stmt, s.AssignStmt):
        return True
    call = op_call(stmt)
    if call is None:
        return isinstance(stmt.value, (e.Call, e.Submit))
    name = call.op.name
    return name in _EFFECT_OPS or name.startswith(("system.", "prefetch.", "pld.", "dist."))


_Owner = tuple[s.Stmt, int]


class _Marker:
    """Finds the statements, carries and results that something with an effect needs."""

    def __init__(self, body: s.Stmt) -> None:
        self.needed: set[int] = set()
        self.slots: set[tuple[int, int]] = set()
        self._definer: dict[e.Var, _Owner] = {}
        self._parent: dict[int, s.Stmt | None] = {}
        self._yields: dict[int, list[s.YieldStmt]] = {}
        self._work: list[e.Var] = []
        self._roots: list[s.Stmt] = []
        self._index(body, None)
        for stmt in self._roots:
            self._need(stmt)
        while self._work:
            self._need_var(self._work.pop())

    def _index(self, body: s.Stmt | None, parent: s.Stmt | None) -> None:
        for stmt in s.stmts_of(body):
            self._parent[id(stmt)] = parent
            if isinstance(stmt, s.YieldStmt):
                self._yields.setdefault(id(parent), []).append(stmt)
                continue
            self._define(stmt)
            bodies = nested_bodies(stmt)
            for inner in bodies:
                self._index(inner, stmt)
            if not bodies and has_effect(stmt):
                self._roots.append(stmt)

    def _define(self, stmt: s.Stmt) -> None:
        if isinstance(stmt, s.AssignStmt):
            self._definer[stmt.var] = (stmt, -1)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            for i, (arg, result) in enumerate(zip(stmt.iter_args, stmt.return_vars, strict=True)):
                self._definer[arg] = self._definer[result] = (stmt, i)
            if isinstance(stmt, s.ForStmt):
                self._definer[stmt.loop_var] = (stmt, -1)
        elif isinstance(stmt, s.IfStmt):
            for i, result in enumerate(stmt.return_vars):
                self._definer[result] = (stmt, i)

    def _use(self, exprs: Iterable[e.Expr]) -> None:
        for expr in exprs:
            self._work.extend(vars_in(expr))

    def _need(self, stmt: s.Stmt) -> None:
        at: s.Stmt | None = stmt
        while at is not None and id(at) not in self.needed:
            self.needed.add(id(at))
            if isinstance(at, s.ForStmt):
                self._use((at.start, at.stop, at.step))
            elif isinstance(at, s.WhileStmt):
                self._use((at.condition,))
            elif not isinstance(at, s.YieldStmt):
                self._use(exprs_of(at))
            if isinstance(at, s.AssignStmt):
                self._work.extend(type_vars(at.var.type))
            at = self._parent[id(at)]

    def _need_var(self, var: e.Var) -> None:
        owner = self._definer.get(var)
        if owner is None:
            return
        stmt, slot = owner
        self._need(stmt)
        if slot < 0 or (id(stmt), slot) in self.slots:
            return
        self.slots.add((id(stmt), slot))
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self._use((stmt.iter_args[slot].initValue,))
        for last in self._yields.get(id(stmt), []):
            self.needed.add(id(last))
            self._use((last.value[slot],))
        self._work.extend(type_vars(var.type))


class _Sweeper:
    def __init__(self, marks: _Marker) -> None:
        self.marks = marks

    def body(self, body: s.Stmt, parent: s.Stmt | None) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            if isinstance(stmt, s.YieldStmt):
                values = [v for i, v in enumerate(stmt.value) if (id(parent), i) in self.marks.slots]
                if values:
                    made.append(stmt if len(values) == len(stmt.value) else replace(stmt, value=tuple(values)))
            elif id(stmt) in self.marks.needed:
                made.append(self._stmt(stmt))
        return body_like(body, made)

    def _stmt(self, stmt: s.Stmt) -> s.Stmt:
        bodies = nested_bodies(stmt)
        if not bodies:
            return stmt
        made = with_bodies(stmt, [self.body(b, stmt) for b in bodies])
        if isinstance(made, (s.ForStmt, s.WhileStmt)):
            keep = [i for i in range(len(made.iter_args)) if (id(stmt), i) in self.marks.slots]
            if len(keep) < len(made.iter_args):
                args, results = made.iter_args, made.return_vars
                made = replace(
                    made, iter_args=tuple(args[i] for i in keep), return_vars=tuple(results[i] for i in keep)
                )
        elif isinstance(made, s.IfStmt):
            made = self._if(stmt, made)
        return made

    def _if(self, old: s.Stmt, made: s.IfStmt) -> s.Stmt:
        results = tuple(v for i, v in enumerate(made.return_vars) if (id(old), i) in self.marks.slots)
        if len(results) < len(made.return_vars):
            made = replace(made, return_vars=results)
        if made.else_body is not None and not s.stmts_of(made.else_body):
            made = replace(made, else_body=None)
        return made


def remove_unneeded(body: s.Stmt) -> s.Stmt:
    """`body` without pure statements nobody reads, and without carries and results that are dead."""
    return _Sweeper(_Marker(body)).body(body, None)
