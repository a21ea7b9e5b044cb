"""NormalizeStmtStructure: flat bodies."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator
from .base import FunctionPass
from .properties import NORM


@dataclass(frozen=True)
class NormalizeStmtStructure(FunctionPass):
    """Every body is one flat sequence: nested sequences are dissolved, single statements get a sequence around them.

    An else branch without statements stays, as an empty sequence, only where the branch yields nothing.
    """

    name = "NormalizeStmtStructure"
    produces = frozenset({NORM})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with flat bodies."""
        body = _Flattener().block(func.body)
        return func if body is func.body else func.with_(body=body)


class _Flattener(IRMutator):
    """Rewrites statements; expressions are left alone."""

    def block(self, body: s.Stmt) -> s.SeqStmts:
        stmts = s.stmts_of(body)
        made = [self.visit_stmt(x) for x in stmts]
        changed = any(a is not b for a, b in zip(made, stmts, strict=True))
        if isinstance(body, s.SeqStmts) and not changed and stmts is body.stmts:
            return body
        return s.SeqStmts(tuple(made), body.span)

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        if isinstance(stmt, s.IfStmt):
            then = self.block(stmt.then_body)
            other = None if stmt.else_body is None else self.block(stmt.else_body)
            same = then is stmt.then_body and other is stmt.else_body
            return stmt if same else replace(stmt, then_body=then, else_body=other)
        if isinstance(stmt, (s.ForStmt, s.WhileStmt, s.ScopeStmt)):
            body = self.block(stmt.body)
            made: s.Stmt = stmt if body is stmt.body else replace(stmt, body=body)  # type: ignore[type-var]
            return made
        return stmt
