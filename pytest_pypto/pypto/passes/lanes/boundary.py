"""Transfers between the cores when the vector part is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.types import TileType, implicit_tile_view
from ...ir.visitor import replace_call
from ..device_ir import kernel_error, op_assign, tile_of
from ..mixed.affinity import Side, move_sides
from .part import AXIS_NAMES, constant

if TYPE_CHECKING:
    from .rewriter import LaneRewriter


def cross(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A transfer as `aiv_shard` (each lane gets its part) or `aic_gather` (the cube gets the whole).

    A tile with one cell on the split axis goes whole: both lanes get it, and the cube takes that of lane 0.
    """
    if call.op.name != "tile.move":
        raise kernel_error(
            f"{call.op.name} stands in a scope that is split as a whole; use pl.split on the scope, or shard and "
            "gather inside pl.split_aiv, not both",
            stmt.span,
        )
    if move_sides(call)[0] is Side.CUBE:
        return [_shard(rw, stmt, call)]
    return _gather(rw, stmt, call)


def _shard(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
    source = rw.visit_expr(call.args[0])
    tile = tile_of(stmt.var)
    assert tile is not None
    extent = constant(tile.shape[rw.lane.axis], f"'{stmt.var.name_hint}'", stmt)
    if extent == 1:
        return op_assign(rw.define(stmt.var), "tile.aiv_shard", [source], {"split": 0}, stmt.span)
    part = rw.lane.part(extent)
    kwargs = {"split": rw.lane.mode} | ({"lane_stride": part.stride} if part.stride != part.half else {})
    return op_assign(rw.halved(stmt.var, part), "tile.aiv_shard", [source], kwargs, stmt.span)


def _gather(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    source = rw.visit_expr(call.args[0])
    part, whole = rw.part_of(source), tile_of(call.args[0])
    assert whole is not None
    if part is None and e.const_value(whole.shape[rw.lane.axis]) != 1:
        name = source.name_hint if isinstance(source, e.Var) else "the tile"
        raise kernel_error(
            f"'{name}' goes from the vector to the cube core, but it has no per-lane half: its "
            f"{AXIS_NAMES[rw.lane.axis]} are not divided between the lanes. Compute it from tiles that have more than "
            f"one of the {AXIS_NAMES[rw.lane.axis]}, or take the split off this scope",
            stmt.span,
        )
    if part is not None and part.stride != part.half:
        raise kernel_error("a tile with a rebalanced division cannot go back to the cube core", stmt.span)
    type_ = rw.visit_type(whole)
    assert isinstance(type_, TileType)
    view = replace(implicit_tile_view(type_.shape, MemorySpace.Mat), valid_shape=type_.valid_shape)
    mat = TileType(type_.shape, type_.dtype, None, view, MemorySpace.Mat)
    target = tile_of(stmt.var)
    kwargs = {"split": 0 if part is None else part.axis + 1}
    if target is not None and target.space is MemorySpace.Mat:
        made = rw.define(stmt.var)
        return [op_assign(made, "tile.aic_gather", [source], kwargs, stmt.span)]
    gathered = e.Var(f"{stmt.var.name_hint}_mat", mat, stmt.var.span)
    gather = op_assign(gathered, "tile.aic_gather", [source], kwargs, stmt.span)
    move = replace_call(call, args=(gathered, *call.args[1:]), type=rw.visit_type(call.type))
    return [gather, replace(stmt, var=rw.define(stmt.var), value=move)]
