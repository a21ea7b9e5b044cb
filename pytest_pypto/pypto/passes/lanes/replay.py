"""The program of the idle lane: it takes part in every handshake of the pipe and touches no data.

Without a split the cube core still talks to both vector lanes (where the architecture works that way), so lane 1 runs
the same pushes and pops on tiles with an empty valid region.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.dtypes import BOOL
from ...ir.enums import MemorySpace
from ...ir.types import ScalarType, TileType, Type
from ...ir.visitor import IRMutator, exprs_of, replace_call, uses_of, walk_stmts
from ..device_ir import WRITE_TARGET, body_like, kernel_error, nested_bodies, op_assign, op_call, op_name

_HANDSHAKES = frozenset(
    {
        *("tile.tpush_to_aic", "tile.tpop_from_aic", "system.tfree_to_aic", "system.aiv_initialize_pipe"),
        *("system.syncall", "system.sync_set", "system.sync_wait", "system.bar_v", "system.bar_all", "system.fence"),
        *("system.sync_src", "system.sync_dst", "system.set_ffts"),
    }
)
_MADE_EMPTY = frozenset(
    {
        *("tile.load", "tile.extract", "tile.transpose", "tile.concat", "tile.mgather", "tile.gather_row"),
        *("tile.sort32", "tile.mrgsort_format1", "tile.mrgsort_format2", "tile.gather", "tile.gatherb"),
        *("tile.gather_mask", "tile.gather_compare", "tile.fillpad", "tile.fillpad_expand", "tile.reinterpret_view"),
        *("tile.fillpad_inplace", "tile.scatter", "tile.scatter_mask", "tile.scatter_update", "tile.write"),
        *("tile.assemble", "tile.random", "tile.ci", "tile.tri"),
    }
)
"""Operators that have no form on an empty region, or whose work is pointless: their result is an empty new tile."""


def empty_type(type_: Type) -> Type:
    """A tile type with nothing valid; other types as they are."""
    if not isinstance(type_, TileType):
        return type_
    nothing = tuple(e.index(0) for _ in type_.shape)
    view = replace(type_.get_effective_tile_view(), valid_shape=nothing)
    return TileType(type_.shape, type_.dtype, None, view, type_.space)


class Replay(IRMutator):
    """Copies a vector body for the idle lane; every definition is a fresh variable."""

    def __init__(self) -> None:
        super().__init__()
        self._guessed: set[e.Var] = set()

    def define(self, var: e.Var) -> e.Var:
        """A fresh variable; tiles become empty."""
        type_ = empty_type(self.visit_type(var.type))
        fresh: e.Var
        if isinstance(var, e.IterArg):
            fresh = e.IterArg(var.name_hint, type_, self.visit_expr(var.initValue), var.span)
        else:
            fresh = e.Var(var.name_hint, type_, var.span)
        self.var_map[var] = fresh
        return fresh

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(op):
            made.extend(self._stmt(stmt))
        return body_like(op, made)

    def _stmt(self, stmt: s.Stmt) -> Sequence[s.Stmt]:
        if isinstance(stmt, s.AssignStmt):
            return self._assign(stmt)
        if isinstance(stmt, s.EvalStmt):
            return [self.visit_stmt(stmt)] if op_name(stmt) in _HANDSHAKES or op_call(stmt) is None else []
        if nested_bodies(stmt):
            self._check_control(stmt)
        return [self.visit_stmt(stmt)]

    def _check_control(self, stmt: s.Stmt) -> None:
        if not self._guessed or self._guessed.isdisjoint(v for x in exprs_of(stmt) for v in uses_of(x)):
            return
        if any(op_name(x) in _HANDSHAKES for x in walk_stmts(stmt)):
            raise kernel_error(
                "whether a tile crosses between the cores depends here on a number read from a tile, which vector lane "
                "1 does not have; read the number from a tensor, or decide outside the kernel",
                stmt.span,
            )

    def _assign(self, stmt: s.AssignStmt) -> Sequence[s.Stmt]:
        call = op_call(stmt)
        if call is None:
            return [self._copy(stmt)]
        name = call.op.name
        if name in WRITE_TARGET:
            target = self.visit_expr(call.args[WRITE_TARGET[name]])
            alias = e.Var(stmt.var.name_hint, self.visit_type(stmt.var.type), stmt.var.span)
            self.var_map[stmt.var] = target
            return [s.AssignStmt(alias, target, stmt.span)]
        if name == "tile.read":
            self._guessed.add(stmt.var)
            return [s.AssignStmt(self.define(stmt.var), _zero(stmt.var.type), stmt.span)]
        if isinstance(stmt.var.type, ScalarType) and not self._guessed.isdisjoint(uses_of(call)):
            self._guessed.add(stmt.var)
        if isinstance(stmt.var.type, TileType) and name in _MADE_EMPTY:
            return [self._empty(stmt)]
        return [self._compute(stmt, call)]

    def _copy(self, stmt: s.AssignStmt) -> s.Stmt:
        if not self._guessed.isdisjoint(uses_of(stmt.value)):
            self._guessed.add(stmt.var)
        value = self.visit_expr(stmt.value)
        return replace(stmt, var=self.define(stmt.var), value=value)

    def _empty(self, stmt: s.AssignStmt) -> s.Stmt:
        var = self.define(stmt.var)
        assert isinstance(var.type, TileType)
        space = var.type.space or MemorySpace.Vec
        kwargs: dict[str, Any] = {"dtype": var.type.dtype, "target_memory": space}
        return op_assign(var, "tile.create", [e.MakeTuple(var.type.shape, stmt.span)], kwargs, stmt.span)

    def _compute(self, stmt: s.AssignStmt, call: e.Call) -> s.Stmt:
        args = list(self.visit_exprs(call.args))
        if call.op.name == "tile.set_validshape":
            args[1:3] = [e.index(0), e.index(0)]
        elif call.op.name == "tile.slice":
            shape = args[1]
            assert isinstance(shape, e.MakeTuple)
            args[3:4] = [e.MakeTuple(tuple(e.index(0) for _ in shape.elements))]
        var = self.define(stmt.var)
        type_ = var.type if isinstance(var.type, TileType) else self.visit_type(call.type)
        return replace(stmt, var=var, value=replace_call(call, args=args, type=type_))


def _zero(type_: Type) -> e.Expr:
    dtype = type_.dtype if isinstance(type_, ScalarType) else BOOL
    if dtype is BOOL:
        return e.ConstBool(False)
    return e.ConstFloat(0.0, dtype) if dtype.is_float() else e.ConstInt(0, dtype)


def replay(stmts: Sequence[s.Stmt]) -> s.Stmt:
    """The idle lane's copy of a body.

    Raises:
        ValueError: a handshake depends on a number that only lane 0 can read.
    """
    return Replay().visit_stmt(s.SeqStmts(tuple(stmts)))
