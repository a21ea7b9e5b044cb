"""Calls between functions: `self.kernel(...)`, inline functions, and task submission."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...ir import expr as e
from ...ir.call_types import call_result_type
from ...ir.dtypes import TASK_ID
from ...ir.enums import Role
from ...ir.program import Function
from ...ir.types import ArrayType, ScalarType, TupleType, Type, UnknownType
from .attributes import call_attrs
from .context import Ctx, Signature, Value
from .diagnostics import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

TASK_TYPE = ScalarType(TASK_ID)
_MAX_INLINE = 40


def call_function(
    ctx: Ctx,
    node: ast.Call,
    name: str,
    external: Function | None = None,
    want: Type | None = None,
    hint_self: bool = False,
) -> e.Expr:
    """A call of a function of the program, or of a module-level function object."""
    if hint_self:
        ctx.fail(
            UnsupportedFeatureError, f"Unsupported function call: {ast.unparse(node)}", node, f"write self.{name}(...)"
        )
    signature = _signature(ctx, node, name, external)
    args, attrs = _arguments(ctx, node)
    for keyword in node.keywords:
        if keyword.arg == "attrs":
            attrs = {**attrs, **call_attrs(ctx, keyword.value)}
        elif keyword.arg == "device" and signature.role in (Role.Orchestrator, None):
            attrs = {"device": ctx.expr(keyword.value), **attrs}
        else:
            _refuse_keyword(ctx, keyword, name)
    if signature.on_call is not None:
        signature.on_call(args)
    _check_count(ctx, signature, len(args), node)
    type_ = want if want is not None else _result_type(signature, args)
    _add_dumps(ctx, args, attrs)
    return e.Call(e.GlobalVar(signature.name), args, {}, attrs, type_, ctx.span(node))


def _signature(ctx: Ctx, node: ast.Call, name: str, external: Function | None) -> Signature:
    if external is not None:
        return _external(ctx, node, external)
    found = ctx.program.functions.get(name)
    if found is None and ctx.program.open_calls:
        return Signature(name)
    if found is None:
        import difflib

        near = difflib.get_close_matches(name, list(ctx.program.functions), n=1)
        hint = f"did you mean self.{near[0]}?" if near else "functions of the program are methods with @pl.function"
        ctx.fail(UndefinedVariableError, f"Function '{name}' not defined in program", node, hint)
    return found


def _external(ctx: Ctx, node: ast.Call, function: Function) -> Signature:
    known = ctx.program.externals.setdefault(function.name, function)
    if known is not function or function.name in ctx.program.functions:
        message = f"two functions called '{function.name}' in one program"
        ctx.fail(ParserSyntaxError, message, node, "rename one of them")
    return Signature(function.name, function.params, function.return_types, function.role, function)


def _arguments(ctx: Ctx, node: ast.Call) -> tuple[list[e.Expr], dict[str, Any]]:
    args: list[e.Expr] = []
    free: list[int] = []
    for i, arg in enumerate(node.args):
        inner = _no_dep(ctx, arg)
        if inner is not None:
            free.append(i)
        args.append(ctx.expr(arg if inner is None else inner))
    return args, {"arg_direction_overrides": free} if free else {}


def _no_dep(ctx: Ctx, node: ast.expr) -> ast.expr | None:
    """`x` for `pl.no_dep(x)`, else None."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "no_dep":
        return None
    path = ctx.path(node.func)
    if path is None or len(node.args) != 1 or node.keywords:
        return None
    return node.args[0]


def _add_dumps(ctx: Ctx, args: Sequence[e.Expr], attrs: dict[str, Any]) -> None:
    """A call that uses a tensor marked by `pl.dump_tag` records it."""
    marked = [v for v in ctx.dumps if any(v is a for a in args)]
    if marked:
        attrs["dump_vars"] = [*attrs.get("dump_vars", []), *marked]


def _refuse_keyword(ctx: Ctx, keyword: ast.keyword, name: str) -> None:
    if keyword.arg == "deps":
        hint = f"write out, tid = pl.submit(self.{name}, ..., deps=[...])"
        ctx.fail(ParserSyntaxError, f"self.{name}() takes no deps=", keyword.value, hint)
    message = f"Function '{name}' takes positional arguments only, got keyword '{keyword.arg}'"
    ctx.fail(ParserSyntaxError, message, keyword, "pass it in the order of the parameters")


def _check_count(ctx: Ctx, signature: Signature, got: int, node: ast.AST) -> None:
    if signature.params is not None and got != len(signature.params):
        names = ", ".join(p.name_hint for p in signature.params)
        message = f"Function '{signature.name}' expects {len(signature.params)} argument(s), got {got}"
        ctx.fail(ParserTypeError, message, node, f"parameters: {names}" if names else "it takes no arguments")


def _result_type(signature: Signature, args: Sequence[e.Expr]) -> Type:
    if signature.params is None:
        return UnknownType.get()
    return call_result_type(signature.params, args, signature.return_types or (), signature.function)


# inline functions --------------------------------------------------------------------------------------------------


def call_inline(ctx: Ctx, node: ast.Call, inline: Any) -> Value:
    """Splice the statements of an inline function at the call; the value is what it returns."""
    from .names import Closure
    from .statements import inline_body

    params: list[str] = list(inline.param_names)
    if node.keywords:
        ctx.fail(ParserSyntaxError, f"inline function '{inline.name}' takes positional arguments only", node)
    if len(node.args) != len(params):
        message = f"Inline function '{inline.name}' expects {len(params)} argument(s), got {len(node.args)}"
        ctx.fail(ParserTypeError, message, node, f"parameters: {', '.join(params)}")
    if ctx.inline_depth >= _MAX_INLINE:
        ctx.fail(ParserSyntaxError, f"inline function '{inline.name}' calls itself", node, "use a loop")
    bound = {p: ctx.value(a) for p, a in zip(params, node.args, strict=True)}
    closure = Closure(*ctx.closure.layers, inline.closure_vars)
    return inline_body(ctx, inline, bound, closure, node)


# submission --------------------------------------------------------------------------------------------------------


def submit(ctx: Ctx, node: ast.Call, want: Type | None = None) -> e.Expr:
    """`pl.submit(self.k, ...)` or `pl.spmd_submit(self.k, ..., core_num=n)` as a `Submit` expression."""
    verb = node.func.attr if isinstance(node.func, ast.Attribute) else "submit"
    callee = node.args[0] if node.args else None
    if not isinstance(callee, ast.Attribute) or not isinstance(callee.value, ast.Name) or callee.value.id != "self":
        ctx.fail(ParserSyntaxError, f"pl.{verb}() takes the function first", node, f"write pl.{verb}(self.kernel, ...)")
    signature = _signature(ctx, node, callee.attr, None)
    call = ast.copy_location(ast.Call(func=callee, args=node.args[1:], keywords=[]), node)
    args, attrs = _arguments(ctx, call)
    if signature.on_call is not None:
        signature.on_call(args)
    if signature.params is not None and len(args) > len(signature.params):
        _check_count(ctx, signature, len(args), node)
    _add_dumps(ctx, args, attrs)
    fields = _submit_keywords(ctx, node, verb, attrs)
    deps = fields.pop("deps", ())
    type_ = want if want is not None else _submit_type(signature, args)
    return e.Submit(e.GlobalVar(signature.name), args, deps, attrs=attrs, type=type_, span=ctx.span(node), **fields)


def _submit_type(signature: Signature, args: Sequence[e.Expr]) -> Type:
    if signature.params is None:
        return TupleType((UnknownType.get(), TASK_TYPE))
    result = _result_type(signature, args)
    if isinstance(result, TupleType):
        return TupleType((*result.types, TASK_TYPE))
    return TupleType((TASK_TYPE,)) if isinstance(result, UnknownType) else TupleType((result, TASK_TYPE))


def _submit_keywords(ctx: Ctx, node: ast.Call, verb: str, attrs: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for keyword in node.keywords:
        key, value = keyword.arg, keyword.value
        if key == "deps":
            fields["deps"] = task_deps(ctx, value)
        elif key == "dumps":
            attrs["dump_vars"] = name_list(ctx, value, f"dumps= of pl.{verb}()")
        elif key == "attrs":
            attrs.update(call_attrs(ctx, value))
        elif key == "predicate":
            fields["predicate"] = ctx.expr(value)
        elif key == "core_num" and verb == "spmd_submit":
            fields["core_num"] = ctx.expr(value)
        elif key in ("allow_early_resolve", "sync_start") and (key != "sync_start" or verb == "spmd_submit"):
            fields[key] = bool_literal(ctx, value, key)
        else:
            known = "deps, dumps, allow_early_resolve, predicate, attrs"
            known += ", core_num, sync_start" if verb == "spmd_submit" else ""
            message = f"Unknown keyword argument '{key}' in pl.{verb}()"
            ctx.fail(ParserSyntaxError, message, keyword, f"keywords: {known}")
    if verb == "spmd_submit" and "core_num" not in fields:
        ctx.fail(ParserSyntaxError, "pl.spmd_submit() requires core_num=", node, "add core_num=<number of blocks>")
    return fields


def bool_literal(ctx: Ctx, node: ast.expr, key: str) -> bool:
    """A `True`/`False` literal, or a closure name bound to one."""
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if type(value) is not bool:
        ctx.fail(ParserSyntaxError, f"{key}= must be True or False, got {ast.unparse(node)}", node)
    return value


def name_list(ctx: Ctx, node: ast.expr, what: str) -> list[e.Expr]:
    """A list of variable names."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        ctx.fail(ParserSyntaxError, f"{what} must be a list of names", node)
    found: list[e.Expr] = []
    for item in node.elts:
        if not isinstance(item, ast.Name):
            ctx.fail(ParserSyntaxError, f"{what} must be a list of names, got {ast.unparse(item)}", item)
        found.append(ctx.expr(item))
    return found


def task_deps(ctx: Ctx, node: ast.expr) -> list[e.Expr]:
    """The dependencies of a submission: task ids, arrays of task ids, `None` (dropped)."""
    items = _dep_items(ctx, node)
    deps = [ctx.expr(i) for i in items if not (isinstance(i, ast.Constant) and i.value is None)]
    for item, dep in zip(
        [i for i in items if not (isinstance(i, ast.Constant) and i.value is None)], deps, strict=True
    ):
        if not isinstance(dep.type, (ScalarType, ArrayType)) or dep.type.dtype is not TASK_ID:
            message = f"deps= takes task ids, got {ast.unparse(item)} of type {dep.type}"
            ctx.fail(ParserTypeError, message, item, "a task id comes from out, tid = pl.submit(...)")
    if all(isinstance(d, e.Var) for d in deps):
        return deps
    return [_deps_buffer(ctx, deps, node)]


def _dep_items(ctx: Ctx, node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts)
    if isinstance(node, ast.ListComp):
        return _unrolled(ctx, node)
    hint = "write deps=[tid0, tid1]"
    ctx.fail(ParserSyntaxError, f"deps= must be a list of task ids, got {ast.unparse(node)}", node, hint)


def _unrolled(ctx: Ctx, node: ast.ListComp) -> list[ast.expr]:
    """`[ids[k] for k in range(4)]`, one item per number."""
    from .constants import NotConstant, evaluate

    only = node.generators[0]
    numbers: Any = None
    if len(node.generators) == 1 and not only.ifs and isinstance(only.target, ast.Name):
        source = only.iter
        if isinstance(source, ast.Call) and isinstance(source.func, (ast.Name, ast.Attribute)) and not source.keywords:
            name = source.func.id if isinstance(source.func, ast.Name) else source.func.attr
            try:
                numbers = range(*(evaluate(a, ctx.constant) for a in source.args)) if name == "range" else None
            except (NotConstant, TypeError, ValueError):
                numbers = None
    if numbers is None or len(numbers) > 1024:
        hint = "write [ids[k] for k in range(N)] with N a constant up to 1024"
        ctx.fail(ParserSyntaxError, "deps= takes a list comprehension over a constant range only", node, hint)
    assert isinstance(only.target, ast.Name)
    return [_Replace(only.target.id, k).visit(_copy(node.elt)) for k in numbers]


def _copy(node: ast.expr) -> ast.expr:
    import copy

    return copy.deepcopy(node)


class _Replace(ast.NodeTransformer):
    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Constant(self.value), node) if node.id == self.name else node


def _deps_buffer(ctx: Ctx, deps: Sequence[e.Expr], node: ast.expr) -> e.Expr:
    """A hidden array that holds task ids computed per element."""
    from ...ir.stmt import AssignStmt

    span = ctx.span(node)
    type_ = ArrayType(TASK_ID, e.index(len(deps)))
    made: e.Expr = e.Call(e.Op("array.create"), (e.index(len(deps), span),), {"dtype": TASK_ID}, type_, span)
    buffer = e.Var("_submit_deps_buf", type_, span)
    ctx.emit(AssignStmt(buffer, made, span))
    for i, dep in enumerate(deps):
        made = e.Call(e.Op("array.update_element"), (buffer, e.index(i, span), dep), {}, type_, span)
        ctx.emit(AssignStmt(buffer, made, span))
    return buffer


def misplaced_submit(ctx: Ctx, node: ast.Call) -> None:
    """Refuse a submission inside another expression."""
    hint = "write out, tid = pl.submit(...)"
    ctx.fail(InvalidOperationError, "pl.submit() stands alone on the right of an assignment", node, hint)
