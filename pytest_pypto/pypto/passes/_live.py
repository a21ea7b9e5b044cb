"""Which variables a loop assigns, and which of them are read after it before they are assigned again."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.visitor import exprs_of
from ._util import attr_vars, expr_vars


@dataclass
class LoopFacts:
    """Facts of one loop: variables assigned in it (first assignment first), and those of them read after it."""

    assigned: dict[e.Var, None]
    read_after: frozenset[e.Var] = frozenset()
    targets: set[e.Var] = field(default_factory=set)

    def writes(self, param: e.Var) -> bool:
        """A store, assemble or call in the loop names `param` as an operand."""
        return param in self.targets


@dataclass
class _Flow:
    """What a statement reads before assigning it for certain, and what it assigns."""

    exposed: set[e.Var]
    assigned: dict[e.Var, None]


def loop_facts(body: s.Stmt) -> dict[s.Stmt, LoopFacts]:
    """Facts of every loop below `body`."""
    analysis = _Analysis()
    analysis.flow_of(body)
    analysis.backward(body, set())
    return analysis.facts


class _Analysis:
    """Bottom-up summaries, then one backward walk with the set of live variables."""

    def __init__(self) -> None:
        self.facts: dict[s.Stmt, LoopFacts] = {}
        self.flows: dict[s.Stmt, _Flow] = {}

    def reads(self, stmt: s.Stmt) -> set[e.Var]:
        found = {v for root in exprs_of(stmt) for v in expr_vars(root)}
        found.update(attr_vars(stmt))
        return found

    def flow_of(self, stmt: s.Stmt | None) -> _Flow:
        """Summary of a statement or body, remembered for compound statements."""
        if stmt is None:
            return _Flow(set(), {})
        if isinstance(stmt, s.SeqStmts):
            return self.sequence(stmt)
        if isinstance(stmt, s.AssignStmt):
            return _Flow(self.reads(stmt), {stmt.var: None})
        if isinstance(stmt, s.IfStmt):
            then, other = self.flow_of(stmt.then_body), self.flow_of(stmt.else_body)
            flow = _Flow(self.reads(stmt) | then.exposed | other.exposed, then.assigned | other.assigned)
            flow.assigned |= dict.fromkeys(stmt.return_vars)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            flow = self.loop(stmt)
        elif isinstance(stmt, s.ScopeStmt):
            inner = self.flow_of(stmt.body)
            flow = _Flow(self.reads(stmt) | inner.exposed, inner.assigned)
        else:
            return _Flow(self.reads(stmt), {})
        self.flows[stmt] = flow
        return flow

    def sequence(self, body: s.SeqStmts) -> _Flow:
        exposed: set[e.Var] = set()
        certain: set[e.Var] = set()
        assigned: dict[e.Var, None] = {}
        for stmt in body.stmts:
            flow = self.flow_of(stmt)
            exposed |= flow.exposed - certain
            assigned |= flow.assigned
            if isinstance(stmt, (s.AssignStmt, s.ScopeStmt, s.SeqStmts)):
                certain.update(flow.assigned)
        flow = _Flow(exposed, assigned)
        self.flows[body] = flow
        return flow

    def loop(self, stmt: s.ForStmt | s.WhileStmt) -> _Flow:
        inner = self.flow_of(stmt.body)
        local: set[e.Var] = set(stmt.iter_args)
        if isinstance(stmt, s.ForStmt):
            local.add(stmt.loop_var)
        assigned = {v: None for v in inner.assigned if v not in local}
        targets = {v for v in inner.exposed if v not in inner.assigned}
        self.facts[stmt] = LoopFacts(assigned, targets=targets | set(inner.exposed))
        exposed = (inner.exposed - local) | self.reads(stmt)
        return _Flow(exposed, assigned | dict.fromkeys(stmt.return_vars))

    def backward(self, stmt: s.Stmt | None, live: set[e.Var]) -> None:
        """Walk `stmt` from its end; `live` holds what is read after it and becomes what is read from its begin."""
        if stmt is None:
            return
        if isinstance(stmt, s.SeqStmts):
            for inner in reversed(stmt.stmts):
                self.backward(inner, live)
        elif isinstance(stmt, s.AssignStmt):
            live.discard(stmt.var)
            live |= self.reads(stmt)
        elif isinstance(stmt, s.IfStmt):
            other = set(live)
            self.backward(stmt.then_body, live)
            self.backward(stmt.else_body, other)
            live |= other
            live |= self.reads(stmt)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            facts, flow = self.facts[stmt], self.flows[stmt]
            facts.read_after = frozenset(v for v in facts.assigned if v in live)
            inside = live | self.flow_of_body(stmt).exposed
            self.backward(stmt.body, inside)
            live |= flow.exposed
        elif isinstance(stmt, s.ScopeStmt):
            self.backward(stmt.body, live)
            live |= self.reads(stmt)
        else:
            live |= self.reads(stmt)

    def flow_of_body(self, loop: s.ForStmt | s.WhileStmt) -> _Flow:
        return self.flows.get(loop.body) or self.flow_of(loop.body)
