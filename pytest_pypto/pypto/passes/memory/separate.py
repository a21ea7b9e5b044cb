"""Copies where one buffer would have to hold two values at once.

A loop updates the buffer of a carried tile's initial value in place, and a branch result lies in the buffer of what
the first branch yields. That is wrong when the value is still needed: read later, carried twice, or started from again
by an outer loop. A copy made before the loop, or in the branch, keeps the two apart.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.types import TileType
from ...ir.visitor import find_yield_stmt, walk_stmts
from ..device_ir import body_like, kernel_error, nested_bodies, op_assign, op_call, with_bodies
from ..mixed.slot_order import POPS, shared_storage
from .flow import Flow, Place, flow_of

_GENERATORS = frozenset({"tile.create", "tile.full"})
Loop = s.ForStmt | s.WhileStmt


def storage_of(flow: Flow, var: e.Var) -> e.Var | None:
    """The tile whose buffer `var` will lie in, by views, updates, carries and results; None for a pipe slot."""
    at: e.Expr | None = var
    seen: set[e.Var] = set()
    while isinstance(at, e.Var) and at not in seen:
        seen.add(at)
        if isinstance(at, e.IterArg):
            at = at.initValue
        elif at in flow.carry:
            at = flow.carry[at].initValue
        elif at in flow.merged:
            values = flow.merged[at]
            at = values[0] if values else None
        else:
            stmt = flow.assigned.get(at)
            if stmt is None:
                return None
            source = shared_storage(stmt)
            if source is None:
                call = op_call(stmt)
                return None if call is not None and call.op.name in POPS else at
            at = source
    return None


class SeparateValues:
    """Inserts the copies into one body whose tiles have no buffers yet."""

    def __init__(self, body: s.Stmt) -> None:
        self.flow: Flow = flow_of(body)
        self._home: dict[e.Var, e.Var] = {}
        self._members: dict[e.Var, list[e.Var]] = defaultdict(list)
        for var in self.flow.defs:
            home = storage_of(self.flow, var)
            if home is not None:
                self._home[var] = home
                self._members[home].append(var)

    def body(self, body: s.Stmt) -> s.Stmt:
        """The body with copies."""
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            bodies = nested_bodies(stmt)
            if not bodies:
                made.append(stmt)
                continue
            inner = [self.body(b) for b in bodies]
            if isinstance(stmt, s.IfStmt):
                inner[0] = self._then(stmt, inner[0])
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                copies, args = self._carries(stmt)
                made.extend(copies)
                made.append(_with_carries(stmt, args, inner[0]) if copies else with_bodies(stmt, inner))
            else:
                made.append(with_bodies(stmt, inner))
        return body_like(body, made)

    # --- loops -----------------------------------------------------------------------------------------------------

    def _carries(self, loop: Loop) -> tuple[list[s.AssignStmt], list[e.IterArg]]:
        copies: list[s.AssignStmt] = []
        args: list[e.IterArg] = list(loop.iter_args)
        taken: set[e.Var] = set()
        for i, arg in enumerate(loop.iter_args):
            home = self._home.get(arg)
            if home is None or not isinstance(arg.initValue, e.Var):
                continue
            if home in taken or self._needed_later(loop, i, home):
                copy = self._copy(arg.initValue, loop)
                copies.append(copy)
                args[i] = e.IterArg(arg.name_hint, arg.type, copy.var, arg.span)
            else:
                taken.add(home)
        return copies, args

    def _needed_later(self, loop: Loop, slot: int, home: e.Var) -> bool:
        if not _updated(loop, slot):
            return False
        index, start = self.flow.loop_places[id(loop)]
        own = {loop.iter_args[slot], loop.return_vars[slot]}
        return any(
            self._lives_past(var, start, index)
            for var in self._members[home]
            if var not in own and index not in self.flow.defs[var].loops and not self._follows(var, own)
        )

    def _follows(self, var: e.Var, own: set[e.Var]) -> bool:
        """True when `var` is the loop's own result under another name (a view, a later carry)."""
        start = max(self.flow.defs[v].number for v in own)
        return self.flow.defs[var].number >= start and not isinstance(var, e.IterArg)

    def _lives_past(self, var: e.Var, start: Place, index: int) -> bool:
        flow = self.flow
        for use in flow.uses.get(var, ()):
            if not use.excludes(start) and (index in use.loops or flow.extent(var, use) > start.number):
                return True
        return False

    def _copy(self, value: e.Var, at: s.Stmt) -> s.AssignStmt:
        tile = value.type
        assert isinstance(tile, TileType)
        var = e.Var(f"{value.name_hint}_mv", tile, value.span)
        source = self.flow.assigned.get(value)
        call = None if source is None else op_call(source)
        if call is not None and call.op.name in _GENERATORS:
            return op_assign(var, call.op.name, call.args, call.kwargs, at.span)
        if tile.space is not MemorySpace.Vec:
            raise kernel_error(
                f"'{value.name_hint}' goes into a loop or branch that changes it, and is needed again afterwards, but "
                f"a tile in {tile.space.name if tile.space else 'its memory'} cannot be copied; compute it once more",
                at.span,
            )
        return op_assign(var, "tile.move", [value], {"target_memory": MemorySpace.Vec}, at.span)

    # --- branches --------------------------------------------------------------------------------------------------

    def _then(self, stmt: s.IfStmt, body: s.Stmt) -> s.Stmt:
        """The first branch; where it yields a tile that is needed after the `if`, it yields a copy."""
        last, other = find_yield_stmt(stmt.then_body), find_yield_stmt(stmt.else_body)
        if last is None or other is None:
            return body
        values = list(last.value)
        copies: list[s.Stmt] = []
        for i, result in enumerate(stmt.return_vars):
            value = values[i]
            if not isinstance(value, e.Var) or not isinstance(result.type, TileType):
                continue
            home = self._home.get(value)
            if home is None or self._same(home, other.value[i]) or not self._needed_after(stmt, result, home):
                continue
            copy = self._copy(value, stmt)
            copies.append(copy)
            values[i] = copy.var
        if not copies:
            return body
        stmts = s.stmts_of(body)
        return s.SeqStmts((*stmts[:-1], *copies, replace(last, value=tuple(values))), body.span)

    def _same(self, home: e.Var, other: e.Expr) -> bool:
        return isinstance(other, e.Var) and self._home.get(other) is home

    def _needed_after(self, stmt: s.IfStmt, result: e.Var, home: e.Var) -> bool:
        end = self.flow.defs[result]
        for var in self._members[home]:
            place = self.flow.defs[var]
            if var is result or place.number > end.number or any(v is var for v in stmt.return_vars):
                continue
            if any(self.flow.extent(var, u) > end.number and not u.excludes(end) for u in self.flow.uses.get(var, ())):
                return True
        return False


def _updated(loop: Loop, slot: int) -> bool:
    """False when the loop hands its carry on unchanged."""
    last = find_yield_stmt(loop.body)
    return last is None or last.value[slot] is not loop.iter_args[slot]


def _with_carries(loop: Loop, args: list[e.IterArg], body: s.Stmt) -> s.Stmt:
    """The loop with other initial values."""
    from ...ir.visitor import IRMutator

    mutator = IRMutator()
    for old, new in zip(loop.iter_args, args, strict=True):
        if old is not new:
            mutator.var_map[old] = new
    made = mutator.visit_stmt(replace(loop, body=body))
    assert isinstance(made, (s.ForStmt, s.WhileStmt))
    return made


def separate_values(body: s.Stmt) -> s.Stmt:
    """`body` with the copies it needs; itself when no loop or branch hands on a tile.

    Raises:
        ValueError: a copy is needed of a tile that lies in a memory of the cube core.
    """
    control = (x for x in walk_stmts(body) if isinstance(x, (s.ForStmt, s.WhileStmt, s.IfStmt)))
    if not any(isinstance(v.type, TileType) for x in control for v in x.return_vars):
        return body
    return SeparateValues(body).body(body)
