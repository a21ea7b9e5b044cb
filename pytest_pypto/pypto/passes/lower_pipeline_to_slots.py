"""LowerPipelineToSlots: with planner PTOAS a pipeline's loaded tiles rotate through slots instead of being copied."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir import stmt as s
from ..ir.enums import MemorySpace
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import IRMutator, find_yield_stmt, replace_call
from .base import FunctionPass
from .context import MemoryPlanner, active_planner
from .device_ir import body_like, is_device, nested_bodies, op_name, with_bodies
from .lower_pipeline_loops import _T6
from .mixed.slot_order import shared_storage
from .pipelining.loops import demoted, is_pipeline, stages_of

_SPACES = (MemorySpace.Vec, MemorySpace.Mat, MemorySpace.Acc)
_MOST = 16


@dataclass(frozen=True)
class LowerPipelineToSlots(FunctionPass):
    """Binds the loaded tiles of pipeline loops to multi-slot buffers, slot `iteration % stages`."""

    name = "LowerPipelineToSlots"
    requires = _T6
    produces = _T6

    def apply_function(self, func: Function, program: Program) -> Function:
        """The kernel with rotating slots; with another planner, or nothing to rotate, the kernel itself."""
        if active_planner() is not MemoryPlanner.PTOAS or not is_device(func):
            return func
        body = _Slots().body(func.body)
        return func if body is func.body else func.with_(body=body)


class _Slots:
    def __init__(self) -> None:
        self._names: set[str] = set()

    def body(self, body: s.Stmt) -> s.Stmt:
        return body_like(body, [self._stmt(x) for x in s.stmts_of(body)])

    def _stmt(self, stmt: s.Stmt) -> s.Stmt:
        bodies = nested_bodies(stmt)
        made = with_bodies(stmt, [self.body(b) for b in bodies]) if bodies else stmt
        if not isinstance(made, s.ForStmt) or not is_pipeline(made) or not 2 <= stages_of(made) <= _MOST:
            return made
        tiles = _rotating(made)
        return self._bound(made, tiles) if tiles else made

    def _bound(self, loop: s.ForStmt, tiles: list[e.Var]) -> s.ForStmt:
        slot = _iteration(loop)
        chosen = {v: e.MemRef(self._name(v), 0, 0, v.span, True, stages_of(loop), slot) for v in tiles}
        body = _Bind(chosen).visit_stmt(loop.body)
        return replace(demoted(loop), body=body)

    def _name(self, var: e.Var) -> str:
        name, n = f"pipe_{var.name_hint}", 0
        while name in self._names:
            n += 1
            name = f"pipe_{var.name_hint}_{n}"
        self._names.add(name)
        return name


def _iteration(loop: s.ForStmt) -> e.Expr:
    """`(i - start) // step % stages`, without what changes nothing."""
    at: e.Expr = loop.loop_var
    if e.const_value(loop.start) != 0:
        at = ops.sub(at, loop.start)
    if e.const_value(loop.step) != 1:
        at = ops.floordiv(at, loop.step)
    return ops.mod(at, e.index(stages_of(loop)))


def _rotating(loop: s.ForStmt) -> list[e.Var]:
    """Loaded tiles of constant shape that neither leave the iteration nor are changed in it."""
    stmts = s.stmts_of(loop.body)
    last = find_yield_stmt(loop.body)
    handed_on = set(last.value) if last is not None else set()
    changed = {shared_storage(x) for x in stmts if isinstance(x, s.AssignStmt)}
    found: list[e.Var] = []
    for stmt in stmts:
        if not isinstance(stmt, s.AssignStmt) or op_name(stmt) != "tile.load":
            continue
        tile = stmt.var.type
        if not isinstance(tile, TileType) or tile.space not in _SPACES or tile.memref is not None:
            continue
        if e.static_dims(tile.shape) is not None and stmt.var not in handed_on and stmt.var not in changed:
            found.append(stmt.var)
    return found


class _Bind(IRMutator):
    def __init__(self, chosen: dict[e.Var, e.MemRef]) -> None:
        super().__init__()
        self.chosen = chosen

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        memref, tile = self.chosen.get(op.var), op.var.type
        if memref is None or not isinstance(tile, TileType):
            return super().visit_assign_stmt(op)
        type_ = TileType(tile.shape, tile.dtype, memref, tile.tile_view, tile.space)
        var = e.Var(op.var.name_hint, type_, op.var.span)
        self.var_map[op.var] = var
        value = self.visit_expr(op.value)
        assert isinstance(value, e.Call)
        return replace(op, var=var, value=replace_call(value, type=type_))
