"""Moving tiles to other buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.types import TileType
from ...ir.visitor import IRMutator, replace_call
from .attach import memref_of

Chooser = Callable[[e.Var, e.MemRef], e.MemRef]
"""The new MemRef of a tile variable; the given one when it stays."""


class Rebase(IRMutator):
    """Gives each tile variable the MemRef that `choose` says; everything that does not change is shared."""

    def __init__(self, choose: Chooser) -> None:
        super().__init__()
        self._choose = choose

    def define(self, var: e.Var) -> e.Var:
        mapped = self.var_map.get(var)
        if isinstance(mapped, e.Var):
            return mapped
        memref, type_ = memref_of(var), var.type
        if memref is None or not isinstance(type_, TileType):
            return super().define(var)
        chosen = self._choose(var, memref)
        if chosen is memref:
            return super().define(var)
        new = TileType(type_.shape, type_.dtype, chosen, type_.tile_view, type_.space)
        made = self.visit_type(new)
        fresh: e.Var
        if isinstance(var, e.IterArg):
            fresh = e.IterArg(var.name_hint, made, self.visit_expr(var.initValue), var.span)
        else:
            fresh = e.Var(var.name_hint, made, var.span)
        self.var_map[var] = fresh
        return fresh

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(op.value)
        var = self.define(op.var)
        if value is op.value and var is op.var:
            return op
        if var is not op.var and isinstance(value, e.Call) and isinstance(var.type, TileType):
            value = replace_call(value, type=var.type)
        return replace(op, var=var, value=value)


def zero_offset(memref: e.MemRef) -> bool:
    """True when a MemRef starts at its buffer's first byte."""
    return e.const_value(memref.byte_offset_) == 0
