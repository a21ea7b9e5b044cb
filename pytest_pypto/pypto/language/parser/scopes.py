"""`with` scopes and the loop forms that are scopes: device regions, SPMD launches, lane regions, runtime scopes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import Level, Role, ScopeMode, SplitMode, level_to_linqu_level
from ...ir.printer import spmd_hints
from ...ir.visitor import walk_stmts
from .assignments import bind, is_call_of
from .attributes import call_attrs
from .context import INDEX_TYPE, STATEMENTS, Ctx, LoopFrame
from .diagnostics import ParserSyntaxError, UnsupportedFeatureError
from .function_calls import TASK_TYPE, bool_literal, name_list, task_deps
from .scope_options import Optimizations, identifier, member, optimizations

_AT = "level, role, optimizations, name_hint, deps, no_dep_args, dumps, allow_early_resolve, windowize"
_SPMD = "core_num, sync_start, name_hint, optimizations, allow_early_resolve, predicate, deps"
_SPMD_ATTRS = ("deps", "allow_early_resolve", "attrs")
_KNOWN = "pl.at(...), pl.spmd(...), pl.cluster(), pl.scope(), pl.manual_scope()"


def _with(ctx: Ctx, node: ast.With) -> None:
    if len(node.items) != 1:
        message = "Only single context manager supported in with statement"
        ctx.fail(ParserSyntaxError, message, node, "nest two with statements")
    item = node.items[0]
    call = item.context_expr
    path = ctx.path(call.func) if isinstance(call, ast.Call) else None
    handler = _SCOPES.get(path[1]) if path is not None and path[0] == "pl" else None
    if handler is None or not isinstance(call, ast.Call):
        hint = f"scopes: {_KNOWN}"
        ctx.fail(UnsupportedFeatureError, "Unsupported context manager in with statement", node, hint)
    task: ast.Name | None = None
    if item.optional_vars is not None:
        if not isinstance(item.optional_vars, ast.Name) or path is None or path[1] not in ("at", "spmd"):
            message = "`as` is for pl.at(...) and pl.spmd(...) and takes one name"
            ctx.fail(ParserSyntaxError, message, item.optional_vars, "write `as tid`")
        task = item.optional_vars
    handler(ctx, node, call, task)


def _task_attrs(ctx: Ctx, task: ast.Name | None, attrs: dict[str, Any]) -> dict[str, Any]:
    """`as tid`: a placeholder in front of the scope defines the variable that the scope fills."""
    if task is None:
        return attrs
    invalid = e.Call(e.Op("system.task_invalid"), (), type=TASK_TYPE, span=ctx.span(task))
    var = bind(ctx, task.id, invalid, TASK_TYPE, task)
    return {"task_id_var": var, **attrs}


def _body(ctx: Ctx, node: ast.With | ast.For, kind: str, body: list[ast.stmt] | None = None) -> s.SeqStmts:
    ctx.scope_stack.append(kind)
    ctx.scopes.push()
    try:
        return ctx.block(node.body if body is None else body, node)
    finally:
        ctx.scopes.pop()
        ctx.scope_stack.pop()


# pl.at -------------------------------------------------------------------------------------------------------------


@dataclass
class _Options:
    level: Level | None = None
    role: Role | None = None
    name_hint: str = ""
    chosen: Optimizations | None = None
    attrs: dict[str, Any] = field(default_factory=dict)


def _at(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None) -> None:
    made = _at_options(ctx, call)
    if made.level is None:
        ctx.fail(ParserSyntaxError, "pl.at() requires a level argument", call, "pl.at(level=pl.Level.CORE_GROUP)")
    if made.level is not Level.CORE_GROUP:
        _hierarchy(ctx, node, call, task, made, made.level)
        return
    if made.role is not None:
        hint = "drop role=, or name another level"
        ctx.fail(ParserSyntaxError, "role= is not for pl.at(level=pl.Level.CORE_GROUP)", call, hint)
    if "at" in ctx.scope_stack:
        message = "pl.at(level=pl.Level.CORE_GROUP) inside another core-group scope"
        ctx.fail(ParserSyntaxError, message, call, "a device region is one kernel: merge the two scopes")
    comments, ctx.pending_comments = ctx.pending_comments, []
    attrs = _task_attrs(ctx, task, made.attrs)
    _no_early_return(ctx, node)
    body = _body(ctx, node, "at")
    chosen = made.chosen or Optimizations()
    _check_regions(ctx, chosen, body, call)
    if chosen.slot_num is not None:
        attrs = {"slot_num": chosen.slot_num, **attrs}
    ctx.pending_comments = comments
    split = chosen.split or SplitMode.NONE
    ctx.emit(s.InCoreScopeStmt(split, made.name_hint, body=body, span=ctx.span(node), attrs=attrs))


def _no_early_return(ctx: Ctx, node: ast.With) -> None:
    """A device region runs to its end; `return` may only be its last statement.

    Raises (ParserSyntaxError): at the first other return.
    """
    for found in ast.walk(node):
        if isinstance(found, ast.Return) and found is not node.body[-1]:
            hint = "give the values names in both branches of the if, and return after the region"
            ctx.fail(ParserSyntaxError, "'return' in the middle of a device region (pl.at)", found, hint)


def _check_regions(ctx: Ctx, chosen: Optimizations, body: s.Stmt, call: ast.AST) -> None:
    if chosen.split is None or not any(isinstance(x, s.SplitAivScopeStmt) for x in walk_stmts(body)):
        return
    ctx.fail(
        ParserSyntaxError,
        f"scope combines a function-level pl.split(pl.SplitMode.{chosen.split.name}) (optimizations=[pl.split(...)]) "
        "with a pl.split_aiv region; these are mutually exclusive AIV-split mechanisms",
        call,
        "drop pl.split(...): the region's mode governs the lanes",
    )


def _arguments(call: ast.Call, *names: str) -> list[tuple[str, ast.expr, ast.AST]]:
    """(name, value, place) of every argument; the first ones may be given by position."""
    positional: list[tuple[str, ast.expr, ast.AST]] = [(n, a, a) for n, a in zip(names, call.args, strict=False)]
    return positional + [(k.arg or "**", k.value, k) for k in call.keywords]


def _at_options(ctx: Ctx, call: ast.Call) -> _Options:
    made = _Options()
    if len(call.args) > 2:
        ctx.fail(ParserSyntaxError, "pl.at() takes level and role by position", call.args[2], f"keywords: {_AT}")
    for key, value, place in _arguments(call, "level", "role"):
        if key == "level":
            made.level = member(ctx, value, Level, "level=")
        elif key == "role":
            made.role = member(ctx, value, Role, "role=")
        elif key == "name_hint":
            made.name_hint = identifier(ctx, value, "name_hint=")
        elif key == "optimizations":
            made.chosen = optimizations(ctx, value, "pl.at")
        elif not _scope_attr(ctx, key, value, made.attrs, "pl.at()"):
            message = f"Unknown keyword argument '{key}' in pl.at()"
            ctx.fail(ParserSyntaxError, message, place, f"keywords: {_AT}")
    return made


def _scope_attr(ctx: Ctx, key: str, value: ast.expr, attrs: dict[str, Any], where: str) -> bool:
    """Store one scope attribute; False when the keyword is none."""
    if key == "deps":
        attrs["manual_dep_edges"] = task_deps(ctx, value)
    elif key == "no_dep_args":
        attrs["arg_direction_overrides_vars"] = name_list(ctx, value, f"no_dep_args= of {where}")
    elif key == "dumps":
        attrs["dump_vars"] = name_list(ctx, value, f"dumps= of {where}")
    elif key in ("allow_early_resolve", "windowize"):
        if bool_literal(ctx, value, key):
            attrs[key] = True
    elif key == "attrs":
        attrs.update(call_attrs(ctx, value))
    else:
        return False
    return True


def _hierarchy(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None, made: _Options, level: Level) -> None:
    if made.chosen is not None:
        message = "optimizations= is for pl.at(level=pl.Level.CORE_GROUP)"
        ctx.fail(ParserSyntaxError, message, call, "open a core-group scope inside")
    if level_to_linqu_level(level) >= 3 and made.role is Role.SubWorker:
        message = f"pl.at(level=pl.Level.{level.name}, role=pl.Role.SubWorker) is not supported"
        ctx.fail(ParserSyntaxError, message, call, "write a function with that level and role")
    comments, ctx.pending_comments = ctx.pending_comments, []
    attrs = _task_attrs(ctx, task, made.attrs)
    body = _body(ctx, node, "hierarchy")
    ctx.pending_comments = comments
    ctx.emit(s.HierarchyScopeStmt(level, made.role, made.name_hint, body=body, span=ctx.span(node), attrs=attrs))


# pl.spmd -----------------------------------------------------------------------------------------------------------


@dataclass
class _Spmd:
    core_num: e.Expr | None = None
    sync_start: bool = False
    name_hint: str = ""
    chosen: Optimizations | None = None
    attrs: dict[str, Any] = field(default_factory=dict)


def _spmd_options(ctx: Ctx, call: ast.Call, task: ast.Name | None) -> _Spmd:
    made = _Spmd()
    if len(call.args) > 1:
        ctx.fail(ParserSyntaxError, "pl.spmd() takes the number of blocks by position", call.args[1])
    for key, value, place in _arguments(call, "core_num"):
        if key == "core_num":
            made.core_num = _core_num(ctx, value)
        elif key == "sync_start":
            made.sync_start = bool_literal(ctx, value, key)
        elif key == "name_hint":
            made.name_hint = identifier(ctx, value, "name_hint=")
        elif key == "optimizations":
            made.chosen = optimizations(ctx, value, "pl.spmd")
        elif key == "predicate":
            made.attrs["predicate"] = ctx.expr(value)
        elif key == "deps" and task is None:
            hint = "write with pl.spmd(n, deps=[...]) as tid:"
            ctx.fail(ParserSyntaxError, "deps= of pl.spmd() needs the `as tid` form", value, hint)
        elif key not in ("deps", "allow_early_resolve", "attrs") or not _scope_attr(
            ctx, key, value, made.attrs, "pl.spmd()"
        ):
            message = f"Unknown keyword argument '{key}' in pl.spmd()"
            ctx.fail(ParserSyntaxError, message, place, f"keywords: {_SPMD}")
    if made.core_num is None:
        ctx.fail(ParserSyntaxError, "pl.spmd() requires the number of blocks", call, "pl.spmd(4)")
    return made


def _core_num(ctx: Ctx, node: ast.expr) -> e.Expr:
    made = ctx.expr(node)
    value = e.const_value(made)
    if value is not None and value < 1:
        ctx.fail(ParserSyntaxError, f"core_num of pl.spmd() must be positive, got {value}", node)
    return made


def _emit_spmd(ctx: Ctx, node: ast.stmt, made: _Spmd, body: s.Stmt, attrs: dict[str, Any], hint: str) -> None:
    assert made.core_num is not None
    ctx.emit(s.SpmdScopeStmt(made.core_num, made.sync_start, hint, body=body, span=ctx.span(node), attrs=attrs))


def _region(ctx: Ctx, node: ast.stmt, made: _Spmd, body: s.Stmt, hint: str) -> s.InCoreScopeStmt:
    chosen = made.chosen or Optimizations()
    _check_regions(ctx, chosen, body, node)
    attrs = {} if chosen.slot_num is None else {"slot_num": chosen.slot_num}
    split = chosen.split or SplitMode.NONE
    return s.InCoreScopeStmt(split, hint, body=body, span=ctx.span(node), attrs=attrs)


def parse_spmd_for(ctx: Ctx, node: ast.For, call: ast.Call) -> None:
    """`for i in pl.spmd(n, ...):`"""
    if not isinstance(node.target, ast.Name):
        ctx.fail(ParserSyntaxError, "pl.spmd() gives one block index", node.target, "for i in pl.spmd(n):")
    made = _spmd_options(ctx, call, None)
    comments, ctx.pending_comments = ctx.pending_comments, []
    body = _indexed_body(ctx, node, node.target, "tile.get_block_idx", "at")
    launch, region = spmd_hints(made.name_hint)
    ctx.pending_comments = comments
    _emit_spmd(ctx, node, made, s.SeqStmts((_region(ctx, node, made, body, region),)), made.attrs, launch)


def _indexed_body(ctx: Ctx, node: ast.For, target: ast.Name, op: str, kind: str) -> s.SeqStmts:
    """A body that starts with `target = <op>()`."""
    span = ctx.span(target)
    outer, ctx.out = ctx.out, []
    ctx.scope_stack.append(kind)
    ctx.loops.append(LoopFrame("spmd" if kind == "at" else "split_aiv"))
    ctx.scopes.push()
    try:
        index = e.Var(target.id, INDEX_TYPE, span)
        ctx.scopes.define(target.id, index)
        ctx.loop_vars.add(index)
        ctx.emit(s.AssignStmt(index, e.Call(e.Op(op), (), type=INDEX_TYPE, span=span), span))
        inner = ctx.block(node.body, node)
        made = (*ctx.out, *inner.stmts)
    finally:
        ctx.out = outer
        ctx.scopes.frames[-1].names.pop(target.id, None)
        ctx.scopes.pop()
        ctx.loops.pop()
        ctx.scope_stack.pop()
    return s.SeqStmts(made, ctx.span(node))


def _spmd(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None) -> None:
    """`with pl.spmd(n, ...):` around a region of its own, one dispatch, or one core-group scope."""
    made = _spmd_options(ctx, call, task)
    comments, ctx.pending_comments = ctx.pending_comments, []
    attrs = _task_attrs(ctx, task, made.attrs)
    own_region = made.chosen is not None or (_asks_block_index(node.body) and not _is_one_region(ctx, node.body))
    body = _body(ctx, node, "at" if own_region else "spmd")
    if own_region:
        launch, region = spmd_hints(made.name_hint)
        whole: s.Stmt = s.SeqStmts((_region(ctx, node, made, body, region),))
    else:
        launch, whole = made.name_hint, body
        _check_spmd_body(ctx, node, body)
    ctx.pending_comments = comments
    _emit_spmd(ctx, node, made, whole, attrs, launch)


def _is_one_region(ctx: Ctx, body: list[ast.stmt]) -> bool:
    only = body[0] if len(body) == 1 else None
    return isinstance(only, ast.With) and is_call_of(ctx, only.items[0].context_expr, "at")


def _asks_block_index(body: list[ast.stmt]) -> bool:
    calls = (n for stmt in body for n in ast.walk(stmt) if isinstance(n, ast.Call))
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "get_block_idx" for c in calls)


def _check_spmd_body(ctx: Ctx, node: ast.With, body: s.SeqStmts) -> None:
    from ...ir.visitor import calls_in

    dispatched = [c for c in calls_in(body) if isinstance(c.op, e.GlobalVar)]
    regions = [x for x in walk_stmts(body) if isinstance(x, s.InCoreScopeStmt)]
    if len(dispatched) + len(regions) != 1 and not ctx.program.errors:
        ctx.fail(
            ParserSyntaxError,
            f"with pl.spmd(...) dispatches exactly one function, found {len(dispatched) + len(regions)}",
            node,
            "call one self.kernel(...), open one pl.at(level=pl.Level.CORE_GROUP), or use pl.tile.get_block_idx()",
        )


# pl.split_aiv ------------------------------------------------------------------------------------------------------


def parse_split_aiv(ctx: Ctx, node: ast.For, call: ast.Call) -> None:
    """`for lane in pl.split_aiv(2, mode=pl.SplitMode.X):`"""
    if not isinstance(node.target, ast.Name):
        ctx.fail(
            ParserSyntaxError, "pl.split_aiv() gives one lane index", node.target, "for lane in pl.split_aiv(2, ...):"
        )
    if "split_aiv" in ctx.scope_stack:
        hint = "close the outer region first"
        ctx.fail(ParserSyntaxError, "pl.split_aiv() regions cannot be nested", call, hint)
    mode = _split_aiv_options(ctx, call)
    comments, ctx.pending_comments = ctx.pending_comments, []
    outer, ctx.split_mode = ctx.split_mode, mode
    try:
        body = _indexed_body(ctx, node, node.target, "tile.get_subblock_idx", "split_aiv")
    finally:
        ctx.split_mode = outer
    span = ctx.span(node)
    region: s.Stmt = s.SplitAivScopeStmt(mode, 2, body=body, span=span)
    if "at" not in ctx.scope_stack and not _is_incore(ctx):
        region = s.InCoreScopeStmt(SplitMode.NONE, "", body=s.SeqStmts((region,)), span=span)
    ctx.pending_comments = comments
    ctx.emit(region)


def _is_incore(ctx: Ctx) -> bool:
    from ...ir.enums import is_incore_type

    return is_incore_type(ctx.func_type)


def _split_aiv_options(ctx: Ctx, call: ast.Call) -> SplitMode:
    if len(call.args) != 1:
        ctx.fail(ParserSyntaxError, "pl.split_aiv() takes the number of lanes, which is 2", call)
    count = ctx.value(call.args[0])
    if count != 2 or isinstance(count, e.Expr):
        shown = ast.unparse(call.args[0])
        message = f"pl.split_aiv(n) requires n == 2 (AIV sub-core count is hardware-fixed at 2), got {shown}"
        ctx.fail(ParserSyntaxError, message, call.args[0], "write pl.split_aiv(2, mode=...)")
    mode: SplitMode | None = None
    for keyword in call.keywords:
        if keyword.arg != "mode":
            message = f"Unknown keyword argument '{keyword.arg}' in pl.split_aiv()"
            ctx.fail(ParserSyntaxError, message, keyword, "keywords: mode")
        mode = member(ctx, keyword.value, SplitMode, "mode=")
    if mode is None:
        ctx.fail(ParserSyntaxError, "pl.split_aiv() requires mode=", call, "add mode=pl.SplitMode.UP_DOWN")
    return mode


# cluster, runtime --------------------------------------------------------------------------------------------------


def _cluster(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None) -> None:
    hint = ""
    attrs: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg == "name_hint":
            hint = identifier(ctx, keyword.value, "name_hint=")
        elif keyword.arg == "attrs":
            attrs = call_attrs(ctx, keyword.value)
        else:
            message = f"Unknown keyword argument '{keyword.arg}' in pl.cluster()"
            ctx.fail(ParserSyntaxError, message, keyword, "keywords: name_hint")
    if call.args:
        ctx.fail(ParserSyntaxError, "pl.cluster() takes name_hint= only", call.args[0])
    comments, ctx.pending_comments = ctx.pending_comments, []
    body = _body(ctx, node, "cluster")
    ctx.pending_comments = comments
    ctx.emit(s.ClusterScopeStmt(hint, body=body, span=ctx.span(node), attrs=attrs))


def _scope(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None) -> None:
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    attrs: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg == "attrs":
            attrs = call_attrs(ctx, keyword.value)
        elif keyword.arg != "mode":
            message = f"Unknown keyword argument '{keyword.arg}' in pl.scope()"
            ctx.fail(ParserSyntaxError, message, keyword, "keywords: mode")
    if len(given) > 1:
        ctx.fail(ParserSyntaxError, "pl.scope() takes one mode", call, "pl.scope(mode=pl.ScopeMode.MANUAL)")
    mode = member(ctx, given[0], ScopeMode, "mode=") if given else ScopeMode.AUTO
    _runtime(ctx, node, call, mode is ScopeMode.MANUAL, attrs)


def _manual_scope(ctx: Ctx, node: ast.With, call: ast.Call, task: ast.Name | None) -> None:
    if call.args or call.keywords:
        ctx.fail(ParserSyntaxError, "pl.manual_scope() takes no arguments", call)
    _runtime(ctx, node, call, True, {})


def _runtime(ctx: Ctx, node: ast.With, call: ast.Call, manual: bool, attrs: dict[str, Any]) -> None:
    if "manual" in ctx.scope_stack:
        what = "MANUAL" if manual else "AUTO"
        message = f"a {what} runtime scope cannot be inside a MANUAL one"
        ctx.fail(ParserSyntaxError, message, call, "close the outer one first")
    if not manual and ctx.auto_scope:
        message = "with pl.scope() is only for functions with auto_scope=False"
        ctx.fail(ParserSyntaxError, message, call, "write @pl.function(..., auto_scope=False), or drop the scope")
    comments, ctx.pending_comments = ctx.pending_comments, []
    body = _body(ctx, node, "manual" if manual else "auto")
    ctx.pending_comments = comments
    ctx.emit(s.RuntimeScopeStmt(manual, body=body, span=ctx.span(node), attrs=attrs))


_SCOPES = {
    "at": _at,
    "spmd": _spmd,
    "cluster": _cluster,
    "scope": _scope,
    "manual_scope": _manual_scope,
}
STATEMENTS[ast.With] = _with
