"""Buffers that the author declared (`pl.MemRef("name")`, `pl.MemRef("name", slots=N)[i]`)."""

from __future__ import annotations

from dataclasses import dataclass

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import find_op
from ...ir.types import PtrType, TileType
from ...ir.visitor import walk_stmts
from ..device_ir import kernel_error, op_call
from . import sizes


@dataclass
class _Buffer:
    base: e.Var
    space: MemorySpace
    slot: int
    slots: int


class Declared:
    """The declared buffers of one function: one allocation per name, sized for the largest tile bound to it."""

    def __init__(self, body: s.Stmt, handler: Handler) -> None:
        self._buffers: dict[str, _Buffer] = {}
        self._bound: dict[e.Var, e.MemRef] = {}
        for stmt in walk_stmts(body):
            if isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, TileType):
                memref = stmt.var.type.memref
                if memref is not None and memref.is_pinned_:
                    self._bind(stmt, stmt.var.type, memref, handler)

    def _bind(self, stmt: s.AssignStmt, tile: TileType, memref: e.MemRef, handler: Handler) -> None:
        name, size = memref.base_.name_hint, sizes.tile_size(tile, handler)
        call = op_call(stmt)
        spec = None if call is None else find_op(call.op.name)
        if call is None or spec is None or spec.view_of is not None or spec.inplace is not None:
            raise kernel_error(
                f"'{stmt.var.name_hint}' is bound to buffer \"{name}\", but it is a view or an update of another tile "
                "and lies where that one lies; bind the tile it comes from",
                stmt.span,
            )
        if not size or tile.space is None:
            raise kernel_error(
                f"'{stmt.var.name_hint}' is bound to buffer \"{name}\" and needs a constant shape and a memory space",
                stmt.span,
            )
        found = self._buffers.get(name)
        if found is None:
            found = self._buffers[name] = _Buffer(e.Var(name, PtrType.get()), tile.space, 0, memref.slot_count_)
        if found.space is not tile.space:
            raise kernel_error(
                f'buffer "{name}" holds tiles in {found.space.name} and in {tile.space.name}; one buffer lies in one '
                "memory, use two names",
                stmt.span,
            )
        found.slot = max(found.slot, size)
        found.slots = max(found.slots, memref.slot_count_)
        self._bound[stmt.var] = memref

    def memref_of(self, var: e.Var) -> e.MemRef | None:
        """The buffer and slot that `var` is bound to, or None."""
        memref = self._bound.get(var)
        if memref is None:
            return None
        found = self._buffers[memref.base_.name_hint]
        place = memref.slot_index_
        offset = 0 if place is None else ops.mul(place, e.index(found.slot))
        return e.MemRef(found.base, offset, found.slot, memref.span, False, found.slots, place)

    def size_of(self, base: e.Var) -> int | None:
        """Bytes of a declared buffer with all its slots; None when `base` is no declared one."""
        found = self._buffers.get(base.name_hint)
        return found.slot * found.slots if found is not None and found.base is base else None
