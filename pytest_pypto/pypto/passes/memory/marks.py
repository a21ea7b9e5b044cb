"""Marks that passes leave on calls for the memory planner."""

from __future__ import annotations

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.visitor import IRMutator, replace_call
from .liveness import MEMBERSHIP


class _Unmark(IRMutator):
    def visit_call(self, op: e.Call) -> e.Expr:
        if MEMBERSHIP not in op.attrs:
            return op
        return replace_call(op, attrs={k: v for k, v in op.attrs.items() if k != MEMBERSHIP})


def without_marks(body: s.Stmt) -> s.Stmt:
    """`body` without pipeline marks; nothing after memory planning reads them."""
    return _Unmark().visit_stmt(body)
