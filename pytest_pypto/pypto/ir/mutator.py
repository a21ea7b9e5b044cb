"""Rewriting the IR: `IRMutator`, substitution, clones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import expr as e
from . import stmt as s
from .dispatch import Dispatch, per_operator
from .program import Function, Program
from .types import TensorType, TileType, TupleType, Type


class IRMutator(Dispatch):
    """Rebuilds the IR; a method returns the replacement. A node none of whose parts change is returned itself.

    `visit_type` rewrites the expressions inside types. A defining variable whose type changes is replaced by a fresh
    variable of the same name, and its uses follow through `self.var_map`, which is also the way to substitute:
    `var_map[old] = new expression`.
    """

    def __init__(self) -> None:
        self.var_map: dict[e.Var, e.Expr] = {}

    def visit_program(self, program: Program) -> Program:
        return program.with_functions([self.visit_function(f) for f in program.functions.values()])

    def visit_function(self, func: Function) -> Function:
        params = [self.define(p) for p in func.params]
        attrs = self.visit_attrs(func.attrs)
        returns = tuple(self.visit_type(t) for t in func.return_types)
        body = self.visit_stmt(func.body)
        same = body is func.body and attrs is func.attrs and _same(params, func.params)
        if same and _same(returns, func.return_types):
            return func
        pairs = list(zip(params, func.param_directions, strict=True))
        return func.with_(params=pairs, return_types=returns, body=body, attrs=attrs)

    def visit_expr(self, expr: e.Expr) -> e.Expr:
        made: e.Expr = self._call(expr)
        return made

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        made: s.Stmt = self._call(stmt)
        return made

    def visit_exprs(self, exprs: tuple[e.Expr, ...]) -> tuple[e.Expr, ...]:
        """The tuple with every member rewritten; itself when none changed."""
        made = tuple(self.visit_expr(x) for x in exprs)
        return exprs if _same(made, exprs) else made

    def visit_attrs(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Attributes with the expressions in them rewritten; itself when none changed."""
        made = {k: self._value(v) for k, v in attrs.items()}
        return attrs if all(made[k] is attrs[k] for k in attrs) else made

    def _value(self, value: Any) -> Any:
        if isinstance(value, e.Expr):
            return self.visit_expr(value)
        if isinstance(value, (list, tuple)) and any(isinstance(x, e.Expr) for x in value):
            made = type(value)(self._value(x) for x in value)
            return value if _same(made, value) else made
        return value

    def visit_type(self, type_: Type) -> Type:
        """The type with the expressions in it rewritten; itself when none changed."""
        if isinstance(type_, TupleType):
            parts = tuple(self.visit_type(t) for t in type_.types)
            return type_ if _same(parts, type_.types) else TupleType(parts)
        if isinstance(type_, TensorType):
            return self._tensor_type(type_)
        if isinstance(type_, TileType):
            return self._tile_type(type_)
        return type_

    def _tensor_type(self, t: TensorType) -> Type:
        shape = self.visit_exprs(t.shape)
        memref = None if t.memref is None else self.visit_memref(t.memref)
        view = t.tensor_view
        if view is not None:
            valid, stride = self.visit_exprs(view.valid_shape), self.visit_exprs(view.stride)
            if valid is not view.valid_shape or stride is not view.stride:
                view = replace(view, valid_shape=valid, stride=stride)
        if shape is t.shape and memref is t.memref and view is t.tensor_view:
            return t
        return replace(t, shape=shape, memref=memref, tensor_view=view)

    def _tile_type(self, t: TileType) -> Type:
        shape = self.visit_exprs(t.shape)
        memref = None if t.memref is None else self.visit_memref(t.memref)
        view = t.tile_view
        if view is not None:
            valid = None if view.valid_shape is None else self.visit_exprs(view.valid_shape)
            stride = None if view.stride is None else self.visit_exprs(view.stride)
            offset = None if view.start_offset is None else self.visit_expr(view.start_offset)
            if valid is not view.valid_shape or stride is not view.stride or offset is not view.start_offset:
                view = replace(view, valid_shape=valid, stride=stride, start_offset=offset)
        if shape is t.shape and memref is t.memref and view is t.tile_view:
            return t
        return TileType(shape, t.dtype, memref, view, t.space)

    def visit_memref(self, m: e.MemRef) -> e.MemRef:
        """A MemRef with its base, offset and slot rewritten; itself when none changed."""
        base = self.visit_expr(m.base_)
        offset = self.visit_expr(m.byte_offset_)
        slot = None if m.slot_index_ is None else self.visit_expr(m.slot_index_)
        if base is m.base_ and offset is m.byte_offset_ and slot is m.slot_index_:
            return m
        assert isinstance(base, e.Var)
        return e.MemRef(base, offset, m.size_, m.span, m.is_pinned_, m.slot_count_, slot)

    def define(self, var: e.Var) -> e.Var:
        """A variable in a defining position: itself, what `var_map` says, or a fresh one when its type changes."""
        mapped = self.var_map.get(var)
        if isinstance(mapped, e.Var):
            return mapped
        type_ = self.visit_type(var.type)
        if isinstance(var, e.IterArg):
            init = self.visit_expr(var.initValue)
            if type_ is var.type and init is var.initValue:
                return var
            fresh: e.Var = e.IterArg(var.name_hint, type_, init, var.span)
        elif type_ is var.type:
            return var
        else:
            fresh = e.Var(var.name_hint, type_, var.span)
        self.var_map[var] = fresh
        return fresh

    def visit_var(self, op: e.Var) -> e.Expr:
        return self.var_map.get(op, op)

    def visit_iter_arg(self, op: e.IterArg) -> e.Expr:
        return self.visit_var(op)

    def visit_mem_ref(self, op: e.MemRef) -> e.Expr:
        return self.visit_memref(op)

    def visit_window_buffer(self, op: e.WindowBuffer) -> e.Expr:
        return self.visit_var(op)

    def visit_const_int(self, op: e.ConstInt) -> e.Expr:
        return op

    def visit_const_float(self, op: e.ConstFloat) -> e.Expr:
        return op

    def visit_const_bool(self, op: e.ConstBool) -> e.Expr:
        return op

    def visit_call(self, op: e.Call) -> e.Expr:
        args, attrs, type_ = self.visit_exprs(op.args), self.visit_attrs(op.attrs), self.visit_type(op.type)
        if args is op.args and attrs is op.attrs and type_ is op.type:
            return op
        return replace_call(op, args=args, attrs=attrs, type=type_)

    def visit_submit(self, op: e.Submit) -> e.Expr:
        args, deps = self.visit_exprs(op.args), self.visit_exprs(op.deps)
        core = None if op.core_num is None else self.visit_expr(op.core_num)
        predicate = None if op.predicate is None else self.visit_expr(op.predicate)
        attrs, type_ = self.visit_attrs(op.attrs), self.visit_type(op.type)
        same = args is op.args and deps is op.deps and core is op.core_num and predicate is op.predicate
        if same and attrs is op.attrs and type_ is op.type:
            return op
        return replace_submit(op, args=args, deps=deps, core_num=core, predicate=predicate, attrs=attrs, type=type_)

    def visit_make_tuple(self, op: e.MakeTuple) -> e.Expr:
        elements = self.visit_exprs(op.elements)
        return op if elements is op.elements else e.MakeTuple(elements, op.span)

    def visit_tuple_get_item_expr(self, op: e.TupleGetItemExpr) -> e.Expr:
        whole = self.visit_expr(op.tuple)
        if whole is op.tuple:
            return op
        if isinstance(whole, e.MakeTuple):
            return whole.elements[op.index]
        return e.TupleGetItemExpr(whole, op.index, op.span)

    def visit_binary_expr(self, op: e.BinaryExpr) -> e.Expr:
        left, right = self.visit_expr(op.left), self.visit_expr(op.right)
        return op if left is op.left and right is op.right else type(op)(left, right, op.dtype, op.span)

    def visit_unary_expr(self, op: e.UnaryExpr) -> e.Expr:
        operand = self.visit_expr(op.operand)
        return op if operand is op.operand else type(op)(operand, op.dtype, op.span)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(op.value)
        var = self.define(op.var)
        return op if value is op.value and var is op.var else replace(op, var=var, value=value)

    def visit_eval_stmt(self, op: s.EvalStmt) -> s.Stmt:
        expr = self.visit_expr(op.expr)
        return op if expr is op.expr else replace(op, expr=expr)

    def visit_return_stmt(self, op: s.ReturnStmt) -> s.Stmt:
        value = self.visit_exprs(op.value)
        return op if value is op.value else replace(op, value=value)

    def visit_yield_stmt(self, op: s.YieldStmt) -> s.Stmt:
        value = self.visit_exprs(op.value)
        return op if value is op.value else replace(op, value=value)

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made = [self.visit_stmt(inner) for inner in op.stmts]
        if _same(made, op.stmts):
            return op
        return replace(op, stmts=tuple(x for m in made for x in s.stmts_of(m)))

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(op.condition)
        then = self.visit_stmt(op.then_body)
        other = None if op.else_body is None else self.visit_stmt(op.else_body)
        results = tuple(self.define(v) for v in op.return_vars)
        same = condition is op.condition and then is op.then_body and other is op.else_body
        if same and _same(results, op.return_vars):
            return op
        return replace(op, condition=condition, then_body=then, else_body=other, return_vars=results)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        bounds = self.visit_exprs((op.start, op.stop, op.step))
        iter_args = tuple(self.define(a) for a in op.iter_args)
        loop_var = self.define(op.loop_var)
        body = self.visit_stmt(op.body)
        results = tuple(self.define(v) for v in op.return_vars)
        attrs = self.visit_attrs(op.attrs)
        same = _same(bounds, (op.start, op.stop, op.step)) and loop_var is op.loop_var and body is op.body
        if same and _same(iter_args, op.iter_args) and _same(results, op.return_vars) and attrs is op.attrs:
            return op
        start, stop, step = bounds
        changes: dict[str, Any] = {"loop_var": loop_var, "start": start, "stop": stop, "step": step, "body": body}
        return replace(op, **changes, iter_args=iter_args, return_vars=results, attrs=attrs)  # type: ignore[arg-type]

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        iter_args = tuple(self.define(a) for a in op.iter_args)
        condition = self.visit_expr(op.condition)
        body = self.visit_stmt(op.body)
        results = tuple(self.define(v) for v in op.return_vars)
        same = condition is op.condition and body is op.body
        if same and _same(iter_args, op.iter_args) and _same(results, op.return_vars):
            return op
        return replace(op, condition=condition, iter_args=iter_args, body=body, return_vars=results)  # type: ignore[arg-type]

    def visit_break_stmt(self, op: s.BreakStmt) -> s.Stmt:
        return op

    def visit_continue_stmt(self, op: s.ContinueStmt) -> s.Stmt:
        return op

    def visit_inline_stmt(self, op: s.InlineStmt) -> s.Stmt:
        return op

    def _scope(self, op: Any, **changes: Any) -> s.Stmt:
        attrs, body = self.visit_attrs(op.attrs), self.visit_stmt(op.body)
        same = attrs is op.attrs and body is op.body and all(getattr(op, k) is v for k, v in changes.items())
        made: s.Stmt = op if same else replace(op, attrs=attrs, body=body, **changes)
        return made

    def visit_scope_stmt(self, op: s.ScopeStmt) -> s.Stmt:
        """Scopes of a class without a method of its own."""
        return self._scope(op)

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> s.Stmt:
        return self._scope(op)

    def visit_cluster_scope_stmt(self, op: s.ClusterScopeStmt) -> s.Stmt:
        return self._scope(op)

    def visit_hierarchy_scope_stmt(self, op: s.HierarchyScopeStmt) -> s.Stmt:
        return self._scope(op)

    def visit_spmd_scope_stmt(self, op: s.SpmdScopeStmt) -> s.Stmt:
        return self._scope(op, core_num=self.visit_expr(op.core_num))

    def visit_split_aiv_scope_stmt(self, op: s.SplitAivScopeStmt) -> s.Stmt:
        return self._scope(op)

    def visit_runtime_scope_stmt(self, op: s.RuntimeScopeStmt) -> s.Stmt:
        return self._scope(op)

    def visit_comm_domain_scope_stmt(self, op: s.CommDomainScopeStmt) -> s.Stmt:
        return self._scope(op)


per_operator(IRMutator, "visit_binary_expr", e.BINARY_CLASSES)
per_operator(IRMutator, "visit_unary_expr", e.UNARY_CLASSES)


def _same(new: Any, old: Any) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def replace_call(call: e.Call, **changes: Any) -> e.Call:
    """A copy of a call with some of op, args, kwargs, attrs, type, span replaced."""
    kept = {k: getattr(call, k) for k in ("op", "args", "kwargs", "attrs", "type", "span")}
    return e.Call(**(kept | changes))


_SUBMIT_FIELDS: tuple[str, ...] = (
    *("op", "args", "deps", "kwargs", "attrs", "type", "span"),
    *("core_num", "sync_start", "allow_early_resolve", "predicate"),
)


def replace_submit(submit: e.Submit, **changes: Any) -> e.Submit:
    """A copy of a submit with some fields replaced."""
    return e.Submit(**({k: getattr(submit, k) for k in _SUBMIT_FIELDS} | changes))


def substitute_expr(expr: e.Expr, var_map: Sequence[tuple[e.Var, e.Expr]]) -> e.Expr:
    """`expr` with variables replaced."""
    mutator = IRMutator()
    mutator.var_map.update(var_map)
    return mutator.visit_expr(expr)


def substitute_stmt(body: s.Stmt, var_map: Sequence[tuple[e.Var, e.Expr]]) -> s.Stmt:
    """`body` with variables replaced, in types too."""
    mutator = IRMutator()
    mutator.var_map.update(var_map)
    return mutator.visit_stmt(body)


class _Cloner(IRMutator):
    """Gives every definition a fresh variable."""

    def define(self, var: e.Var) -> e.Var:
        mapped = self.var_map.get(var)
        if isinstance(mapped, e.Var):
            return mapped
        type_ = self.visit_type(var.type)
        fresh: e.Var
        if isinstance(var, e.IterArg):
            fresh = e.IterArg(var.name_hint, type_, self.visit_expr(var.initValue), var.span)
        else:
            fresh = e.Var(var.name_hint, type_, var.span)
        self.var_map[var] = fresh
        return fresh


def deep_clone(body: s.Stmt, var_map: dict[e.Var, e.Expr] | None = None) -> s.Stmt:
    """A copy of `body` in which every definition is a fresh variable.

    `var_map` gives replacements for free variables; it is extended with old definition -> new definition.
    """
    cloner = _Cloner()
    if var_map is not None:
        cloner.var_map = var_map
    return cloner.visit_stmt(body)
