"""The part of a mixed body that one core runs."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace, TileLayout
from ...ir.types import TileType
from ..device_ir import body_like, op_assign, op_stmt, tile_of
from .affinity import Affinity, Side, side_of_space
from .crossing import Crossing, crossing_of

_NZ = {"target_memory": MemorySpace.Vec, "blayout": TileLayout.col_major, "slayout": TileLayout.row_major}


def foreign(var: e.Var, side: Side) -> bool:
    """True for a tile that lives in the other core's memory."""
    if not isinstance(var.type, TileType):
        return False
    owner = side_of_space(var.type.space)
    return bool(owner) and owner is not side


def fractal_push(tile: e.Expr, name: str, kwargs: dict[str, object], stmt: s.Stmt) -> list[s.Stmt]:
    """A push to the cube core of a fractal copy of `tile`."""
    type_ = tile_of(tile)
    assert type_ is not None
    view = type_.get_effective_tile_view()
    if (view.blayout, view.slayout) == (TileLayout.col_major, TileLayout.row_major):
        return [op_stmt(name, [tile], kwargs, stmt.span)]
    hint = tile.name_hint if isinstance(tile, e.Var) else "tile"
    fractal = replace(view, blayout=TileLayout.col_major, slayout=TileLayout.row_major)
    copy = e.Var(f"{hint}_nz", TileType(type_.shape, type_.dtype, None, fractal, MemorySpace.Vec), stmt.span)
    return [op_assign(copy, "tile.move", [tile], dict(_NZ), stmt.span), op_stmt(name, [copy], kwargs, stmt.span)]


class Pruner:
    """Builds one core's body; `crossings` collects the transfers in program order."""

    def __init__(self, side: Side, affinity: Affinity, fractal: bool) -> None:
        self.side = side
        self.affinity = affinity
        self.fractal = fractal
        self.crossings: list[Crossing] = []

    def body(self, body: s.Stmt | None, kept: list[int] | None = None) -> s.Stmt:
        """One core's part of a body; `kept` are the positions of a final yield that stay."""
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            made.extend(self._stmt(stmt, kept))
        return s.SeqStmts(tuple(made)) if body is None else body_like(body, made)

    def _stmt(self, stmt: s.Stmt, kept: list[int] | None) -> list[s.Stmt]:
        if isinstance(stmt, s.YieldStmt):
            if kept is None or len(kept) == len(stmt.value):
                return [stmt]
            return [replace(stmt, value=tuple(stmt.value[i] for i in kept))] if kept else []
        if isinstance(stmt, s.ReturnStmt):
            return [stmt] if self.side is Side.VECTOR else []
        crossing = crossing_of(stmt)
        if crossing is not None:
            self.crossings.append(crossing)
            return self._cross(crossing)
        side = self.affinity.of(stmt)
        if side and not side & self.side:
            return []
        if isinstance(stmt, s.IfStmt):
            return [self._if(stmt)]
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            return [self._loop(stmt)]
        return [stmt]

    def _cross(self, crossing: Crossing) -> list[s.Stmt]:
        stmt, kwargs = crossing.stmt, crossing.kwargs
        if crossing.sender is self.side:
            if not crossing.to_cube:
                return [op_stmt("tile.tpush_to_aiv", [crossing.source], kwargs, stmt.span)]
            if self.fractal:
                return fractal_push(crossing.source, "tile.tpush_to_aic", kwargs, stmt)
            return [op_stmt("tile.tpush_to_aic", [crossing.source], kwargs, stmt.span)]
        name = "tile.tpop_from_aiv" if crossing.to_cube else "tile.tpop_from_aic"
        pop = op_assign(crossing.popped, name, [], kwargs, stmt.span)
        return [pop] if crossing.after is None else [pop, crossing.after]

    def _if(self, stmt: s.IfStmt) -> s.Stmt:
        kept = [i for i, v in enumerate(stmt.return_vars) if not foreign(v, self.side)]
        then = self.body(stmt.then_body, kept)
        other = None if stmt.else_body is None else self.body(stmt.else_body, kept)
        return replace(stmt, then_body=then, else_body=other, return_vars=tuple(stmt.return_vars[i] for i in kept))

    def _loop(self, stmt: s.ForStmt | s.WhileStmt) -> s.Stmt:
        kept = [i for i, v in enumerate(stmt.iter_args) if not foreign(v, self.side)]
        args = tuple(stmt.iter_args[i] for i in kept)
        results = tuple(stmt.return_vars[i] for i in kept)
        return replace(stmt, iter_args=args, body=self.body(stmt.body, kept), return_vars=results)
