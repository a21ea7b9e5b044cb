"""What the rules of the operators share: results that stay whole, results that are divided, common divisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.op_table import find_op
from ...ir.types import TileType
from ...ir.visitor import replace_call
from ..device_ir import kernel_error, tile_of
from .part import AXIS_NAMES, Part, constant

if TYPE_CHECKING:
    from .rewriter import LaneRewriter

Rule = Callable[["LaneRewriter", s.AssignStmt, e.Call], list[s.Stmt]]


def shown(expr: e.Expr) -> str:
    return expr.name_hint if isinstance(expr, e.Var) else "an operand"


def plain(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """The statement with its operands exchanged and a whole result."""
    made = replace_call(call, type=rw.visit_type(call.type), attrs=rw.visit_attrs(call.attrs))
    return [replace(stmt, var=rw.define(stmt.var), value=made)]


def divided(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call, part: Part) -> list[s.Stmt]:
    """The statement with a result of which each lane holds `part`."""
    var = rw.halved(stmt.var, part)
    made = replace_call(call, type=var.type, attrs=rw.visit_attrs(call.attrs))
    return [replace(stmt, var=var, value=made)]


def own_part(rw: LaneRewriter, stmt: s.AssignStmt) -> Part | None:
    """The part of a tile made from nothing (load, create): divided unless it has one cell on the split axis."""
    tile = tile_of(stmt.var)
    if tile is None or len(tile.shape) != 2:
        return None
    extent = constant(tile.shape[rw.lane.axis], f"'{stmt.var.name_hint}'", stmt)
    return rw.lane.part(extent) if extent > 1 else None


def _scratch(call: e.Call) -> frozenset[int]:
    spec = find_op(call.op.name)
    return frozenset() if spec is None else spec.scratch


def common_part(rw: LaneRewriter, stmt: s.Stmt, call: e.Call) -> Part | None:
    """The division that the tile operands share; a whole operand must have one cell on that axis.

    Raises:
        ValueError: operands divided along different axes, or a whole tile beside a divided one.
    """
    scratch = _scratch(call)
    tiles = [a for i, a in enumerate(call.args) if isinstance(a.type, TileType) and i not in scratch]
    parts = [p for p in map(rw.part_of, tiles) if p is not None]
    if not parts:
        return None
    first = max(parts, key=lambda p: p.full)
    for arg in tiles:
        part, tile = rw.part_of(arg), tile_of(arg)
        assert tile is not None
        if part is not None and (part.axis != first.axis or (part.full != first.full and part.full != 1)):
            raise kernel_error(
                f"{call.op.name}: '{shown(arg)}' is divided by {part.full} {AXIS_NAMES[part.axis]} between the vector "
                f"lanes, another operand by {first.full} {AXIS_NAMES[first.axis]}; they do not match",
                stmt.span,
            )
        if part is None and (len(tile.shape) != 2 or e.const_value(tile.shape[first.axis]) != 1):
            raise kernel_error(
                f"{call.op.name}: '{shown(arg)}' is whole on each vector lane while another operand is divided by "
                f"{AXIS_NAMES[first.axis]}; take the split off this scope, or load '{shown(arg)}' as a box",
                stmt.span,
            )
    return first
