"""A ragged product that only the vector part of a kernel goes on with is divided by its valid cells, not by its box."""

from __future__ import annotations

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.types import TileType
from ...ir.visitor import walk_stmts
from ..device_ir import op_call, tile_of
from ..mixed.affinity import Affinity, Side, is_boundary, move_sides
from .part import halve


def rebalanced_stride(body: s.Stmt, axis: int, affinity: Affinity) -> int:
    """First cell of lane 1 when all divided tiles come from cube products of one static, partly valid extent; else 0.

    Halving the box would give lane 0 all valid cells, or the lanes extents that differ by more than one. With vector
    loads or transfers back to the cube on the divided axis the boxes are fixed, and the box is halved.
    """
    products: set[tuple[int, int]] = set()
    others: set[int] = set()
    for stmt in walk_stmts(body):
        call = op_call(stmt)
        if call is None or not isinstance(stmt, s.AssignStmt):
            continue
        tile = tile_of(stmt.var)
        if is_boundary(call):
            if call.op.name != "tile.move" or move_sides(call)[0] is not Side.CUBE or tile is None:
                return 0
            extents = _extents(tile, axis)
            if extents is None:
                return 0
            products.add(extents)
        elif tile is not None and affinity.of(stmt) is Side.VECTOR and call.op.name == "tile.load":
            if len(tile.shape) != 2 or e.const_value(tile.shape[axis]) != 1:
                return 0
        elif tile is not None and affinity.of(stmt) is Side.VECTOR and len(tile.shape) == 2:
            others.add(e.const_value(tile.shape[axis]) or 0)
    if len(products) != 1:
        return 0
    extent, valid = products.pop()
    if valid >= extent or not others <= {1, extent}:
        return 0
    stride = halve(valid)
    return 0 if stride == halve(extent) else stride


def _extents(tile: TileType, axis: int) -> tuple[int, int] | None:
    extent, valid = e.const_value(tile.shape[axis]), e.const_value(tile.valid_shape[axis])
    return None if extent is None or valid is None or valid == 0 else (extent, valid)
