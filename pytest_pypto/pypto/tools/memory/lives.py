"""Lifetimes of the tiles of one function, in lines of the dump it was read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType, MemorySpace
from ...ir.op_table import find_op
from ...ir.program import Function
from ...ir.types import TileType
from ...ir.visitor import exprs_of, uses_of, walk_stmts

_RING_SPACE = {FunctionType.AIC: MemorySpace.Mat, FunctionType.AIV: MemorySpace.Vec}


@dataclass(slots=True)
class Tile:
    """One tile: the bytes it lies in, and the lines between which it is needed."""

    name: str
    space: MemorySpace
    base: str
    offset: int
    size: int
    first: int
    last: int
    kind: str
    """Its shape and type, for people."""
    view: bool = False
    ring: bool = False


@dataclass(slots=True)
class _Loop:
    first: int
    last: int


@dataclass
class Lives:
    """Collects the tiles of a function.

    A use inside a loop keeps what was defined before the loop up to the loop's end: the next turn needs it again.
    """

    function: Function
    tiles: list[Tile] = field(default_factory=list)
    _of: dict[e.Var, tuple[Tile, int]] = field(default_factory=dict)
    """Variable -> its tile, and how many loops were open where it was defined."""
    _loops: list[_Loop] = field(default_factory=list)

    def collect(self) -> list[Tile]:
        """All tiles that have a place, in order of definition."""
        self._block(self.function.body)
        return self.tiles

    def _block(self, body: s.Stmt | None) -> None:
        for stmt in s.stmts_of(body):
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                self._loop(stmt)
            elif isinstance(stmt, s.IfStmt):
                self._use([stmt.condition], stmt.span.begin_line)
                self._block(stmt.then_body)
                self._block(stmt.else_body)
                self._define(stmt.return_vars, last_line(stmt))
            elif isinstance(stmt, s.ScopeStmt):
                self._block(stmt.body)
            else:
                self._simple(stmt)

    def _simple(self, stmt: s.Stmt) -> None:
        self._use(exprs_of(stmt), stmt.span.begin_line)
        if not isinstance(stmt, s.AssignStmt):
            return
        if isinstance(stmt.value, e.Call) and stmt.value.op.name == "system.reserve_buffer":
            self._ring(stmt.value)
        else:
            self._define((stmt.var,), stmt.span.begin_line, view=_is_view(stmt.value))

    def _ring(self, call: e.Call) -> None:
        base, size = _known(call.kwargs.get("base")), _known(call.kwargs.get("size"))
        space = _RING_SPACE.get(self.function.func_type)
        if base is None or base < 0 or not size or space is None:
            return
        first, last = self.function.span.begin_line, last_line(self.function.body)
        name = str(call.kwargs.get("name", "ring"))
        self.tiles.append(Tile(name, space, name, base, size, first, last, f"ring buffer, {size} bytes", ring=True))

    def _loop(self, stmt: s.ForStmt | s.WhileStmt) -> None:
        first, last = stmt.span.begin_line, last_line(stmt)
        self._use([arg.initValue for arg in stmt.iter_args], first)
        self._define(stmt.iter_args, first, last)
        self._loops.append(_Loop(first, last))
        if isinstance(stmt, s.WhileStmt):
            self._use([stmt.condition], first)
        self._block(stmt.body)
        self._loops.pop()
        self._define(stmt.return_vars, last)

    def _define(self, variables: Iterable[e.Var], line: int, last: int = 0, view: bool = False) -> None:
        for var in variables:
            place = placement(var)
            if place is None or not isinstance(var.type, TileType) or var.type.space is None:
                continue
            base, offset, size = place
            shape = ", ".join(str(x) for x in var.type.shape)
            kind = f"[{shape}] {var.type.dtype}"
            tile = Tile(var.name_hint, var.type.space, base, offset, size, line, max(line, last), kind, view)
            self.tiles.append(tile)
            self._of[var] = (tile, len(self._loops))

    def _use(self, exprs: Iterable[e.Expr], line: int) -> None:
        for expr in exprs:
            for var in uses_of(expr):
                found = self._of.get(var)
                if found is not None:
                    tile, depth = found
                    end = self._loops[depth].last if depth < len(self._loops) else line
                    tile.last = max(tile.last, end)


def _is_view(value: e.Expr) -> bool:
    spec = find_op(value.op.name) if isinstance(value, e.Call) else None
    return spec is not None and spec.view_of is not None


def last_line(stmt: s.Stmt) -> int:
    """The last line that a statement reaches."""
    return max(inner.span.begin_line for inner in walk_stmts(stmt))


def placement(var: e.Var) -> tuple[str, int, int] | None:
    """(allocation, first byte, bytes) of a tile with a buffer; a tile in a slot chosen at run time takes all slots."""
    memref = getattr(var.type, "memref", None)
    if not isinstance(memref, e.MemRef):
        return None
    return memref.base_.name_hint, _least(memref.byte_offset_), memref.size_ * max(memref.slot_count_, 1)


def _least(offset: e.Expr) -> int:
    """An offset with every variable at 0: the first slot."""
    known = e.const_value(offset)
    if known is not None:
        return known
    if isinstance(offset, e.BinaryExpr):
        left, right = _least(offset.left), _least(offset.right)
        if isinstance(offset, e.Add):
            return left + right
        if isinstance(offset, e.Mul):
            return left * right
    return 0


def _known(value: object) -> int | None:
    return value if isinstance(value, int) else e.const_value(value)
