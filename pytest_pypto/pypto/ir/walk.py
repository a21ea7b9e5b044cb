"""Read-only questions about statements and expressions: what is below, what is defined, what is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from . import expr as e
from . import stmt as s


def walk_stmts(stmt: s.Stmt | None) -> Iterator[s.Stmt]:
    """Every statement below and including `stmt`, in program order (parents first)."""
    stack = [stmt]
    while stack:
        x = stack.pop()
        if x is None:
            continue
        yield x
        if isinstance(x, s.AssignStmt):
            continue
        if isinstance(x, s.SeqStmts):
            stack += x.stmts[::-1]
        elif isinstance(x, s.IfStmt):
            stack += (x.else_body, x.then_body)
        elif isinstance(x, (s.ForStmt, s.WhileStmt, s.ScopeStmt)):
            stack.append(x.body)


def exprs_of(stmt: s.Stmt) -> tuple[e.Expr, ...]:
    """Expressions a statement itself evaluates (not those of nested statements, not defined names)."""
    if isinstance(stmt, s.AssignStmt):
        return (stmt.value,)
    if isinstance(stmt, s.EvalStmt):
        return (stmt.expr,)
    if isinstance(stmt, (s.ReturnStmt, s.YieldStmt)):
        return stmt.value
    if isinstance(stmt, s.IfStmt):
        return (stmt.condition,)
    if isinstance(stmt, s.ForStmt):
        return (stmt.start, stmt.stop, stmt.step, *(a.initValue for a in stmt.iter_args))
    if isinstance(stmt, s.WhileStmt):
        return (*(a.initValue for a in stmt.iter_args), stmt.condition)
    if isinstance(stmt, s.SpmdScopeStmt):
        return (stmt.core_num,)
    return ()


def walk_exprs(expr: e.Expr) -> Iterator[e.Expr]:
    """Every expression below and including `expr`, parents first, left to right; variables are leaves."""
    stack = [expr]
    while stack:
        x = stack.pop()
        yield x
        if isinstance(x, e.Call):
            stack += x.args[::-1]
        elif not isinstance(x, _LEAVES):
            stack += reversed(children_of(x))


_LEAVES = (e.Var, e.ConstInt, e.ConstFloat, e.ConstBool)


def children_of(expr: e.Expr) -> Sequence[e.Expr]:
    """Operands of an expression, left to right; none for variables and constants."""
    if isinstance(expr, e.Call):
        return expr.args
    if isinstance(expr, e.MakeTuple):
        return expr.elements
    if isinstance(expr, e.BinaryExpr):
        return (expr.left, expr.right)
    if isinstance(expr, e.UnaryExpr):
        return (expr.operand,)
    if isinstance(expr, e.TupleGetItemExpr):
        return (expr.tuple,)
    if isinstance(expr, e.Submit):
        extra = (x for x in (expr.core_num, expr.predicate) if x is not None)
        return (*expr.args, *expr.deps, *extra)
    return ()


def defs_of(stmt: s.Stmt) -> tuple[e.Var, ...]:
    """Variables a statement itself defines: assigned variable, loop variable, iter args, results."""
    if isinstance(stmt, s.AssignStmt):
        return (stmt.var,)
    if isinstance(stmt, s.ForStmt):
        return (stmt.loop_var, *stmt.iter_args, *stmt.return_vars)
    if isinstance(stmt, s.WhileStmt):
        return (*stmt.iter_args, *stmt.return_vars)
    if isinstance(stmt, s.IfStmt):
        return stmt.return_vars
    return ()


def uses_of(expr: e.Expr) -> Iterator[e.Var]:
    """Variables that an expression reads (not those inside types)."""
    return (x for x in walk_exprs(expr) if isinstance(x, e.Var))


def calls_in(stmt: s.Stmt | None) -> Iterator[e.Call | e.Submit]:
    """Every call and submit below `stmt`, in program order."""
    for inner in walk_stmts(stmt):
        for root in exprs_of(inner):
            for x in walk_exprs(root):
                if isinstance(x, (e.Call, e.Submit)):
                    yield x


def flatten_to_stmts(stmt: s.Stmt) -> list[s.Stmt]:
    """The statements of a body as a flat list."""
    return list(s.stmts_of(stmt))


def collect_def_vars(stmt: s.Stmt) -> list[e.Var]:
    """Every variable defined below `stmt`, in program order."""
    return [v for inner in walk_stmts(stmt) for v in defs_of(inner)]


def find_yield_stmt(body: s.Stmt | None) -> s.YieldStmt | None:
    """The yield that ends a body, looking through runtime scopes, or None."""
    for stmt in reversed(s.stmts_of(body)):
        if isinstance(stmt, s.YieldStmt):
            return stmt
        if isinstance(stmt, s.ScopeStmt):
            return find_yield_stmt(stmt.body)
        return None
    return None


get_last_yield_stmt = find_yield_stmt


def attach_leading_comments(stmt: s.Stmt, comments: list[str]) -> s.Stmt:
    """A copy of `stmt` with these comment lines."""
    made: s.Stmt = replace(stmt, leading_comments=tuple(comments))  # type: ignore[type-var]
    return made
