"""Walking and rewriting the IR.

`IRVisitor` and `IRMutator` are the public classes that users subclass; the functions of `walk` are the short form for
read-only scans. The names of `mutator` and `walk` are here too: this module is the one to import.
"""

from __future__ import annotations

from typing import Any

from . import expr as e
from . import stmt as s
from .dispatch import Dispatch, method_name, per_operator
from .mutator import IRMutator, deep_clone, replace_call, replace_submit, substitute_expr, substitute_stmt
from .program import Function, Program
from .types import ArrayType, TensorType, TileType
from .walk import (
    attach_leading_comments,
    calls_in,
    collect_def_vars,
    defs_of,
    exprs_of,
    find_yield_stmt,
    flatten_to_stmts,
    get_last_yield_stmt,
    uses_of,
    walk_exprs,
    walk_stmts,
)

__all__ = [
    "IRMutator",
    "IRVisitor",
    "attach_leading_comments",
    "calls_in",
    "collect_def_vars",
    "deep_clone",
    "defs_of",
    "exprs_of",
    "find_yield_stmt",
    "flatten_to_stmts",
    "get_last_yield_stmt",
    "method_name",
    "replace_call",
    "replace_submit",
    "substitute_expr",
    "substitute_stmt",
    "uses_of",
    "walk_exprs",
    "walk_stmts",
]


class IRVisitor(Dispatch):
    """Visits every node; override `visit_<class>` and call `super()` to go on."""

    def visit_program(self, program: Program) -> None:
        for function in program.functions.values():
            self.visit_function(function)

    def visit_function(self, func: Function) -> None:
        for param in func.params:
            self.visit_expr(param)
        self._attrs(func.attrs)
        self.visit_stmt(func.body)

    def visit_expr(self, expr: e.Expr) -> None:
        self._call(expr)

    def visit_stmt(self, stmt: s.Stmt) -> None:
        self._call(stmt)

    def _all(self, exprs: Any) -> None:
        for x in exprs:
            self.visit_expr(x)

    def _attrs(self, attrs: dict[str, Any]) -> None:
        for value in attrs.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, e.Expr):
                    self.visit_expr(item)

    def visit_var_like(self, op: e.Var) -> None:
        if isinstance(op.type, (TensorType, TileType, ArrayType)):
            self._all(op.type.shape)

    def visit_var(self, op: e.Var) -> None:
        self.visit_var_like(op)

    def visit_iter_arg(self, op: e.IterArg) -> None:
        self.visit_var_like(op)
        self.visit_expr(op.initValue)

    def visit_mem_ref(self, op: e.MemRef) -> None:
        self.visit_var_like(op)

    def visit_window_buffer(self, op: e.WindowBuffer) -> None:
        self.visit_var_like(op)

    def visit_const_int(self, op: e.ConstInt) -> None:
        pass

    def visit_const_float(self, op: e.ConstFloat) -> None:
        pass

    def visit_const_bool(self, op: e.ConstBool) -> None:
        pass

    def visit_call(self, op: e.Call) -> None:
        self._all(op.args)
        self._attrs(op.attrs)

    def visit_submit(self, op: e.Submit) -> None:
        self._all(op.args)
        self._all(op.deps)
        for extra in (op.core_num, op.predicate):
            if extra is not None:
                self.visit_expr(extra)
        self._attrs(op.attrs)

    def visit_make_tuple(self, op: e.MakeTuple) -> None:
        self._all(op.elements)

    def visit_tuple_get_item_expr(self, op: e.TupleGetItemExpr) -> None:
        self.visit_expr(op.tuple)

    def visit_binary_expr(self, op: e.BinaryExpr) -> None:
        self.visit_expr(op.left)
        self.visit_expr(op.right)

    def visit_unary_expr(self, op: e.UnaryExpr) -> None:
        self.visit_expr(op.operand)

    def visit_assign_stmt(self, op: s.AssignStmt) -> None:
        self.visit_expr(op.var)
        self.visit_expr(op.value)

    def visit_eval_stmt(self, op: s.EvalStmt) -> None:
        self.visit_expr(op.expr)

    def visit_return_stmt(self, op: s.ReturnStmt) -> None:
        self._all(op.value)

    def visit_yield_stmt(self, op: s.YieldStmt) -> None:
        self._all(op.value)

    def visit_seq_stmts(self, op: s.SeqStmts) -> None:
        for inner in op.stmts:
            self.visit_stmt(inner)

    def visit_if_stmt(self, op: s.IfStmt) -> None:
        self.visit_expr(op.condition)
        self.visit_stmt(op.then_body)
        if op.else_body is not None:
            self.visit_stmt(op.else_body)
        self._all(op.return_vars)

    def visit_for_stmt(self, op: s.ForStmt) -> None:
        self._all((op.loop_var, op.start, op.stop, op.step, *op.iter_args))
        self.visit_stmt(op.body)
        self._all(op.return_vars)

    def visit_while_stmt(self, op: s.WhileStmt) -> None:
        self.visit_expr(op.condition)
        self._all(op.iter_args)
        self.visit_stmt(op.body)
        self._all(op.return_vars)

    def visit_break_stmt(self, op: s.BreakStmt) -> None:
        pass

    def visit_continue_stmt(self, op: s.ContinueStmt) -> None:
        pass

    def visit_inline_stmt(self, op: s.InlineStmt) -> None:
        pass

    def _scope(self, op: s.ScopeStmt) -> None:
        self._attrs(op.attrs)
        self.visit_stmt(op.body)

    def visit_scope_stmt(self, op: s.ScopeStmt) -> None:
        """Scopes of a class without a method of its own."""
        self._scope(op)

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> None:
        self._scope(op)

    def visit_cluster_scope_stmt(self, op: s.ClusterScopeStmt) -> None:
        self._scope(op)

    def visit_hierarchy_scope_stmt(self, op: s.HierarchyScopeStmt) -> None:
        self._scope(op)

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> None:
        self.visit_expr(op.core_num)
        self._scope(op)

    def visit_split_aiv_scope_stmt(self, op: s.SplitAivScopeStmt) -> None:
        self._scope(op)

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> None:
        self._scope(op)

    def visit_comm_domain_scope_stmt(self, op: s.CommDomainScopeStmt) -> None:
        self._scope(op)


per_operator(IRVisitor, "visit_binary_expr", e.BINARY_CLASSES)
per_operator(IRVisitor, "visit_unary_expr", e.UNARY_CLASSES)
IRVisitor.visit_tuple_get_item = IRVisitor.visit_tuple_get_item_expr  # type: ignore[attr-defined]
