"""Pipeline loops and copies of their bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir import stmt as s
from ...ir.dtypes import INDEX
from ...ir.enums import ForKind, MemorySpace
from ...ir.types import ScalarType, TileType
from ...ir.visitor import deep_clone, replace_call
from ..device_ir import body_like, nested_bodies, op_call, with_bodies
from ..memory.liveness import MEMBERSHIP
from ..mixed.slot_order import POPS

STAGES = "pipeline_stages"
DOUBLE_BUFFER = "pipeline_double_buffer_c"
OVERLAP_STORES = "pipeline_overlap_stores"
MARKS = (DOUBLE_BUFFER, OVERLAP_STORES)


def is_pipeline(stmt: s.Stmt) -> bool:
    """True for a loop of kind Pipeline."""
    return isinstance(stmt, s.ForStmt) and stmt.kind is ForKind.Pipeline


def stages_of(loop: s.ForStmt) -> int:
    """How many iterations should be in flight."""
    return int(loop.attrs.get(STAGES, 1))


def demoted(loop: s.ForStmt) -> s.ForStmt:
    """The loop as a plain one, without pipeline attributes."""
    attrs = {k: v for k, v in loop.attrs.items() if k not in (STAGES, *MARKS)}
    return replace(loop, kind=ForKind.Sequential, attrs=attrs)


@dataclass(frozen=True, slots=True)
class Trips:
    """Constant bounds of a loop: first value, step and number of iterations."""

    start: int
    step: int
    count: int

    def value(self, k: int) -> int:
        """Value of the loop variable in iteration `k`."""
        return self.start + k * self.step


def static_trips(loop: s.ForStmt) -> Trips | None:
    """The bounds when all are constant and the step is not 0."""
    start, stop, step = (e.const_value(x) for x in (loop.start, loop.stop, loop.step))
    if start is None or stop is None or step is None or step == 0:
        return None
    distance = stop - start if step > 0 else start - stop
    return Trips(start, step, max(0, -(-distance // abs(step))))


def loop_const(loop: s.ForStmt, value: int) -> e.ConstInt:
    """`value` in the type of the loop variable."""
    type_ = loop.loop_var.type
    dtype = type_.dtype if isinstance(type_, ScalarType) else INDEX
    return e.ConstInt(value, dtype, loop.span)


def shifted(loop: s.ForStmt, var: e.Expr, by: int) -> e.Expr:
    """`var + by`; `var` itself for 0."""
    if by == 0:
        return var
    amount = loop_const(loop, abs(by))
    return ops.add(var, amount) if by > 0 else ops.sub(var, amount)


@dataclass(frozen=True, slots=True)
class Copy:
    """One copied iteration: its statements and what it hands on."""

    stmts: tuple[s.Stmt, ...]
    values: tuple[e.Expr, ...]


def copy_body(loop: s.ForStmt, stmts: tuple[s.Stmt, ...], at: e.Expr, carried: tuple[e.Expr, ...]) -> Copy:
    """A copy of body statements with fresh variables, for the loop value `at` and these carried values."""
    mapping: dict[e.Var, e.Expr] = {loop.loop_var: at}
    mapping.update(zip(loop.iter_args, carried, strict=True))
    made = s.stmts_of(deep_clone(s.SeqStmts(stmts, loop.span), mapping))
    if made and isinstance(made[-1], s.YieldStmt):
        return Copy(made[:-1], made[-1].value)
    return Copy(made, ())


def marked(stmts: tuple[s.Stmt, ...], group: int, stage: int, accumulators: bool) -> tuple[s.Stmt, ...]:
    """Statements whose tile calls say which copy of which pipeline they belong to.

    Accumulators are left out unless asked for: copies take turns on one accumulator.
    """
    return tuple(_mark(x, f"{group}:{stage}", accumulators) for x in stmts)


def _mark(stmt: s.Stmt, text: str, accumulators: bool) -> s.Stmt:
    bodies = nested_bodies(stmt)
    if bodies:
        made = [body_like(b, [_mark(x, text, accumulators) for x in s.stmts_of(b)]) for b in bodies]
        return with_bodies(stmt, made)
    call = op_call(stmt)
    if call is None or not isinstance(stmt, s.AssignStmt) or not isinstance(stmt.var.type, TileType):
        return stmt
    if call.op.name in POPS or (stmt.var.type.space is MemorySpace.Acc and not accumulators):
        return stmt
    before = call.attrs.get(MEMBERSHIP)
    attrs = call.attrs | {MEMBERSHIP: f"{before};{text}" if before else text}
    return replace(stmt, value=replace_call(call, attrs=attrs))


def fresh_results(results: tuple[e.Var, ...], suffix: str) -> tuple[e.Var, ...]:
    """New variables for loop results, named after them."""
    return tuple(e.Var(f"{v.name_hint}{suffix}", v.type, v.span) for v in results)


def bind_results(results: tuple[e.Var, ...], values: tuple[e.Expr, ...], loop: s.ForStmt) -> list[s.Stmt]:
    """`result = value` for each result."""
    return [s.AssignStmt(var, value, loop.span) for var, value in zip(results, values, strict=True)]


def new_carries(loop: s.ForStmt, inits: tuple[e.Expr, ...]) -> tuple[e.IterArg, ...]:
    """Fresh carries for a rebuilt loop."""
    pairs = zip(loop.iter_args, inits, strict=True)
    return tuple(e.IterArg(a.name_hint, a.type, init, a.span) for a, init in pairs)


def with_yield(stmts: list[s.Stmt], values: tuple[e.Expr, ...], loop: s.ForStmt) -> s.SeqStmts:
    """A body that ends in a yield of `values`; without values, just the statements."""
    tail: list[s.Stmt] = [s.YieldStmt(values, loop.span)] if values else []
    return s.SeqStmts((*stmts, *tail), loop.body.span)
