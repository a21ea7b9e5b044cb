"""Simplify: folds index arithmetic, decided branches and short loops, and drops scalars that nobody reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ForKind
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator
from ._dead_scalars import drop_dead_scalars
from .base import FunctionPass
from .fold_scalars import fold_binary, fold_unary
from .integers import Analyzer


@dataclass(frozen=True)
class Simplify(FunctionPass):
    """Constant folding with intervals; runs early, and once more after pipelining and memory planning.

    * every scalar expression, in types too, is rewritten to a normal form (constants right, `<` for `>`);
    * a scalar that is assigned a literal is replaced by it; loop variables, named scalars and branch conditions
      contribute intervals, and nothing is assumed about the sign of a named scalar;
    * a branch whose condition is decided is replaced by the live side; a plain sequential loop without a trip by its
      initial values, one with a single trip by its body;
    * scalar assignments, branch results and loop carries that nobody reads are dropped; calls never are.
    """

    name = "Simplify"

    def apply_function(self, func: Function, program: Program) -> Function:
        """The simplified function; `func` itself when nothing changes."""
        made = _Simplifier().visit_function(func)
        return drop_dead_scalars(made)


class _Simplifier(IRMutator):
    """Walks in program order; the analyser knows what holds at the current statement."""

    def __init__(self) -> None:
        super().__init__()
        self.known = Analyzer()

    def visit_binary_expr(self, op: e.BinaryExpr) -> e.Expr:
        made = super().visit_binary_expr(op)
        assert isinstance(made, e.BinaryExpr)
        folded = fold_binary(made, self.known)
        return op if made is op and _same(folded, op) else folded

    def visit_unary_expr(self, op: e.UnaryExpr) -> e.Expr:
        made = super().visit_unary_expr(op)
        assert isinstance(made, e.UnaryExpr)
        return fold_unary(made)

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in op.stmts:
            made += s.stmts_of(self.visit_stmt(stmt))
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else replace(op, stmts=tuple(made))

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        made = super().visit_assign_stmt(op)
        assert isinstance(made, s.AssignStmt)
        if isinstance(made.value, (e.ConstInt, e.ConstFloat, e.ConstBool)):
            self.var_map[op.var] = made.value
        else:
            self.known.bind(made.var, self.known.interval(made.value))
        return made

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(op.condition)
        truth = self.known.decide(condition)
        if truth is not None:
            return self.live_side(op, truth)
        with self.known.assuming(condition, True):
            then = self.visit_stmt(op.then_body)
        other = None
        if op.else_body is not None:
            with self.known.assuming(condition, False):
                other = self.visit_stmt(op.else_body)
        results = tuple(map(self.define, op.return_vars))
        same = condition is op.condition and then is op.then_body and other is op.else_body
        if same and all(a is b for a, b in zip(results, op.return_vars, strict=True)):
            return op
        return replace(op, condition=condition, then_body=then, else_body=other, return_vars=results)

    def live_side(self, op: s.IfStmt, truth: bool) -> s.Stmt:
        """The statements of the branch that is taken; its yielded values stand for the results."""
        body = op.then_body if truth else op.else_body
        stmts = list(s.stmts_of(None if body is None else self.visit_stmt(body)))
        return self.lifted(stmts, op.return_vars, op)

    def lifted(self, stmts: list[s.Stmt], results: tuple[e.Var, ...], op: s.Stmt) -> s.Stmt:
        """`stmts` without their yield; the results are replaced by the yielded values from here on."""
        if stmts and isinstance(stmts[-1], s.YieldStmt):
            values = stmts.pop()
            assert isinstance(values, s.YieldStmt)
            self.var_map.update(zip(results, values.value, strict=True))
        return s.seq(stmts, op.span)

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        start, stop, step = self.visit_exprs((op.start, op.stop, op.step))
        trips = _trips(op, start, stop, step)
        if trips == 0:
            self.var_map.update(
                (r, self.visit_expr(a.initValue)) for r, a in zip(op.return_vars, op.iter_args, strict=True)
            )
            return s.seq([], op.span)
        if trips == 1:
            return self.single_trip(op, start)
        return self.kept_loop(op, start, stop, step)

    def single_trip(self, op: s.ForStmt, start: e.Expr) -> s.Stmt:
        """The body with the first values in place of loop variable and carried values."""
        self.var_map[op.loop_var] = start
        inits = [(a, self.visit_expr(a.initValue)) for a in op.iter_args]
        self.var_map.update(inits)
        return self.lifted(list(s.stmts_of(self.visit_stmt(op.body))), op.return_vars, op)

    def kept_loop(self, op: s.ForStmt, start: e.Expr, stop: e.Expr, step: e.Expr) -> s.Stmt:
        iter_args = tuple(map(self.define, op.iter_args))
        loop_var = self.define(op.loop_var)
        with self.known.region():
            self.known.bind_loop(loop_var, start, stop, step)
            body = self.visit_stmt(op.body)
        results = tuple(map(self.define, op.return_vars))
        attrs = self.visit_attrs(op.attrs)
        new = (start, stop, step, loop_var, body, attrs, *iter_args, *results)
        old = (op.start, op.stop, op.step, op.loop_var, op.body, op.attrs, *op.iter_args, *op.return_vars)
        if all(a is b for a, b in zip(new, old, strict=True)):
            return op
        changes: dict[str, Any] = {"loop_var": loop_var, "start": start, "stop": stop, "step": step, "body": body}
        return replace(op, **changes, iter_args=iter_args, return_vars=results, attrs=attrs)  # type: ignore[arg-type]


def _same(a: e.Expr, b: e.Expr) -> bool:
    """One level deep: the same operator on the same operands."""
    if a is b:
        return True
    return (
        type(a) is type(b)
        and isinstance(a, e.BinaryExpr)
        and isinstance(b, e.BinaryExpr)
        and a.left is b.left
        and a.right is b.right
        and a.dtype is b.dtype
    )


def _trips(op: s.ForStmt, start: e.Expr, stop: e.Expr, step: e.Expr) -> int | None:
    """The number of trips when it is constant and the loop may be taken apart."""
    if op.kind is not ForKind.Sequential or op.attrs or _jumps(op.body):
        return None
    bounds = e.static_dims((start, stop, step))
    if bounds is None or bounds[2] == 0:
        return None
    return len(range(*bounds))


def _jumps(body: s.Stmt | None) -> bool:
    """A break or continue of this loop is in the body."""
    for stmt in s.stmts_of(body):
        if isinstance(stmt, (s.BreakStmt, s.ContinueStmt)):
            return True
        if isinstance(stmt, s.IfStmt) and (_jumps(stmt.then_body) or _jumps(stmt.else_body)):
            return True
        if isinstance(stmt, s.ScopeStmt) and _jumps(stmt.body):
            return True
    return False
