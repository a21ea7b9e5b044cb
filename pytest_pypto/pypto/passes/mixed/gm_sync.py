"""Order between the two cores of a mixed kernel when one touches global memory that the other touches too.

The cores run side by side and meet only in the pipe. When a statement of one core and a later one of the other access
the same tensor, one of them writing, and no transfer lies between them, a transfer of the tile at hand is added as a
token: the second core waits for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import merge

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace, TileLayout
from ...ir.program import Function
from ...ir.types import TensorType, TileType, TileView, implicit_tile_view
from ...ir.visitor import walk_stmts
from ..device_ir import (
    WRITE_TARGET,
    body_like,
    nested_bodies,
    op_assign,
    op_call,
    tile_of,
    with_bodies,
)
from .affinity import Affinity, Side
from .binding import tensor_versions
from .crossing import crossing_of
from .windows import Loop, Window, Windows, turns_of


@dataclass(frozen=True, slots=True)
class _Access:
    root: e.Var
    side: Side
    write: bool
    window: Window
    tile: e.Expr
    stmt: s.Stmt


@dataclass(slots=True)
class _Summary:
    """What a stretch of statements does to the order of the cores.

    `entry`: accesses that no transfer from the other core comes before. `open`: accesses that no transfer from their
    own core comes after. `crossed`: the cores that surely send something.
    """

    entry: list[_Access] = field(default_factory=list)
    open: list[_Access] = field(default_factory=list)
    crossed: set[Side] = field(default_factory=set)


def _other(side: Side) -> Side:
    return Side.VECTOR if side is Side.CUBE else Side.CUBE


class _Line:
    """One list of statements while it is read: what is still unordered."""

    def __init__(self, tokens: _Tokens, stmts: tuple[s.Stmt, ...]) -> None:
        self._tokens = tokens
        self._stmts = stmts
        self.summary = _Summary()
        self._open: dict[tuple[Side, e.Var, bool], list[tuple[int, _Access]]] = defaultdict(list)
        """Accesses by core, tensor and whether they write, each with the place of its statement in this list."""

    def take(self, i: int, part: _Summary) -> None:
        """The next statement."""
        windows = self._tokens.windows
        for access in part.entry:
            self._order(access, lambda before, now: now.write and windows.apart(before.window, now.window))
            if _other(access.side) not in self.summary.crossed:
                self.summary.entry.append(access)
        for side in part.crossed:
            self._close(side, i)
        for access in part.open:
            self._open[access.side, access.root, access.write].append((i, access))
        self.summary.crossed |= part.crossed

    def next_turn(self, loop: Loop) -> None:
        """The statements come again: what is at their start must wait for what is at their end."""
        windows = self._tokens.windows
        for access in list(self.summary.entry):
            self._order(access, lambda before, now: windows.apart_in_turns(before.window, now.window, loop))

    def close(self) -> _Summary:
        """The summary of all statements."""
        found = [item for items in self._open.values() for item in items]
        self.summary.open = [a for _, a in sorted(found, key=lambda item: item[0])]
        return self.summary

    def _close(self, side: Side, i: int) -> None:
        """Everything that a core did up to statement `i` is ordered."""
        for key, items in self._open.items():
            if key[0] is side and items:
                self._open[key] = [item for item in items if item[0] > i]

    def _order(self, access: _Access, harmless: Callable[[_Access, _Access], bool]) -> None:
        """Add tokens after the accesses of the other core that must come before `access`.

        One in this list also orders everything before it; one in a loop or branch may not be reached, and orders
        itself only.
        """
        other, root = _other(access.side), access.root
        found = [self._open[other, root, write] for write in ((True, False) if access.write else (True,))]
        for i, before in merge(*map(reversed, found), key=lambda item: -item[0]):
            if harmless(before, access) or self._tokens.has(before):
                continue
            self._tokens.add(before)
            if before.stmt is self._stmts[i]:
                self.summary.crossed.add(other)
                self._close(other, i)
                return


def _views(body: s.Stmt) -> dict[e.Expr, e.Expr]:
    """Names of memory seen in another shape or layout, with the tensor they show."""
    assigned = (x for x in walk_stmts(body) if isinstance(x, s.AssignStmt))
    return {
        x.var: x.value.args[0] for x in assigned if isinstance(x.value, e.Call) and x.value.op.name == "tensor.view"
    }


class _Tokens:
    def __init__(self, func: Function, affinity: Affinity) -> None:
        self.func = func
        self.affinity = affinity
        self.earlier = tensor_versions(func.body)
        self.mode = func.split.value if func.split is not None else 0
        self.windows = Windows(func.body)
        self.views = _views(func.body)
        self._made: dict[int, s.Stmt] = {}
        """`id()` of a statement -> the token that follows it."""

    def has(self, access: _Access) -> bool:
        """True when a token follows an access."""
        return id(access.stmt) in self._made

    def add(self, access: _Access) -> None:
        """Let a token follow an access."""
        self._made[id(access.stmt)] = self._token(access)

    def insert(self, body: s.Stmt) -> s.Stmt:
        """The body with the tokens."""
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            bodies = nested_bodies(stmt)
            made.append(with_bodies(stmt, [self.insert(b) for b in bodies]) if bodies else stmt)
            if id(stmt) in self._made:
                made.append(self._made[id(stmt)])
        return body_like(body, made)

    def _root(self, expr: e.Expr) -> e.Var | None:
        while isinstance(expr, e.Var) and (expr in self.earlier or expr in self.views):
            expr = self.earlier[expr] if expr in self.earlier else self.views[expr]
        return expr if isinstance(expr, e.Var) else None

    def _window(self, tensor: e.Expr, offsets: e.Expr, extents: tuple[e.Expr, ...]) -> Window:
        """The cells of an access; not known when the tensor is seen in another shape."""
        while isinstance(tensor, e.Var) and tensor in self.earlier:
            tensor = self.earlier[tensor]
        return None if tensor in self.views else self.windows.of(offsets, extents)

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
                window = self._window(call.args[0], call.args[1], call.args[2].elements)
                yield _Access(root, side, False, window, stmt.var, stmt)
        elif name == "tile.store":
            root, tile = self._root(call.args[WRITE_TARGET[name]]), tile_of(call.args[0])
            if root is not None and tile is not None:
                window = self._window(call.args[2], call.args[1], tile.shape)
                yield _Access(root, side, True, window, call.args[0], stmt)

    def read(self, body: s.Stmt, loop: Loop | None = None) -> _Summary:
        """Find the tokens that a body needs; `loop` is given when the body is run more than once."""
        line = _Line(self, s.stmts_of(body))
        for i, stmt in enumerate(s.stmts_of(body)):
            line.take(i, self._stmt(stmt))
        if loop is not None:
            line.next_turn(loop)
        return line.close()

    def _stmt(self, stmt: s.Stmt) -> _Summary:
        bodies = nested_bodies(stmt)
        if not bodies:
            crossing = crossing_of(stmt)
            found = list(self._access(stmt))
            return _Summary(found, list(found), set() if crossing is None else {crossing.sender})
        loop = stmt if isinstance(stmt, (s.ForStmt, s.WhileStmt)) else None
        turns = None if loop is None else turns_of(loop)
        parts = [self.read(b, loop if turns is None or len(turns) > 1 else None) for b in bodies]
        whole = _Summary([a for p in parts for a in p.entry], [a for p in parts for a in p.open])
        if loop is not None:
            whole.entry, whole.open = self._all_turns(whole.entry, loop), self._all_turns(whole.open, loop)
            whole.crossed = parts[0].crossed if turns else set()
        elif not isinstance(stmt, s.IfStmt) or stmt.else_body is not None:
            whole.crossed = set.intersection(*(p.crossed for p in parts))
        return whole

    def _all_turns(self, accesses: list[_Access], loop: Loop) -> list[_Access]:
        return [replace(a, window=self.windows.after(a.window, loop)) for a in accesses]

    def _token(self, before: _Access) -> s.Stmt:
        """A transfer of the tile at hand, from the core of `before` to the other."""
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
    """`func` with a transfer between accesses of one tensor by different cores that nothing else orders."""
    affinity = Affinity()
    if affinity.of_body(func.body) is not Side.MIXED:
        return func
    tokens = _Tokens(func, affinity)
    tokens.read(func.body)
    body = tokens.insert(func.body)
    return func if body is func.body else func.with_(body=body)
