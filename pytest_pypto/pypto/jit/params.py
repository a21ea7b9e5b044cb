"""Parameters of jit functions: what their annotations and `bind_dynamic` statements say."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from ..ir import types as t
from ..ir.enums import TensorLayout
from ..ir.expr import ConstInt, Var
from ..language.parser.annotations import resolve
from ..language.parser.context import Ctx
from ..language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from ..language.parser.names import MISSING
from ..language.typing import DynVar
from .late import placed
from .source import FunctionSource


@dataclass(frozen=True)
class Param:
    """One parameter. `type` is None unless the annotation is complete; `dynamic` maps axes to symbol names."""

    name: str
    kind: str
    """"tensor", "scalar", "value" (another type, in helpers only) or "any" (no annotation)."""
    direction: str = ""
    """"", "Out" or "InOut"."""
    type: t.Type | None = None
    layout: TensorLayout = TensorLayout.ND
    dynamic: dict[int, str] = field(default_factory=dict)
    node: ast.arg | None = None


def read_params(ctx: Ctx, source: FunctionSource) -> dict[str, Param]:
    """The parameters by name, dynamic extents included.

    Raises:
        ParserError: an annotation that is none, or a parameter that is no single value.
    """
    _check_list(ctx, source)
    found = {a.arg: _param(ctx, a) for a in source.params}
    for name, axis, symbol in bound_extents(ctx, source.node.body):
        if name in found:
            found[name] = replace(found[name], dynamic={**found[name].dynamic, axis: symbol})
    return found


def _check_list(ctx: Ctx, source: FunctionSource) -> None:
    """Refuse `*args`, `**options` and the `self` of a method."""
    args, params = source.node.args, source.params
    starred = args.vararg or args.kwarg
    if starred is not None:
        stars = "*" if args.vararg is not None else "**"
        message = f"jit function '{ctx.name}' cannot take {stars}{starred.arg}"
        ctx.fail(ParserSyntaxError, message, starred, "write one parameter per tensor or scalar")
    in_class = "." in source.func.__qualname__.rpartition("<locals>.")[2]
    if in_class and params and params[0].arg in ("self", "cls") and params[0].annotation is None:
        message = f"jit function '{ctx.name}' is a method; a jit function takes tensors and scalars only"
        ctx.fail(ParserSyntaxError, message, params[0], "write @staticmethod above @pl.jit, and drop the parameter")


def _param(ctx: Ctx, arg: ast.arg) -> Param:
    node, direction = arg.annotation, ""
    if node is None:
        return Param(arg.arg, "any", node=arg)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = _annotation_text(ctx, node.value, node)
    if isinstance(node, ast.Subscript) and _name(ctx, node.value) in ("Out", "InOut"):
        direction, node = str(_name(ctx, node.value)), node.slice
    if _name(ctx, node) in ("Tensor", "DistributedTensor"):
        return Param(arg.arg, "tensor", direction, node=arg)
    if _name(ctx, node) == "Scalar":
        return Param(arg.arg, "scalar", direction, node=arg)
    if _name(ctx, node) in ("Tile", "Array", "Tuple"):
        return Param(arg.arg, "value", direction, node=arg)
    _refuse_python(ctx, arg, node)
    type_ = resolve(ctx, node).type
    if isinstance(type_, t.ScalarType):
        return Param(arg.arg, "scalar", direction, type_, node=arg)
    if not isinstance(type_, t.TensorType):
        return Param(arg.arg, "value", direction, type_, node=arg)
    dynamic = {k: d.name_hint for k, d in enumerate(type_.shape) if isinstance(d, Var)}
    layout = type_.tensor_view.layout if type_.tensor_view is not None else TensorLayout.ND
    return Param(arg.arg, "tensor", direction, type_, layout, dynamic, arg)


def _annotation_text(ctx: Ctx, text: str, node: ast.expr) -> ast.expr:
    """The expression that an annotation in quotes holds, at the place of the quotes."""
    try:
        return placed(ast.parse(text.strip(), mode="eval").body, node)
    except SyntaxError as error:
        ctx.fail(ParserSyntaxError, f"the annotation {text!r} is no expression: {error.msg}", node)


_SCALARS = {"int": "pl.INT32", "float": "pl.FP32", "bool": "pl.BOOL"}


def _refuse_python(ctx: Ctx, arg: ast.arg, node: ast.expr) -> None:
    """Refuse `n: int`, which leaves the element type open."""
    if isinstance(node, ast.Name) and node.id in _SCALARS and ctx.closure.get(node.id) is MISSING:
        hint = f"write {arg.arg}: pl.Scalar[{_SCALARS[node.id]}] (or another dtype)"
        ctx.fail(ParserTypeError, f"Unsupported type annotation: {node.id}", node, hint)


def _name(ctx: Ctx, node: ast.expr) -> str | None:
    """`Tensor` for `pl.Tensor`, or for a bare name bound to that class."""
    path = ctx.path(node)
    if path is not None:
        return path[1]
    value = ctx.closure.get(node.id) if isinstance(node, ast.Name) else MISSING
    module = getattr(value, "__module__", "")
    return value.__name__ if isinstance(value, type) and module.endswith("pypto.language.typing") else None


def bound_extents(ctx: Ctx, body: list[ast.stmt]) -> list[tuple[str, int, str]]:
    """(parameter, axis, symbol) of every `x.bind_dynamic(axis, D)`.

    Raises:
        ParserTypeError: the axis is no constant, or D no dynamic extent.
    """
    symbols = local_symbols(ctx, body)
    found = []
    for stmt in body:
        call = bind_call(stmt)
        if call is None:
            continue
        axis, var = (*call.args, None, None)[:2]
        value = axis.value if isinstance(axis, ast.Constant) else ctx.constant(axis) if axis is not None else MISSING
        symbol = symbols.get(var.id) if isinstance(var, ast.Name) else None
        if symbol is None and var is not None:
            known = ctx.constant(var)
            symbol = known.name if isinstance(known, DynVar) else None
        if isinstance(axis, ast.UnaryOp) or (isinstance(value, int) and value < 0):
            ctx.fail(ParserTypeError, "bind_dynamic() counts axes from 0 on, got a negative one", axis)
        if not isinstance(value, int) or symbol is None:
            hint = 'write x.bind_dynamic(0, D) with D = pl.dynamic("D")'
            ctx.fail(ParserTypeError, "bind_dynamic() takes a constant axis and a dynamic extent", call, hint)
        assert isinstance(call.func, ast.Attribute)
        assert isinstance(call.func.value, ast.Name)
        found.append((call.func.value.id, value, symbol))
    return found


def bind_call(stmt: ast.stmt) -> ast.Call | None:
    """The call of a statement `x.bind_dynamic(...)`, or None."""
    call = stmt.value if isinstance(stmt, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call if call.func.attr == "bind_dynamic" and isinstance(call.func.value, ast.Name) else None


def local_symbols(ctx: Ctx, body: list[ast.stmt]) -> dict[str, str]:
    """Names bound by `D = pl.dynamic("D")` in the body, with the symbol each stands for."""
    found = {}
    for stmt in body:
        symbol = dynamic_name(ctx, stmt)
        if symbol is not None:
            assert isinstance(stmt, ast.Assign)
            assert isinstance(stmt.targets[0], ast.Name)
            found[stmt.targets[0].id] = symbol
    return found


def dynamic_name(ctx: Ctx, stmt: ast.stmt) -> str | None:
    """`D` for the statement `d = pl.dynamic("D")`, else None."""
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], ast.Name):
        return None
    call = stmt.value
    if not isinstance(call, ast.Call) or ctx.path(call.func) != ("pl", "dynamic") or len(call.args) != 1:
        return None
    return str(call.args[0].value) if isinstance(call.args[0], ast.Constant) else None


def extents(type_: t.TensorType) -> list[int | str]:
    """Constant extents as ints, symbolic ones by name."""
    return [d.value if isinstance(d, ConstInt) else getattr(d, "name_hint", "?") for d in type_.shape]
