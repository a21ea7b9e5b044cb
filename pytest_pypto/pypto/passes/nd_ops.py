"""How operators with shapes, windows or axes of their own work on flattened tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.op_table import create_op_call
from ..ir.types import TensorType, TileType
from ..ir.visitor import replace_call
from ._util import base_name
from .flatten_tile_nd_to_2d import Flattener
from .nd_tiles import Flat, arith, flat_shape, flat_valid, fold_index, is_run_of_rows, page_indices, static_shape

Handler = Callable[[Flattener, s.AssignStmt, e.Call], "e.Expr | None"]
"""(flattener, statement, call) -> the new right side; None when the statement is replaced altogether."""
_HANDLERS: dict[str, Handler] = {}


def _handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS.update({f"tile.{n}": handler for n in names})
        return handler

    return register


def find(value: e.Expr) -> Handler | None:
    """The handler of a call; None for operators that only need their operands replaced."""
    from . import nd_products  # noqa: F401 - it adds handlers

    return _HANDLERS.get(value.op.name) if isinstance(value, e.Call) else None


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for tile operators."""
    return _handles(*names)


def nd(type_: object) -> bool:
    """A tile of rank > 2."""
    return isinstance(type_, TileType) and len(type_.shape) > 2


def pair(values: Sequence[int | e.Expr], like: e.IRNode) -> e.MakeTuple:
    """A shape or offset operand."""
    return e.make_tuple(values, like.span)


# memory --------------------------------------------------------------------------------------------------------------


@_handles("load")
def load(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """To Vec the window stays; to Mat the tensor is seen as two-dimensional."""
    made = f.visit_exprs(call.args)
    if not nd(call.type):
        return call if made is call.args else replace_call(call, args=made)
    assert isinstance(call.type, TileType)
    if call.kwargs.get("target_memory") is not MemorySpace.Mat:
        return replace_call(call, args=made, type=f.visit_type(call.type))
    return load_to_mat(f, stmt, replace_call(call, args=made))


def load_to_mat(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """One load when the window is a run of rows; else one per page."""
    source, offset, shape, valid = call.args
    assert isinstance(source.type, TensorType)
    assert isinstance(offset, e.MakeTuple)
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(valid, e.MakeTuple)
    dims = e.static_dims(source.type.shape)
    window = e.static_dims(shape.elements)
    if dims is None or window is None:
        raise f.fail(
            f"a batch of matrices is loaded from a tensor of shape {extents.text(source.type.shape)}; its extents must "
            "be constant",
            call,
        )
    if has_turned_rows(source.type):
        return load_turned_pages(f, stmt, call, window)
    view = flat_view(f, source, dims, call)
    if is_run_of_rows(dims, window, offset.elements) and fits_mat(f, call):
        row, column = fold_index(dims, offset.elements)
        assert isinstance(call.type, TileType)
        limit = flat_valid(call.type, stmt)
        args = [view, pair((row, column), call), pair(flat_shape(window), call), pair(limit, call)]
        return create_call(f, call, args)
    pages: list[e.Var] = []
    for at in page_indices(window):
        place = [arith(e.Add, o, e.index(i)) for o, i in zip(offset.elements, (*at, 0, 0), strict=True)]
        row, column = fold_index(dims, place)
        args = [view, pair((row, column), call), pair(window[-2:], call), pair(valid.elements[-2:], call)]
        page = create_call(f, call, args)
        var = e.Var(f.names.take(f"{base_name(stmt.var.name_hint)}_p{len(pages)}"), page.type, call.span)
        f.out.append(s.AssignStmt(var, page, stmt.span))
        pages.append(var)
    f.flat[stmt.var] = Flat(window, pages=tuple(pages))
    return None


def has_turned_rows(type_: TensorType) -> bool:
    """The last two axes lie in memory in exchanged order, so pages cannot be put below each other in one matrix."""
    return type_.tensor_view is not None and type_.tensor_view.layout is TensorLayout.DN


def load_turned_pages(f: Flattener, stmt: s.AssignStmt, call: e.Call, window: Sequence[int]) -> e.Expr | None:
    """One load per page, each with a window in the rank of the tensor."""
    source, offset, shape, valid = call.args
    assert isinstance(offset, e.MakeTuple)
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(valid, e.MakeTuple)
    lead = len(window) - 2
    extents_of_page = (*(e.index(1),) * lead, *shape.elements[-2:])
    valid_in_page = (*(e.index(1),) * lead, *valid.elements[-2:])
    pages: list[e.Var] = []
    for at in page_indices(window):
        place = [arith(e.Add, o, e.index(i)) for o, i in zip(offset.elements, (*at, 0, 0), strict=True)]
        args = [source, pair(place, call), pair(extents_of_page, call), pair(valid_in_page, call)]
        page = create_call(f, call, args)
        type_ = f.visit_type(page.type)
        var = e.Var(f.names.take(f"{base_name(stmt.var.name_hint)}_p{len(pages)}"), type_, call.span)
        f.out.append(s.AssignStmt(var, replace_call(page, type=type_), stmt.span))
        pages.append(var)
    f.flat[stmt.var] = Flat(tuple(window), pages=tuple(pages))
    return None


def fits_mat(f: Flattener, call: e.Call) -> bool:
    """The whole batch takes at most half of Mat."""
    from ..backend.handler import current_handler

    handler = current_handler()
    assert isinstance(call.type, TileType)
    size = call.type.dtype.get_byte()
    for extent in static_shape(call.type, f.place):
        size *= extent
    limit = None if handler is None else handler.limit(MemorySpace.Mat)
    return limit is None or 2 * size <= limit


def flat_view(f: Flattener, source: e.Expr, dims: Sequence[int], call: e.Call) -> e.Expr:
    """The tensor as a matrix of its rows."""
    if len(dims) == 2:
        return source
    name = source.name_hint if isinstance(source, e.Var) else "t"
    return f.emit(f"{name}_v", "tensor.view", [source, pair(flat_shape(dims), call)], like=call)


def create_call(f: Flattener, call: e.Call, args: Sequence[e.Expr]) -> e.Call:
    """The same operator with the same keywords and attributes on other operands."""
    made = create_op_call(call.op.name, args, call.kwargs, span=call.span)
    return replace_call(made, attrs=call.attrs)


@_handles("store")
def store(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """Into a tensor of rank > 2 the window is a fourth operand; separate pages are stored one by one."""
    tile, _, target = call.args[:3]
    known = f.flat.get(tile) if isinstance(tile, e.Var) else None
    if known is not None and (known.pages or known.lazy):
        return store_pages(f, stmt, call, known)
    args = list(f.visit_exprs(call.args))
    assert isinstance(target.type, TensorType)
    rank = len(target.type.shape)
    if rank > 2 and len(args) == 3:
        dims = f.dims(tile)
        args.append(pair((1,) * (rank - len(dims)) + dims, call))
    if all(a is b for a, b in zip(args, call.args, strict=False)) and len(args) == len(call.args):
        return call
    return create_call(f, call, args)


def store_pages(f: Flattener, stmt: s.AssignStmt, call: e.Call, known: Flat) -> e.Expr:
    """One store per page, chained through the tensor."""
    _, offset, target = call.args[:3]
    place = f.visit_expr(offset)
    into = f.visit_expr(target)
    assert isinstance(place, e.MakeTuple)
    assert isinstance(target.type, TensorType)
    rank = len(target.type.shape)
    dims = (1,) * (rank - len(known.dims)) + known.dims
    shape = pair((1,) * (rank - 2) + dims[-2:], call)
    positions = page_indices(dims)
    made: e.Expr = into
    for i, at in enumerate(positions):
        page = known.page(i)
        here = [arith(e.Add, o, e.index(p)) for o, p in zip(place.elements, (*at, 0, 0), strict=True)]
        new = create_op_call("tile.store", [page, pair(here, call), made, shape], call.kwargs, span=call.span)
        if i == len(positions) - 1:
            return new
        var = e.Var(f.names.take(f"{base_name(stmt.var.name_hint)}__tile_{i}"), new.type, call.span)
        f.out.append(s.AssignStmt(var, new, stmt.span))
        made = var
    return made


@_handles("create", "full")
def create(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """The two-dimensional shape."""
    if not nd(call.type):
        return f.visit_expr(call)
    return create_call(f, call, [pair(flat_shape(f.dims(stmt.var)), call), *call.args[1:]])


# shapes and windows --------------------------------------------------------------------------------------------------


@_handles("reshape")
def reshape(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """Between the two-dimensional shapes; the same shape is a second name."""
    source = f.visit_expr(call.args[0])
    shape = f.dims(stmt.var)
    target = flat_shape(shape) if len(shape) > 2 else shape
    assert isinstance(source.type, TileType)
    if source is call.args[0] and len(shape) <= 2:
        return call
    if e.static_dims(source.type.shape) == target:
        return source
    return create_call(f, call, [source, pair(target, call)])


@_handles("slice")
def slice_(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """A run of rows stays a view; other windows are gathered page by page."""
    tile = call.args[0]
    if not nd(tile.type):
        return f.visit_expr(call)
    window, at = _window(f, call)
    dims = f.dims(tile)
    source = f.visit_expr(tile)
    if is_run_of_rows(dims, window, at):
        row, column = fold_index(dims, at)
        args: list[e.Expr] = [source, pair(flat_shape(window), call), pair((row, column), call)]
        made = create_call(f, replace_call(call, kwargs=call.kwargs), args)
        return _narrowed(f, stmt, made)
    pages: list[e.Var] = []
    for index in page_indices(window):
        place = [arith(e.Add, o, e.index(i)) for o, i in zip(at, (*index, 0, 0), strict=True)]
        row, column = fold_index(dims, place)
        args = [source, pair(window[-2:], call), pair((row, column), call)]
        pages.append(f.emit(f"{base_name(stmt.var.name_hint)}_p{len(pages)}", "tile.slice", args, like=call))
    return f.stacked(pages, base_name(stmt.var.name_hint))


def _narrowed(f: Flattener, stmt: s.AssignStmt, made: e.Call) -> e.Expr:
    """The view, with the valid region that the program states."""
    assert isinstance(stmt.var.type, TileType)
    assert isinstance(made.type, TileType)
    want = flat_valid(stmt.var.type, stmt) if nd(stmt.var.type) else stmt.var.type.valid_shape
    if extents.all_equal(made.type.valid_shape, want):
        return made
    return create_call(f, made, [*made.args, pair(want, made)])


def _window(f: Flattener, call: e.Call) -> tuple[tuple[int, ...], tuple[e.Expr, ...]]:
    shape, offset = call.args[1], call.args[2]
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(offset, e.MakeTuple)
    window = e.static_dims(shape.elements)
    if window is None:
        raise f.fail(f"a window of a tile needs constant extents, got {extents.text(shape.elements)}", call)
    rank = len(f.dims(call.args[0]))
    window = (1,) * (rank - len(window)) + window
    at = f.visit_exprs(offset.elements)
    return window, (*[e.index(0)] * (rank - len(at)), *at)


@_handles("assemble")
def assemble(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """A run of rows at once, else page by page."""
    target, source, offset = call.args
    if not nd(target.type):
        return f.visit_expr(call)
    dims, window = f.dims(target), f.dims(source)
    window = (1,) * (len(dims) - len(window)) + window
    assert isinstance(offset, e.MakeTuple)
    at = f.visit_exprs(offset.elements)
    into = f.visit_expr(target)
    if is_run_of_rows(dims, window, at):
        return create_call(f, call, [into, f.visit_expr(source), pair(fold_index(dims, at), call)])
    made: e.Expr = into
    for index, page in zip(page_indices(window), f.pages(source), strict=True):
        place = [arith(e.Add, o, e.index(i)) for o, i in zip(at, (*index, 0, 0), strict=True)]
        name = base_name(stmt.var.name_hint)
        made = f.emit(name, "tile.assemble", [made, page, pair(fold_index(dims, place), call)], like=call)
    return made


@_handles("read")
def read(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """One element by row and column."""
    if not nd(call.args[0].type):
        return f.visit_expr(call)
    return create_call(f, call, [f.visit_expr(call.args[0]), pair(f.position(*call.args), call)])


@_handles("fillpad_expand")
def fillpad_expand(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """Only rows and columns of a matrix can grow."""
    if nd(call.type):
        raise f.fail("tile.fillpad_expand works on matrices; loop over the pages", call)
    return f.visit_expr(call)


# axes ----------------------------------------------------------------------------------------------------------------


@_handles("col_sum", "col_max", "col_min", "col_prod", "col_argmax", "col_argmin")
def column_reduction(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """Of rank > 2: page by page."""
    if not nd(call.args[0].type):
        return f.visit_expr(call)
    name = base_name(stmt.var.name_hint)
    scratch = [f.pages(a) for a in call.args[1:]]
    rows = []
    for i, page in enumerate(f.pages(call.args[0])):
        args = [page, *(pages[i] for pages in scratch)]
        rows.append(f.emit(name, call.op.name, args, dict(call.kwargs), call))
    return f.stacked(rows, name)


@_handles("transpose")
def transpose(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr:
    """Gets a scratch tile of the size of a page; of rank > 2 page by page."""
    if len(call.args) == 4:
        return f.visit_expr(call)
    shape = f.dims(call.args[0])
    axes = sorted(e.const_value(a) or 0 for a in call.args[1:3])
    axes = sorted(a + len(shape) if a < 0 else a for a in axes)
    if len(shape) == 2:
        return _transposed(f, f.visit_expr(call.args[0]), call)
    if axes != [len(shape) - 2, len(shape) - 1]:
        raise f.fail(
            f"tile.transpose swaps axes {axes[0]} and {axes[1]} of {list(shape)}; in a kernel only the last two axes "
            "can be swapped: move the batch axis with the order of your loads and stores",
            call,
        )
    name = base_name(stmt.var.name_hint)
    pages: list[e.Var] = []
    for page in f.pages(call.args[0]):
        made = _transposed(f, page, call)
        var = e.Var(f.names.take(name), made.type, call.span)
        f.out.append(s.AssignStmt(var, made, stmt.span))
        pages.append(var)
    return f.stacked(pages, name)


def _transposed(f: Flattener, page: e.Expr, call: e.Call) -> e.Call:
    assert isinstance(page.type, TileType)
    kwargs: dict[str, Any] = {"dtype": page.type.dtype, "target_memory": MemorySpace.Vec}
    tmp = f.emit("transpose_tmp", "tile.create", [e.MakeTuple(page.type.shape, call.span)], kwargs, call)
    return create_op_call("tile.transpose", [page, e.index(0), e.index(1), tmp], call.kwargs, span=call.span)


@_handles("transpose_view")
def transpose_view(f: Flattener, stmt: s.AssignStmt, call: e.Call) -> e.Expr | None:
    """Behind a transposed view the pages lie side by side."""
    source = call.args[0]
    if not nd(source.type):
        return f.visit_expr(call)
    assert isinstance(source, e.Var)
    known = f.flat.get(source)
    shape = f.dims(stmt.var)
    if known is not None and (known.pages or known.lazy):
        pages: list[e.Var] = []
        for page in known.made():
            pages.append(f.emit(f"{page.name_hint}_t", "tile.transpose_view", [page], like=call))
        f.flat[stmt.var] = Flat(shape, pages=tuple(pages))
        return None
    made = create_op_call("tile.transpose_view", [f.visit_expr(source)], span=call.span)
    f.flat[stmt.var] = Flat(shape, columns=True)
    return made
