"""Where values come from and go to inside one function, and in which order things happen.

Every simple statement has a position; a loop has one at its head and one at its end. A value that is used in a loop but
defined outside it is used until the loop's end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.program import Function
from ...ir.visitor import exprs_of, walk_exprs


@dataclass(eq=False)
class Loop:
    """A loop, or a region that several lanes or blocks run over one memory (`shared`)."""

    start: int
    shared: bool = False
    end: int = 0
    carried: tuple[e.Var, ...] = ()


@dataclass(frozen=True)
class Place:
    """A position and the loops around it, outermost first."""

    at: int
    loops: tuple[Loop, ...]

    def common(self, other: Place) -> tuple[Loop, ...]:
        """The loops around both places."""
        return tuple(a for a, b in zip(self.loops, other.loops, strict=False) if a is b)


@dataclass(frozen=True)
class Definition:
    """A variable gets a value at a place; the source is None for parameters and loop variables."""

    place: Place
    source: e.Expr | None


@dataclass
class Flow:
    """Definitions, uses and calls of one function."""

    function: Function
    defs: dict[e.Var, list[Definition]] = field(default_factory=lambda: defaultdict(list))
    uses: dict[e.Var, list[Place]] = field(default_factory=lambda: defaultdict(list))
    calls: list[tuple[e.Call | e.Submit, Place, e.Var | None]] = field(default_factory=list)
    """Calls in order, with the variable that a call as a whole is assigned to."""
    returns: list[tuple[e.Expr, ...]] = field(default_factory=list)
    loop_vars: dict[e.Var, s.ForStmt] = field(default_factory=dict)
    scopes: list[s.ScopeStmt] = field(default_factory=list)
    statements: list[s.Stmt] = field(default_factory=list)
    effects: set[int] = field(default_factory=set)
    """Ids of calls that are statements of their own: what they return is not used."""
    handed_on: set[int] = field(default_factory=set)
    """Ids of calls that a yield hands on."""


class _Walker:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.now = 0
        self.loops: tuple[Loop, ...] = ()

    def place(self) -> Place:
        return Place(self.now, self.loops)

    def use(self, exprs: tuple[e.Expr, ...], assigned: e.Var | None = None) -> None:
        place = self.place()
        for root in exprs:
            for x in walk_exprs(root):
                if isinstance(x, e.Var):
                    self.flow.uses[x].append(place)
                elif isinstance(x, (e.Call, e.Submit)):
                    self.flow.calls.append((x, place, assigned if x is root else None))

    def define(self, var: e.Var, source: e.Expr | None) -> None:
        self.flow.defs[var].append(Definition(self.place(), source))

    def body(self, stmt: s.Stmt | None, targets: tuple[e.Var, ...]) -> None:
        for inner in s.stmts_of(stmt):
            self.flow.statements.append(inner)
            self.now += 1
            self.statement(inner, targets)

    def statement(self, stmt: s.Stmt, targets: tuple[e.Var, ...]) -> None:
        if isinstance(stmt, s.AssignStmt):
            self.use((stmt.value,), stmt.var)
            self.define(stmt.var, stmt.value)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self.loop(stmt)
        elif isinstance(stmt, s.IfStmt):
            self.branch(stmt, targets)
        elif isinstance(stmt, s.ScopeStmt):
            self.scope(stmt, targets)
        elif isinstance(stmt, s.YieldStmt):
            self.use(stmt.value)
            self.flow.handed_on |= {id(value) for value in stmt.value}
            for var, value in zip(targets, stmt.value, strict=False):
                self.define(var, value)
        else:
            self.use(exprs_of(stmt))
            if isinstance(stmt, s.ReturnStmt):
                self.flow.returns.append(stmt.value)
            elif isinstance(stmt, s.EvalStmt):
                self.flow.effects.add(id(stmt.expr))

    def loop(self, stmt: s.ForStmt | s.WhileStmt) -> None:
        if isinstance(stmt, s.ForStmt):
            self.use((stmt.start, stmt.stop, stmt.step))
        self.use(tuple(a.initValue for a in stmt.iter_args))
        loop = Loop(self.now, carried=tuple(stmt.iter_args))
        outer, self.loops = self.loops, (*self.loops, loop)
        for arg in stmt.iter_args:
            self.define(arg, arg.initValue)
        if isinstance(stmt, s.ForStmt):
            self.define(stmt.loop_var, None)
            self.flow.loop_vars[stmt.loop_var] = stmt
        else:
            self.use((stmt.condition,))
        self.body(stmt.body, tuple(stmt.iter_args))
        self.now += 1
        loop.end = self.now
        self.loops = outer
        for result, arg in zip(stmt.return_vars, stmt.iter_args, strict=False):
            self.flow.uses[arg].append(self.place())
            self.define(result, arg)

    def branch(self, stmt: s.IfStmt, targets: tuple[e.Var, ...]) -> None:
        self.use((stmt.condition,))
        inner = stmt.return_vars or targets
        self.body(stmt.then_body, inner)
        self.body(stmt.else_body, inner)
        self.now += 1

    def scope(self, stmt: s.ScopeStmt, targets: tuple[e.Var, ...]) -> None:
        self.flow.scopes.append(stmt)
        self.use(exprs_of(stmt))
        shared = isinstance(stmt, (s.SpmdScopeStmt, s.SplitAivScopeStmt))
        outer = self.loops
        if shared:
            self.loops = (*outer, Loop(self.now, shared=True))
        self.body(stmt.body, targets)
        self.now += 1
        if shared:
            self.loops[-1].end = self.now
        self.loops = outer


def flow_of(function: Function) -> Flow:
    """The flow of one function."""
    flow = Flow(function)
    walker = _Walker(flow)
    for param in function.params:
        walker.define(param, None)
    walker.body(function.body, ())
    return flow


def last_use(flow: Flow, names: set[e.Var], born: Place) -> int:
    """The last position at which a value born at `born` can be read under one of `names`."""
    last = born.at
    for name in names:
        for use in flow.uses.get(name, ()):
            shared = use.common(born)
            outside = [loop for loop in use.loops[len(shared) :] if not loop.shared]
            last = max(last, use.at, *(loop.end for loop in outside), born.at)
            if use.at < born.at and shared:
                last = max(last, shared[-1].end)
    return last


def names_reached(flow: Flow, edges: dict[e.Var, set[e.Var]], start: e.Var) -> set[e.Var]:
    """`start` and every variable that its value can end up under."""
    found, todo = {start}, [start]
    while todo:
        for nxt in edges.get(todo.pop(), ()):
            if nxt not in found:
                found.add(nxt)
                todo.append(nxt)
    return found


def all_places(flow: Flow, names: set[e.Var]) -> Iterator[Place]:
    """Every use of one of `names`."""
    for name in names:
        yield from flow.uses.get(name, ())
