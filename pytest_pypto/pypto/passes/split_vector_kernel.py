"""SplitVectorKernel: vector functions get the form in which both lanes can run them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..backend import BackendType
from ..backend.handler import current_handler, handler_for
from ..ir import expr as e
from ..ir import scalar_ops as ops
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import walk_stmts
from .base import FunctionPass
from .device_ir import is_core_function, op_call, op_name
from .lanes.part import Lane
from .lanes.regions import LANE_OP, lane_binding
from .lanes.replay import replay
from .lanes.rewriter import LaneRewriter
from .mixed.affinity import Affinity
from .mixed.pipes import SETUP_OPS

DUAL = "dual_aiv_dispatch"
_TRANSFERS = frozenset({"tile.tpush_to_aic", "tile.tpop_from_aic"})


@dataclass(frozen=True)
class SplitVectorKernel(FunctionPass):
    """Marks split kernels for both lanes, halves hand-written ones, and adds the idle lane where there is no split."""

    name = "SplitVectorKernel"
    requires = frozenset({"SSAForm", "MixedKernelExpanded"})
    produces = frozenset({"SSAForm", "VectorKernelSplit", "NormalizedStmtStructure"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function in per-lane form; functions of one lane stay as they are.

        Raises:
            ValueError: an operator of a hand-written split function cannot work on half of a tile.
        """
        if not is_core_function(func):
            return func
        if func.attrs.get("split_aiv"):
            return _with_attrs(func, _split_attrs(func))
        if func.func_type is not FunctionType.AIV:
            return func
        if func.split is not None and _crosses_split(func):
            return _halve(func)
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        if func.attrs.get(DUAL) and handler.no_split_dual_aiv:
            return _add_idle_lane(func)
        return func


def _split_attrs(func: Function) -> dict[str, Any]:
    attrs = {k: v for k, v in func.attrs.items() if k != "split"}
    if "split" in func.attrs:
        attrs["split"] = func.attrs["split"]
    if func.func_type is FunctionType.AIV:
        attrs.pop(DUAL, None)
        attrs[DUAL] = True
    return attrs


def _with_attrs(func: Function, attrs: dict[str, Any]) -> Function:
    return func if list(attrs.items()) == list(func.attrs.items()) else func.with_(attrs=attrs)


def _crosses_split(func: Function) -> bool:
    calls = (op_call(x) for x in walk_stmts(func.body))
    return any(c is not None and c.op.name in _TRANSFERS and c.kwargs.get("split", 0) for c in calls)


def _halve(func: Function) -> Function:
    """A hand-written vector function, written for the whole tile, as the program of one lane."""
    attrs = func.attrs | {DUAL: True}
    if any(op_name(x) == LANE_OP for x in walk_stmts(func.body)):
        return _with_attrs(func, attrs)  # written per lane already
    assert func.split is not None
    binding = lane_binding("subblock_idx")
    body = LaneRewriter(Lane(func.split.value - 1, binding.var), Affinity()).body(func.body)
    return func.with_(body=s.SeqStmts((binding, *s.stmts_of(body)), func.body.span), attrs=attrs)


def _add_idle_lane(func: Function) -> Function:
    """Lane 0 runs the body, lane 1 its replay; the pipe is set up on both."""
    stmts = s.stmts_of(func.body)
    count = next((i for i, x in enumerate(stmts) if op_name(x) not in SETUP_OPS), len(stmts))
    binding = lane_binding("subblock_idx")
    condition = ops.eq(binding.var, e.index(0))
    mine = s.SeqStmts(stmts[count:], func.body.span)
    branch = s.IfStmt(condition, mine, replay(stmts[count:]), (), func.body.span)
    return func.with_(body=s.SeqStmts((binding, *stmts[:count], branch), func.body.span))
