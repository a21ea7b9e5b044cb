"""Sorting, gathering and scattering."""

from __future__ import annotations

from ...ir import expr as e
from ...ir import extents
from ...ir import stmt as s
from ...ir.dtypes import INDEX
from ...ir.enums import MemorySpace
from ...ir.types import ScalarType, TensorType
from .elementwise import full, kept_kwargs, scratch, select, tile_type
from .kernel import Kernel
from .table import handles


@handles("sort32")
def sort32(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One to one."""
    return k.emit("tile.sort32", [k.tile(a) for a in call.args], name=f"{base}__tile", span=call.span)


@handles("mrgsort_format1", "gather_mask")
def first_is_tile(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """A tile and further scalars."""
    op = call.op.name.replace("tensor.", "tile.")
    args = [k.tile(call.args[0]), *k.visit_exprs(call.args[1:])]
    return k.emit(op, args, kept_kwargs(call, op), name=f"{base}__tile", span=call.span)


@handles("mrgsort_format2")
def merge(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """The lists, and a scratch tile as large as the result."""
    lists = [k.tile(a) for a in call.args]
    assert isinstance(call.type, TensorType)
    tmp = scratch(k, call.type.shape, call.type.dtype, call.span)
    return k.emit("tile.mrgsort_format2", [*lists, tmp], call.kwargs, name=f"{base}__tile", span=call.span)


@handles("gather_compare")
def gather_compare(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Takes a scratch tile; gives positions and counts."""
    x = k.tile(call.args[0])
    tmp = scratch(k, tile_type(x).shape, tile_type(x).dtype, call.span)
    args = [x, k.value(call.args[1]), tmp]
    return k.emit("tile.gather_compare", args, call.kwargs, name=f"{base}__tile", span=call.span)


@handles("scatter_mask")
def scatter_mask(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """The tile form names the destination first and writes into it; the tensor is a value, so a copy is written."""
    source, dst = k.tile(call.args[0]), k.tile(call.args[1])
    dst = k.emit("tile.move", [dst], {"target_memory": MemorySpace.Vec}, name=f"{base}__tile", span=call.span)
    return k.emit("tile.scatter_mask", [dst, source], call.kwargs, name=f"{base}__tile", span=call.span)


@handles("scatter_update")
def scatter_update(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """One to one."""
    args = [k.tile(a) for a in call.args]
    return k.emit("tile.scatter_update", args, call.kwargs, name=f"{base}__tile", span=call.span)


@handles("gather_row")
def gather_row(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """The accumulator is a tile, the source stays in memory."""
    args = [k.tile(call.args[0]), k.tensor(call.args[1]), *k.visit_exprs(call.args[2:])]
    return k.emit("tile.gather_row", args, call.kwargs, name=f"{base}__tile", span=call.span)


def _last_axis(k: Kernel, call: e.Call, rank: int) -> None:
    dim = call.kwargs.get("dim", -1)
    if rank != 2 or dim not in (-1, 1):
        raise k.fail(
            f"{call.op.name} with dim={dim} on rank {rank} cannot be used in a kernel: only the last axis of rank 2; "
            "transpose or reshape first",
            call,
        )


class _RowLoop:
    """`for r in pl.range(rows)` around statements that update one tile; used where an operator works on one row."""

    def __init__(self, k: Kernel, rows: int, init: e.Var, base: str, call: e.Call) -> None:
        self.k = k
        self.call = call
        self.var = e.Var(k.names.take(f"{base}_r"), ScalarType(INDEX), call.span)
        self.arg = e.IterArg(k.names.take(f"{base}__iter"), init.type, init, call.span)
        self.rows = rows
        self.outer = k.out
        k.out = []

    def row(self, tile: e.Var, name: str) -> e.Var:
        """Row r of a tile."""
        shape = e.make_tuple([1, *tile_type(tile).shape[1:]], self.call.span)
        at = e.make_tuple([self.var, 0], self.call.span)
        return self.k.emit("tile.slice", [tile, shape, at], name=name, span=self.call.span)

    def finish(self, row: e.Var, base: str) -> e.Var:
        """Put `row` at row r of the carried tile and close the loop."""
        at = e.make_tuple([self.var, 0], self.call.span)
        new = self.k.emit("tile.assemble", [self.arg, row, at], name=f"{base}__tile", span=self.call.span)
        self.k.out.append(s.YieldStmt((new,), self.call.span))
        body = s.SeqStmts(tuple(self.k.out), self.call.span)
        self.k.out = self.outer
        result = e.Var(self.k.names.take(f"{base}__rv"), new.type, self.call.span)
        bounds = (e.index(0), e.index(self.rows), e.index(1))
        self.k.out.append(s.ForStmt(self.var, *bounds, (self.arg,), body, (result,), self.call.span))
        return result


def _rows(k: Kernel, tile: e.Var, call: e.Call) -> int:
    rows = e.const_value(tile_type(tile).shape[0])
    if rows is None:
        raise k.fail(f"{call.op.name} needs a constant number of rows, got {extents.text(tile_type(tile).shape)}", call)
    return rows


@handles("gather")
def gather(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Row by row: in a tile of one row the flat index is the column."""
    x, index = k.tile(call.args[0]), k.tile(call.args[1])
    _last_axis(k, call, len(tile_type(x).shape))
    rows = _rows(k, index, call)
    if rows == 1 and e.const_value(tile_type(x).shape[0]) == 1:
        return _gather_row(k, x, index, base, call)
    out = scratch(k, tile_type(index).shape, tile_type(x).dtype, call.span)
    loop = _RowLoop(k, rows, out, base, call)
    row = _gather_row(k, loop.row(x, f"{base}_x"), loop.row(index, f"{base}_i"), base, call)
    return loop.finish(row, base)


def _gather_row(k: Kernel, x: e.Var, index: e.Var, base: str, call: e.Call) -> e.Var:
    tmp = scratch(k, tile_type(index).shape, tile_type(index).dtype, call.span)
    return k.emit("tile.gather", [x, index, tmp], name=f"{base}__tile", span=call.span)


@handles("scatter")
def scatter(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Row by row: scatter the values and a mask of ones into zeros, then blend them over the input."""
    x, index, source = (k.tile(a) for a in call.args)
    _last_axis(k, call, len(tile_type(x).shape))
    rows = _rows(k, x, call)
    if rows == 1:
        return _scatter_row(k, x, index, source, base, call)
    loop = _RowLoop(k, rows, x, base, call)
    row = _scatter_row(
        k, loop.row(x, f"{base}_x"), loop.row(index, f"{base}_i"), loop.row(source, f"{base}_s"), base, call
    )
    return loop.finish(row, base)


def _scatter_row(k: Kernel, x: e.Var, index: e.Var, source: e.Var, base: str, call: e.Call) -> e.Var:
    dtype, shape = tile_type(x).dtype, tile_type(x).shape
    zeros = full(k, shape, 0, dtype, call.span)
    values = k.emit("tile.scatter", [zeros, source, index], name=f"{base}__tile", span=call.span)
    ones = full(k, tile_type(source).shape, 1, dtype, call.span)
    marks = full(k, shape, 0, dtype, call.span)
    marked = k.emit("tile.scatter", [marks, ones, index], name=f"{base}__tile", span=call.span)
    nothing: e.Expr = e.ConstFloat(0.0, dtype) if dtype.is_float() else e.ConstInt(0, dtype)
    mask = k.emit("tile.cmps", [marked, nothing], {"cmp_type": 1}, name=f"{base}__tile", span=call.span)
    return select(k, mask, values, x, base, call.span)


@handles("paged_gather")
def paged_gather(k: Kernel, call: e.Call, base: str, stmt: s.Stmt) -> e.Expr:
    """Looks every page up and gathers one row per index."""
    source, indices, table = (k.tensor(a) for a in call.args)
    kw = call.kwargs
    limit, size, block = kw["max_indices"], kw["size"], kw["block_size"]
    transposed = bool(kw.get("is_trans"))
    space = kw.get("space") or MemorySpace.Mat
    shape = e.make_tuple([size, limit] if transposed else [limit, size], call.span)
    assert isinstance(source.type, TensorType)
    made: dict[str, object] = {"dtype": source.type.dtype, "target_memory": space}
    if transposed:
        made["transpose"] = True
    init = k.emit("tile.create", [shape], made, name=f"{base}__tile", span=call.span)
    loop = _RowLoop(k, limit, init, base, call)
    index = _element(k, indices, loop.var, f"{base}_i", call)
    number = e.Cast(index, INDEX, call.span)
    page = _element(k, table, e.FloorDiv(number, e.index(block), INDEX), f"{base}_p", call)
    row = e.Add(
        e.Mul(e.Cast(page, INDEX, call.span), e.index(block), INDEX), e.FloorMod(number, e.index(block), INDEX), INDEX
    )
    at: list[int | e.Expr] = [0, loop.var] if transposed else [loop.var, 0]
    args = [
        loop.arg,
        source,
        e.make_tuple(at, call.span),
        e.make_tuple([row, kw.get("col_off", 0)], call.span),
        e.make_tuple([1, size], call.span),
    ]
    kwargs = {"transpose": True} if transposed else {}
    new = k.emit("tile.gather_row", args, kwargs, name=f"{base}__tile", span=call.span)
    k.out.append(s.YieldStmt((new,), call.span))
    body = s.SeqStmts(tuple(k.out), call.span)
    k.out = loop.outer
    result = e.Var(k.names.take(f"{base}__rv"), new.type, call.span)
    bounds = (e.index(0), e.index(limit), e.index(1))
    k.out.append(s.ForStmt(loop.var, *bounds, (loop.arg,), body, (result,), call.span))
    return result


def _element(k: Kernel, source: e.Var, at: e.Expr, name: str, call: e.Call) -> e.Var:
    """Element `at` of a rank-1 or [1, n] tensor."""
    assert isinstance(source.type, TensorType)
    lead = [0] * (len(source.type.shape) - 1)
    return k.emit("tensor.read", [source, e.make_tuple([*lead, at], call.span)], name=name, span=call.span)
