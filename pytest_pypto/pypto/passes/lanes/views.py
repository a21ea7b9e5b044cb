"""Rules of operators that cut or reshape a tile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.visitor import replace_call
from ..device_ir import kernel_error, op_assign, tile_of
from .base import divided, own_part, plain
from .part import AXIS_NAMES, Part, constant, halve, in_tuple, replaced

if TYPE_CHECKING:
    from .rewriter import LaneRewriter

_ALIGN = 32
"""Bytes at multiples of which a vector operand may start."""


def _static(shape: tuple[e.Expr, ...], stmt: s.AssignStmt) -> list[int]:
    return [constant(d, f"'{stmt.var.name_hint}'", stmt) for d in shape]


def _product(dims: list[int]) -> int:
    total = 1
    for d in dims:
        total *= d
    return total


def follow(part: Part, source: list[int], target: list[int]) -> Part | None:
    """Where the divided axis of `source` is after a reshape to `target`; None when the parts do not stay boxes.

    Lane 0 holds the first `half * suffix` elements of every block of the axes in front, so the new axis must have the
    same elements in front, and the cut must fall between two of its steps.
    """
    prefix, suffix = _product(source[: part.axis]), _product(source[part.axis + 1 :])
    for axis, extent in enumerate(target):
        after = _product(target[axis + 1 :])
        if _product(target[:axis]) != prefix or extent * after != part.full * suffix or extent == 1:
            continue
        cut, start = part.half * suffix, part.stride * suffix
        if cut % after == 0 and start % after == 0 and cut // after == halve(extent):
            return Part(axis, extent, cut // after, start // after)
    return Part(part.axis, 1, 1, 1) if part.full == 1 and part.axis < len(target) else None


def reshape(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A divided tile keeps its division where the reshape moves it; a whole one is cut after the reshape."""
    result, source = tile_of(stmt.var), tile_of(stmt.value.args[0]) if isinstance(stmt.value, e.Call) else None
    assert result is not None
    assert source is not None
    part = rw.part_of(call.args[0])
    if part is None:
        return _cut(rw, stmt, call)
    dims = _static(source.shape, stmt)
    moved = follow(part, dims, _static(result.shape, stmt))
    if moved is None:
        raise kernel_error(
            f"reshape of '{stmt.var.name_hint}' from {dims} to {_static(result.shape, stmt)} scatters the "
            f"{AXIS_NAMES[part.axis]} that are divided between the vector lanes; take the split off this scope or "
            "reshape so that they stay together",
            stmt.span,
        )
    if moved.full == 1:
        return plain(rw, stmt, call)
    shape = in_tuple(call.args[1], moved.axis, lambda _: e.index(moved.half), stmt)
    return divided(rw, stmt, replace_call(call, args=(call.args[0], shape, *call.args[2:])), moved)


def _cut(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Reshape a whole tile, then give each lane its part when it now has more than one cell on the split axis."""
    result = tile_of(stmt.var)
    assert result is not None
    if len(result.shape) != 2 or stmt.var in (rw.turned or ()):
        return plain(rw, stmt, call)
    extent = constant(result.shape[rw.lane.axis], f"'{stmt.var.name_hint}'", stmt)
    if extent == 1:
        return plain(rw, stmt, call)
    part = rw.lane.part(extent)
    if part.stride + part.half > extent:
        raise kernel_error(
            f"reshape makes '{stmt.var.name_hint}' a tile with {extent} {AXIS_NAMES[part.axis]}, which the vector "
            "lanes cannot share evenly; load the tensor in that shape, pad it, or take the split off this scope",
            stmt.span,
        )
    whole = e.Var(f"{stmt.var.name_hint}_full", rw.visit_type(result), stmt.var.span)
    first = replace(stmt, var=whole, value=replace_call(call, type=whole.type))
    return [first, _own_cells(whole, rw.halved(stmt.var, part), part, rw, stmt)]


def _own_cells(whole: e.Var, var: e.Var, part: Part, rw: LaneRewriter, stmt: s.AssignStmt) -> s.Stmt:
    """A lane's window of a whole tile: a view where it starts at whole blocks of memory, else a copy."""
    result, view = tile_of(whole), tile_of(var)
    assert result is not None
    assert view is not None
    shape = e.make_tuple(replaced(result.shape, part.axis, e.index(part.half)))
    zeros: tuple[e.Expr, ...] = (e.index(0), e.index(0))
    offset = replaced(zeros, part.axis, rw.lane.offset(e.index(0), part.stride))
    valid = None if view.tile_view is None else view.tile_view.valid_shape
    start = part.stride * (1 if part.axis else constant(result.shape[1], f"'{stmt.var.name_hint}'", stmt))
    if valid is None and start * result.dtype.get_byte() % _ALIGN:
        operands: list[e.Expr] = [whole, *offset, shape]
        return op_assign(var, "tile.extract", operands, {"target_memory": MemorySpace.Vec}, stmt.span)
    args: list[e.Expr] = [whole, shape, e.MakeTuple(offset)]
    if valid is not None:
        args.append(e.MakeTuple(valid))
    return op_assign(var, "tile.slice", args, {}, stmt.span)


def slice_(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A window over the whole divided axis; a window of a whole tile is cut per lane."""
    part, result = rw.part_of(call.args[0]), tile_of(stmt.var)
    shape, offset = call.args[1], call.args[2]
    assert isinstance(shape, e.MakeTuple)
    assert isinstance(offset, e.MakeTuple)
    if part is None:
        return _cut_window(rw, stmt, call)
    if len(shape.elements) != 2 or result is None or len(result.shape) != 2:
        raise kernel_error("a slice that changes the rank of a tile divided between the vector lanes", stmt.span)
    _whole_axis(part, shape.elements[part.axis], offset.elements[part.axis], stmt)
    args = [call.args[0], in_tuple(shape, part.axis, lambda _: e.index(part.half), stmt), *call.args[2:]]
    if len(args) > 3 and isinstance(args[3], e.MakeTuple) and args[3].elements:
        args[3] = in_tuple(args[3], part.axis, lambda x: rw.lane.valid(x, part), stmt)
    if part.full == 1:
        return plain(rw, stmt, replace_call(call, args=args))
    return divided(rw, stmt, replace_call(call, args=args), part)


def _whole_axis(part: Part, extent: e.Expr, offset: e.Expr, stmt: s.Stmt) -> None:
    if e.const_value(extent) != part.full or e.const_value(offset) != 0:
        raise kernel_error(
            f"a window on some of the {part.full} {AXIS_NAMES[part.axis]} that are divided between the vector lanes "
            f"does not lie on one lane; take all {AXIS_NAMES[part.axis]}, or take the split off this scope",
            stmt.span,
        )


def _cut_window(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    part = own_part(rw, stmt)
    if part is None:
        return plain(rw, stmt, call)
    args = [
        call.args[0],
        in_tuple(call.args[1], part.axis, lambda _: e.index(part.half), stmt),
        in_tuple(call.args[2], part.axis, lambda x: rw.lane.offset(x, part.stride), stmt),
        *call.args[3:],
    ]
    if len(args) > 3 and isinstance(args[3], e.MakeTuple) and args[3].elements:
        args[3] = in_tuple(args[3], part.axis, lambda x: rw.lane.valid(x, part), stmt)
    return divided(rw, stmt, replace_call(call, args=args), part)


def extract(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A copied window; the same rules as for a slice, with row and column as separate operands."""
    part = rw.part_of(call.args[0])
    args = list(call.args)
    if part is None:
        part = own_part(rw, stmt)
        if part is None:
            return plain(rw, stmt, call)
        args[1 + part.axis] = rw.lane.offset(args[1 + part.axis], part.stride)
    else:
        shape = args[3]
        assert isinstance(shape, e.MakeTuple)
        _whole_axis(part, shape.elements[part.axis], args[1 + part.axis], stmt)
    args[3] = in_tuple(args[3], part.axis, lambda _: e.index(part.half), stmt)
    return divided(rw, stmt, replace_call(call, args=args), part)


def assemble(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A window written into a tile: target and source divided alike, over the whole divided axis."""
    target, source = rw.part_of(call.args[0]), rw.part_of(call.args[1])
    if target is None and source is None:
        return plain(rw, stmt, call)
    offset = call.args[2]
    assert isinstance(offset, e.MakeTuple)
    if target is None or source is None or target != source or e.const_value(offset.elements[target.axis]) != 0:
        raise kernel_error(
            f"tile.assemble into '{stmt.var.name_hint}' puts a part on some of the cells that are divided between the "
            "vector lanes; write all of that axis, or take the split off this scope",
            stmt.span,
        )
    return divided(rw, stmt, call, target)
