"""FoldNoOpReshape: a reshape that changes nothing becomes another name for its source."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.structural import structural_equal
from ..ir.types import TileType
from ..ir.visitor import IRMutator
from .base import FunctionPass
from .device_ir import is_device, op_call


@dataclass(frozen=True)
class FoldNoOpReshape(FunctionPass):
    """`u = tile.reshape(t, ...)` becomes `u = t` when both have one buffer, one offset and one type."""

    name = "FoldNoOpReshape"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps", "HasMemRefs", "TileOps2D"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function without no-op reshapes."""
        if not is_device(func):
            return func
        body = _Fold().visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Fold(IRMutator):
    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        call = op_call(op)
        if call is None or call.op.name != "tile.reshape" or not _same_handle(call.args[0].type, op.var.type):
            return op
        return replace(op, value=call.args[0])


def _same_handle(source: object, result: object) -> bool:
    if not isinstance(source, TileType) or not isinstance(result, TileType):
        return False
    a, b = source.memref, result.memref
    if a is None or b is None or not e.MemRef.same_allocation(a, b):
        return False
    return source == result and structural_equal(a.byte_offset_, b.byte_offset_)
