"""Copies before a yield: the value of a carry or branch result must lie in the buffer of that carry or result."""

from __future__ import annotations

from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.program import Function
from ...ir.types import TileType
from ...ir.visitor import walk_stmts
from ..device_ir import body_like, kernel_error, nested_bodies, op_assign, with_bodies
from .attach import memref_of
from .numbers import BufferNames


def align_values(func: Function) -> Function:
    """`func` with a `tile.move` before each yield of a tile that lies elsewhere.

    All values of one yield are handed on at once, so a buffer that is overwritten is read first; values that change
    places go through one more buffer.

    Raises:
        ValueError: a tile in a memory of the cube core would have to be copied.
    """
    if not _has_results(func.body):
        return func
    aligner = _Aligner(func)
    body = aligner.body(func.body)
    if body is func.body:
        return func
    return func.with_(body=aligner.names().declare(body, func.span))


def _has_results(body: s.Stmt) -> bool:
    control = (x for x in walk_stmts(body) if isinstance(x, (s.ForStmt, s.WhileStmt, s.IfStmt)))
    return any(isinstance(v.type, TileType) for x in control for v in x.return_vars)


def _base(expr: e.Expr) -> e.Var | None:
    memref = memref_of(expr)
    return None if memref is None else memref.base_


class _Aligner:
    def __init__(self, func: Function) -> None:
        self._func = func
        self._names: BufferNames | None = None

    def names(self) -> BufferNames:
        """Names for further buffers."""
        if self._names is None:
            self._names = BufferNames(self._func)
        return self._names

    def body(self, body: s.Stmt) -> s.Stmt:
        return body_like(body, [self._stmt(x) for x in s.stmts_of(body)])

    def _stmt(self, stmt: s.Stmt) -> s.Stmt:
        bodies = [self.body(b) for b in nested_bodies(stmt)]
        if not bodies:
            return stmt
        if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            bodies = [self._yield(b, stmt.iter_args) for b in bodies]
        elif isinstance(stmt, s.IfStmt):
            bodies = [self._yield(b, stmt.return_vars) for b in bodies]
        return with_bodies(stmt, bodies)

    def _yield(self, body: s.Stmt, targets: tuple[e.Var, ...]) -> s.Stmt:
        stmts = s.stmts_of(body)
        if not stmts or not isinstance(stmts[-1], s.YieldStmt):
            return body
        last = stmts[-1]
        values = list(last.value)
        pending = {
            i: target
            for i, (target, value) in enumerate(zip(targets, values, strict=True))
            if isinstance(value.type, TileType)  # a tensor is written in place, whatever its buffer is called
            and _base(target) is not None
            and _base(value) is not None
            and _base(target) is not _base(value)
        }
        if not pending:
            return body
        moves = self._moves(values, pending, last)
        return s.SeqStmts((*stmts[:-1], *moves, replace(last, value=tuple(values))), body.span)

    def _moves(self, values: list[e.Expr], pending: dict[int, e.Var], last: s.YieldStmt) -> list[s.Stmt]:
        moves: list[s.Stmt] = []
        while pending:
            ready = next((i for i in pending if not self._read_later(i, values, pending)), None)
            if ready is None:  # values change places: free the first one's target by copying what lies there
                first = next(iter(pending))
                target = _base(pending[first])
                for i, value in enumerate(values):
                    if i != first and _base(value) is target:
                        values[i] = self._copy(value, self._spare(value), last, moves)
                continue
            target_var = pending.pop(ready)
            memref = memref_of(target_var)
            assert memref is not None
            values[ready] = self._copy(values[ready], memref, last, moves)
        return moves

    def _read_later(self, slot: int, values: list[e.Expr], pending: dict[int, e.Var]) -> bool:
        """True when another value that is still to be handed on lies in the buffer that `slot` overwrites."""
        target = _base(pending[slot])
        return any(i != slot and _base(value) is target for i, value in enumerate(values))

    def _spare(self, value: e.Expr) -> e.MemRef:
        tile, memref = value.type, memref_of(value)
        assert isinstance(tile, TileType)
        assert memref is not None
        return self.names().fresh(tile, memref.size_)

    def _copy(self, value: e.Expr, memref: e.MemRef, last: s.YieldStmt, moves: list[s.Stmt]) -> e.Var:
        tile = value.type
        assert isinstance(tile, TileType)
        name = value.name_hint if isinstance(value, e.Var) else "value"
        if tile.space is not MemorySpace.Vec:
            raise kernel_error(
                f"'{name}' is carried through a loop or branch, but lies in another buffer than the carry, and a tile "
                f"in {_space(tile)} cannot be copied; update the carried tile itself",
                last.span,
            )
        made = TileType(tile.shape, tile.dtype, memref, tile.tile_view, tile.space)
        var = e.Var(f"{name}_mv", made, last.span)
        moves.append(op_assign(var, "tile.move", [value], {"target_memory": MemorySpace.Vec}, last.span))
        return var


def _space(tile: TileType) -> str:
    return tile.space.name if tile.space is not None else "its memory"
