"""`if`, with and without results."""

from __future__ import annotations

import ast

from ...ir import expr as e
from ...ir import stmt as s
from ...ir import types as t
from ...ir.dtypes import BOOL, INT32
from .assignments import is_yield
from .context import STATEMENTS, Ctx, YieldFrame
from .diagnostics import ParserTypeError
from .names import Frame
from .printed import print_type


def condition(ctx: Ctx, node: ast.expr, what: str, whole: ast.AST) -> e.Expr:
    """A BOOL condition."""
    made = ctx.expr(node)
    if not isinstance(made.type, t.ScalarType) or made.type.dtype is not BOOL:
        message = f"{what} condition must be a Bool-typed scalar expression, got {print_type(made.type)}"
        ctx.fail(ParserTypeError, message, whole, "compare with something, for example n > 0")
    return made


def yields_here(ctx: Ctx, body: list[ast.stmt]) -> bool:
    """A yield in assignment form at this level of a branch (runtime scopes are looked into, other blocks not)."""
    for node in body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and is_yield(ctx, node.value):
            return True
        if isinstance(node, ast.With) and yields_here(ctx, node.body):
            return True
    return False


def _if(ctx: Ctx, node: ast.If) -> None:
    test = condition(ctx, node.test, "if", node)
    isolated = yields_here(ctx, node.body) or yields_here(ctx, node.orelse)
    comments, ctx.pending_comments = ctx.pending_comments, []
    then, then_frame, gone = _branch(ctx, node.body, isolated, node)
    siblings = set(ctx.branch_names)
    if not isolated:
        ctx.branch_names |= {*gone.names, *gone.leaked}
    other, other_frame = None, YieldFrame()
    if node.orelse:
        other, other_frame, _ = _branch(ctx, node.orelse, isolated, node)
    ctx.branch_names = siblings
    results = _results(ctx, then_frame, other_frame, node)
    ctx.pending_comments = comments
    ctx.emit(s.IfStmt(test, then, other, results, ctx.span(node)))


def _branch(ctx: Ctx, body: list[ast.stmt], isolated: bool, node: ast.If) -> tuple[s.SeqStmts, YieldFrame, Frame]:
    frame = YieldFrame()
    ctx.yields.append(frame)
    ctx.scopes.push(isolated)
    try:
        made = ctx.block(body, node)
    finally:
        ctx.yields.pop()
        gone = ctx.scopes.pop()
    return made, frame, gone


def _results(ctx: Ctx, then: YieldFrame, other: YieldFrame, node: ast.If) -> tuple[e.Var, ...]:
    """Result variables: names in order of appearance, then-branch first."""
    made: list[e.Var] = []
    for name in dict.fromkeys((*then.names, *other.names)):
        type_ = then.annotations.get(name) or other.annotations.get(name)
        if type_ is None:
            value = then.values.get(name)
            value = other.values.get(name) if value is None else value
            type_ = value.type if value is not None else t.TensorType((e.index(1),), INT32)
        made.append(ctx.define(name, type_, node))
    return tuple(made)


STATEMENTS[ast.If] = _if
