"""Assignments: names, annotated names, tuples, subscripts, and what an annotation says about a value."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir import types as t
from ...ir.dtypes import INDEX
from ...ir.enums import FunctionType
from ...ir.extents import equal
from .annotations import Annotation, resolve
from .context import Ctx, YieldFrame
from .diagnostics import ParserSyntaxError, ParserTypeError, SSAViolationError
from .printed import print_type
from .subscripts import write_subscript


def is_call_of(ctx: Ctx, node: ast.AST | None, *names: str) -> bool:
    """True for `pl.<name>(...)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in names:
        return False
    path = ctx.path(node.func)
    return path is not None and path[0] == "pl"


def is_yield(ctx: Ctx, node: ast.AST | None) -> bool:
    """True for `pl.yield_(...)`."""
    return is_call_of(ctx, node, "yield_")


def assign_targets(ctx: Ctx, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
    """`target = value` without annotation."""
    if isinstance(target, ast.Name):
        assign_name(ctx, target, value, node)
    elif isinstance(target, ast.Subscript):
        write_subscript(ctx, target, value, node)
    elif isinstance(target, (ast.Tuple, ast.List)):
        if is_yield(ctx, value):
            _yield_names(ctx, target, value, node)
        elif is_call_of(ctx, value, "submit", "spmd_submit"):
            _submit_targets(ctx, target, value, node)
        else:
            _unpack(ctx, [_plain_name(ctx, x, node) for x in target.elts], ctx.expr(value), "_tuple_tmp", node)
    else:
        ctx.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(node)}", node, "assign to a plain name")


def _plain_name(ctx: Ctx, node: ast.expr, whole: ast.AST) -> ast.Name:
    if not isinstance(node, ast.Name):
        hint = "targets of a tuple assignment are plain names"
        ctx.fail(ParserSyntaxError, f"Unsupported assignment: {ast.unparse(whole)}", node, hint)
    return node


def assign_name(
    ctx: Ctx, target: ast.Name, value: ast.expr, node: ast.stmt, annotation: ast.expr | None = None
) -> None:
    """`name = value` and `name: T = value`."""
    said = None if annotation is None else resolve(ctx, annotation)
    if is_yield(ctx, value):
        assert isinstance(value, ast.Call)
        _yield_one(ctx, target.id, value, said, node)
        return
    if said is not None and ctx.program.printed:
        ctx.want = said.type if type(value) is ast.Call else None
        made = ctx.expr(value)
        ctx.want = None
        if made.type is said.type or not isinstance(made, (e.Call, e.Submit)):
            bind(ctx, target.id, made, said.type, node)
            return
        made, type_ = apply_annotation(ctx, target, made, said)
        bind(ctx, target.id, made, type_, node)
        return
    made = ctx.expr(value)
    if said is None and _names_a_symbol(ctx, target.id, made):
        return
    type_ = made.type
    if said is not None:
        made, type_ = apply_annotation(ctx, target, made, said)
    bind(ctx, target.id, made, type_, node)


def _names_a_symbol(ctx: Ctx, name: str, value: e.Expr) -> bool:
    """In an Orchestration function `n = <extent symbol of a parameter>` only names the symbol."""
    if ctx.func_type is not FunctionType.Orchestration:
        return False
    if isinstance(value, e.Call) and value.op.name == "tensor.dim" and any(value.args[0] is p for p in ctx.params):
        axis, type_ = e.const_value(value.args[1]), value.args[0].type
        if axis is not None and isinstance(type_, t.TensorType):
            value = type_.shape[axis]
    if not isinstance(value, e.Var) or not any(value is s for s in ctx.program.symbols.values()):
        return False
    ctx.scopes.define(name, value)
    return True


def bind(ctx: Ctx, name: str, value: e.Expr, type_: t.Type, node: ast.AST) -> e.Var:
    """Emit `name = value`; a name that is a plain variable already is assigned again."""
    span = ctx.span(node)
    if isinstance(type_, t.PtrType):
        var = ctx.base(name)
        ctx.scopes.define(name, var)
        ctx.emit(s.AssignStmt(var, value, span))
        return var
    old = ctx.scopes.find(name)
    if ctx.strict and old is not None and ctx.scopes.found_in_this_frame(name) is not None:
        ctx.fail(
            SSAViolationError,
            f"Variable '{name}' is already defined",
            node,
            "strict_ssa allows one assignment per name: choose another name",
            previous_span=old.span,
        )
    if type(old) is e.Var and _is_assigned_again(ctx, name, old, type_, node):
        ctx.emit(s.AssignStmt(old, value, span))
        return old
    var = e.Var(name, type_, span)
    ctx.scopes.define(name, var)
    ctx.poisoned.discard(name)
    ctx.emit(s.AssignStmt(var, value, span))
    return var


def _is_assigned_again(ctx: Ctx, name: str, old: e.Var, type_: t.Type, node: ast.AST) -> bool:
    """True when the old variable is assigned again, False when `name` becomes a fresh one.

    A name that only a closed sibling loop or scope defined may come back with another type: it is another variable.
    """
    if ctx.strict or name in ctx.poisoned or old in ctx.loop_vars:
        return False
    if same_type(old.type, type_):
        return True
    if ctx.scopes.has_only_leaked(name) and name not in ctx.branch_names:
        return False
    message = f"Cannot reassign '{name}' with a different type: was {print_type(old.type)}, got {print_type(type_)}"
    hint = "choose another name for the new value"
    if _became_index(old.type, type_):
        want = print_type(old.type)
        dtype = want[want.index("[") + 1 : -1]
        hint = f"a bare integer is an INDEX: write pl.const(2, {dtype}) for it, or {name}: {want} = ..."
    ctx.fail(ParserTypeError, message, node, hint)


def _became_index(old: t.Type, new: t.Type) -> bool:
    """True for an integer of another type that was computed together with bare integers."""
    both = isinstance(old, t.ScalarType) and isinstance(new, t.ScalarType)
    return both and old.dtype.is_int() and new.dtype is INDEX  # type: ignore[attr-defined]


def same_type(a: t.Type, b: t.Type) -> bool:
    """Equal types, up to MemRefs and to provably equal extents."""
    if a is b or a == b:
        return True
    if type(a) is not type(b):
        return isinstance(a, t.UnknownType) or isinstance(b, t.UnknownType)
    if isinstance(a, t.TupleType) and isinstance(b, t.TupleType):
        return len(a.types) == len(b.types) and all(map(same_type, a.types, b.types))
    if isinstance(a, t.ShapedType) and isinstance(b, t.ShapedType):
        if a.dtype is not b.dtype or len(a.shape) != len(b.shape) or not all(map(equal, a.shape, b.shape)):
            return False
        return _same_views(a, b)
    return False


def _layout(tile: t.TileType) -> tuple[Any, ...]:
    view = tile.get_effective_tile_view()
    return view.blayout, view.slayout, view.fractal, view.pad, view.compact


def _same_views(a: t.ShapedType, b: t.ShapedType) -> bool:
    if isinstance(a, t.TileType) and isinstance(b, t.TileType):
        return a.space is b.space and _layout(a) == _layout(b) and all(map(equal, a.valid_shape, b.valid_shape))
    if isinstance(a, t.TensorType) and isinstance(b, t.TensorType):
        if a.tensor_view is None and b.tensor_view is None:
            return True
        x2, y2 = a.tensor_view or t.TensorView(), b.tensor_view or t.TensorView()
        if x2.layout is not y2.layout or x2.pad is not y2.pad or len(x2.stride) != len(y2.stride):
            return False
        pairs = (*zip(x2.stride, y2.stride, strict=True), *zip(a.valid_shape, b.valid_shape, strict=True))
        return all(equal(*p) for p in pairs)
    return True


# annotations -------------------------------------------------------------------------------------------------------


def apply_annotation(ctx: Ctx, target: ast.Name, value: e.Expr, said: Annotation) -> tuple[e.Expr, t.Type]:
    """The value and the variable's type after an annotation has been checked and taken over."""
    want, have = said.type, value.type
    if isinstance(want, (t.UnknownType, t.MemRefType)) or (isinstance(want, t.PtrType) and isinstance(have, t.PtrType)):
        return value, want if isinstance(want, t.PtrType) else have
    if isinstance(have, t.UnknownType):
        return _retyped(value, want), want
    _check(ctx, target, want, have)
    type_ = _merged(want, have, said)
    if isinstance(value, e.ConstInt) and isinstance(type_, t.ScalarType) and type_.dtype is not value.dtype:
        return e.ConstInt(ctx.fitting(value.value, type_.dtype, target), type_.dtype, value.span), type_
    return (_retyped(value, type_) if type_ is not have else value), type_


def _retyped(value: e.Expr, type_: t.Type) -> e.Expr:
    """Calls and submits carry the type of the variable they are assigned to."""
    if isinstance(value, e.Call):
        return e.Call(value.op, value.args, value.kwargs, value.attrs, type_, value.span)
    if isinstance(value, e.Submit):
        from ...ir.visitor import replace_submit

        return replace_submit(value, type=type_)
    return value


def _kind_name(type_: t.Type) -> str:
    return type(type_).__name__.removesuffix("Type")


def _check(ctx: Ctx, target: ast.Name, want: t.Type, have: t.Type) -> None:
    """Refuse an annotation that contradicts the value's type."""
    problem = _contradiction(want, have)
    if problem is not None:
        message = f"Type annotation for '{target.id}' {problem}"
        ctx.fail(ParserTypeError, message, target, f"Change annotation to: {print_type(have)}")


def _contradiction(want: t.Type, have: t.Type) -> str | None:
    if isinstance(want, t.TensorType) != isinstance(have, t.TensorType) or (
        type(want) is not type(have) and not isinstance(want, t.TensorType)
    ):
        return f"is {_kind_name(want)} but expression has type {_kind_name(have)}"
    if isinstance(want, t.ScalarType) and isinstance(have, t.ScalarType):
        return _dtype_problem(want.dtype, have.dtype)
    if isinstance(want, t.TupleType) and isinstance(have, t.TupleType):
        if len(want.types) != len(have.types):
            return f"has {len(want.types)} elements but expression has {len(have.types)}"
        for a, b in zip(want.types, have.types, strict=True):
            problem = None if isinstance(b, t.UnknownType) else _contradiction(a, b)
            if problem is not None:
                return problem
    if isinstance(want, t.ShapedType) and isinstance(have, t.ShapedType):
        return _dtype_problem(want.dtype, have.dtype) or _shape_problem(want, have)
    return None


def _dtype_problem(want: Any, have: Any) -> str | None:
    loose = INDEX in (want, have) and want.is_int() and have.is_int()
    return None if want is have or loose else f"has dtype {want} but expression has dtype {have}"


def _shape_problem(want: t.ShapedType, have: t.ShapedType) -> str | None:
    if len(want.shape) != len(have.shape):
        if isinstance(want, t.TileType) and len(want.shape) <= 2 < len(have.shape):
            return None
        return f"has rank {len(want.shape)} but expression has rank {len(have.shape)}"
    for i, (a, b) in enumerate(zip(want.shape, have.shape, strict=True)):
        x, y = e.const_value(a), e.const_value(b)
        if x is not None and y is not None and x != y:
            return f"has shape dimension {i} = {x} but expression has shape dimension {i} = {y}"
    return None


def _merged(want: t.Type, have: t.Type, said: Annotation) -> t.Type:
    """What the annotation contributes to the type of the value."""
    if isinstance(want, t.ScalarType) and isinstance(have, t.ScalarType):
        return want if have.dtype is INDEX else have
    if isinstance(want, t.TensorType) and isinstance(have, t.TensorType):
        return want if said.explicit else have
    if isinstance(want, t.TileType) and isinstance(have, t.TileType):
        return _merged_tile(want, have, said.explicit)
    return have


def _merged_tile(want: t.TileType, have: t.TileType, explicit: frozenset[str]) -> t.TileType:
    if len(want.shape) != len(have.shape):
        return want
    symbolic = any(e.const_value(a) is None for a in want.shape)
    shape = want.shape if symbolic else have.shape
    space = want.space if "space" in explicit else have.space
    memref = want.memref if "memref" in explicit else have.memref
    view = want.tile_view if "view" in explicit else have.tile_view
    if shape is have.shape and space is have.space and memref is have.memref and view is have.tile_view:
        return have
    return t.TileType(shape, have.dtype, memref, view, space)


# yields ------------------------------------------------------------------------------------------------------------


def _yield_one(ctx: Ctx, name: str, call: ast.Call, said: Annotation | None, node: ast.stmt) -> None:
    values = _yielded(ctx, call)
    frame = _frame(ctx)
    if name not in frame.names:
        frame.names.append(name)
    if said is not None:
        frame.annotations[name] = said.type
    _emit_yield(ctx, frame, values, [name], node)


def _yield_names(ctx: Ctx, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> None:
    assert isinstance(value, ast.Call)
    names = [_plain_name(ctx, x, node).id for x in target.elts]
    values = _yielded(ctx, value)
    frame = _frame(ctx)
    frame.names.extend(n for n in names if n not in frame.names)
    _emit_yield(ctx, frame, values, names, node)


def _yielded(ctx: Ctx, call: ast.Call) -> tuple[e.Expr, ...]:
    if call.keywords:
        ctx.fail(ParserSyntaxError, "pl.yield_() takes positional arguments only", call.keywords[0].value)
    nodes = call.args
    if len(nodes) == 1 and isinstance(nodes[0], ast.Tuple):
        nodes = nodes[0].elts
    return tuple(ctx.expr(a) for a in nodes)


def _frame(ctx: Ctx) -> YieldFrame:
    return ctx.yields[-1] if ctx.yields else YieldFrame()


def _emit_yield(ctx: Ctx, frame: YieldFrame, values: tuple[e.Expr, ...], names: list[str], node: ast.stmt) -> None:
    for name, value in zip(names, values, strict=False):
        frame.values.setdefault(name, value)
    ctx.emit(s.YieldStmt(values, ctx.span(node)))


# tuples ------------------------------------------------------------------------------------------------------------


def _unpack(ctx: Ctx, names: list[ast.Name], value: e.Expr, temp: str, node: ast.stmt) -> None:
    """`a, b = value`: a hidden variable holds the tuple, each name takes an item."""
    whole = e.Var(temp, value.type, ctx.span(node))
    ctx.emit(s.AssignStmt(whole, value, ctx.span(node)))
    for i, name in enumerate(names):
        bind_item(ctx, name.id, whole, i, name)


def bind_item(ctx: Ctx, name: str, whole: e.Expr, index: int, node: ast.AST) -> None:
    """`name = whole[index]`."""
    item = tuple_item(ctx, whole, index, node)
    bind(ctx, name, item, item.type, node)


def tuple_item(ctx: Ctx, whole: e.Expr, index: int, node: ast.AST) -> e.Expr:
    """Item `index` of a tuple value."""
    if not isinstance(whole.type, (t.TupleType, t.UnknownType)):
        kind = type(whole.type).__name__
        hint = "assign it to one name"
        ctx.wrong(f"TupleGetItemExpr requires tuple to have TupleType, got {kind}", node, hint)
    try:
        return e.TupleGetItemExpr(whole, index, ctx.span(node))
    except IndexError as exc:
        ctx.wrong(exc, node, "items count from 0")


def _submit_targets(ctx: Ctx, target: ast.Tuple | ast.List, value: ast.expr, node: ast.stmt) -> None:
    """`out, tid = pl.submit(...)`, `(x, y), tid = ...` and `x, y, tid = ...`."""
    names: list[ast.Name] = []
    for item in target.elts:
        parts = item.elts if isinstance(item, (ast.Tuple, ast.List)) else [item]
        names.extend(_plain_name(ctx, p, node) for p in parts)
    made = ctx.expr(value)
    if isinstance(made.type, t.TupleType) and len(names) != len(made.type.types):
        count = len(made.type.types)
        message = f"pl.submit() gives {count} value(s), the last one the task id, but {len(names)} name(s) take them"
        ctx.fail(ParserSyntaxError, message, target, "write out, tid = pl.submit(...)")
    _unpack(ctx, names, made, "_submit_tmp", node)
