"""FoldNoOpReshape: a reshape that changes nothing is a second name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import is_incore_type
from ..ir.program import Function, Program
from ..ir.structural import exprs_equal
from ..ir.types import TileType
from ..ir.visitor import IRMutator
from ._util import is_call
from .base import FunctionPass


@dataclass(frozen=True)
class FoldNoOpReshape(FunctionPass):
    """`u = pl.tile.reshape(t, shape)` with the same buffer and the same tile type becomes `u = t`."""

    name = "FoldNoOpReshape"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps", "HasMemRefs", "TileOps2D"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function without reshapes that do nothing."""
        if not is_incore_type(func.func_type):
            return func
        body = _Folder().visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Folder(IRMutator):
    """Replaces right sides."""

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        if not is_call(op.value, "tile.reshape") or not isinstance(op.value, e.Call):
            return op
        source = op.value.args[0]
        same = isinstance(source, e.Var) and _same_buffer(source.type, op.var.type)
        return replace(op, value=source) if same else op

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        body = self.visit_stmt(op.body)
        return op if body is op.body else replace(op, body=body)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        body = self.visit_stmt(op.body)
        return op if body is op.body else replace(op, body=body)


def _same_buffer(a: object, b: object) -> bool:
    """One tile type, and one place in one allocation."""
    if not isinstance(a, TileType) or not isinstance(b, TileType) or a != b:
        return False
    if a.memref is None or b.memref is None:
        return a.memref is b.memref
    same = a.memref.base_ is b.memref.base_ and a.memref.size_ == b.memref.size_
    return same and exprs_equal([a.memref.byte_offset_], [b.memref.byte_offset_])
