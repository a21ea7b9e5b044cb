"""Which core a statement belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Flag, auto

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import CoreType, MemorySpace
from ...ir.types import ScalarType, TileType
from ...ir.visitor import exprs_of, find_yield_stmt, uses_of
from ..device_ir import CUBE_SPACES, first_tile, nested_bodies, op_call, tile_space


class Side(Flag):
    """The cores that take part in a statement; no flag set means either core may run it."""

    SHARED = 0
    CUBE = auto()
    VECTOR = auto()
    MIXED = CUBE | VECTOR


_CUBE_OPS = frozenset(
    {
        *("system.aic_initialize_pipe", "system.tfree_to_aiv", "tile.tpush_to_aiv", "tile.tpop_from_aiv"),
        *("tile.matmul", "tile.matmul_acc", "tile.matmul_bias", "tile.gemv", "tile.gemv_acc", "tile.gemv_bias"),
        *("tile.batch_matmul", "tile.batch_matmul_acc"),
        *("tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias"),
        "system.bar_m",
    }
)
_VECTOR_OPS = frozenset(
    {
        *("system.aiv_initialize_pipe", "system.tfree_to_aic", "tile.tpush_to_aic", "tile.tpop_from_aic"),
        *("tile.get_subblock_idx", "system.bar_v", "tensor.write"),
    }
)
_SHARED_OPS = frozenset({"tile.create", "tile.get_block_idx", "tile.get_block_num", "tile.alloc"})
BOUNDARY_OPS = frozenset({"tile.aiv_shard", "tile.aic_gather"})
_PLACEMENTS = {"aic": Side.CUBE, "aiv": Side.VECTOR}
_SYNC_CORES = {"aic_only": Side.CUBE, "aiv_only": Side.VECTOR}


def side_of_space(space: MemorySpace | None) -> Side:
    """The core that owns a memory space; SHARED for global memory and open spaces."""
    if space is MemorySpace.Vec:
        return Side.VECTOR
    return Side.CUBE if space in CUBE_SPACES else Side.SHARED


def move_sides(call: e.Call) -> tuple[Side, Side]:
    """Source and destination side of a `tile.move`."""
    source = side_of_space(tile_space(call.args[0]))
    target = call.kwargs.get("target_memory")
    return source, side_of_space(target if isinstance(target, MemorySpace) else tile_space(call))


def is_boundary(call: e.Call) -> bool:
    """True when the call carries a tile from one core to the other."""
    if call.op.name in BOUNDARY_OPS:
        return True
    if call.op.name != "tile.move":
        return False
    source, target = move_sides(call)
    return bool(source) and bool(target) and source is not target


def call_side(call: e.Call) -> Side:
    """The core of one operator call."""
    placed = _PLACEMENTS.get(call.attrs.get("core_placement", ""))
    if placed is not None:
        return placed
    name = call.op.name
    if name in _CUBE_OPS:
        return Side.CUBE
    if name in _VECTOR_OPS or name.startswith("prefetch."):
        return Side.VECTOR
    if name in _SHARED_OPS and not _is_placed_create(call):
        return Side.SHARED
    if is_boundary(call):
        return Side.MIXED
    if name in ("system.syncall", "system.sync_set", "system.sync_wait"):
        return _sync_side(call)
    return _memory_side(call)


def _is_placed_create(call: e.Call) -> bool:
    return call.op.name == "tile.create" and bool(side_of_space(tile_space(call)))


def _sync_side(call: e.Call) -> Side:
    core = call.kwargs.get("core_type")
    if isinstance(core, CoreType):
        return Side.CUBE if core is CoreType.CUBE else Side.VECTOR
    return _SYNC_CORES.get(core, Side.SHARED) if isinstance(core, str) else Side.SHARED


def _memory_side(call: e.Call) -> Side:
    if isinstance(call.type, TileType):
        return side_of_space(call.type.space)
    operand = first_tile(call)
    return Side.SHARED if operand is None else side_of_space(tile_space(operand))


class Affinity:
    """Sides of statements, computed once per statement; scalars that only one core knows pull their users there."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[s.Stmt, Side]] = {}
        self._scalars: dict[e.Var, Side] = {}

    def of(self, stmt: s.Stmt) -> Side:
        """The side of a statement with everything below it; call in program order."""
        found = self._known.get(id(stmt))
        if found is not None:
            return found[1]
        side = self._compute(stmt)
        self._known[id(stmt)] = (stmt, side)
        return side

    def of_body(self, body: s.Stmt | None) -> Side:
        """The side of all statements of a body together."""
        side = Side.SHARED
        for stmt in s.stmts_of(body):
            side |= self.of(stmt)
        return side

    def _compute(self, stmt: s.Stmt) -> Side:
        bodies = nested_bodies(stmt)
        if bodies:
            return self._of_compound(stmt, bodies)
        call = op_call(stmt)
        side = Side.SHARED if call is None else call_side(call)
        if not side and isinstance(stmt, (s.AssignStmt, s.EvalStmt)):
            side = self._of_scalars(stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr)
        if isinstance(stmt, s.AssignStmt):
            self._note(stmt.var, side)
        return side

    def _of_compound(self, stmt: s.Stmt, bodies: tuple[s.Stmt, ...]) -> Side:
        side = Side.SHARED
        for expr in exprs_of(stmt):
            side |= self._of_scalars(expr)
        for body in bodies:
            side |= self.of_body(body)
        for result, values in _results(stmt, bodies):
            known = Side.SHARED
            for value in values:
                known |= self._of_scalars(value)
            self._note(result, known)
        return side

    def _note(self, var: e.Var, side: Side) -> None:
        if side and isinstance(var.type, ScalarType):
            self._scalars[var] = side

    def _of_scalars(self, expr: e.Expr) -> Side:
        side = Side.SHARED
        if self._scalars:
            for var in uses_of(expr):
                side |= self._scalars.get(var, Side.SHARED)
        return side


def _results(stmt: s.Stmt, bodies: tuple[s.Stmt, ...]) -> Iterator[tuple[e.Var, list[e.Expr]]]:
    """Each result of a compound statement with the values that its bodies yield for it."""
    if not isinstance(stmt, (s.IfStmt, s.ForStmt, s.WhileStmt)):
        return
    yields = [y for y in map(find_yield_stmt, bodies) if y is not None]
    for i, result in enumerate(stmt.return_vars):
        yield result, [y.value[i] for y in yields if i < len(y.value)]
