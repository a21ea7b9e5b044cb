"""Regions that the author wrote per lane (`for lane in pl.split_aiv(2, mode=...)`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.dtypes import INDEX
from ...ir.enums import SplitMode
from ...ir.span import UNKNOWN
from ...ir.types import ScalarType
from ...ir.visitor import walk_stmts
from .._util import base_name
from ..device_ir import all_uses, body_like, kernel_error, nested_bodies, op_assign, op_call, op_name, with_bodies
from ..mixed.affinity import BOUNDARY_OPS, Affinity, Side, move_sides
from .part import Lane
from .rebalance import rebalanced_stride
from .rewriter import LaneRewriter

LANE_OP = "tile.get_subblock_idx"


def has_region(body: s.Stmt) -> bool:
    """True when a body holds a `split_aiv` region."""
    return any(isinstance(x, s.SplitAivScopeStmt) for x in walk_stmts(body))


def lane_binding(name: str, stmt: s.Stmt | None = None) -> s.AssignStmt:
    """`name = tile.get_subblock_idx()`."""
    span = stmt.span if stmt is not None else UNKNOWN
    return op_assign(e.Var(name, ScalarType(INDEX), span), LANE_OP, [], {}, span)


def _written_per_lane(lane: e.Var, stmts: Sequence[s.Stmt]) -> bool:
    """True for a body that is one lane's program already: it shards or gathers, or uses the lane number itself."""
    return any(
        any(v is lane for v in all_uses(stmt)) or any(op_name(x) in BOUNDARY_OPS for x in walk_stmts(stmt))
        for stmt in stmts
    )


def _misplaced(stmt: s.Stmt) -> str:
    """What is wrong with vector work outside every region; a move stands for the operator that needs the tile."""
    call = op_call(stmt)
    if call is None or call.op.name != "tile.move":
        return (
            f"{op_name(stmt)} runs on the vector core, but stands outside every pl.split_aiv region; move it into one"
        )
    source = call.args[0]
    name = f"'{base_name(source.name_hint)}'" if isinstance(source, e.Var) else "a tile"
    if move_sides(call)[0] is Side.VECTOR:
        return (
            f"{name} is made by the vector lanes in a pl.split_aiv region and used by the cube core outside it; "
            "hand it out with pl.aic_gather inside the region"
        )
    return (
        f"{name} is used on the vector core outside every pl.split_aiv region; move that use into a region, with "
        "pl.aiv_shard for the part of one lane"
    )


class RegionLowering:
    """Takes the region shells of one kernel away."""

    def __init__(self, affinity: Affinity) -> None:
        self.affinity = affinity

    def body(self, body: s.Stmt) -> s.Stmt:
        """A body without regions.

        Raises:
            ValueError: vector work outside every region, or a region behind another kind of scope.
        """
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            if isinstance(stmt, s.SplitAivScopeStmt):
                made.extend(self._region(stmt))
            elif isinstance(stmt, s.ScopeStmt):
                raise kernel_error(
                    f"a {stmt.scope_kind.name} scope inside a kernel with pl.split_aiv regions; put the region "
                    "directly into the kernel",
                    stmt.span,
                )
            elif nested_bodies(stmt):
                made.append(with_bodies(stmt, [self.body(b) for b in nested_bodies(stmt)]))
            else:
                self._outside(stmt)
                made.append(stmt)
        return body_like(body, made)

    def _outside(self, stmt: s.Stmt) -> None:
        if Side.VECTOR in self.affinity.of(stmt) and op_name(stmt) != LANE_OP:
            raise kernel_error(_misplaced(stmt), stmt.span)

    def _region(self, region: s.SplitAivScopeStmt) -> Sequence[s.Stmt]:
        stmts = s.stmts_of(region.body)
        if stmts and isinstance(stmts[0], s.AssignStmt) and op_name(stmts[0]) == LANE_OP:
            binding, rest = stmts[0], stmts[1:]
        else:
            binding, rest = lane_binding("aiv_id", region), stmts
        if region.split is SplitMode.NONE or _written_per_lane(binding.var, rest):
            return (binding, *self._plain(rest))
        axis = region.split.value - 1
        inner = s.SeqStmts(tuple(rest), region.span)
        lane = Lane(axis, binding.var, rebalanced_stride(inner, axis, self.affinity))
        return (binding, *s.stmts_of(LaneRewriter(lane, self.affinity).body(inner)))

    def _plain(self, stmts: Sequence[s.Stmt]) -> Sequence[s.Stmt]:
        for stmt in stmts:
            for inner in walk_stmts(stmt):
                if isinstance(inner, s.ScopeStmt):
                    raise kernel_error("a scope inside a pl.split_aiv region; regions do not nest", inner.span)
        return stmts
