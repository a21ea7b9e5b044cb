"""Setting up the pipe between the two halves of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.dtypes import INT32
from ...ir.span import Span
from ...ir.types import ScalarType
from ...ir.visitor import walk_stmts
from ..device_ir import op_assign, op_name, op_stmt
from .affinity import Side
from .crossing import Crossing

C2V, V2C = 1, 2
"""Bits of `dir_mask`."""
INITS = frozenset({"system.aic_initialize_pipe", "system.aiv_initialize_pipe"})
SETUP_OPS = INITS | {"system.reserve_buffer", "system.import_peer_buffer"}
DEFAULT_SLOTS = 2
"""Slots of a ring that the compiler sets up, unless the scope asks for another number."""
AUTO_BASE = -1
"""Address of a reserved buffer that is still to be chosen."""


def has_setup(body: s.Stmt) -> bool:
    """True when a body already initialises a pipe."""
    return any(op_name(x) in INITS for x in walk_stmts(body))


def pipe_setup(kernel: str, side: Side, crossings: Sequence[Crossing], slots: int, span: Span) -> list[s.Stmt]:
    """The statements that set up one core's end of the pipe of `kernel`; none when nothing crosses.

    The consumer of a direction reserves its ring, the producer imports it by name; both ends name the cube to vector
    buffer first. A slot holds the largest whole tile of either direction.
    """
    mask = 0
    for crossing in crossings:
        mask |= V2C if crossing.to_cube else C2V
    if not mask:
        return []
    size = max(c.full_bytes for c in crossings)
    stmts: list[s.Stmt] = []
    buffers = {bit: _buffer(kernel, side, bit, size * slots, span, stmts) for bit in (V2C, C2V) if mask & bit}
    zero = e.ConstInt(0, INT32, span)
    name = "system.aic_initialize_pipe" if side is Side.CUBE else "system.aiv_initialize_pipe"
    kwargs = {"dir_mask": mask, "slot_size": size, "slot_num": slots}
    stmts.append(op_stmt(name, [buffers.get(C2V, zero), buffers.get(V2C, zero)], kwargs, span))
    return stmts


def _buffer(kernel: str, side: Side, bit: int, size: int, span: Span, out: list[s.Stmt]) -> e.Expr:
    name = f"{kernel}_{'v2c' if bit == V2C else 'c2v'}_slot_buffer"
    consumer = Side.CUBE if bit == V2C else Side.VECTOR
    kwargs: dict[str, Any]
    if side is consumer:
        var = e.Var(name, ScalarType(INT32), span)
        kwargs = {"name": name, "size": size, "base": AUTO_BASE}
        out.append(op_assign(var, "system.reserve_buffer", [], kwargs, span))
    else:
        var = e.Var(f"{name}_import", ScalarType(INT32), span)
        peer = f"{kernel}_{'aic' if consumer is Side.CUBE else 'aiv'}"
        out.append(op_assign(var, "system.import_peer_buffer", [], {"name": name, "peer_func": peer}, span))
    return var


def insert_setup(body: s.Stmt, setup: Sequence[s.Stmt]) -> s.Stmt:
    """`body` with `setup` at its top, after a leading lane index."""
    if not setup:
        return body
    stmts = s.stmts_of(body)
    at = 1 if stmts and op_name(stmts[0]) == "tile.get_subblock_idx" else 0
    return s.SeqStmts((*stmts[:at], *setup, *stmts[at:]), body.span)
