"""Windows into tiles: slice, assemble, extract."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.expr import Call, Expr, MakeTuple, Var, const_value
from ...ir.types import TileType
from .emitter import Emitter, Handle, same_memory, tile_type
from .scalars import index_of
from .tiles import copy_tile
from .types import tile_box, tile_text, tile_valid


def elements(expr: Expr) -> tuple[Expr, ...]:
    """The members of a shape or offset operand."""
    assert isinstance(expr, MakeTuple)
    return expr.elements


def two_dimensional(em: Emitter, values: Sequence[Expr]) -> tuple[Expr | int, Expr | int]:
    """Row and column of an offset; one number is a column."""
    if len(values) == 1:
        return 0, values[0]
    if len(values) != 2:
        raise em.fail(f"an offset of {len(values)} numbers does not fit a two-dimensional tile")
    return values[0], values[1]


def subview(
    em: Emitter, source: Handle, at: tuple[str, str], type_: TileType, valid: Sequence[Expr | int] | None, hint: str
) -> Handle:
    """Write a `subview`; `valid` lists the valid extents when the text must say them."""
    rows, cols = tile_box(type_)
    extents = tile_valid(type_) if valid is None else (valid[0], valid[1])
    fixed = [v if isinstance(v, int) else const_value(v) for v in extents]
    known = (fixed[0], fixed[1]) if fixed[0] is not None and fixed[1] is not None else None
    text = tile_text(type_, known)
    clause = ""
    if valid is not None:
        clause = f" valid [{', '.join(index_of(em, v) for v in extents)}]"
    name = em.names.take(hint)
    em.line(
        f"{name} = pto.subview {source.name}[{at[0]}, {at[1]}] sizes [{rows}, {cols}]{clause} : "
        f"{source.type_text} -> {text}"
    )
    return Handle(name, text, type_.memref, is_subview=True)


def emit_slice(em: Emitter, call: Call, result: Var) -> None:
    """A slice is a view; the storage allocated for it serves operands that cannot take a view."""
    source = em.tile(call.args[0])
    own = em.tiles.get(result)
    row, col = two_dimensional(em, elements(call.args[2]))
    at = (index_of(em, row), index_of(em, col))
    type_ = tile_type(result)
    partial = len(call.args) > 3 and isinstance(call.args[3], MakeTuple) and len(call.args[3].elements) > 0
    valid = tile_valid(type_) if partial else None
    view = subview(em, source, at, type_, valid, "slice_view")
    em.tiles[result] = view
    if own is not None:
        em.slices[result] = (source, at, own)


_EXPANDED = "tile.col_expand"


def materialised(em: Emitter, call: Call, arg: Expr) -> Expr:
    """`arg`, after the row vector of a column expansion was copied out of the tile it is a slice of."""
    is_vector = call.op.name.startswith(_EXPANDED) and len(call.args) > 1 and arg is call.args[1]
    if not is_vector or not isinstance(arg, Var) or arg not in em.slices:
        return arg
    if tile_box(tile_type(arg))[0] != 1:
        return arg
    source, at, own = em.slices.pop(arg)
    em.line(
        f"pto.textract ins({source.name}, {at[0]}, {at[1]} : {source.type_text}, index, index) "
        f"outs({own.name} : {own.type_text})"
    )
    em.tiles[arg] = own
    return arg


def emit_extract(em: Emitter, call: Call, result: Var) -> None:
    """`textract`: a window copied into a tile of its own."""
    source, target = em.tile(call.args[0]), em.tiles[result]
    row, col = index_of(em, call.args[1]), index_of(em, call.args[2])
    em.line(
        f"pto.textract ins({source.name}, {row}, {col} : {source.type_text}, index, index) "
        f"outs({target.name} : {target.type_text})"
    )


def assembles_in_place(call: Call, result: Var) -> bool:
    """True when the result of an assemble shares the buffer of its target."""
    return same_memory(tile_type(call.args[0]).memref, tile_type(result).memref)


def emit_assemble(em: Emitter, call: Call, result: Var) -> None:
    """Write a tile into a window of another one."""
    target, source = em.tile(call.args[0]), em.tile(call.args[1])
    row, col = two_dimensional(em, elements(call.args[2]))
    at = (index_of(em, row), index_of(em, col))
    destination = em.tiles.get(result)
    if destination is None:
        destination = em.tiles[result] = target
    elif destination is not target:
        copy_tile(em, target, destination)
    part = tile_type(call.args[1])
    whole = tile_type(call.args[0])
    if part.memory_space is not whole.memory_space:
        em.line(
            f"pto.tinsert ins({source.name}, {at[0]}, {at[1]} : {source.type_text}, index, index) "
            f"outs({destination.name} : {destination.type_text})"
        )
        return
    view = subview(em, destination, at, _windowed(whole, part), tile_valid(part), "assemble_view")
    copy_tile(em, source, view)


def _windowed(whole: TileType, part: TileType) -> TileType:
    """The type of a window of `whole` with the extents and the valid region of `part`."""
    view = replace(whole.get_effective_tile_view(), valid_shape=part.valid_shape)
    return TileType(part.shape, whole.dtype, whole.memref, view, whole.memory_space)
