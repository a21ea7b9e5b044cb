"""`for` and `while`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir import types as t
from ...ir.dtypes import INDEX, INT64
from ...ir.enums import ForKind
from .assignments import is_call_of
from .attributes import loop_attrs
from .branches import condition
from .context import INDEX_TYPE, STATEMENTS, Ctx, LoopFrame, YieldFrame
from .diagnostics import ParserSyntaxError
from .scopes import parse_split_aiv, parse_spmd_for

_KINDS = {
    "range": ForKind.Sequential,
    "parallel": ForKind.Parallel,
    "unroll": ForKind.Unroll,
    "pipeline": ForKind.Pipeline,
}
_ITERATORS = (
    "For loop must use pl.range(), pl.parallel(), pl.unroll(), pl.pipeline(), pl.while_(), pl.spmd(), or pl.split_aiv()"
)


@dataclass
class _Head:
    """The iterator call of a loop."""

    bounds: list[e.Expr] = field(default_factory=list)
    inits: list[e.Expr] | None = None
    attrs: dict[str, Any] = field(default_factory=dict)


def _for(ctx: Ctx, node: ast.For) -> None:
    if node.orelse:
        ctx.fail(ParserSyntaxError, "else: on a for loop is not supported", node.orelse[0], "write it after the loop")
    call = node.iter
    name = call.func.attr if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else ""
    if not isinstance(call, ast.Call) or ctx.path(call.func) is None:
        name = ""
    if name in _KINDS:
        _counted(ctx, node, call, name)  # type: ignore[arg-type]
    elif name == "while_":
        _while_ssa(ctx, node, call)  # type: ignore[arg-type]
    elif name == "spmd":
        parse_spmd_for(ctx, node, call)  # type: ignore[arg-type]
    elif name == "split_aiv":
        parse_split_aiv(ctx, node, call)  # type: ignore[arg-type]
    else:
        ctx.fail(ParserSyntaxError, _ITERATORS, node.iter, "for i in pl.range(n):")


def _counted(ctx: Ctx, node: ast.For, call: ast.Call, name: str) -> None:
    head = _head(ctx, call, name)
    span = ctx.span(node)
    target, carried = _targets(ctx, node, head)
    start, stop, step = _bounds(ctx, head, call, name)
    loop_var = e.Var(target.id, _loop_var_type(start, stop, step), ctx.span(target))
    iter_args = _iter_args(ctx, carried, head.inits or [])
    comments, ctx.pending_comments = ctx.pending_comments, []
    body, frame = _body(ctx, node, node.body, name, [(target.id, loop_var)], iter_args)
    results = _results(ctx, iter_args, frame, node)
    ctx.pending_comments = comments
    kind = _KINDS[name]
    ctx.emit(s.ForStmt(loop_var, start, stop, step, iter_args, body, results, span, kind, head.attrs))


def _head(ctx: Ctx, call: ast.Call, name: str) -> _Head:
    head = _Head([ctx.expr(a) for a in call.args[:3]])
    for keyword in call.keywords:
        key, value = keyword.arg, keyword.value
        if key == "init_values":
            head.inits = _init_values(ctx, value)
        elif key == "attrs":
            head.attrs.update(loop_attrs(ctx, value))
        elif key == "stage" and name == "pipeline":
            head.attrs = {"pipeline_stages": _stage(ctx, value), **head.attrs}
        else:
            known = "init_values, attrs" + (", stage" if name == "pipeline" else "")
            message = f"Unknown keyword argument '{key}' in pl.{name}()"
            ctx.fail(ParserSyntaxError, message, keyword, f"keywords: {known}")
    if name == "pipeline" and "pipeline_stages" not in head.attrs:
        ctx.fail(ParserSyntaxError, "pl.pipeline() requires stage= (positive integer)", call, "add stage=2")
    if not head.bounds:
        ctx.fail(ParserSyntaxError, f"pl.{name}() needs at least a stop value", call, f"pl.{name}(n)")
    return head


def _stage(ctx: Ctx, node: ast.expr) -> int:
    value = ctx.value(node)
    if type(value) is not int or value < 1:
        ctx.fail(ParserSyntaxError, "pl.pipeline() requires stage= (positive integer)", node)
    return value


def _init_values(ctx: Ctx, node: ast.expr) -> list[e.Expr]:
    if not isinstance(node, (ast.Tuple, ast.List)):
        ctx.fail(ParserSyntaxError, "init_values must be a list or tuple", node, "write init_values=(a, b)")
    return [ctx.expr(item) for item in node.elts]


def _targets(ctx: Ctx, node: ast.For, head: _Head) -> tuple[ast.Name, list[ast.Name]]:
    """The loop variable and the names of carried values."""
    target = node.target
    if isinstance(target, ast.Name):
        if head.inits:
            ctx.fail(
                ParserSyntaxError,
                f"Mismatch: 0 iter_args but {len(head.inits)} init_values",
                target,
                "write for i, (a, b) in pl.range(n, init_values=(x, y)):",
            )
        return target, []
    items = target.elts if isinstance(target, ast.Tuple) else []
    if len(items) != 2 or not isinstance(items[0], ast.Name) or not isinstance(items[1], (ast.Tuple, ast.List)):
        hint = "write for i in ...: or for i, (a, b) in ...:"
        ctx.fail(ParserSyntaxError, f"Unsupported loop target: {ast.unparse(target)}", target, hint)
    carried = _names(ctx, items[1])
    if head.inits is None or len(carried) != len(head.inits):
        count = len(head.inits or [])
        message = f"Mismatch: {len(carried)} iter_args but {count} init_values"
        ctx.fail(ParserSyntaxError, message, items[1], "name as many carried values as init_values gives")
    return items[0], carried


def _names(ctx: Ctx, node: ast.Tuple | ast.List) -> list[ast.Name]:
    for item in node.elts:
        if not isinstance(item, ast.Name):
            ctx.fail(ParserSyntaxError, "carried values of a loop are plain names", item, "for i, (a, b) in ...")
    return [item for item in node.elts if isinstance(item, ast.Name)]


def _bounds(ctx: Ctx, head: _Head, call: ast.Call, name: str) -> tuple[e.Expr, e.Expr, e.Expr]:
    for bound, node in zip(head.bounds, call.args, strict=False):
        if not isinstance(bound.type, t.ScalarType) or not bound.type.dtype.is_int():
            ctx.wrong(f"pl.{name}() takes integer bounds, got {bound.type}", node, "convert it: pl.cast(x, pl.INDEX)")
    if len(head.bounds) == 1:
        start, stop, step = e.index(0), head.bounds[0], e.index(1)
    elif len(head.bounds) == 2:
        start, stop, step = *head.bounds, e.index(1)  # type: ignore[assignment]
    else:
        start, stop, step = head.bounds  # type: ignore[assignment]
    if e.const_value(step) == 0:
        ctx.fail(ParserSyntaxError, f"pl.{name}() with step 0 never ends", call, "use a positive or negative step")
    if name == "unroll" and any(e.const_value(b) is None for b in (start, stop, step)):
        message = "pl.unroll() requires compile-time constant integer bounds"
        ctx.fail(ParserSyntaxError, message, call, "use pl.range() for bounds known only at run time")
    return start, stop, step


def _loop_var_type(*bounds: e.Expr) -> t.ScalarType:
    """INDEX, unless a constant bound has another integer type (INT64 only when all typed bounds are INT64)."""
    dtypes = [b.dtype for b in bounds if isinstance(b, e.ConstInt) and b.dtype is not INDEX]
    other = next((d for d in dtypes if d is not INT64), None)
    if other is not None:
        return t.ScalarType(other)
    constants = [b for b in bounds[:2] if isinstance(b, e.ConstInt)]
    if dtypes and all(b.dtype is INT64 for b in constants):
        return t.ScalarType(INT64)
    return INDEX_TYPE


def _iter_args(ctx: Ctx, names: list[ast.Name], inits: list[e.Expr]) -> tuple[e.IterArg, ...]:
    return tuple(e.IterArg(n.id, init.type, init, ctx.span(n)) for n, init in zip(names, inits, strict=True))


def _body(
    ctx: Ctx,
    node: ast.AST,
    body: list[ast.stmt],
    kind: str,
    bound: list[tuple[str, e.Var]],
    iter_args: tuple[e.IterArg, ...],
) -> tuple[s.SeqStmts, YieldFrame]:
    frame = YieldFrame()
    ctx.yields.append(frame)
    ctx.loops.append(LoopFrame(kind))
    ctx.scopes.push(isolated=bool(iter_args))
    for name, var in (*bound, *((a.name_hint, a) for a in iter_args)):
        ctx.scopes.define(name, var)
        ctx.poisoned.discard(name)
    ctx.loop_vars.update(var for _, var in bound)
    try:
        made = ctx.block(body, node)
    finally:
        ctx.loops.pop()
        ctx.yields.pop()
        names = ctx.scopes.frames[-1].names
        for name, var in bound:
            if names.get(name) is var:
                del names[name]
        ctx.scopes.pop()
    return made, frame


def _results(ctx: Ctx, iter_args: tuple[e.IterArg, ...], frame: YieldFrame, node: ast.AST) -> tuple[e.Var, ...]:
    """Results of a loop with carried values, named by its yield."""
    if not iter_args:
        return ()
    if frame.bare and not frame.names:
        message = "Loop with init_values requires an assignment-form pl.yield_(...)"
        hint = "write a_next, b_next = pl.yield_(a_new, b_new)"
        ctx.fail(ParserSyntaxError, f"{message}: the names on its left are the results of the loop", node, hint)
    names = frame.names or [f"{a.name_hint}_out" for a in iter_args]
    made: list[e.Var] = []
    for name, arg in zip(names, iter_args, strict=False):
        type_ = frame.annotations.get(name, arg.type) if ctx.program.printed else arg.type
        made.append(ctx.define(name, type_, node))
    return tuple(made)


def _while(ctx: Ctx, node: ast.While) -> None:
    if node.orelse:
        ctx.fail(ParserSyntaxError, "else: on a while loop is not supported", node.orelse[0], "write it after the loop")
    test = condition(ctx, node.test, "while", node)
    comments, ctx.pending_comments = ctx.pending_comments, []
    body, _ = _body(ctx, node, node.body, "while", [], ())
    ctx.pending_comments = comments
    ctx.emit(s.WhileStmt(test, (), body, (), ctx.span(node)))


def _while_ssa(ctx: Ctx, node: ast.For, call: ast.Call) -> None:
    """`for (a, b) in pl.while_(init_values=(x, y)):` with `pl.cond(...)` first."""
    head = _Head()
    for keyword in call.keywords:
        if keyword.arg != "init_values":
            message = f"Unknown keyword argument '{keyword.arg}' in pl.while_()"
            ctx.fail(ParserSyntaxError, message, keyword, "keywords: init_values")
        head.inits = _init_values(ctx, keyword.value)
    if call.args or not head.inits:
        ctx.fail(ParserSyntaxError, "pl.while_() takes init_values=(...)", call, "pl.while_(init_values=(x,))")
    target = node.target
    names = [target] if isinstance(target, ast.Name) else []
    if isinstance(target, (ast.Tuple, ast.List)):
        names = _names(ctx, target)
    if len(names) != len(head.inits):
        message = f"Mismatch: {len(names)} iter_args but {len(head.inits)} init_values"
        ctx.fail(ParserSyntaxError, message, target, "name as many carried values as init_values gives")
    iter_args = _iter_args(ctx, names, head.inits)
    test_node = _cond(ctx, node)
    comments, ctx.pending_comments = ctx.pending_comments, []
    ctx.scopes.push(isolated=True)
    for arg in iter_args:
        ctx.scopes.define(arg.name_hint, arg)
    try:
        test = condition(ctx, test_node, "while", node.body[0])
    finally:
        ctx.scopes.pop()
    body, frame = _body(ctx, node, node.body[1:], "while", [], iter_args)
    results = _results(ctx, iter_args, frame, node)
    ctx.pending_comments = comments
    ctx.emit(s.WhileStmt(test, iter_args, body, results, ctx.span(node)))


def _cond(ctx: Ctx, node: ast.For) -> ast.expr:
    first = node.body[0]
    if not isinstance(first, ast.Expr) or not is_call_of(ctx, first.value, "cond"):
        message = "First statement in pl.while_() body must be pl.cond(condition)"
        ctx.fail(ParserSyntaxError, message, first, "add pl.cond(a < n)")
    assert isinstance(first.value, ast.Call)
    if len(first.value.args) != 1 or first.value.keywords:
        ctx.fail(ParserSyntaxError, "pl.cond() takes one condition", first.value)
    return first.value.args[0]


STATEMENTS[ast.For] = _for
STATEMENTS[ast.While] = _while
