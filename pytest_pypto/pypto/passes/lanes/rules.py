"""How each vector operator is divided between the two lanes.

Every rule gets the statement as it was and its call with rewritten operands, and returns the statements that take its
place. `elementwise` serves all operators that work cell by cell on operands divided alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir import stmt as s
from ...ir.op_table import infer_type
from ...ir.types import TileType
from ...ir.visitor import replace_call
from ..device_ir import kernel_error, tile_of, tile_space
from .base import Rule, common_part, divided, own_part, plain, shown
from .part import AXIS_NAMES, Part, constant, in_tuple, window_axis
from .views import assemble, extract, reshape, slice_

if TYPE_CHECKING:
    from .rewriter import LaneRewriter


def elementwise(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Cell by cell, with broadcast of single rows and columns."""
    part, result = common_part(rw, stmt, call), tile_of(stmt.var)
    if part is None or result is None:
        return plain(rw, stmt, call)
    extent = constant(result.shape[part.axis], f"'{stmt.var.name_hint}'", stmt)
    if extent == part.full:
        return divided(rw, stmt, call, part)
    raise kernel_error(
        f"{call.op.name} changes the {AXIS_NAMES[part.axis]} from {part.full} to {extent}, and they are divided "
        "between the vector lanes; take the split off this scope or split along the other axis",
        stmt.span,
    )


def reduction(axis: int) -> Rule:
    """Rule of an operator that reduces `axis` (row reductions 1, column reductions 0)."""

    def rule(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
        part = common_part(rw, stmt, call)
        if part is None:
            return plain(rw, stmt, call)
        if part.axis == axis and part.full > 1:
            raise kernel_error(
                f"{call.op.name} of '{stmt.var.name_hint}' reduces on the split axis (dim {axis}); each vector lane "
                "holds only half of it, and a partial reduction in a split kernel is not supported. Split along the "
                "other axis or take the split off this scope",
                stmt.span,
            )
        return divided(rw, stmt, call, part)

    return rule


def load(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Each lane loads its own rows or columns."""
    part = own_part(rw, stmt)
    if part is None:
        return plain(rw, stmt, call)
    shapes = call.args[2]
    assert isinstance(shapes, e.MakeTuple)
    at, step = window_axis(shapes.elements, part.axis, stmt)
    inner = Part(at, part.full // step, part.half // step, part.stride // step)
    args = (
        call.args[0],
        in_tuple(call.args[1], at, lambda x: rw.lane.offset(x, inner.stride), stmt),
        in_tuple(shapes, at, lambda _: e.index(inner.half), stmt),
        in_tuple(call.args[3], at, lambda x: rw.lane.valid(x, inner), stmt),
        *call.args[4:],
    )
    return divided(rw, stmt, replace_call(call, args=args), part)


def store(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A divided tile is stored at the lane's place; a whole one by both lanes alike, or added by lane 0 alone."""
    part = rw.part_of(call.args[0])
    if part is None:
        return _guarded(rw, stmt, call) if call.kwargs.get("atomic") else plain(rw, stmt, call)
    offsets = call.args[1]
    assert isinstance(offsets, e.MakeTuple)
    extra: tuple[e.Expr, ...] = ()
    if len(call.args) > 3 and isinstance(call.args[3], e.MakeTuple):
        at, step = window_axis(call.args[3].elements, part.axis, stmt)
        extra = (in_tuple(call.args[3], at, lambda _: e.index(part.half // step), stmt),)
    else:
        at, step = _store_axis(len(offsets.elements), part, stmt), 1
    moved = in_tuple(offsets, at, lambda x: rw.lane.offset(x, part.stride // step), stmt)
    return plain(rw, stmt, replace_call(call, args=(call.args[0], moved, call.args[2], *extra)))


def _store_axis(rank: int, part: Part, stmt: s.Stmt) -> int:
    at = rank - 2 + part.axis
    if at < 0:
        raise kernel_error("a tile divided by rows cannot be stored into a tensor of one axis", stmt.span)
    return at


def _guarded(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """An atomic store of a whole tile, made by lane 0 only: both lanes would add it twice."""
    result = rw.define(stmt.var)
    added = e.Var(stmt.var.name_hint, result.type, stmt.span)
    then = s.SeqStmts((s.AssignStmt(added, call, stmt.span), s.YieldStmt((added,), stmt.span)), stmt.span)
    other = s.SeqStmts((s.YieldStmt((call.args[2],), stmt.span),), stmt.span)
    return [s.IfStmt(ops.eq(rw.lane.index, e.index(0)), then, other, (result,), stmt.span)]


def create(at: int) -> Rule:
    """Rule of an operator that makes a tile of the shape in operand `at`."""

    def rule(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
        part = own_part(rw, stmt)
        if part is None:
            return plain(rw, stmt, call)
        shape = in_tuple(call.args[at], part.axis, lambda _: e.index(part.half), stmt)
        args = (*call.args[:at], shape, *call.args[at + 1 :])
        return divided(rw, stmt, replace_call(call, args=args), part)

    return rule


def positional(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Operators whose cells depend on their position in the whole tile."""
    part = own_part(rw, stmt) or common_part(rw, stmt, call)
    if part is None:
        return plain(rw, stmt, call)
    raise kernel_error(
        f"{call.op.name} of '{stmt.var.name_hint}' works on positions in the whole tile, whose "
        f"{AXIS_NAMES[part.axis]} are divided between the vector lanes; take the split off this scope",
        stmt.span,
    )


def by_rows(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Operators that treat each row by itself and may change the number of columns."""
    part, result = common_part(rw, stmt, call), tile_of(stmt.var)
    if part is None or result is None:
        return plain(rw, stmt, call)
    if part.axis == 1 and part.full > 1:
        return positional(rw, stmt, call)
    return divided(rw, stmt, call, part)


def mask(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A comparison: one bit per cell, eight columns to a byte."""
    part = common_part(rw, stmt, call)
    if part is None or part.axis == 0:
        return elementwise(rw, stmt, call)
    if part.half % 8 or not part.even:
        raise kernel_error(
            f"{call.op.name}: {part.full} columns divided between the vector lanes do not give whole bytes of the "
            "mask; make half the columns a multiple of 8, or split by rows",
            stmt.span,
        )
    made = infer_type(call.op.name, call.args, call.kwargs, stmt.span)
    assert isinstance(made, TileType)
    type_ = TileType(made.shape, made.dtype, None, made.tile_view, tile_space(stmt.var))
    var = e.Var(stmt.var.name_hint, type_, stmt.var.span)
    rw.parts[var] = part
    rw.var_map[stmt.var] = var
    return [replace(stmt, var=var, value=replace_call(call, type=type_))]


def set_validshape(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """The stated extent becomes that of this lane."""
    part = rw.part_of(call.args[0])
    if part is None:
        return plain(rw, stmt, call)
    args = list(call.args)
    args[1 + part.axis] = rw.lane.valid(args[1 + part.axis], part)
    return divided(rw, stmt, replace_call(call, args=args), part)


def transpose(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Swapping the divided axis away is refused: the lanes would hold the other axis."""
    part = rw.part_of(call.args[0])
    if part is None or part.full == 1:
        return plain(rw, stmt, call)
    raise kernel_error(
        f"{call.op.name} of '{shown(call.args[0])}' swaps the split axis (dim {part.axis}), whose {part.full} "
        f"{AXIS_NAMES[part.axis]} are divided between the vector lanes; transpose outside the split scope, or take "
        "the split off",
        stmt.span,
    )


def concat(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Side by side: each lane joins its own rows."""
    return by_rows(rw, stmt, call)


def pop(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """A hand-written pop of a split transfer receives this lane's part."""
    mode, tile = int(call.kwargs.get("split", 0)), tile_of(stmt.var)
    if not mode or tile is None:
        return plain(rw, stmt, call)
    axis = (mode - 1) % 2
    extent = constant(tile.shape[axis], f"'{stmt.var.name_hint}'", stmt)
    part = rw.lane.part(extent)
    return divided(rw, stmt, call, replace(part, axis=axis))


def whole_only(rw: LaneRewriter, stmt: s.AssignStmt, call: e.Call) -> list[s.Stmt]:
    """Operators that need every operand whole."""
    rw.keep_whole(call.args, call, stmt)
    return plain(rw, stmt, call)


_REDUCTIONS = ("sum", "max", "min", "prod", "argmax", "argmin")
RULES: dict[str, Rule] = {
    "tile.load": load,
    "tile.store": store,
    "tile.create": create(0),
    "tile.full": create(0),
    "tile.ci": positional,
    "tile.tri": positional,
    "tile.random": positional,
    "tile.cmp": mask,
    "tile.cmps": mask,
    "tile.set_validshape": set_validshape,
    "tile.transpose": transpose,
    "tile.transpose_view": transpose,
    "tile.concat": concat,
    "tile.tpop_from_aic": pop,
    "tile.reshape": reshape,
    "tile.slice": slice_,
    "tile.extract": extract,
    "tile.assemble": assemble,
    "tile.fillpad_expand": positional,
    "tile.sort32": by_rows,
    "tile.gather_mask": by_rows,
    "tile.mrgsort_format1": by_rows,
    **{f"tile.row_{name}": reduction(1) for name in _REDUCTIONS},
    **{f"tile.col_{name}": reduction(0) for name in _REDUCTIONS},
    **{
        f"tile.{name}": whole_only
        for name in (
            *("gather", "gatherb", "gather_compare", "mgather", "gather_row", "mrgsort_format2", "reinterpret_view"),
            *("scatter", "scatter_mask", "scatter_update", "mscatter", "read", "write"),
        )
    },
}
"""Operator -> rule; operators that are not listed are cell by cell."""
