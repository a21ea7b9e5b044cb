"""MaterializeRuntimeScopes: scopes of task lifetimes in host functions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, replace_call
from .auto_derive_task_dependencies import LAYER_CANDIDATE, SCOPE_CANDIDATE
from .base import FunctionPass
from .properties import SPLIT_ORCH


@dataclass(frozen=True)
class MaterializeRuntimeScopes(FunctionPass):
    """Wraps the body of an Orchestration function, of its loops and of its branches in `with pl.scope():`.

    A function all of whose waits AutoDeriveTaskDependencies wrote down gets one manual scope instead. Bodies inside a
    manual scope are left alone, and so are functions with `auto_scope=False`, which every function has
    afterwards. A yield or return stays inside the scope of its body.
    """

    name = "MaterializeRuntimeScopes"
    requires = frozenset({SPLIT_ORCH, "CallDirectionsResolved"})
    produces = frozenset({"RuntimeScopesMaterialized"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with explicit scopes."""
        if func.func_type is not FunctionType.Orchestration or func.attrs.get("auto_scope") is False:
            return func
        attrs = {k: v for k, v in func.attrs.items() if k != LAYER_CANDIDATE} | {"auto_scope": False}
        if LAYER_CANDIDATE in func.attrs:
            body = _Unmarked().visit_stmt(func.body)
            manual = s.RuntimeScopeStmt(True, body=body, span=body.span)
            return func.with_(body=s.SeqStmts((manual,), body.span), attrs=attrs)
        return func.with_(body=_scoped(_Wrapper().visit_stmt(func.body)), attrs=attrs)


def _scoped(body: s.Stmt) -> s.Stmt:
    """The body inside an AUTO scope."""
    return s.SeqStmts((s.RuntimeScopeStmt(False, body=body, span=body.span),), body.span)


class _Unmarked(IRMutator):
    """Drops the marks of calls whose edges are written down."""

    def visit_call(self, op: e.Call) -> e.Expr:
        if SCOPE_CANDIDATE not in op.attrs:
            return op
        return replace_call(op, attrs={k: v for k, v in op.attrs.items() if k != SCOPE_CANDIDATE})


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
