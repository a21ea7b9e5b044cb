"""Tile handles when the assembler plans memory: no addresses, one handle per piece of a buffer."""

from __future__ import annotations

from math import prod

from ...ir.enums import MemorySpace
from ...ir.expr import MemRef, Var, const_value, static_dims
from ...ir.span import Span
from ...ir.structural import structural_equal
from ...ir.types import TileType
from ...passes.memory.sizes import bytes_of
from .emitter import Emitter, Handle, tile_type
from .scalars import index_of
from .tiles import valid_operands
from .types import tile_text


def find_piece(em: Emitter, memref: MemRef) -> Handle | None:
    """The handle already made for these bytes, or None."""
    for known, handle, _ in em.pieces:
        if known.base_ is memref.base_ and known.size_ == memref.size_ and _same_offset(known, memref):
            return handle
    return None


def _same_offset(a: MemRef, b: MemRef) -> bool:
    at, bt = const_value(a.byte_offset_), const_value(b.byte_offset_)
    return at == bt if at is not None and bt is not None else structural_equal(a.byte_offset_, b.byte_offset_)


def declare_rings(em: Emitter, tiles: list[Var]) -> None:
    """The regions of multi-slot buffers, written at the start of the function.

    Raises:
        CodegenError: slots of different types share one buffer.
    """
    for var in tiles:
        type_ = tile_type(var)
        memref = type_.memref
        if memref is None or memref.slot_count_ < 2:
            continue
        text = f"!pto.multi_tile_buf<{tile_text(type_)}, count={memref.slot_count_}>"
        known = em.rings.get(memref.base_)
        if known is not None:
            if known[1] != text:
                raise em.fail(f"the slots of buffer '{memref.base_.name_hint}' hold tiles of different types", var.span)
            continue
        rows, cols = valid_operands(em, type_)
        name = em.names.take(f"{memref.base_.name_hint}_mb")
        em.rings[memref.base_] = (name, text)
        em.head.append(f"  {name} = pto.alloc_multi_tile valid_row = {rows} valid_col = {cols} : {text}")


def _is_window(type_: TileType, memref: MemRef) -> bool:
    """Part of a tile at a run-time place: it has the whole tile's MemRef, and is copied out where it is used."""
    dims = static_dims(type_.shape)
    if type_.space is not MemorySpace.Vec or dims is None:
        return False
    return bytes_of(prod(dims), type_.dtype) < memref.size_


def open_handle(em: Emitter, var: Var, name: str, span: Span | None) -> Handle:
    """The handle of a tile variable: a slot of a ring, a known piece (retyped when needed), or a new allocation."""
    type_ = tile_type(var)
    memref = type_.memref
    assert memref is not None
    text = tile_text(type_)
    if memref.base_ in em.rings and memref.slot_index_ is not None:
        ring, ring_text = em.rings[memref.base_]
        slot = index_of(em, memref.slot_index_)
        em.line(f"{name} = pto.multi_tile_get {ring}[{slot}] : {ring_text} -> {text}", span)
        return Handle(name, text, memref)
    known = None if _is_window(type_, memref) else find_piece(em, memref)
    if known is not None:
        if known.type_text == text:
            return known
        em.line(f"{name} = pto.treshape {known.name} : {known.type_text} -> {text}", span)
        return Handle(name, text, memref)
    rows, cols = valid_operands(em, type_)
    handle = Handle(name, text, memref)
    em.pieces.append((memref, handle, em.depth))
    em.line(f"{name} = pto.alloc_tile valid_row = {rows} valid_col = {cols} : {text}", span)
    return handle
