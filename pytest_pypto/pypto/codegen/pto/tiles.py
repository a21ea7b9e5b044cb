"""Tile storage: allocation of handles and what an operand needs before it can be used."""

from __future__ import annotations

from ...ir import extents
from ...ir.dtypes import DataType
from ...ir.enums import TileLayout
from ...ir.expr import Call, Expr, MemRef, Var, const_value
from ...ir.span import Span
from ...ir.types import TileType
from ...passes._boxes import has_whole_boxes
from .emitter import Emitter, Handle, ScalarValue, tile_type
from .scalars import convert, index_of, scalar
from .types import tile_text, tile_valid


def valid_operands(em: Emitter, type_: TileType) -> tuple[str, str]:
    """Names of the valid rows and columns of a tile."""
    rows, cols = tile_valid(type_)
    return index_of(em, rows), index_of(em, cols)


def address(em: Emitter, memref: MemRef) -> str:
    """The i64 byte address of a piece of memory; a computed one is written out."""
    known = const_value(memref.byte_offset_)
    if known is not None:
        return em.constants.integer(known, "i64")
    value = scalar(em, memref.byte_offset_)
    if value.type_text == "i64":
        return value.name
    return convert(em, value, DataType.INDEX, DataType.INT64).name


def allocate(em: Emitter, var: Var, span: Span | None = None) -> Handle:
    """Write the `alloc_tile` of a tile variable and remember its handle."""
    type_ = tile_type(var)
    assert type_.memref is not None
    name = _reserved_name(em, var)
    if not em.options.baked_addresses:
        from .open_memory import open_handle

        em.tiles[var] = open_handle(em, var, name, span)
        return em.tiles[var]
    handle = em.tiles[var] = Handle(name, tile_text(type_), type_.memref)
    place = address(em, type_.memref)
    rows, cols = valid_operands(em, type_)
    em.line(f"{name} = pto.alloc_tile addr = {place} valid_row = {rows} valid_col = {cols} : {handle.type_text}", span)
    return handle


def _reserved_name(em: Emitter, var: Var) -> str:
    name = em.reserved.pop(var, None)
    return name if name is not None else em.names.take(var.name_hint)


def hoist(em: Emitter, var: Var, span: Span) -> Handle:
    """Allocate the tile result of an `if` at the start of the function, where both branches can see it.

    Valid extents that are not constants are set before the branch, where their values are known.
    """
    type_ = tile_type(var)
    assert type_.memref is not None
    rows, cols = tile_valid(type_)
    dynamic = any(not isinstance(d, int) and const_value(d) is None for d in (rows, cols))
    known = None if em.options.baked_addresses else _same_piece(em, var, span)
    if known is not None:
        em.tiles[var] = known
        if dynamic:
            set_valid(em, known, valid_operands(em, type_))
        return known
    handle = Handle(em.names.take(var.name_hint), tile_text(type_), type_.memref)
    em.tiles[var] = handle
    em.pieces.append((type_.memref, handle, 0))
    shown = TileType(type_.shape, type_.dtype, type_.memref, None, type_.memory_space) if dynamic else type_
    body, depth = em.body, em.depth
    em.body, em.depth = [], 1
    place = "" if not em.options.baked_addresses else f"addr = {address(em, type_.memref)} "
    row_name, col_name = valid_operands(em, shown)
    text = f"{handle.name} = pto.alloc_tile {place}valid_row = {row_name} valid_col = {col_name} : {handle.type_text}"
    em.line(text, span)
    em.head += em.body
    em.body, em.depth = body, depth
    if dynamic:
        set_valid(em, handle, valid_operands(em, type_))
    return handle


def _same_piece(em: Emitter, var: Var, span: Span) -> Handle | None:
    """A handle of the same bytes when the assembler plans memory, retyped when the tile has another shape."""
    from .open_memory import find_piece

    type_ = tile_type(var)
    assert type_.memref is not None
    known, text = find_piece(em, type_.memref), tile_text(type_)
    if known is None or known.type_text == text:
        return known
    view = Handle(em.names.take(var.name_hint), text, type_.memref)
    em.line(f"{view.name} = pto.treshape {known.name} : {known.type_text} -> {text}", span)
    return view


def set_valid(em: Emitter, handle: Handle, extents: tuple[str, str]) -> None:
    """Change the valid region of a handle in place.

    Raises:
        CodegenError: the handle is a view into another tile.
    """
    if handle.is_subview:
        raise em.fail(
            f"the valid shape of {handle.name}, a slice of another tile, cannot be changed; "
            "give valid_shape= to the slice, or move the slice to a tile of its own first"
        )
    em.line(f"pto.set_validshape {handle.name}, {extents[0]}, {extents[1]} : {handle.type_text}")


def copy_tile(em: Emitter, source: Handle, target: Handle, span: Span | None = None) -> None:
    """`tmov` from one handle to another."""
    em.line(
        f"pto.tmov ins({source.name} : {source.type_text}) outs({target.name} : {target.type_text})",
        span,
    )


def check_view(em: Emitter, call: Call, result: Var) -> None:
    """A view must read the bytes of its source in the order they have.

    Boxed tiles have fractal addresses only when they are made of whole boxes; else they lie row after row.

    Raises:
        CodegenError: one of the two is boxed without whole boxes and the other orders the bytes differently.
    """
    source, made = tile_type(call.args[0]), tile_type(result)
    have, want = _order(source), _order(made)
    if have == want or (_RAGGED not in (have[0], want[0])):
        return
    word = call.op.name.split(".")[-1]
    raise em.fail(
        f"{word} reads the bytes of a boxed tile {extents.text(source.shape)} {source.dtype.name} as "
        f"{extents.text(made.shape)} in another layout, but one of them is not made of whole boxes (16 rows of 32 "
        "bytes); copy it with pl.move, or load the memory in the form that is needed",
        call.span,
    )


_RAGGED = "ragged boxes"


def _order(type_: TileType) -> tuple[str, str]:
    """How the elements of a tile lie in its bytes."""
    view = type_.get_effective_tile_view()
    if view.slayout is TileLayout.none_box:
        return "rows", view.blayout.name
    shape = type_.shape[::-1] if view.slayout is TileLayout.col_major else type_.shape
    kind = "boxes" if has_whole_boxes(shape, type_.dtype) else _RAGGED
    return kind, f"{view.blayout.name} {view.slayout.name} {view.fractal}"


def operand(em: Emitter, expr: Expr, as_type: DataType | None = None) -> Handle | ScalarValue:
    """A tile handle or a scalar value, whichever the operand is."""
    if isinstance(expr.type, TileType):
        return em.tile(expr)
    return scalar(em, expr, as_type)
