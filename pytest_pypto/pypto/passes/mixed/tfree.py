"""Giving popped slots back: one free per pop, after the last use of the tile and of every view of it, in turn."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.types import TileType
from ...ir.visitor import IRMutator, walk_stmts
from ..device_ir import all_uses, body_like, kernel_error, nested_bodies, op_assign, op_call, op_stmt, with_bodies
from .slot_order import POPS, SlotOrder, freed_tile, group_of, shared_storage


class _Placer:
    """Places the frees of one statement list; nested lists are treated by themselves."""

    def __init__(self, freed: frozenset[e.Var]) -> None:
        self._freed = freed
        self._pops: list[tuple[e.Var, s.AssignStmt]] = []
        self._roots: dict[e.Var, tuple[e.Var, ...]] = {}
        self._last: dict[e.Var, int] = {}
        self._given: dict[e.Var, int] = {}

    def place(self, body: s.Stmt) -> s.Stmt:
        stmts = [self._nested(x) for x in s.stmts_of(body)]
        for i, stmt in enumerate(stmts):
            self._scan(i, stmt)
        return body_like(body, self._insert(stmts) if self._pops else stmts)

    def _nested(self, stmt: s.Stmt) -> s.Stmt:
        bodies = nested_bodies(stmt)
        return with_bodies(stmt, [_Placer(self._freed).place(b) for b in bodies]) if bodies else stmt

    def _scan(self, i: int, stmt: s.Stmt) -> None:
        freed = freed_tile(stmt)
        if freed is not None:
            self._given[freed] = i
            return
        if self._roots:
            for var in all_uses(stmt):
                for root in self._roots.get(var, ()):
                    self._last[root] = i
        if isinstance(stmt, s.AssignStmt):
            if _is_pop(stmt):
                self._pops.append((stmt.var, stmt))
                self._roots[stmt.var] = (stmt.var,)
                self._last[stmt.var] = i
            else:
                source = shared_storage(stmt)
                if isinstance(source, e.Var) and source in self._roots:
                    self._roots[stmt.var] = self._roots[source]

    def _insert(self, stmts: list[s.Stmt]) -> list[s.Stmt]:
        after: dict[int, list[s.Stmt]] = {}
        dropped: set[int] = set()
        turns: dict[object, int] = {}
        for var, pop in self._pops:
            given, ring = self._given.get(var), group_of(pop)
            at = turns[ring] = max(self._last[var], turns.get(ring, 0))  # not before an older slot of the ring
            if given is None and var in self._freed:
                continue  # freed inside a nested body
            if given is not None and given > at:
                turns[ring] = given
                continue
            call = op_call(pop)
            assert call is not None
            free: s.Stmt = op_stmt(POPS[call.op.name], [var], {}, pop.span)
            if given is not None:
                free = stmts[given]
                dropped.add(given)
            after.setdefault(at, []).append(free)
        lists = ([*([] if i in dropped else [stmt]), *after.get(i, ())] for i, stmt in enumerate(stmts))
        return [x for part in lists for x in part]


class _Keeper:
    """Copies popped tiles that start a loop or leave a body: their slot is given back where they were popped."""

    def __init__(self) -> None:
        self._popped: set[e.Var] = set()

    def body(self, body: s.Stmt) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            self._note(stmt)
            copies: list[s.Stmt] = []
            bodies = nested_bodies(stmt)
            if bodies:
                stmt = with_bodies(stmt, [self.body(b) for b in bodies])
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                stmt = self._loop(stmt, copies)
            elif isinstance(stmt, (s.YieldStmt, s.ReturnStmt)):
                stmt = self._leave(stmt, copies)
            made.extend((*copies, stmt))
        return body_like(body, made)

    def _note(self, stmt: s.Stmt) -> None:
        if isinstance(stmt, s.AssignStmt):
            source = shared_storage(stmt)
            if _is_pop(stmt) or (isinstance(source, e.Var) and source in self._popped):
                self._popped.add(stmt.var)

    def _leave(self, stmt: s.YieldStmt | s.ReturnStmt, copies: list[s.Stmt]) -> s.Stmt:
        values = tuple(self._kept(v, stmt, copies) for v in stmt.value)
        return replace(stmt, value=values) if copies else stmt

    def _loop(self, loop: s.ForStmt | s.WhileStmt, copies: list[s.Stmt]) -> s.ForStmt | s.WhileStmt:
        mutator = IRMutator()
        for arg in loop.iter_args:
            init = self._kept(arg.initValue, loop, copies)
            if init is not arg.initValue:
                mutator.var_map[arg] = e.IterArg(arg.name_hint, arg.type, init, arg.span)
        if not copies:
            return loop
        made = mutator.visit_stmt(loop)
        assert isinstance(made, (s.ForStmt, s.WhileStmt))
        return made

    def _kept(self, value: e.Expr, stmt: s.Stmt, copies: list[s.Stmt]) -> e.Expr:
        if not isinstance(value, e.Var) or value not in self._popped:
            return value
        tile = value.type
        assert isinstance(tile, TileType)
        if tile.space is not MemorySpace.Vec:
            raise kernel_error(
                f"'{value.name_hint}' was received from the vector core and is carried through a loop or branch, but "
                f"the pipe slot it lies in must be given back, and a tile in {_space(tile)} cannot be copied; use it "
                "where it is received",
                stmt.span,
            )
        copy = e.Var(f"{value.name_hint}_kept", tile, value.span)
        copies.append(op_assign(copy, "tile.move", [value], {"target_memory": MemorySpace.Vec}, stmt.span))
        return copy


def _space(tile: TileType) -> str:
    return tile.space.name if tile.space is not None else "its memory"


def _is_pop(stmt: s.AssignStmt) -> bool:
    call = op_call(stmt)
    return call is not None and call.op.name in POPS


def place_frees(body: s.Stmt, slots: int | None = None) -> s.Stmt:
    """`body` with one free per pop, directly after the last use of the popped tile in the pop's statement list.

    A free that is already there is moved when a later statement still uses the tile. Slots are given back in the order
    of the pops. A popped tile that is carried through a loop or branch, or that is used for longer than its slot can
    wait in a ring of `slots`, is copied first.

    Raises:
        ValueError: a popped cube tile is carried out of its loop or branch, or would have to be copied.
    """
    stmts = list(walk_stmts(body))
    if not any(isinstance(x, s.AssignStmt) and _is_pop(x) for x in stmts):
        return body
    freed = frozenset(v for v in map(freed_tile, stmts) if v is not None)
    kept = SlotOrder(slots).body(_Keeper().body(body))
    return _Placer(freed).place(kept)
