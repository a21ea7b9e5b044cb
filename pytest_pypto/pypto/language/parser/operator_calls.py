"""Operator calls: arguments from AST to values, then the DSL dispatcher, or the IR call as it is printed."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from enum import Enum, IntEnum
from typing import Any, NoReturn

from ...ir import expr as e
from ...ir import op_table
from ...ir.dtypes import DataType
from ...ir.enums import CAST_MODES
from ...ir.types import Type
from .attributes import call_attrs
from .context import Ctx, Value
from .diagnostics import InvalidOperationError, ParserError, ParserTypeError
from .names import MISSING

_NUMBERS = (int, float, bool)
_REGION_OPS = ("aiv_shard", "aic_gather")
_UNKNOWN_IN_IR = frozenset({"value", "shape", "deps", "gm_workspace", "used_cores", "valid_shape", "scratch"})
"""Keywords of printed calls that are operands in the IR; such calls go through the dispatcher."""


def call_operator(
    ctx: Ctx, node: ast.Call, path: tuple[str, str], want: Type | None = None, first: Sequence[Value] | None = None
) -> e.Expr:
    """The IR of an operator call. `first` are positional arguments that are parsed already."""
    root, name = path
    if ctx.program.printed and first is None:
        made = _printed_call(ctx, node, name if root == "pl" else f"pld.{name}", want)
        if made is not None:
            return made
    args = list(first) if first is not None else [argument(ctx, a) for a in node.args]
    kwargs, attrs = _keywords(ctx, node)
    if name.rpartition(".")[2] in _REGION_OPS and ctx.split_mode is not None:
        kwargs.setdefault("split", ctx.split_mode.value)
    made = dispatch(ctx, name if root == "pl" else f"pld.{name}", args, kwargs, node)
    return with_attrs(made, attrs) if attrs else made


def with_attrs(call: e.Expr, attrs: dict[str, Any]) -> e.Expr:
    """The call with attributes attached."""
    if not isinstance(call, e.Call):
        return call
    return e.Call(call.op, call.args, call.kwargs, {**call.attrs, **attrs}, call.type, call.span)


def dispatch(ctx: Ctx, name: str, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> e.Expr:
    """Call the DSL function `pl.<name>`; what it refuses becomes an `InvalidOperationError` at `node`."""
    from ..op.dispatch import UnknownOperation, call_op

    try:
        return call_op(name, args, kwargs, ctx.span(node))
    except ParserError:
        raise
    except UnknownOperation:
        _unknown(ctx, name, node)
    except (TypeError, ValueError, IndexError, OverflowError) as exc:
        ctx.fail(InvalidOperationError, _reason(name, str(exc)), node, signature_of(name))


def signature_of(name: str) -> str | None:
    """How an operation is called, for hints: `pl.tile.load(tensor, offsets, shapes, ...)`."""
    from ..op.dispatch import parameters

    listed = parameters(name)
    if listed is None:
        spec = op_table.find_op(_ir_name(name))
        if spec is None:
            return None
        listed = ", ".join([*(p.name for p in spec.params), *(f"{k.name}=" for k in spec.kwargs)])
    return f"{'' if name.startswith('pld.') else 'pl.'}{name}({listed})"


def _reason(name: str, reason: str) -> str:
    space, _, last = name.rpartition(".")
    if reason.startswith(("pl.", "pld.")):
        return reason
    return f"pl.{space} operation '{last}': {reason}" if space else f"pl operation '{last}': {reason}"


def _unknown(ctx: Ctx, name: str, node: ast.AST) -> NoReturn:
    space, _, last = name.rpartition(".")
    known = [n for n in op_table.all_ops() if not space or n.startswith(f"{space}.")]
    near = _nearest(last, {n.rpartition(".")[2] for n in known})
    hint = (
        f"did you mean pl.{_home(space, near)}{near}()?" if near else "python -m pytest_pypto info lists the operators"
    )
    if not space:
        message = f"Unknown operation 'pl.{last}'"
    elif space.split(".")[0] in ("tensor", "tile", "system", "array", "prefetch", "pld"):
        message = f"Unknown pl.{space} operation: {last}"
    else:
        message = f"Unknown operation 'pl.{space.split('.')[0]}'"
    ctx.fail(InvalidOperationError, message, node, hint)


def _home(space: str, name: str) -> str:
    """The namespace in front of an operator; without a given one, the first that has it: pl, pl.tensor, ..."""
    from ..op.dispatch import signature

    spaces = [space] if space else ["", "tensor", "tile", "system", "array"]
    found = next((s for s in spaces if signature(f"{s}.{name}" if s else name) is not None), space)
    return f"{found}." if found else ""


def _nearest(word: str, names: set[str]) -> str | None:
    """The name that most resembles `word`; of equally near ones the one that starts alike, then the shorter one."""
    import difflib
    import keyword

    legal = sorted(f"{n}_" if keyword.iskeyword(n) else n for n in names)
    near = difflib.get_close_matches(word, legal, n=8)

    def rank(name: str) -> tuple[float, bool, int, str]:
        likeness = difflib.SequenceMatcher(None, name, word).ratio()
        return -round(likeness, 3), not name.startswith(word), len(name), name

    return min(near, key=rank, default=None)


def argument(ctx: Ctx, node: ast.expr) -> Any:
    """An argument as the dispatcher takes it: bare literals stay Python numbers, lists stay lists."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [argument(ctx, item) for item in node.elts]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = ctx.constant(node)
        if type(value) in _NUMBERS or isinstance(value, (DataType, Enum)):
            return value
        if isinstance(value, (list, tuple)):
            from .expressions import closure_value

            return [v if type(v) in _NUMBERS else closure_value(ctx, v, node) for v in value]
        if isinstance(value, str):
            return value
    return ctx.value(node)


def _keywords(ctx: Ctx, node: ast.Call) -> tuple[dict[str, Any], dict[str, Any]]:
    kwargs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            ctx.fail(ParserTypeError, "**keywords are not supported", keyword.value, "write the keywords out")
        if keyword.arg == "attrs":
            attrs = call_attrs(ctx, keyword.value)
        else:
            kwargs[keyword.arg] = argument(ctx, keyword.value)
    return kwargs, attrs


# printed form ----------------------------------------------------------------------------------------------------


@functools.cache
def _ir_name(name: str) -> str:
    """`tile.and_` prints an operator whose name is a Python keyword."""
    return name[:-1] if name.endswith("_") else name


@functools.cache
def _layout(name: str) -> tuple[e.Op, int, int, frozenset[str]] | None:
    """(operator, fewest operands, most operands, keywords) of an operator of the table, or None."""
    spec = op_table.find_op(name)
    if spec is None:
        return None
    required = sum(not p.optional for p in spec.params)
    return e.Op(name), required, len(spec.params), frozenset(k.name for k in spec.kwargs)


def _printed_call(ctx: Ctx, node: ast.Call, name: str, want: Type | None) -> e.Expr | None:
    """The call exactly as the IR layout says, or None when the text is not in that layout."""
    name = _ir_name(name)
    special = _SPECIAL.get(name)
    if special is not None:
        made = special(ctx, node)
        if made is None:
            return None
        args, kwargs, attrs = made
        op = e.Op(name)
    else:
        layout = _layout(name)
        if layout is None or not layout[1] <= len(node.args) <= layout[2]:
            return None
        op, _, _, known = layout
        if any(k.arg not in known and k.arg != "attrs" for k in node.keywords):
            return None
        args = [_operand(ctx, a) for a in node.args]
        kwargs, attrs = _ir_keywords(ctx, node, name)
    span = ctx.span(node)
    if ctx.split_mode is not None and name.endswith(_REGION_OPS) and "split" not in kwargs:
        kwargs = {"split": ctx.split_mode.value, **kwargs}
    if want is None:
        want = _inferred(ctx, name, args, kwargs, node)
    return e.Call(op, args, kwargs, attrs, want, span)


def _inferred(ctx: Ctx, name: str, args: list[e.Expr], kwargs: dict[str, Any], node: ast.Call) -> Type:
    try:
        return op_table.infer_type(name, args, kwargs, ctx.span(node))
    except (TypeError, ValueError, IndexError) as exc:
        ctx.fail(InvalidOperationError, _reason(name, str(exc)), node, signature_of(name))


def _operand(ctx: Ctx, node: ast.expr) -> e.Expr:
    if type(node) is ast.List:
        return e.MakeTuple(tuple(_operand(ctx, item) for item in node.elts), ctx.span(node))
    return ctx.expr(node)


def _ir_keywords(ctx: Ctx, node: ast.Call, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    kwargs: dict[str, Any] = {}
    attrs: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg == "attrs":
            attrs = call_attrs(ctx, keyword.value)
        else:
            assert keyword.arg is not None
            kwargs[keyword.arg] = _ir_keyword(ctx, keyword.value, keyword.arg, name)
    return kwargs, attrs


def _ir_keyword(ctx: Ctx, node: ast.expr, key: str, name: str) -> Any:
    if type(node) is ast.Constant:
        value = node.value
        if key == "mode" and value in CAST_MODES and name.endswith(".cast"):
            return CAST_MODES.index(value)
        return value
    if type(node) is ast.Attribute:
        value = ctx.constant(node)
        if isinstance(value, IntEnum):
            return int(value)
        if value is not MISSING:
            return value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_ir_keyword(ctx, item, key, name) for item in node.elts]
    return ctx.value(node)


Layout = tuple[list[e.Expr], dict[str, Any], dict[str, Any]]


def _split_keywords(ctx: Ctx, node: ast.Call, name: str, moved: Sequence[str]) -> Layout:
    """Operands and keywords when some keywords of the text are operands."""
    named = {k.arg: k.value for k in node.keywords if k.arg is not None}
    rest = ast.copy_location(
        ast.Call(func=node.func, args=node.args, keywords=[k for k in node.keywords if k.arg not in moved]), node
    )
    kwargs, attrs = _ir_keywords(ctx, rest, name)
    args = [_operand(ctx, a) for a in node.args]
    args += [_operand(ctx, named[m]) for m in moved if m in named]
    return args, kwargs, attrs


def _full(ctx: Ctx, node: ast.Call) -> Layout | None:
    """`pl.tile.full([...], dtype=D, value=v)`: the value is an operand of the element type."""
    value = next((k.value for k in node.keywords if k.arg == "value"), None)
    if value is None or len(node.args) != 1:
        return None
    args, kwargs, attrs = _split_keywords(ctx, node, "tile.full", ("value",))
    literal = ctx.value(value)
    dtype = kwargs.get("dtype")
    if not isinstance(dtype, DataType) or type(literal) not in (int, float):
        return None
    from ...ir.op.level import fill_value

    return [args[0], fill_value(literal, dtype, ctx.span(value))], kwargs, attrs


def _task_dummy(ctx: Ctx, node: ast.Call) -> Layout | None:
    deps = next((k.value for k in node.keywords if k.arg == "deps"), None)
    if node.args or (deps is not None and not isinstance(deps, (ast.List, ast.Tuple))):
        return None
    args = [] if deps is None else [ctx.expr(d) for d in deps.elts]
    rest = ast.copy_location(
        ast.Call(func=node.func, args=[], keywords=[k for k in node.keywords if k.arg != "deps"]), node
    )
    return (args, *_ir_keywords(ctx, rest, "system.task_dummy"))


def _named_operands(name: str, moved: Sequence[str]) -> Callable[[Ctx, ast.Call], Layout | None]:
    def special(ctx: Ctx, node: ast.Call) -> Layout | None:
        return _split_keywords(ctx, node, name, moved)

    return special


_SPECIAL: dict[str, Callable[[Ctx, ast.Call], Layout | None]] = {
    "tile.full": _full,
    "tensor.full": _full,
    "system.task_dummy": _task_dummy,
    "system.syncall": _named_operands("system.syncall", ("gm_workspace", "used_cores")),
    "tile.reinterpret_view": _named_operands("tile.reinterpret_view", ("shape",)),
    "tensor.reinterpret_view": _named_operands("tensor.reinterpret_view", ("shape",)),
}
