"""FlattenCallExpr: three-address form for calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, deep_clone, exprs_of, walk_exprs, walk_stmts
from ._util import all_uses
from .base import FunctionPass
from .properties import NORM, SSA


@dataclass(frozen=True)
class FlattenCallExpr(FunctionPass):
    """A call inside another expression, a condition, a bound, a yield or a return gets a name of its own.

    `t__tmp_v<n> = call` stands directly before the statement (before a loop for its bounds and initial values; inside
    the body before a yield), evaluated from left to right and inner calls first. A call in the condition of a while
    loop is carried: it is computed before the loop and again at the end of the body. A tuple that is only taken apart
    again (`a, b = f(x), g(y)`) goes: its items are the values themselves.
    """

    name = "FlattenCallExpr"
    requires = frozenset({SSA, NORM})
    produces = frozenset({SSA, "NoNestedCalls", NORM})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with every call on its own."""
        body = _Flattener(_taken_apart(func.body)).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


def _taken_apart(body: s.Stmt) -> dict[e.Var, int]:
    """Variables that hold a tuple of which only items are used, with the number of uses."""
    held = {x.var for x in walk_stmts(body) if isinstance(x, s.AssignStmt) and isinstance(x.value, e.MakeTuple)}
    if not held:
        return {}
    uses, items = Counter(all_uses(body)), Counter[e.Var]()
    for stmt in walk_stmts(body):
        for root in exprs_of(stmt):
            parts = (x for x in walk_exprs(root) if isinstance(x, e.TupleGetItemExpr))
            items.update(x.tuple for x in parts if isinstance(x.tuple, e.Var))
    return {v: uses[v] for v in held if uses[v] == items[v]}


def _unpacked(stmts: Sequence[s.Stmt], taken_apart: dict[e.Var, int]) -> list[s.Stmt]:
    """`t = (x, y)` with `a = t[0]` and `b = t[1]` right behind it becomes `a = x` and `b = y`."""
    made: list[s.Stmt] = []
    at = 0
    while at < len(stmts):
        stmt = stmts[at]
        at += 1
        made.append(stmt)
        if not isinstance(stmt, s.AssignStmt) or stmt.var not in taken_apart or not isinstance(stmt.value, e.MakeTuple):
            continue
        values = stmt.value.elements
        behind = [x for i, x in enumerate(stmts[at : at + len(values)]) if _takes(x, stmt.var, i)]
        if len(behind) == len(values) == taken_apart[stmt.var]:
            made[-1:] = [replace(x, value=v) for x, v in zip(behind, values, strict=True)]
            at += len(values)
    return made


def _takes(stmt: s.Stmt, whole: e.Var, index: int) -> TypeGuard[s.AssignStmt]:
    """The statement names the item `index` of a tuple."""
    value = stmt.value if isinstance(stmt, s.AssignStmt) else None
    return isinstance(value, e.TupleGetItemExpr) and value.tuple is whole and value.index == index


class _Flattener(IRMutator):
    """`pending` collects the statements that must stand before the current one."""

    def __init__(self, taken_apart: dict[e.Var, int]) -> None:
        super().__init__()
        self.taken_apart = taken_apart
        self.items: dict[e.Expr, tuple[e.Expr, ...]] = {}
        self.pending: list[s.Stmt] = []
        self.counter = 0
        self.depth = 0

    def name_call(self, call: e.Expr) -> e.Var:
        var = e.Var(f"t__tmp_v{self.counter}", call.type, call.span)
        self.counter += 1
        self.pending.append(s.AssignStmt(var, call, call.span))
        return var

    def inner(self, expr: e.Expr) -> e.Expr:
        """An operand: calls in it, and itself if it is one, are named."""
        self.depth += 1
        made = self.visit_expr(expr)
        self.depth -= 1
        return made

    def outer(self, expr: e.Expr) -> e.Expr:
        """The right side of an assignment: may itself be a call."""
        before, self.depth = self.depth, 0
        made = self.visit_expr(expr)
        self.depth = before
        return made

    def visit_call(self, op: e.Call) -> e.Expr:
        named = self.depth > 0
        self.depth += 1
        made = super().visit_call(op)
        self.depth -= 1
        return self.name_call(made) if named else made

    def visit_submit(self, op: e.Submit) -> e.Expr:
        named = self.depth > 0
        self.depth += 1
        made = super().visit_submit(op)
        self.depth -= 1
        return self.name_call(made) if named else made

    def visit_binary_expr(self, op: e.BinaryExpr) -> e.Expr:
        left, right = self.inner(op.left), self.inner(op.right)
        return op if left is op.left and right is op.right else type(op)(left, right, op.dtype, op.span)

    def visit_unary_expr(self, op: e.UnaryExpr) -> e.Expr:
        operand = self.inner(op.operand)
        return op if operand is op.operand else type(op)(operand, op.dtype, op.span)

    def visit_make_tuple(self, op: e.MakeTuple) -> e.Expr:
        elements = tuple(map(self.inner, op.elements))
        same = all(a is b for a, b in zip(elements, op.elements, strict=True))
        return op if same else e.MakeTuple(elements, op.span)

    def visit_tuple_get_item_expr(self, op: e.TupleGetItemExpr) -> e.Expr:
        if op.tuple in self.items:
            return self.items[op.tuple][op.index]
        whole = self.inner(op.tuple)
        return op if whole is op.tuple else e.TupleGetItemExpr(whole, op.index, op.span)

    # statements ------------------------------------------------------------------------------------------------

    def block(self, body: s.Stmt) -> s.Stmt:
        """A body with the named calls in front of the statements that need them."""
        stmts = _unpacked(s.stmts_of(body), self.taken_apart)
        outer, self.pending = self.pending, []
        made: list[s.Stmt] = []
        for stmt in stmts:
            new = self.visit_stmt(stmt)
            made += self.pending
            self.pending = []
            made += s.stmts_of(new)
        self.pending = outer
        old = s.stmts_of(body)
        same = len(made) == len(old) and all(a is b for a, b in zip(made, old, strict=True))
        return body if same else s.SeqStmts(tuple(made), body.span)

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        return self.block(op)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.outer(op.value)
        if isinstance(value, e.MakeTuple) and op.var in self.taken_apart:
            self.items[op.var] = value.elements
            return s.seq([], op.span)
        return op if value is op.value else replace(op, value=value)

    def visit_eval_stmt(self, op: s.EvalStmt) -> s.Stmt:
        expr = self.outer(op.expr)
        return op if expr is op.expr else replace(op, expr=expr)

    def visit_return_stmt(self, op: s.ReturnStmt) -> s.Stmt:
        value = tuple(map(self.inner, op.value))
        same = all(a is b for a, b in zip(value, op.value, strict=True))
        return op if same else replace(op, value=value)

    def visit_yield_stmt(self, op: s.YieldStmt) -> s.Stmt:
        value = tuple(map(self.inner, op.value))
        same = all(a is b for a, b in zip(value, op.value, strict=True))
        return op if same else replace(op, value=value)

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.inner(op.condition)
        then = self.block(op.then_body)
        other = None if op.else_body is None else self.block(op.else_body)
        if condition is op.condition and then is op.then_body and other is op.else_body:
            return op
        return replace(op, condition=condition, then_body=then, else_body=other)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        bounds = tuple(map(self.inner, (op.start, op.stop, op.step)))
        args = self.carries(op.iter_args)
        body = self.block(op.body)
        same = all(a is b for a, b in zip(bounds, (op.start, op.stop, op.step), strict=True))
        if same and args is op.iter_args and body is op.body:
            return op
        start, stop, step = bounds
        return replace(op, start=start, stop=stop, step=step, iter_args=args, body=body)

    def carries(self, args: tuple[e.IterArg, ...]) -> tuple[e.IterArg, ...]:
        """Iter args whose initial values are no calls."""
        made: list[e.IterArg] = []
        for arg in args:
            init = self.inner(arg.initValue)
            if init is arg.initValue:
                made.append(arg)
            else:
                new = e.IterArg(arg.name_hint, arg.type, init, arg.span)
                self.var_map[arg] = new
                made.append(new)
        return args if all(a is b for a, b in zip(made, args, strict=True)) else tuple(made)

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        args = self.carries(op.iter_args)
        outer, self.pending = self.pending, []
        condition = self.inner(op.condition)
        calls, self.pending = self.pending, outer
        body = self.block(op.body)
        if calls:
            return self.carried_condition(op, args, condition, calls, body)
        if args is op.iter_args and condition is op.condition and body is op.body:
            return op
        return replace(op, condition=condition, iter_args=args, body=body)

    def carried_condition(
        self, op: s.WhileStmt, args: tuple[e.IterArg, ...], condition: e.Expr, calls: list[s.Stmt], body: s.Stmt
    ) -> s.Stmt:
        """`while f(x): ...` as a loop that carries the value of its condition."""
        first: dict[e.Var, e.Expr] = {a: a.initValue for a in args}
        start = deep_clone(s.seq([*calls, s.YieldStmt((condition,))]), first)
        *setup, yielded = s.stmts_of(start)
        assert isinstance(yielded, s.YieldStmt)
        self.pending += setup
        go = e.IterArg("t__iter_v0", condition.type, yielded.value[0], op.span)
        stmts = list(s.stmts_of(body))
        last = stmts.pop() if stmts and isinstance(stmts[-1], s.YieldStmt) else s.YieldStmt((), op.span)
        assert isinstance(last, s.YieldStmt)
        again: dict[e.Var, e.Expr] = dict(zip(args, last.value, strict=True))
        *more, end = s.stmts_of(deep_clone(s.seq([*calls, s.YieldStmt((condition,))]), again))
        assert isinstance(end, s.YieldStmt)
        new_body = s.seq([*stmts, *more, replace(last, value=(*last.value, end.value[0]))], body.span)
        result = e.Var("t__rv_v0", condition.type, op.span)
        return replace(op, condition=go, iter_args=(*args, go), body=new_body, return_vars=(*op.return_vars, result))
