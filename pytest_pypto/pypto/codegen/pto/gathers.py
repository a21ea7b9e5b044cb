"""Gathers and scatters that take more than one instruction or fill more than one tile."""

from __future__ import annotations

from dataclasses import replace

from ...ir.expr import Call, MakeTuple, TupleGetItemExpr, Var, const_value, make_tuple
from ...ir.stmt import AssignStmt
from ...ir.types import TileType
from ...ir.visitor import walk_stmts
from .cube_ops import in_place
from .emitter import Emitter, tile_type
from .scalars import index_of, scalar
from .slices import elements, subview, two_dimensional
from .tensors import offsets, turned_window, window
from .tiles import allocate, copy_tile
from .types import element_text, tile_box, tile_valid
from .vector_ops import comparison


def emit_gather_compare(em: Emitter, call: Call, result: Var) -> None:
    """`tgather` that fills two tiles: positions of the hits of each row, and how many there are.

    Raises:
        CodegenError: the positions are not used, so no tile was planned for them.
    """
    pair = _parts(em, result)
    if 0 not in pair:
        raise em.fail(
            "gather_compare needs a tile for its positions; use them, or count with cmps and row_sum", call.span
        )
    source, scratch = em.tile(call.args[0]), em.tile(call.args[2])
    value = scalar(em, call.args[1], tile_type(call.args[0]).dtype)
    mode = comparison(em, call, "cmp_mode")
    outs = [allocate(em, pair[k]) for k in sorted(pair)]
    em.line(
        f"pto.tgather ins({source.name}, {value.name}, {scratch.name} : "
        f"{source.type_text}, {value.type_text}, {scratch.type_text}) "
        f"outs({', '.join(o.name for o in outs)} : {', '.join(o.type_text for o in outs)}) "
        f"{{cmpMode = #pto<cmp {mode}>, offset = {int(call.kwargs.get('offset', 0))} : i32}}",
        call.span,
    )


def _parts(em: Emitter, pair: Var) -> dict[int, Var]:
    """The tiles that the elements of an operator's pair are bound to."""
    found: dict[int, Var] = {}
    for stmt in walk_stmts(em.func.body):
        value = stmt.value if isinstance(stmt, AssignStmt) else None
        if isinstance(stmt, AssignStmt) and isinstance(value, TupleGetItemExpr) and value.tuple is pair:
            found.setdefault(value.index, stmt.var)
    return found


def emit_gather_row(em: Emitter, call: Call, result: Var) -> None:
    """Load a window of a tensor into a window of a tile; `transpose` loads it as a column.

    Raises:
        CodegenError: the window's extents are not constants, or it has more than two axes longer than one.
    """
    destination = in_place(em, call, result)
    row, col = two_dimensional(em, elements(call.args[2]))
    at = (index_of(em, row), index_of(em, col))
    whole = tile_type(call.args[0])
    sizes = _extents(em, call)
    turned = bool(call.kwargs.get("transpose"))
    box = (sizes[1], sizes[0]) if turned else (sizes[0], sizes[1])
    shape = make_tuple(box, call.span).elements
    layout = replace(whole.get_effective_tile_view(), valid_shape=shape)
    place = TileType(shape, whole.dtype, whole.memref, layout, whole.memory_space)
    view = subview(em, destination, at, place, None, "gather_view")
    source = offsets(em, elements(call.args[3]))
    if turned:
        name, text = turned_window(em, call.args[1], source, sizes)
    else:
        full = (1,) * (len(source) - 2) + sizes
        name, text = window(em, call.args[1], source, full, [em.index(n) for n in full])
    em.line(f"pto.tload ins({name} : {text}) outs({view.name} : {view.type_text})")


def _extents(em: Emitter, call: Call) -> tuple[int, int]:
    """Rows and columns of the window that `gather_row` moves."""
    given = next(a for a in (*call.args[5:6], call.args[4]) if isinstance(a, MakeTuple) and a.elements)
    values = [const_value(v) for v in elements(given)]
    if None in values or any(v != 1 for v in values[:-2]) or len(values) < 2:
        raise em.fail("gather_row moves a window of constant extents with at most two axes longer than 1", call.span)
    return int(values[-2] or 0), int(values[-1] or 0)


def emit_scatter_update(em: Emitter, call: Call, result: Var) -> None:
    """Replace rows of a tile, one after the other: row `index[p]` becomes row `p` of the source.

    Raises:
        CodegenError: the valid extents of the index tile are not constants.
    """
    target = in_place(em, call, result)
    source = em.tile(call.args[2])
    valid = [n if isinstance(n, int) else const_value(n) for n in tile_valid(tile_type(call.args[1]))]
    if None in valid:
        raise em.fail("scatter_update needs an index tile of constant valid extents", call.span)
    rows, cols = (int(n or 0) for n in valid)
    pitch = tile_box(tile_type(call.args[1]))[1]
    line = _row_of(tile_type(call.args[0]))
    counter = em.names.take("row")
    zero, one = em.index(0), em.index(1)
    em.plain(f"scf.for {counter} = {zero} to {em.index(rows * cols)} step {one} {{")
    with em.nested():
        place = counter if pitch == cols else _padded(em, counter, cols, pitch)
        where = _index_at(em, call, place)
        old = subview(em, target, (where, zero), line, None, "old_row")
        new = subview(em, source, (counter, zero), line, None, "new_row")
        copy_tile(em, new, old)
    em.plain("}")


def _row_of(whole: TileType) -> TileType:
    shape = make_tuple((1, tile_box(whole)[1])).elements
    layout = replace(whole.get_effective_tile_view(), valid_shape=None)
    return TileType(shape, whole.dtype, whole.memref, layout, whole.memory_space)


def _padded(em: Emitter, counter: str, cols: int, pitch: int) -> str:
    """The place of element `counter` in rows of `pitch` of which `cols` are valid."""
    row, skipped, place = (em.names.take() for _ in range(3))
    em.line(f"{row} = arith.divsi {counter}, {em.index(cols)} : index")
    em.line(f"{skipped} = arith.muli {row}, {em.index(pitch - cols)} : index")
    em.line(f"{place} = arith.addi {counter}, {skipped} : index")
    return place


def _index_at(em: Emitter, call: Call, place: str) -> str:
    index = em.tile(call.args[1])
    text = element_text(tile_type(call.args[1]).dtype)
    value, where = em.names.take(), em.names.take()
    em.line(f"{value} = pto.tgetval ins({index.name}, {place} : {index.type_text}, index) outs : {text}")
    em.line(f"{where} = arith.index_cast {value} : {text} to index")
    return where
