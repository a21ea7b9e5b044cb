"""Order between the two cores of a mixed kernel when one touches global memory that the other touches too.

The cores run side by side and meet only in the pipe. When a statement of one core and a later one of the other access
the same tensor, one of them writing, and no transfer lies between them, a transfer of the tile at hand is added as a
token: the second core waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace, TileLayout
from ...ir.program import Function
from ...ir.types import TensorType, TileType, TileView, implicit_tile_view
from ...ir.visitor import walk_stmts
from ..device_ir import WRITE_TARGET, body_like, kernel_error, nested_bodies, op_assign, op_call, tile_of, with_bodies
from .affinity import Affinity, Side
from .crossing import crossing_of
from .prune import tensor_versions

Window = tuple[tuple[int, int], ...] | None


@dataclass(frozen=True, slots=True)
class _Access:
    root: e.Var
    side: Side
    write: bool
    window: Window
    tile: e.Expr
    stmt: s.Stmt


def _window(offsets: e.Expr, extents: tuple[e.Expr, ...]) -> Window:
    if not isinstance(offsets, e.MakeTuple) or len(offsets.elements) != len(extents):
        return None
    spans = []
    for offset, extent in zip(offsets.elements, extents, strict=True):
        at, size = e.const_value(offset), e.const_value(extent)
        if at is None or size is None:
            return None
        spans.append((at, at + size))
    return tuple(spans)


def _disjoint(a: Window, b: Window) -> bool:
    if a is None or b is None or len(a) != len(b):
        return False
    return any(x[1] <= y[0] or y[1] <= x[0] for x, y in zip(a, b, strict=True))


class _Tokens:
    def __init__(self, func: Function, affinity: Affinity) -> None:
        self.func = func
        self.affinity = affinity
        self.earlier = tensor_versions(func.body)
        self.mode = func.split.value if func.split is not None else 0

    def _root(self, expr: e.Expr) -> e.Var | None:
        while isinstance(expr, e.Var) and expr in self.earlier:
            expr = self.earlier[expr]
        return expr if isinstance(expr, e.Var) else None

    def _access(self, stmt: s.Stmt) -> Iterator[_Access]:
        call = op_call(stmt)
        if call is None or not isinstance(stmt, s.AssignStmt):
            return
        name, side = call.op.name, self.affinity.of(stmt)
        if side not in (Side.CUBE, Side.VECTOR):
            return
        if name == "tile.load" and isinstance(call.args[0].type, TensorType):
            root = self._root(call.args[0])
            if root is not None and isinstance(call.args[2], e.MakeTuple):
                yield _Access(root, side, False, _window(call.args[1], call.args[2].elements), stmt.var, stmt)
        elif name == "tile.store":
            root, tile = self._root(call.args[WRITE_TARGET[name]]), tile_of(call.args[0])
            if root is not None and tile is not None:
                yield _Access(root, side, True, _window(call.args[1], tile.shape), call.args[0], stmt)

    def body(self, body: s.Stmt) -> s.Stmt:
        stmts = s.stmts_of(body)
        last: dict[tuple[e.Var, Side, bool], tuple[int, _Access]] = {}
        crossed = {Side.CUBE: -1, Side.VECTOR: -1}
        tokens: dict[int, s.Stmt] = {}
        made: list[s.Stmt] = []
        for i, stmt in enumerate(stmts):
            bodies = nested_bodies(stmt)
            made.append(with_bodies(stmt, [self.body(b) for b in bodies]) if bodies else stmt)
            crossing = crossing_of(stmt)
            if crossing is not None:
                crossed[crossing.sender] = i
            found = [a for x in (walk_stmts(stmt) if bodies else (stmt,)) for a in self._access(x)]
            for access in found:
                self._order(access, last, crossed, tokens, stmts)
            for access in found:
                last[access.root, access.side, access.write] = (i, access)
        if not tokens:
            return body_like(body, made)
        return body_like(body, [x for i, y in enumerate(made) for x in (y, *([tokens[i]] if i in tokens else []))])

    def _order(
        self,
        access: _Access,
        last: dict[tuple[e.Var, Side, bool], tuple[int, _Access]],
        crossed: dict[Side, int],
        tokens: dict[int, s.Stmt],
        stmts: tuple[s.Stmt, ...],
    ) -> None:
        other = Side.VECTOR if access.side is Side.CUBE else Side.CUBE
        for write in (True, False) if access.write else (True,):
            i, before = last.get((access.root, other, write), (-1, None))
            if before is None or i < crossed[other] or i in tokens:
                continue
            if access.write and _disjoint(before.window, access.window):
                continue
            if before.stmt is not stmts[i]:
                raise kernel_error(
                    f"'{access.root.name_hint}' is {'written' if before.write else 'read'} by one core inside a loop "
                    f"or branch and then {'written' if access.write else 'read'} by the other core, and nothing "
                    "orders the two; put them into two scopes",
                    access.stmt.span,
                )
            tokens[i] = self._token(before)
            crossed[other] = i

    def _token(self, before: _Access) -> s.Stmt:
        tile = tile_of(before.tile)
        assert tile is not None
        hint = f"{before.root.name_hint}_gm_sync"
        if before.side is Side.CUBE:
            return self._to_vector(hint, before, tile)
        return self._to_cube(hint, before, tile)

    def _to_vector(self, hint: str, before: _Access, tile: TileType) -> s.Stmt:
        span = before.stmt.span
        if self.mode:
            shape = _scaled(tile.shape, self.mode - 1, lambda n: (n + 1) // 2)
            var = e.Var(hint, TileType(shape, tile.dtype, None, None, MemorySpace.Vec), span)
            return op_assign(var, "tile.aiv_shard", [before.tile], {"split": self.mode}, span)
        var = e.Var(hint, TileType(tile.shape, tile.dtype, None, None, MemorySpace.Vec), span)
        layout = {"blayout": TileLayout.row_major, "slayout": TileLayout.none_box}
        return op_assign(var, "tile.move", [before.tile], {"target_memory": MemorySpace.Vec, **layout}, span)

    def _to_cube(self, hint: str, before: _Access, tile: TileType) -> s.Stmt:
        span = before.stmt.span
        shape = _scaled(tile.shape, self.mode - 1, lambda n: 2 * n) if self.mode else tile.shape
        view: TileView = implicit_tile_view(shape, MemorySpace.Mat)
        var = e.Var(hint, TileType(shape, tile.dtype, None, view, MemorySpace.Mat), span)
        if self.mode:
            return op_assign(var, "tile.aic_gather", [before.tile], {"split": self.mode}, span)
        return op_assign(var, "tile.move", [before.tile], {"target_memory": MemorySpace.Mat}, span)


def _scaled(shape: tuple[e.Expr, ...], axis: int, change) -> tuple[e.Expr, ...]:  # type: ignore[no-untyped-def]
    extent = e.const_value(shape[axis])
    assert extent is not None
    return (*shape[:axis], e.index(change(extent)), *shape[axis + 1 :])


def add_memory_tokens(func: Function) -> Function:
    """`func` with a transfer between accesses of one tensor by different cores that nothing else orders.

    Raises:
        ValueError: the first access lies in a loop or branch, so that no tile is at hand for a token.
    """
    affinity = Affinity()
    if affinity.of_body(func.body) is not Side.MIXED:
        return func
    body = _Tokens(func, affinity).body(func.body)
    return func if body is func.body else func.with_(body=body)
