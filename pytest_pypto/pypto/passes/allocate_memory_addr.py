"""AllocateMemoryAddr: every on-chip buffer gets its address."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ..backend import BackendType
from ..backend.handler import Handler, current_handler, handler_for
from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir.dtypes import INT64
from ..ir.enums import MemorySpace
from ..ir.program import Function, Program
from .base import FunctionPass
from .context import MemoryPlanner, active_planner
from .device_ir import is_device
from .hints import hint
from .memory.groups import ALIGN, pipeline_depths
from .memory.liveness import Buffer, Liveness
from .memory.marks import without_marks
from .memory.overflow import overflow_error
from .memory.packing import Plan, pack
from .memory.rebase import Rebase
from .memory.reserved import Reserved, reservations, with_bases
from .memory.sizes import padded


@dataclass(frozen=True)
class AllocateMemoryAddr(FunctionPass):
    """Places reserved ranges first, then the buffers of each memory space."""

    name = "AllocateMemoryAddr"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps", "HasMemRefs", "TileOps2D", "NormalizedStmtStructure"})
    produces = frozenset({"AllocatedMemoryAddr"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with addresses in its MemRefs.

        Raises:
            ValueError: a memory space is too small; the text says what fills it.
        """
        if not is_device(func):
            return func
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        reserved = reservations(func)
        live = Liveness(func.body, handler)
        spaces: dict[MemorySpace, list[Buffer]] = defaultdict(list)
        for buffer in live.buffers.values():
            spaces[buffer.space].append(buffer)
        if reserved.space is not None and reserved.ranges:
            spaces.setdefault(reserved.space, [])
        address: dict[e.Var, int] = {}
        for space, buffers in spaces.items():
            address |= _plan(func, space, buffers, reserved, handler).address
        body = with_bases(func.body, reserved)
        body = without_marks(_addressed(address).visit_stmt(body))
        return func if body is func.body else func.with_(body=body)


def _plan(func: Function, space: MemorySpace, buffers: list[Buffer], reserved: Reserved, handler: Handler) -> Plan:
    floor, limit = reserved.end(space), handler.limit(space)
    one_by_one = _bump(buffers, floor)
    if active_planner() is MemoryPlanner.DSA_RP:
        plan = _by_lifetime(func, space, buffers, floor, limit)
    elif limit is not None and one_by_one.top > limit:
        plan = pack(buffers, floor, pipeline_depths(buffers, limit))
    else:
        plan = one_by_one
    if limit is not None and plan.top > limit:
        used = plan.top if active_planner() is MemoryPlanner.DSA_RP else one_by_one.top
        raise overflow_error(func.name, space, used, limit, buffers, reserved)
    return plan


def _bump(buffers: list[Buffer], floor: int) -> Plan:
    """One buffer after the other, in the order of their names."""
    cursor = floor
    address: dict[e.Var, int] = {}
    for buffer in sorted(buffers, key=lambda b: b.base.name_hint):
        address[buffer.base] = cursor
        cursor = padded(cursor + buffer.size, ALIGN)
    return Plan(address, cursor)


def _by_lifetime(func: Function, space: MemorySpace, buffers: list[Buffer], floor: int, limit: int | None) -> Plan:
    """Packed by lifetime; pipelines give up depth, one step at a time, while the space overflows."""
    depth = pipeline_depths(buffers, None)
    plan = pack(buffers, floor, depth)
    while limit is not None and plan.top > limit and any(n > 1 for n in depth.values()):
        deepest = min(depth, key=lambda name: (-depth[name], int(name)))
        depth[deepest] -= 1
        plan = pack(buffers, floor, depth)
        text = f"pipeline group {deepest} of '{func.name}' keeps {depth[deepest]} copies apart in {space.name}"
        hint("PH-DSA-001", "AllocateMemoryAddr", text, func.span)
    return plan


def _addressed(address: Mapping[e.Var, int]) -> Rebase:
    def choose(var: e.Var, memref: e.MemRef) -> e.MemRef:
        base = address.get(memref.base_)
        if base is None:
            return memref
        offset = memref.byte_offset_
        at = e.const_value(offset)
        if at is None:
            moved: e.Expr = ops.add(e.index(base), offset) if base else offset
        elif base == 0 and isinstance(offset, e.ConstInt) and offset.dtype is INT64:
            return memref
        else:
            moved = e.ConstInt(base + at, INT64)
        count, slot = memref.slot_count_, memref.slot_index_
        return e.MemRef(memref.base_, moved, memref.size_, memref.span, memref.is_pinned_, count, slot)

    return Rebase(choose)
