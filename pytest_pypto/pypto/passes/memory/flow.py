"""When each tile is written and read.

Statements are numbered in program order (assignments, bare calls, yields, returns); bounds, conditions and initial
values count at the number that follows. A value that was defined outside a loop and is read inside lives to the end of
the loop, since the next iteration reads it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.types import TileType, TupleType
from ...ir.visitor import exprs_of, find_yield_stmt
from ..device_ir import vars_in

Loops = tuple[int, ...]
"""The loops around a place, outermost first; indices into `Flow.loop_ends`."""
Branches = tuple[tuple[int, int], ...]
"""The branches around a place as (if statement, branch), outermost first."""


@dataclass(frozen=True, slots=True)
class Place:
    """One point of the program."""

    number: int
    loops: Loops
    branches: Branches

    def excludes(self, other: Place) -> bool:
        """True when the two lie in different branches of one `if`, so that never both run in one pass."""
        for (mine, a), (theirs, b) in zip(self.branches, other.branches, strict=False):
            if mine != theirs:
                return False
            if a != b:
                return True
        return False


@dataclass(slots=True)
class Flow:
    """Definitions and uses of the tiles of one function body."""

    defs: dict[e.Var, Place] = field(default_factory=dict)
    """Where each tile variable gets its value: assignments, carries (loop start), results (loop or branch end)."""
    uses: dict[e.Var, list[Place]] = field(default_factory=dict)
    assigned: dict[e.Var, s.AssignStmt] = field(default_factory=dict)
    """The statement that assigns a tile variable, in program order."""
    pairs: dict[e.Var, tuple[s.AssignStmt, Place]] = field(default_factory=dict)
    """Operators that give several values, by the variable of the tuple; the values are defined there."""
    carry: dict[e.Var, e.IterArg] = field(default_factory=dict)
    """Loop result -> its carry."""
    merged: dict[e.Var, list[e.Expr]] = field(default_factory=dict)
    """Branch result -> the values the branches yield."""
    slot_of: dict[e.Var, tuple[int, int]] = field(default_factory=dict)
    """Branch result -> (if statement, position)."""
    loop_ends: list[int] = field(default_factory=list)
    loop_places: dict[int, tuple[int, Place]] = field(default_factory=dict)
    """`id()` of a loop statement -> its index and where it starts."""
    last: int = 0

    def extent(self, var: e.Var, use: Place) -> int:
        """The number up to which a use keeps `var` alive."""
        return self.reach(self.defs[var].loops if var in self.defs else (), use)

    def reach(self, home: Loops, use: Place) -> int:
        """The number up to which a use keeps alive what was defined inside the loops `home`."""
        if len(use.loops) > len(home):
            return max(use.number, self.loop_ends[use.loops[len(home)]])
        return use.number


class _Walker:
    def __init__(self) -> None:
        self.flow = Flow()
        self._next = 1
        self._ifs = 0

    def body(self, body: s.Stmt | None, loops: Loops, branches: Branches) -> None:
        for stmt in s.stmts_of(body):
            self._stmt(stmt, loops, branches)

    def _use(self, exprs: Sequence[e.Expr], place: Place) -> None:
        for expr in exprs:
            for var in vars_in(expr):
                if isinstance(var.type, TileType):
                    self.flow.uses.setdefault(var, []).append(place)

    def _stmt(self, stmt: s.Stmt, loops: Loops, branches: Branches) -> None:
        here = Place(self._next, loops, branches)
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self._loop(stmt, here)
        elif isinstance(stmt, s.IfStmt):
            self._if(stmt, here)
        elif isinstance(stmt, s.ScopeStmt):
            self.body(stmt.body, loops, branches)
        else:
            self._use(exprs_of(stmt), here)
            if isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, TupleType):
                self.flow.pairs[stmt.var] = stmt, here
            elif isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, TileType):
                self.flow.defs[stmt.var] = self._filled_at(stmt.value, here)
                self.flow.assigned[stmt.var] = stmt
            self.flow.last = self._next
            self._next += 1

    def _filled_at(self, value: e.Expr, here: Place) -> Place:
        pair = value.tuple if isinstance(value, e.TupleGetItemExpr) else None
        return self.flow.pairs[pair][1] if isinstance(pair, e.Var) and pair in self.flow.pairs else here

    def _loop(self, stmt: s.ForStmt | s.WhileStmt, here: Place) -> None:
        flow, index = self.flow, len(self.flow.loop_ends)
        flow.loop_ends.append(0)
        flow.loop_places[id(stmt)] = (index, here)
        self._use([a.initValue for a in stmt.iter_args], here)
        inner = (*here.loops, index)
        for arg in stmt.iter_args:
            if isinstance(arg.type, TileType):
                flow.defs[arg] = Place(here.number, inner, here.branches)
        if isinstance(stmt, s.WhileStmt):
            self._use([stmt.condition], Place(here.number, inner, here.branches))
        self.body(stmt.body, inner, here.branches)
        flow.last = flow.loop_ends[index] = self._next  # the step to the next turn comes after the last statement
        self._next += 1
        end = Place(flow.loop_ends[index], here.loops, here.branches)
        for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
            if isinstance(result.type, TileType):
                flow.defs[result] = end
                flow.carry[result] = arg

    def _if(self, stmt: s.IfStmt, here: Place) -> None:
        flow, number = self.flow, self._ifs
        self._ifs += 1
        self._use([stmt.condition], here)
        for i, body in enumerate((stmt.then_body, stmt.else_body)):
            self.body(body, here.loops, (*here.branches, (number, i)))
        yields = [y for y in (find_yield_stmt(stmt.then_body), find_yield_stmt(stmt.else_body)) if y is not None]
        end = Place(max(flow.last, here.number), here.loops, here.branches)
        for i, result in enumerate(stmt.return_vars):
            if isinstance(result.type, TileType):
                flow.defs[result] = end
                flow.merged[result] = [y.value[i] for y in yields]
                flow.slot_of[result] = (number, i)


def flow_of(body: s.Stmt) -> Flow:
    """Definitions and uses of the tiles of a body, in one walk."""
    walker = _Walker()
    walker.body(body, (), ())
    return walker.flow


def sources(flow: Flow, var: e.Var) -> Iterator[tuple[e.Var, tuple[tuple[int, int], ...]]]:
    """The assigned tiles that a name stands for, each with the branch slots it was yielded through.

    A carry or loop result stands for its initial value; a branch result for what the branches yield, as far as that
    is assigned inside the branch.
    """
    work: list[tuple[e.Expr, tuple[tuple[int, int], ...]]] = [(var, ())]
    seen: set[tuple[e.Var, tuple[tuple[int, int], ...]]] = set()
    while work:
        at, slots = work.pop()
        if not isinstance(at, e.Var) or (at, slots) in seen:
            continue
        seen.add((at, slots))
        if at in flow.assigned:
            if not slots or _inside(flow, at, slots[0][0]):
                yield at, slots
        elif isinstance(at, e.IterArg):
            work.append((at.initValue, slots))
        elif at in flow.carry:
            work.append((flow.carry[at].initValue, slots))
        elif at in flow.merged:
            slot = flow.slot_of[at]
            work.extend((value, (*slots, slot)) for value in flow.merged[at])


def _inside(flow: Flow, var: e.Var, branch: int) -> bool:
    return any(number == branch for number, _ in flow.defs[var].branches)
