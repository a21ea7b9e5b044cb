"""LowerAutoVectorSplit: in a kernel with a split, the vector part becomes the program of one lane."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from .base import FunctionPass
from .lanes.meeting import refuse_meeting_lanes
from .lanes.part import Lane
from .lanes.rebalance import rebalanced_stride
from .lanes.regions import RegionLowering, has_region, lane_binding
from .lanes.rewriter import LaneRewriter
from .mixed.affinity import Affinity, Side


@dataclass(frozen=True)
class LowerAutoVectorSplit(FunctionPass):
    """Halves vector tiles on the split axis and marks where tiles are sharded to the lanes and gathered from them."""

    name = "LowerAutoVectorSplit"
    requires = frozenset(
        {
            *("SSAForm", "SplitIncoreOrch", "IncoreTileOps", "TileOps2D"),
            *("NormalizedStmtStructure", "TileMemoryInferred", "AivSplitValid"),
        }
    )
    produces = requires - {"AivSplitValid"}
    invalidates = frozenset({"AivSplitValid"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The kernel as each lane runs it; pure vector or pure cube kernels stay as they are.

        Raises:
            ValueError: an operator cannot work on half of a tile (a reduction along the split axis, a transpose, ...),
                or a lane touches what the other one stores.
        """
        if func.func_type is not FunctionType.InCore:
            return func
        affinity = Affinity()
        if has_region(func.body):
            body = RegionLowering(affinity).body(func.body)
            return func.with_(body=body, attrs=func.attrs | {"split_aiv": True, "split_aiv_region_validated": True})
        mode = func.split
        if mode is None or func.attrs.get("split_aiv") or affinity.of_body(func.body) is not Side.MIXED:
            return func
        axis = mode.value - 1
        binding = lane_binding("subblock_idx")
        lane = Lane(axis, binding.var, rebalanced_stride(func.body, axis, affinity))
        body = LaneRewriter(lane, affinity).body(func.body)
        whole = s.SeqStmts((binding, *s.stmts_of(body)), func.body.span)
        refuse_meeting_lanes(whole)
        return func.with_(body=whole, attrs=func.attrs | {"split_aiv": True})
