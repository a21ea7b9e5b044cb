"""Vectors that are turned for an operator and turned back: each lane keeps all of them.

Operators that want rows get a column vector as `[1, N]` and give it back as `[N, 1]`. Under a split of the columns
the vector has one cell on the split axis before and after, and many between; it is whole on both lanes all the way.
"""

from __future__ import annotations

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.types import TileType
from ...ir.visitor import walk_stmts
from ..device_ir import op_call, own_uses, tile_of


def turned_vectors(body: s.Stmt, axis: int) -> frozenset[e.Var]:
    """Tiles with many cells on the split axis that come from, and only go to, tiles with one cell there."""
    stmts = list(walk_stmts(body))
    found: set[e.Var] = set()
    for stmt in stmts:
        if isinstance(stmt, s.AssignStmt) and (_turns(stmt, axis) or _computes(stmt, found)):
            found.add(stmt.var)
    shrinking = bool(found)
    while shrinking:  # a component that reaches another use leaves by and by
        before = len(found)
        for stmt in reversed(stmts):
            used = {v for v in own_uses(stmt) if v in found}
            if used and not _stays(stmt, axis, found):
                found -= used
        for stmt in stmts:
            if isinstance(stmt, s.AssignStmt) and stmt.var in found:
                kept = _turns(stmt, axis) or _computes(stmt, found)
                found -= set() if kept else {stmt.var}
        shrinking = len(found) < before
    return frozenset(found)


def _many(expr: e.Expr, axis: int) -> bool:
    tile = tile_of(expr)
    return tile is not None and len(tile.shape) == 2 and e.const_value(tile.shape[axis]) != 1


def _is_reshape(stmt: s.Stmt) -> bool:
    call = op_call(stmt)
    return isinstance(stmt, s.AssignStmt) and call is not None and call.op.name == "tile.reshape"


def _turns(stmt: s.AssignStmt, axis: int) -> bool:
    """A vector with one cell on the split axis gets many."""
    if not _is_reshape(stmt) or not _many(stmt.var, axis):
        return False
    call = op_call(stmt)
    source = None if call is None else tile_of(call.args[0])
    return source is not None and len(source.shape) == 2 and e.const_value(source.shape[axis]) == 1


def _computes(stmt: s.AssignStmt, found: set[e.Var]) -> bool:
    """An operator on turned vectors alone that gives one of the same extents."""
    call = op_call(stmt)
    made = tile_of(stmt.var)
    if call is None or made is None or call.op.name == "tile.reshape":
        return False
    tiles = [a for a in call.args if isinstance(a.type, TileType)]
    return bool(tiles) and all(isinstance(a, e.Var) and a in found and _like(a, made) for a in tiles)


def _like(a: e.Var, made: TileType) -> bool:
    tile = tile_of(a)
    return tile is not None and e.static_dims(tile.shape) == e.static_dims(made.shape)


def _stays(stmt: s.Stmt, axis: int, found: set[e.Var]) -> bool:
    if not isinstance(stmt, s.AssignStmt):
        return False
    return (_is_reshape(stmt) and not _many(stmt.var, axis)) or (stmt.var in found and _computes(stmt, found))
