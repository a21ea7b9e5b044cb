"""ExpandManualPhaseFence: one barrier task in place of many edges between two phases of a manual scope."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import TASK_ID
from ..ir.op_table import create_op_call
from ..ir.program import Function, Program
from ..ir.types import ArrayType
from ..ir.visitor import IRMutator, calls_in, replace_submit, walk_stmts
from ._util import all_uses
from .base import FunctionPass
from .properties import NORM


@dataclass(frozen=True)
class ExpandManualPhaseFence(FunctionPass):
    """In a manual scope, M submits of a loop that each depend on a whole array of N task ids depend on one barrier.

    `phase_fence_barrier_<k>_tid = pl.system.task_dummy(deps=[ids])` stands before the loop when it saves edges
    (N*M - (N+M) >= 1), the array is the only dependency of the submit, and the loop neither carries nor changes it.
    """

    name = "ExpandManualPhaseFence"
    requires = frozenset({"NoNestedCalls", NORM, "CallDirectionsResolved"})
    produces = frozenset({"NoNestedCalls", NORM, "CallDirectionsResolved"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with barriers."""
        if not any(isinstance(x, s.RuntimeScopeStmt) and x.manual for x in walk_stmts(func.body)):
            return func
        body = _Fencer().visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Fencer(IRMutator):
    """Works inside manual scopes only."""

    def __init__(self) -> None:
        super().__init__()
        self.manual = False
        self.barriers: list[s.Stmt] = []
        self.counter = 0

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> s.Stmt:
        before, self.manual = self.manual, self.manual or op.manual
        made = super().visit_runtime_scope_stmt(op)
        self.manual = before
        return made

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in op.stmts:
            outer, self.barriers = self.barriers, []
            new = self.visit_stmt(stmt)
            made += [*self.barriers, new]
            self.barriers = outer
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        if not self.manual:
            return super().visit_for_stmt(op)
        fences: dict[e.Var, e.Expr] = {}
        for ids in _arrays(op):
            count = e.const_value(ids.type.extent) if isinstance(ids.type, ArrayType) else None
            submits = _consumers(op, ids)
            trips = _trips(op)
            if count is None or trips is None or submits == 0:
                continue
            m = trips * submits
            if count * m - (count + m) >= 1:
                fences[ids] = self.barrier(ids, op)
        made = _Redirect(fences).visit_for_stmt(op) if fences else op
        assert isinstance(made, s.ForStmt)
        body = self.visit_stmt(made.body)
        return made if body is made.body else replace(made, body=body)

    def barrier(self, ids: e.Var, loop: s.Stmt) -> e.Var:
        call = create_op_call("system.task_dummy", [ids], span=loop.span)
        var = e.Var(f"phase_fence_barrier_{self.counter}_tid", call.type, loop.span)
        self.counter += 1
        self.barriers.append(s.AssignStmt(var, call, loop.span))
        return var


def _trips(loop: s.ForStmt) -> int | None:
    bounds = e.static_dims((loop.start, loop.stop, loop.step))
    return None if bounds is None or bounds[2] == 0 else len(range(*bounds))


def _arrays(loop: s.ForStmt) -> list[e.Var]:
    """Arrays of task ids from outside that are the only dependency of a submit in the loop."""
    inside = {v for x in walk_stmts(loop.body) if isinstance(x, s.AssignStmt) for v in (x.var,)} | set(loop.iter_args)
    carried = {a.initValue for a in loop.iter_args}
    found: dict[e.Var, None] = {}
    for call in calls_in(loop.body):
        if isinstance(call, e.Submit) and len(call.deps) == 1:
            ids = call.deps[0]
            array = isinstance(ids, e.Var) and isinstance(ids.type, ArrayType) and ids.type.dtype is TASK_ID
            if array and isinstance(ids, e.Var) and ids not in inside and not any(ids is c for c in carried):
                found[ids] = None
    return [ids for ids in found if _only_depended_on(loop, ids)]


def _only_depended_on(loop: s.ForStmt, ids: e.Var) -> bool:
    uses = sum(v is ids for v in all_uses(loop.body))
    return uses == _consumers(loop, ids)


def _consumers(loop: s.ForStmt, ids: e.Var) -> int:
    return sum(isinstance(c, e.Submit) and len(c.deps) == 1 and c.deps[0] is ids for c in calls_in(loop.body))


class _Redirect(IRMutator):
    """Replaces array dependencies by barriers."""

    def __init__(self, fences: dict[e.Var, e.Expr]) -> None:
        super().__init__()
        self.fences = fences

    def visit_submit(self, op: e.Submit) -> e.Expr:
        deps = tuple(self.fences.get(d, d) if isinstance(d, e.Var) else d for d in op.deps)
        same = all(a is b for a, b in zip(deps, op.deps, strict=True))
        return op if same else replace_submit(op, deps=deps)
