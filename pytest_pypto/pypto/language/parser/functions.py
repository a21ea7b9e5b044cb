"""Functions: decorator arguments, parameters, body."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType, Level, ParamDirection, Role, level_to_linqu_level
from ...ir.program import DERIVED_LEVEL_ROLE, Function
from ...ir.types import ScalarType
from ..typing import DynVar
from . import calls  # noqa: F401  fills the table of expressions
from .annotations import parameter, returns
from .context import Ctx, ProgramContext, Signature
from .diagnostics import ParserError, ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from .names import MISSING, Closure
from .statements import attribute_prologue, parse_body
from .text import Source

_ENUMS: dict[str, Any] = {"type": FunctionType, "level": Level, "role": Role}
_BOOLS = ("auto_scope", "strict_ssa")
_KNOWN = "type, level, role, attrs, auto_scope, strict_ssa, external_source"


@dataclass(slots=True)
class Options:
    """Arguments of `@pl.function`."""

    type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    attrs: dict[str, Any] | None = None
    auto_scope: bool = True
    strict_ssa: bool = False
    external_source: str | None = None


def decorator_of(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, *names: str) -> ast.expr | None:
    """The decorator whose last name is one of `names`, or None."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        last = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        if last in names:
            return decorator
    return None


def options_of(ctx: Ctx, decorator: ast.expr) -> Options:
    """The arguments written in a decorator."""
    made = Options()
    if not isinstance(decorator, ast.Call):
        return made
    if decorator.args:
        ctx.fail(
            ParserSyntaxError, "@pl.function takes keyword arguments only", decorator.args[0], f"keywords: {_KNOWN}"
        )
    for keyword in decorator.keywords:
        key, value = keyword.arg, keyword.value
        if key in _ENUMS:
            setattr(made, key, _enum(ctx, value, _ENUMS[key], key))
        elif key in _BOOLS:
            setattr(made, key, bool_option(ctx, value, key))
        elif key == "attrs":
            made.attrs = _deprecated_attrs(ctx, value)
        elif key == "external_source":
            made.external_source = _text(ctx, value, key)
        else:
            message = f"Unknown keyword argument '{key or '**'}' in @pl.function"
            ctx.fail(ParserSyntaxError, message, keyword, f"keywords: {_KNOWN}")
    return made


def _deprecated_attrs(ctx: Ctx, node: ast.expr) -> dict[str, Any]:
    from .attributes import dict_attrs
    from .expressions import warn

    message = "@pl.function(attrs=...) is deprecated: write pl.func_attr({...}) at the head of the body"
    warn(ctx, message, node, DeprecationWarning)
    return dict_attrs(ctx, node)


def _enum(ctx: Ctx, node: ast.expr, enum: Any, key: str) -> Any:
    value = ctx.constant(node) if isinstance(node, (ast.Name, ast.Attribute)) else MISSING
    if isinstance(value, enum):
        return value
    good = ", ".join(f"pl.{enum.__name__}.{m}" for m in enum.__members__)
    if isinstance(node, ast.Attribute):
        message = f"Unknown {enum.__name__} value: {node.attr}"
        error = ctx.error(ParserSyntaxError, message, node, f"one of {good}")
        _point_at_name(error, node)
        raise error
    message = f"Expected pl.{enum.__name__}.<name> for {key}=, got {ast.unparse(node)}"
    ctx.fail(ParserSyntaxError, message, node, f"one of {good}")


def _point_at_name(error: ParserError, node: ast.Attribute) -> None:
    """Move the place of an error to the last name of a dotted one."""
    if error.span is not None and error.span["end_line"] == error.span["line"]:
        column = error.span["end_column"] - len(node.attr)
        error.span["column"] = error.span["begin_column"] = column


def bool_option(ctx: Ctx, node: ast.expr, key: str) -> bool:
    """True or False, or a name from outside that holds one."""
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if type(value) is not bool:
        ctx.fail(ParserSyntaxError, f"{key}= must be True or False, got {ast.unparse(node)}", node)
    return value


def _text(ctx: Ctx, node: ast.expr, key: str) -> str:
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if not isinstance(value, str):
        ctx.fail(ParserSyntaxError, f"{key}= must be a string, got {ast.unparse(node)}", node)
    return value


def function_context(
    source: Source, closure: Closure, program: ProgramContext, node: ast.FunctionDef, options: Options
) -> Ctx:
    """A fresh context for one function."""
    implied = DERIVED_LEVEL_ROLE.get(options.type, (None, None))
    return Ctx(
        source,
        closure,
        program,
        node.name,
        options.type,
        options.level or implied[0],
        options.role or implied[1],
        options.auto_scope,
        options.strict_ssa or program.strict,
    )


def parse_function(ctx: Ctx, node: ast.FunctionDef, options: Options) -> Function:
    """The function that a `def` describes; errors of its body are collected in `ctx.program.errors`.

    Raises:
        ParserError: the signature cannot be read.
    """
    is_binding = _kept_as_text(options)
    params = _parameters(ctx, node)
    result = returns(ctx, node.returns)
    ctx.params = tuple(v for v, _ in params)
    signature = ctx.program.functions.setdefault(node.name, Signature(node.name))
    signature.params, signature.return_types, signature.role = ctx.params, result, ctx.role
    if is_binding:
        body, attrs, unbound = _python_body(ctx, node)
    else:
        attrs, body = _body(ctx, node)
        unbound = _is_declaration(node)
    attrs = _attributes(options, attrs)
    try:
        made = Function(
            node.name, params, result, body, ctx.span(node), options.type, options.level, options.role, attrs, unbound
        )
    except ValueError as exc:
        ctx.fail(ParserSyntaxError, str(exc), node, "drop level= and role=: they follow from type=")
    signature.function = made
    return made


def _attributes(options: Options, attrs: dict[str, Any]) -> dict[str, Any]:
    made = dict(options.attrs or {})
    made.update(attrs)
    if not options.auto_scope:
        made["auto_scope"] = False
    if options.external_source is not None:
        made["external_source"] = options.external_source
    return made


def _parameters(ctx: Ctx, node: ast.FunctionDef) -> list[tuple[e.Var, ParamDirection]]:
    _check_kinds(ctx, node.args)
    args = [*node.args.posonlyargs, *node.args.args]
    if args and args[0].arg == "self" and args[0].annotation is None:
        args = args[1:]
    made: list[tuple[e.Var, ParamDirection]] = []
    for arg in args:
        if arg.annotation is None:
            message = f"Parameter '{arg.arg}' missing type annotation"
            ctx.fail(ParserTypeError, message, arg, f"write {arg.arg}: pl.Tensor[[rows, cols], dtype]")
        said = parameter(ctx, arg.annotation)
        var = e.Var(arg.arg, said.type, ctx.span(arg))
        _note_symbol(ctx, arg, var)
        if ctx.scopes.find(arg.arg) is not None:
            ctx.fail(ParserSyntaxError, f"duplicate parameter '{arg.arg}'", arg, "rename one")
        ctx.scopes.define(arg.arg, var)
        made.append((var, said.direction))
    return made


def _check_kinds(ctx: Ctx, args: ast.arguments) -> None:
    """Callers pass every parameter by position; default values stand for nothing, which is said once."""
    if args.defaults:
        from .expressions import warn

        message = "default values of parameters have no effect: callers pass every parameter of a @pl.function"
        warn(ctx, message, args.defaults[0])
    other = args.vararg or args.kwarg or (args.kwonlyargs[0] if args.kwonlyargs else None)
    if other is not None:
        message = f"Unsupported kind of parameter: '{other.arg}'"
        hint = "list the parameters one by one, without * and **: callers pass them by position"
        ctx.fail(UnsupportedFeatureError, message, other, hint)


def _note_symbol(ctx: Ctx, arg: ast.arg, var: e.Var) -> None:
    """A scalar parameter named like a dynamic extent from outside becomes that extent for this function."""
    value = ctx.closure.get(arg.arg)
    if not isinstance(value, DynVar) or not isinstance(var.type, ScalarType) or not var.type.dtype.is_int():
        return
    if value.name in ctx.used_symbols:
        message = f"parameter '{arg.arg}' is the extent of an earlier parameter: put it first"
        ctx.fail(ParserTypeError, message, arg, f"move '{arg.arg}' before the parameters whose shape uses it")
    ctx.symbol_params[value.name] = var


def _kept_as_text(options: Options) -> bool:
    """A host-side worker: its body is Python for another process, kept as it is."""
    level = options.level
    return level is not None and options.role is Role.SubWorker and level_to_linqu_level(level) >= 3


def _python_body(ctx: Ctx, node: ast.FunctionDef) -> tuple[s.Stmt, dict[str, Any], bool]:
    if node.args.args and node.args.args[0].arg == "self":
        message = f"worker function '{node.name}' must not declare self"
        ctx.fail(ParserSyntaxError, message, node, "it runs in another process: drop self")
    if _is_declaration(node):
        return s.SeqStmts((), ctx.span(node)), {}, True
    text = "\n".join(ast.unparse(stmt) for stmt in node.body)
    return s.SeqStmts((s.InlineStmt(text, span=ctx.span(node.body[0])),), ctx.span(node)), {}, False


def _is_declaration(node: ast.FunctionDef) -> bool:
    """The body ends in `...`: the function is defined elsewhere."""
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def _body(ctx: Ctx, node: ast.FunctionDef) -> tuple[dict[str, Any], s.Stmt]:
    first = node.body[0].lineno
    ctx.comments = {k: v for k, v in ctx.comments.items() if first - _gap(node) <= k <= (node.end_lineno or first)}
    attrs, rest = attribute_prologue(ctx, node.body)
    parse_body(ctx, rest)
    return attrs, s.SeqStmts(tuple(ctx.out), ctx.span(node))


def _gap(node: ast.FunctionDef) -> int:
    """Comment lines between the head of a function and its first statement belong to that statement."""
    last = node.returns or (node.args.args[-1] if node.args.args else None)
    head = node.lineno if last is None else (last.end_lineno or node.lineno)
    return max(0, node.body[0].lineno - head - 1)


def declare(ctx: Ctx, node: ast.FunctionDef) -> None:
    """Make a method callable before it is parsed."""
    ctx.program.functions.setdefault(node.name, Signature(node.name))
