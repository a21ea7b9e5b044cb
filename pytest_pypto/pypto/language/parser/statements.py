"""Statements: dispatch with error recovery, assignments, returns, expression statements, comments."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from . import branches, loops, scopes  # noqa: F401  they fill the table of statements
from .assignments import assign_name, assign_targets
from .attributes import func_attrs
from .context import STATEMENTS, Ctx, YieldFrame
from .diagnostics import InvalidOperationError, ParserError, ParserSyntaxError, UnsupportedFeatureError
from .names import Closure
from .special_statements import SPECIAL_STATEMENTS
from .text import Source, comments_of, file_lines

_ACCEPTED = "statements are assignments, for, while, if, with, return, break, continue, pass and calls"
_HINTS = {
    "AugAssign": "write x = x + y",
    "Assert": "pl.static_assert(condition) checks constants while parsing",
    "FunctionDef": "define functions outside, decorated with @pl.function or @pl.inline",
    "Import": "import at the top of the file",
    "ImportFrom": "import at the top of the file",
}


def parse_body(ctx: Ctx, body: list[ast.stmt]) -> None:
    """Parse the statements of a block into `ctx.out`; an error in one does not hide those in the next."""
    for node in body:
        if ctx.comments:
            _take_comments(ctx, node)
        try:
            handler = STATEMENTS.get(type(node))
            if handler is None:
                kind = type(node).__name__
                ctx.fail(
                    UnsupportedFeatureError, f"Unsupported statement type: {kind}", node, _HINTS.get(kind, _ACCEPTED)
                )
            handler(ctx, node)
        except ParserError as error:
            recover(ctx, node, error)


def recover(ctx: Ctx, node: ast.stmt, error: ParserError) -> None:
    """Record an error and forget the names the statement would have defined."""
    ctx.want = None
    ctx.record(error)
    ctx.poison({n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})


def _take_comments(ctx: Ctx, node: ast.stmt) -> None:
    """Comments above a statement, and one behind its first line or (for simple statements) its last, go to it."""
    compound = isinstance(node, (ast.For, ast.While, ast.If, ast.With))
    last = _head_end(node) if compound else (node.end_lineno or node.lineno)  # type: ignore[arg-type]
    for line in sorted(k for k in ctx.comments if k <= last):
        ctx.pending_comments.append(ctx.comments.pop(line))


def _head_end(node: ast.For | ast.While | ast.If | ast.With) -> int:
    """The line in which the head of a compound statement ends."""
    if isinstance(node, ast.For):
        last: ast.expr = node.iter
    elif isinstance(node, ast.With):
        last = node.items[-1].optional_vars or node.items[-1].context_expr
    else:
        last = node.test
    return last.end_lineno or node.lineno


def _expression(ctx: Ctx, node: ast.Expr) -> None:
    value = node.value
    if isinstance(value, ast.Constant):
        if isinstance(value.value, str):
            ctx.pending_comments.extend(line.strip() for line in value.value.strip().splitlines())
            return
        if value.value is ...:
            return
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        path = ctx.path(value.func)
        special = SPECIAL_STATEMENTS.get(path[1]) if path is not None and path[0] == "pl" else None
        if special is not None:
            special(ctx, value)
            return
    made = ctx.expr(value)
    if isinstance(made, e.Var) and isinstance(value, ast.Call):
        return
    ctx.emit(s.EvalStmt(made, ctx.span(node)))


def _assign(ctx: Ctx, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        hint = "assign to one name at a time"
        ctx.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node, hint)
    assign_targets(ctx, node.targets[0], node.value, node)


def _annotated(ctx: Ctx, node: ast.AnnAssign) -> None:
    if node.value is None:
        message = "Yield assignment with no value is not supported"
        ctx.fail(UnsupportedFeatureError, message, node, "assign a value, or drop the line")
    if not isinstance(node.target, ast.Name):
        ctx.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node, "annotate a plain name")
    assign_name(ctx, node.target, node.value, node, node.annotation)


def _return(ctx: Ctx, node: ast.Return) -> None:
    if node.value is None:
        values: tuple[e.Expr, ...] = ()
    elif isinstance(node.value, ast.Tuple):
        values = tuple(ctx.expr(v) for v in node.value.elts)
    else:
        values = (ctx.expr(node.value),)
    if ctx.inline_returns is not None:
        ctx.inline_returns.append(values)
        return
    ctx.emit(s.ReturnStmt(values, ctx.span(node)))


def _pass(ctx: Ctx, node: ast.Pass) -> None:
    ctx.pending_comments.clear()


def _break(ctx: Ctx, node: ast.Break) -> None:
    _jump(ctx, node, "break")
    ctx.emit(s.BreakStmt(ctx.span(node)))


def _continue(ctx: Ctx, node: ast.Continue) -> None:
    _jump(ctx, node, "continue")
    ctx.emit(s.ContinueStmt(ctx.span(node)))


def _jump(ctx: Ctx, node: ast.stmt, word: str) -> None:
    if not ctx.loops:
        what = "'break' outside loop" if word == "break" else "'continue' not properly in loop"
        span = ctx.span(node)
        lines = ctx.source.lines_of(span.filename) or []
        text = lines[span.begin_line - 1] if 1 <= span.begin_line <= len(lines) else None
        message = f"Failed to compile code from {span.filename}: {what}"
        raise SyntaxError(message, (span.filename, span.begin_line, span.begin_column, text))
    kind = ctx.loops[-1].kind
    if kind in ("parallel", "unroll", "split_aiv", "spmd"):
        ctx.fail(InvalidOperationError, f"'{word}' not supported in {kind} loops", node, "use pl.range() or while")


STATEMENTS.update(
    {
        ast.Expr: _expression,
        ast.Assign: _assign,
        ast.AnnAssign: _annotated,
        ast.Return: _return,
        ast.Pass: _pass,
        ast.Break: _break,
        ast.Continue: _continue,
    }
)


# bodies ------------------------------------------------------------------------------------------------------------


def attribute_prologue(ctx: Ctx, body: list[ast.stmt]) -> tuple[dict[str, Any], list[ast.stmt]]:
    """The `pl.func_attr` statements at the head of a body, and the statements after them."""
    attrs: dict[str, Any] = {}
    rest = list(body)
    at = 1 if rest and _is_docstring(rest[0]) else 0
    while at < len(rest):
        call = _func_attr_call(ctx, rest[at])
        if call is None:
            break
        try:
            for key, value in func_attrs(ctx, call).items():
                if key in attrs:
                    ctx.fail(ParserSyntaxError, f"duplicate key '{key}' in pl.func_attr()", call, "drop one of the two")
                attrs[key] = value
        except ParserError as error:
            ctx.record(error)
        del rest[at]
    return attrs, rest


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _func_attr_call(ctx: Ctx, node: ast.stmt) -> ast.Call | None:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return None
    path = ctx.path(node.value.func)
    return node.value if path == ("pl", "func_attr") else None


def inline_body(ctx: Ctx, inline: Any, bound: dict[str, Any], closure: Closure, node: ast.Call) -> Any:
    """Parse the body of an inline function in place; its parameters are bound in a scope of their own."""
    outer = (ctx.source, ctx.closure, ctx.comments, ctx.inline_returns, ctx.yields)
    lines = [line.rstrip("\n") for line in inline.source_lines]
    whole = file_lines(inline.source_file)
    ctx.source = Source("\n".join(lines), inline.source_file, inline.line_offset, inline.col_offset, file_lines=whole)
    ctx.closure, ctx.comments, ctx.inline_returns = closure, comments_of(ctx.source, inline.func_def), []
    ctx.yields = [*ctx.yields, YieldFrame()]
    ctx.inline_depth += 1
    ctx.scopes.push()
    ctx.scopes.frames[-1].names.update(bound)
    returns: list[tuple[e.Expr, ...]] = []
    try:
        ctx.comments = {k: v for k, v in ctx.comments.items() if k >= inline.func_def.body[0].lineno}
        parse_body(ctx, inline.func_def.body)
        returns = ctx.inline_returns
    finally:
        for name in inline.param_names:
            ctx.scopes.frames[-1].names.pop(name, None)
        ctx.scopes.pop()
        ctx.inline_depth -= 1
        ctx.source, ctx.closure, ctx.comments, ctx.inline_returns, ctx.yields = outer
    if len(returns) != 1 or not returns[0]:
        message = f"inline function '{inline.name}' must return a value, in one return at its end"
        ctx.fail(ParserSyntaxError, message, node, "end it with one `return value`")
    values = returns[0]
    return values[0] if len(values) == 1 else e.MakeTuple(values, ctx.span(node))
