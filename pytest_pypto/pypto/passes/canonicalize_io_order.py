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
from .pipelining.order import Scheduler, copy_by_copy, in_pairs, stores_last


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
        body = _body(func.body, is_device(func))
        return func if body is func.body else func.with_(body=body)


def _body(body: s.Stmt, reorder: bool) -> s.Stmt:
    return body_like(body, [_stmt(x, reorder) for x in s.stmts_of(body)])


def _stmt(stmt: s.Stmt, reorder: bool) -> s.Stmt:
    if isinstance(stmt, s.ScopeStmt):
        inner = _body(stmt.body, reorder)
        return stmt if inner is stmt.body else replace(stmt, body=inner)  # type: ignore[type-var]
    bodies = nested_bodies(stmt)
    if not bodies:
        return stmt
    made = with_bodies(stmt, [_body(b, reorder) for b in bodies])
    if isinstance(made, s.ForStmt) and is_pipeline(made):
        return demoted(_ordered(made) if reorder else made)
    return made


def _ordered(loop: s.ForStmt) -> s.ForStmt:
    stmts = s.stmts_of(loop.body)
    last: tuple[s.Stmt, ...] = ()
    if stmts and isinstance(stmts[-1], s.YieldStmt):
        stmts, last = stmts[:-1], stmts[-1:]
    double = bool(loop.attrs.get(DOUBLE_BUFFER))
    if double:
        stmts = tuple(_two_accumulators(x) for x in stmts)
        key = in_pairs
    else:
        key = copy_by_copy if loop.attrs.get(OVERLAP_STORES) is False else stores_last
    return replace(loop, body=body_like(loop.body, [*Scheduler(stmts).order(key), *last]))


def _two_accumulators(stmt: s.Stmt) -> s.Stmt:
    """Accumulator marks count the copy within its pair: two accumulators take turns."""
    bodies = nested_bodies(stmt)
    if bodies:
        return with_bodies(stmt, [body_like(b, [_two_accumulators(x) for x in s.stmts_of(b)]) for b in bodies])
    call = op_call(stmt)
    if call is None or not isinstance(stmt, s.AssignStmt) or MEMBERSHIP not in call.attrs:
        return stmt
    tile = stmt.var.type
    if not isinstance(tile, TileType) or tile.space is not MemorySpace.Acc:
        return stmt
    *outer, own = str(call.attrs[MEMBERSHIP]).split(";")
    group, _, stage = own.partition(":")
    text = ";".join([*outer, f"{group}:{int(stage) % 2}"])
    made: e.Expr = replace_call(call, attrs=call.attrs | {MEMBERSHIP: text})
    return replace(stmt, value=made)
