"""MaterializeRuntimeScopes: scopes of task lifetimes in host functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator
from .base import FunctionPass
from .properties import SPLIT_ORCH


@dataclass(frozen=True)
class MaterializeRuntimeScopes(FunctionPass):
    """Wraps the body of an Orchestration function, of its loops and of its branches in `with pl.scope():`.

    Bodies inside a manual scope are left alone, and so are functions with `auto_scope=False`, which every function has
    afterwards. A yield or return stays inside the scope of its body.
    """

    name = "MaterializeRuntimeScopes"
    requires = frozenset({SPLIT_ORCH, "CallDirectionsResolved"})
    produces = frozenset({"RuntimeScopesMaterialized"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with explicit scopes."""
        if func.func_type is not FunctionType.Orchestration or func.attrs.get("auto_scope") is False:
            return func
        body = _scoped(_Wrapper().visit_stmt(func.body))
        return func.with_(body=body, attrs=func.attrs | {"auto_scope": False})


def _scoped(body: s.Stmt) -> s.Stmt:
    """The body inside an AUTO scope."""
    return s.SeqStmts((s.RuntimeScopeStmt(False, body=body, span=body.span),), body.span)


class _Wrapper(IRMutator):
    """Wraps bodies of loops and branches."""

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> s.Stmt:
        return op if op.manual else super().visit_runtime_scope_stmt(op)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        return replace(op, body=_scoped(self.visit_stmt(op.body)))

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        return replace(op, body=_scoped(self.visit_stmt(op.body)))

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        then = _scoped(self.visit_stmt(op.then_body))
        other = None if op.else_body is None else _scoped(self.visit_stmt(op.else_body))
        return replace(op, then_body=then, else_body=other)
