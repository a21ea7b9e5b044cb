"""CanonicalizeIOOrder: inside pipelined bodies loads come first; then pipeline loops are plain loops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import replace_call
from .base import Pass
from .device_ir import body_like, is_device, nested_bodies, op_call, with_bodies
from .lower_pipeline_loops import _T6
from .memory.liveness import MEMBERSHIP
from .pipelining.loops import DOUBLE_BUFFER, OVERLAP_STORES, demoted, is_pipeline
from .pipelining.order import Scheduler, copy_by_copy, groups_below, in_pairs, memberships, stores_last


@dataclass(frozen=True)
class CanonicalizeIOOrder(Pass):
    """Reorders pipelined bodies, keeping every dependency, and drops the pipeline marks of loops."""

    name = "CanonicalizeIOOrder"
    requires = _T6
    produces = _T6 | {"PipelineResolved"}

    def apply(self, program: Program) -> Program:
        """The program without pipeline loops."""
        return program.with_functions([self._function(f) for f in program.functions.values()])

    def _function(self, func: Function) -> Function:
        body = _Ordering(is_device(func)).body(func.body, frozenset())
        return func if body is func.body else func.with_(body=body)


class _Ordering:
    """Walks outer loops first, because the group of a pipeline is the highest number below it that is no outer one."""

    def __init__(self, reorder: bool) -> None:
        self.reorder = reorder

    def body(self, body: s.Stmt, outer: frozenset[int]) -> s.Stmt:
        return body_like(body, [self._stmt(x, outer) for x in s.stmts_of(body)])

    def _stmt(self, stmt: s.Stmt, outer: frozenset[int]) -> s.Stmt:
        if isinstance(stmt, s.ScopeStmt):
            inner = self.body(stmt.body, outer)
            return stmt if inner is stmt.body else replace(stmt, body=inner)  # type: ignore[type-var]
        bodies = nested_bodies(stmt)
        if not bodies:
            return stmt
        if not isinstance(stmt, s.ForStmt) or not is_pipeline(stmt):
            return with_bodies(stmt, [self.body(b, outer) for b in bodies])
        group = max(groups_below(s.stmts_of(stmt.body)) - outer, default=None)
        own = outer if group is None else outer | {group}
        made = replace(stmt, body=self.body(stmt.body, own))
        return demoted(_ordered(made, group) if self.reorder else made)


def _ordered(loop: s.ForStmt, group: int | None) -> s.ForStmt:
    stmts = s.stmts_of(loop.body)
    last: tuple[s.Stmt, ...] = ()
    if stmts and isinstance(stmts[-1], s.YieldStmt):
        stmts, last = stmts[:-1], stmts[-1:]
    double = bool(loop.attrs.get(DOUBLE_BUFFER))
    key = in_pairs if double else copy_by_copy if loop.attrs.get(OVERLAP_STORES) is False else stores_last
    made = Scheduler(stmts, group).order(key)
    if double:
        made = [_two_accumulators(x, group) for x in made]
    return replace(loop, body=body_like(loop.body, [*made, *last]))


def _two_accumulators(stmt: s.Stmt, group: int | None) -> s.Stmt:
    """Accumulator marks count the copy within its pair: two accumulators take turns."""
    bodies = nested_bodies(stmt)
    if bodies:
        return with_bodies(stmt, [body_like(b, [_two_accumulators(x, group) for x in s.stmts_of(b)]) for b in bodies])
    call = op_call(stmt)
    if call is None or not isinstance(stmt, s.AssignStmt) or MEMBERSHIP not in call.attrs:
        return stmt
    tile = stmt.var.type
    if not isinstance(tile, TileType) or tile.space is not MemorySpace.Acc:
        return stmt
    parts = [f"{g}:{stage % 2 if g == group else stage}" for g, stage in memberships(call)]
    made: e.Expr = replace_call(call, attrs=call.attrs | {MEMBERSHIP: ";".join(parts)})
    return replace(stmt, value=made)
