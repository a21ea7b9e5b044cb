"""Transfers of a tile from one core to the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.types import TileType, implicit_tile_view
from ..device_ir import kernel_error, op_call, tile_of
from .affinity import Side, is_boundary, move_sides

_HALF, _ODD_SHIFT = (1, 2), 2


@dataclass(frozen=True, slots=True)
class Crossing:
    """One transfer.

    `source` is pushed and `popped` receives it; `after` is what the receiving core then does with the popped tile
    (a move into an L0 buffer), or None. `split` is the code of the transfer: 0 whole, 1 and 2 equal halves by rows and
    by columns, 3 and 4 the same with lane 0 one longer. `full_bytes` is the size of the whole tile.
    """

    to_cube: bool
    source: e.Expr
    popped: e.Var
    split: int
    lane_stride: int
    full_bytes: int
    after: s.AssignStmt | None
    stmt: s.AssignStmt

    @property
    def kwargs(self) -> dict[str, Any]:
        """Keywords of push and pop."""
        return {"split": self.split} | ({"lane_stride": self.lane_stride} if self.lane_stride else {})

    @property
    def sender(self) -> Side:
        """The core that pushes."""
        return Side.VECTOR if self.to_cube else Side.CUBE


def tile_bytes(tile: TileType, what: str, stmt: s.Stmt) -> int:
    """Bytes of a tile's physical shape.

    Raises:
        ValueError: the shape is not constant.
    """
    size = tile.dtype.get_byte()
    for dim in tile.shape:
        extent = e.const_value(dim)
        if extent is None:
            raise kernel_error(
                f"the tile of '{what}' crosses between the cube and the vector core, so its shape must be constant; "
                "load a constant box and state the run-time extent as its valid shape",
                stmt.span,
            )
        size *= extent
    return size


def _move_to_cube(stmt: s.AssignStmt, call: e.Call) -> Crossing:
    source, target = call.args[0], tile_of(stmt.var)
    given = tile_of(source)
    assert given is not None
    assert target is not None
    size = tile_bytes(given, "tile.move", stmt)
    if target.space is MemorySpace.Mat:
        return Crossing(True, source, stmt.var, 0, 0, size, None, stmt)
    mat = TileType(given.shape, given.dtype, None, _valid_only(given), MemorySpace.Mat)
    popped = e.Var(f"{stmt.var.name_hint}_mat", mat, stmt.var.span)
    view = target.get_effective_tile_view()
    kwargs = {k: v for k, v in call.kwargs.items() if k not in ("blayout", "slayout")}
    kwargs |= {"blayout": view.blayout, "slayout": view.slayout}
    move = e.Call(call.op, (popped, *call.args[1:]), kwargs=kwargs, attrs=call.attrs, type=call.type, span=call.span)
    return Crossing(True, source, popped, 0, 0, size, replace(stmt, value=move), stmt)


def _valid_only(tile: TileType) -> Any:
    """A Mat view with the valid shape of `tile`, or None when it is fully valid."""
    view = tile.tile_view
    if view is None or view.valid_shape is None:
        return None
    return replace(implicit_tile_view(tile.shape, MemorySpace.Mat), valid_shape=view.valid_shape)


def _shard(stmt: s.AssignStmt, call: e.Call) -> Crossing:
    given = tile_of(call.args[0])
    assert given is not None
    stride = int(call.kwargs.get("lane_stride", 0))
    mode = int(call.kwargs.get("split", 0))
    code = shard_code(given, mode, stride, stmt) if mode else 0
    return Crossing(False, call.args[0], stmt.var, code, stride, tile_bytes(given, call.op.name, stmt), None, stmt)


def shard_code(full: TileType, mode: int, stride: int, stmt: s.Stmt) -> int:
    """Code of a cube to vector transfer split by `mode` (1 rows, 2 columns).

    Raises:
        ValueError: the two lanes would get extents that differ by more than one.
    """
    axis = mode - 1
    extent, valid = e.const_value(full.shape[axis]), e.const_value(full.valid_shape[axis])
    assert extent is not None
    half = (extent + 1) // 2
    if valid is None:
        if extent % 2:
            raise kernel_error(
                f"a tile of {extent} {('rows', 'columns')[axis]} with a run-time valid extent cannot be split between "
                "the two vector lanes; make the extent even",
                stmt.span,
            )
        return mode
    step = stride or half
    first, second = min(valid, step), min(max(valid - step, 0), step)
    if first == second or second == 0:
        return mode
    if first == second + 1:
        return mode + _ODD_SHIFT
    raise kernel_error(
        f"splitting {valid} valid {('rows', 'columns')[axis]} of a box of {extent} gives lane 0 {first} and lane 1 "
        f"{second}; a transfer between the cores needs equal extents or lane 0 one longer. Use a box of "
        f"{valid + valid % 2} or take the split off this scope",
        stmt.span,
    )


def _gather(stmt: s.AssignStmt, call: e.Call) -> Crossing:
    whole, mode = tile_of(stmt.var), int(call.kwargs.get("split", 0))
    assert whole is not None
    if mode in _HALF:
        extent = e.const_value(whole.valid_shape[mode - 1])
        if extent is not None and extent % 2:
            raise kernel_error(
                f"{extent} {('rows', 'columns')[mode - 1]} cannot be gathered from the two vector lanes: a vector to "
                "cube transfer needs an even extent on the split axis; pad the tile or take the split off this scope",
                stmt.span,
            )
    return Crossing(True, call.args[0], stmt.var, mode, 0, tile_bytes(whole, call.op.name, stmt), None, stmt)


def crossing_of(stmt: s.Stmt) -> Crossing | None:
    """The transfer that a statement stands for, or None.

    Raises:
        ValueError: a transfer that cannot be made (run-time shape, ragged lanes).
    """
    call = op_call(stmt)
    if call is None or not isinstance(stmt, s.AssignStmt) or not is_boundary(call):
        return None
    if call.op.name == "tile.aiv_shard":
        return _shard(stmt, call)
    if call.op.name == "tile.aic_gather":
        return _gather(stmt, call)
    if move_sides(call)[0] is Side.VECTOR:
        return _move_to_cube(stmt, call)
    given = tile_of(call.args[0])
    assert given is not None
    return Crossing(False, call.args[0], stmt.var, 0, 0, tile_bytes(given, "tile.move", stmt), None, stmt)
