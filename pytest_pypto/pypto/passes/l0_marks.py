"""Marking pipelines that authors wrote around a product for a double-buffered accumulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..backend.handler import Handler
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ForKind, MemorySpace
from ..ir.types import TileType
from ..ir.visitor import IRMutator, exprs_of, uses_of, walk_stmts
from ._util import is_call
from .context import MemoryPlanner, active_planner
from .l0_loops import DOUBLE_BUFFER, NO_OVERLAP

_M = MemorySpace


def mark_double_buffers(body: s.Stmt, handler: Handler) -> s.Stmt:
    """Pipelines with one product per trip, stored at once, marked when two accumulators per loop fit L0C."""
    if active_planner() is not MemoryPlanner.PYPTO:
        return body
    found = [m for m in (_candidate(x, handler) for x in walk_stmts(body)) if m is not None]
    limit = handler.limit(_M.Acc) or 0
    total = sum(_acc_bytes_around(body, handler)) + sum(m.size for m in found)
    if not found or total > limit:
        return body
    return _Marker({m.loop for m in found}).visit_stmt(body)


@dataclass(frozen=True)
class _Mark:
    """A loop to be marked, and the bytes of its accumulator."""

    loop: s.ForStmt
    size: int


def tile_bytes(type_: TileType, handler: Handler) -> int:
    """Bytes of an accumulator, rows padded as the architecture pads them."""
    shape = e.static_dims(type_.shape)
    if shape is None:
        return 0
    rows = handler.acc_row_multiple(type_.dtype)
    size = type_.dtype.get_byte() * (-(-shape[0] // rows) * rows)
    for extent in shape[1:]:
        size *= extent
    return size


def _acc_bytes_around(body: s.Stmt, handler: Handler) -> Iterator[int]:
    """Every accumulator of the function: products once, others as often as the pipelines around them have stages."""

    def walk(stmt: s.Stmt | None, copies: int) -> Iterator[int]:
        for inner in s.stmts_of(stmt):
            if isinstance(inner, s.AssignStmt):
                type_ = inner.var.type
                if isinstance(type_, TileType) and type_.space is _M.Acc and isinstance(inner.value, e.Call):
                    if inner.value.op.name.endswith("_acc"):
                        continue
                    product = inner.value.op.name.startswith("tile.matmul")
                    yield tile_bytes(type_, handler) * (1 if product else copies)
            elif isinstance(inner, s.ForStmt):
                yield from walk(inner.body, copies * int(inner.attrs.get("pipeline_stages", 1)))
            elif isinstance(inner, (s.WhileStmt, s.ScopeStmt)):
                yield from walk(inner.body, copies)
            elif isinstance(inner, s.IfStmt):
                yield from walk(inner.then_body, copies)
                yield from walk(inner.else_body, copies)

    return walk(body, 1)


def _candidate(loop: s.Stmt, handler: Handler) -> _Mark | None:
    if not isinstance(loop, s.ForStmt) or loop.kind is not ForKind.Pipeline or len(loop.iter_args) != 1:
        return None
    bounds = e.static_dims((loop.start, loop.stop, loop.step))
    stages = int(loop.attrs.get("pipeline_stages", 1))
    if bounds is None or bounds[2] == 0 or stages < 2:
        return None
    trips = len(range(*bounds))
    body = s.stmts_of(loop.body)
    if trips % stages or not all(isinstance(x, (s.AssignStmt, s.YieldStmt)) for x in body):
        return None
    return _body_candidate(loop, body, trips, handler)


def _body_candidate(loop: s.ForStmt, body: tuple[s.Stmt, ...], trips: int, handler: Handler) -> _Mark | None:
    assigns = [x for x in body if isinstance(x, s.AssignStmt)]
    products = [x for x in assigns if isinstance(x.var.type, TileType) and x.var.type.space is _M.Acc]
    if len(products) != 1 or not is_call(products[0].value, "tile.matmul"):
        return None
    product = products[0]
    call, type_ = product.value, product.var.type
    assert isinstance(call, e.Call)
    assert isinstance(type_, TileType)
    if not _one_operand_moves(call, loop, assigns):
        return None
    size = tile_bytes(type_, handler)
    limit = handler.limit(_M.Acc) or 0
    taker = _only_use(product.var, assigns)
    if taker is None or not _carries(loop, taker, body[-1]):
        return None
    if is_call(taker.value, "tile.store"):
        return _Mark(loop, size) if trips >= 4 else None
    return _Mark(loop, size) if trips >= 8 and size * 4 >= limit else None


def _one_operand_moves(call: e.Call, loop: s.ForStmt, assigns: list[s.AssignStmt]) -> bool:
    """One factor is brought to L0 in the body, the other is there before the loop."""
    spaces = [a.type.space for a in call.args[:2] if isinstance(a.type, TileType)]
    if spaces != [_M.Left, _M.Right]:
        return False
    moved = {x.var for x in assigns if is_call(x.value, "tile.extract", "tile.move")}
    inside = [a in moved for a in call.args[:2] if isinstance(a, e.Var)]
    outside = [a for a in call.args[:2] if isinstance(a, e.Var) and a not in {x.var for x in assigns}]
    return sum(inside) == 1 and len(outside) == 1 and outside[0] not in set(loop.iter_args)


def _only_use(var: e.Var, assigns: list[s.AssignStmt]) -> s.AssignStmt | None:
    users = [x for x in assigns for root in exprs_of(x) for v in uses_of(root) if v is var]
    return users[0] if len(users) == 1 and is_call(users[0].value, "tile.store", "tile.assemble") else None


def _carries(loop: s.ForStmt, taker: s.AssignStmt, last: s.Stmt) -> bool:
    """The store writes the carried value, and the loop yields the result."""
    call = taker.value
    assert isinstance(call, e.Call)
    target = call.args[2] if call.op.name == "tile.store" else call.args[0]
    return target is loop.iter_args[0] and isinstance(last, s.YieldStmt) and last.value[0] is taker.var


class _Marker(IRMutator):
    """Adds the attributes."""

    def __init__(self, loops: set[s.ForStmt]) -> None:
        super().__init__()
        self.loops = loops

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        made = super().visit_for_stmt(op)
        assert isinstance(made, s.ForStmt)
        if op not in self.loops:
            return made
        return replace(made, attrs=made.attrs | {NO_OVERLAP: False, DOUBLE_BUFFER: True})
