"""Branches with results: an `elif` hands its results on to the `if` around it."""

from __future__ import annotations

from dataclasses import replace

from . import stmt as s
from .program import Function
from .visitor import IRMutator


def complete_branches(func: Function) -> Function:
    """The function with a yield in every branch that ends in an if with the same number of results.

    The parser keeps `if c: y = yield_(a)` / `elif d: y = yield_(b)` / `else: y = yield_(c)` as it is written: the inner
    if has a result of its own, and the branch around it says nothing. Here it yields that result.
    """
    body = _Completed().visit_stmt(func.body)
    return func if body is func.body else func.with_(body=body)


class _Completed(IRMutator):
    """Works from the inside out."""

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        made = super().visit_if_stmt(op)
        if not isinstance(made, s.IfStmt) or not made.return_vars:
            return made
        then, other = (_handed_on(b, len(made.return_vars)) for b in (made.then_body, made.else_body))
        same = then is made.then_body and other is made.else_body
        return made if same or then is None else replace(made, then_body=then, else_body=other)


def _handed_on(body: s.Stmt | None, count: int) -> s.Stmt | None:
    stmts = s.stmts_of(body)
    last = stmts[-1] if stmts else None
    if body is None or not isinstance(last, s.IfStmt) or len(last.return_vars) != count:
        return body
    return s.SeqStmts((*stmts, s.YieldStmt(last.return_vars, last.span)), body.span)
