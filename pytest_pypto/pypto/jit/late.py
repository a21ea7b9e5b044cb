"""Shapes and element types of local variables, which only the parser knows.

`t.shape` and `t.dtype` of a variable stay in the rewritten body. A statement that mentions them becomes a *late* one:
the parser hands it back when it gets there, when the type of `t` is known; the numbers are put in then.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any, TypeVar

from ..ir import expr as e
from ..ir import types as t
from ..ir.dtypes import DataType
from ..language.parser.constants import NotConstant, evaluate
from ..language.parser.context import STATEMENTS, Ctx
from ..language.parser.diagnostics import ParserSyntaxError
from ..language.parser.names import MISSING
from ..language.parser.statements import parse_body

_HEADS = {ast.If: "test", ast.While: "test", ast.For: "iter", ast.With: "items"}
"""The part of a compound statement that is read before its body."""
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_LATE: dict[type[ast.stmt], type[ast.stmt]] = {}
Node = TypeVar("Node", bound=ast.AST)


def _class_for(base: type[ast.stmt]) -> None:
    """A statement class that the parser hands to `_resolve_and_parse`; it is a `base` for whoever looks ahead."""
    _LATE[base] = type(f"Late{base.__name__}", (base,), {"numbers": frozenset()})
    STATEMENTS[_LATE[base]] = lambda ctx, node: _resolve_and_parse(ctx, node, base)


for _base in (*_SIMPLE, *_HEADS):
    _class_for(_base)


def asks(node: ast.AST) -> bool:
    """True when an expression mentions the shape or element type of a name."""
    return any(
        isinstance(n, ast.Attribute) and n.attr in ("shape", "dtype") and isinstance(n.value, ast.Name)
        for n in ast.walk(node)
    )


def late(stmt: ast.stmt, numbers: frozenset[str] = frozenset(), force: bool = False) -> ast.stmt:
    """The statement, as a late one when it asks for a type. Targets in `numbers` may come to mean plain numbers."""
    base = type(stmt)
    if base not in _LATE:
        return stmt
    part = getattr(stmt, _HEADS[base]) if base in _HEADS else stmt
    if not force and not any(asks(p) for p in (part if isinstance(part, list) else [part])):
        return stmt
    made = _LATE[base](**dict(ast.iter_fields(stmt)))
    made.numbers = numbers  # type: ignore[attr-defined]
    return ast.copy_location(made, stmt)


def _resolve_and_parse(ctx: Ctx, node: Any, base: type[ast.stmt]) -> None:
    plain = ast.copy_location(base(**dict(ast.iter_fields(node))), node)
    resolver = Resolver(ctx)
    if base in _HEADS:
        head = copy.deepcopy(getattr(node, _HEADS[base]))
        setattr(plain, _HEADS[base], [resolver.visit(i) for i in head] if base is ast.With else resolver.visit(head))
    else:
        plain = resolver.visit(copy.deepcopy(plain))
    if isinstance(plain, ast.If) and isinstance(plain.test, ast.Constant):
        parse_body(ctx, plain.body if plain.test.value else plain.orelse)
    elif not (isinstance(plain, ast.Assign) and _all_numbers(ctx, plain, node.numbers)):
        STATEMENTS[base](ctx, plain)


def _all_numbers(ctx: Ctx, stmt: ast.Assign, names: frozenset[str]) -> bool:
    """`m, n = t.shape`: names that mean numbers are bound to them; what is left is assigned one by one."""
    target, value = stmt.targets[0], stmt.value
    pairs = [(target, value)]
    if isinstance(target, (ast.Tuple, ast.List)):
        if not isinstance(value, (ast.List, ast.Tuple)):
            return False
        check_count(ctx, target, value)
        pairs = list(zip(target.elts, value.elts, strict=True))
    if len(stmt.targets) != 1 or not all(isinstance(n, ast.Name) for n, _ in pairs):
        return False
    for name, item in pairs:
        assert isinstance(name, ast.Name)
        number = number_of(item, ctx.constant)
        if number is not None and name.id in names:
            ctx.scopes.define(name.id, number)
        else:
            made = ast.Assign([name], item, lineno=stmt.lineno)
            STATEMENTS[ast.Assign](ctx, ast.copy_location(made, stmt))
    return True


def number_of(node: ast.expr, lookup: Callable[[ast.expr], Any]) -> int | float | bool | None:
    """The value of an expression over literals and constants, or None."""
    try:
        value = evaluate(node, lookup)
    except NotConstant:
        return None
    return value if isinstance(value, (int, float)) else None


class Resolver(ast.NodeTransformer):
    """Puts numbers and element types in the place of `t.shape` and `t.dtype`."""

    def __init__(self, ctx: Ctx) -> None:
        self.ctx = ctx

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`t.shape` as a list of extents, `t.dtype` as `pl.<DTYPE>`."""
        if isinstance(node.value, ast.Name) and node.attr in ("shape", "dtype"):
            var = self.ctx.scopes.find(node.value.id)
            if isinstance(var, e.Expr) and isinstance(var.type, t.ShapedType):
                return placed(self._of(node.value.id, var.type, node.attr), node)
        self.generic_visit(node)
        return node

    def _of(self, name: str, type_: t.ShapedType, what: str) -> ast.expr:
        if what == "dtype":
            return dtype_node(type_.dtype.name)
        kind = "tile" if isinstance(type_, t.TileType) else "tensor"
        return extents_node(name, [e.const_value(d) for d in type_.shape], kind)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """`t.shape[i]` as one extent, `t.shape[i:j]` as some."""
        asked = isinstance(node.ctx, ast.Load) and asks(node.value)
        self.generic_visit(node)
        return (item_of(node, self.ctx.constant) or node) if asked else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`len(t.shape)`, `min(t.shape[0], 8)`."""
        self.generic_visit(node)
        return computed(node, self.ctx) or node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """`[1] + t.shape`."""
        self.generic_visit(node)
        return joined(node) or node

    def visit_List(self, node: ast.List) -> ast.expr:
        """`[1, *t.shape]`."""
        self.generic_visit(node)
        return flattened(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """`{t.dtype}` in a text."""
        self.generic_visit(node)
        return dtype_shown(node) or node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Element types that are compared."""
        self.generic_visit(node)
        return dtypes_compared(self.ctx, node) or node


def extents_node(name: str, extents: list[int | None], kind: str = "tensor") -> ast.expr:
    """A list display of extents; those that only the run knows are asked for there."""
    dims: list[ast.expr] = []
    for axis, extent in enumerate(extents):
        text = f"pl.{kind}.dim({name}, {axis})"
        dims.append(ast.Constant(extent) if extent is not None else ast.parse(text, mode="eval").body)
    return ast.List(dims, ast.Load())


def dtype_node(name: str) -> ast.expr:
    """`pl.<NAME>`."""
    return ast.Attribute(ast.Name("pl", ast.Load()), name, ast.Load())


def item_of(node: ast.Subscript, lookup: Callable[[ast.expr], Any]) -> ast.expr | None:
    """The item or the items of a list display, None when the index is no constant or out of range."""
    if not isinstance(node.value, ast.List):
        return None
    whole = node.value.elts
    if isinstance(node.slice, ast.Slice):
        ends = [None if b is None else number_of(b, lookup) for b in (node.slice.lower, node.slice.upper)]
        open_ends = [b is None for b in (node.slice.lower, node.slice.upper)]
        if node.slice.step is not None or [b is None for b in ends] != open_ends:
            return None
        start, stop = (None if b is None else int(b) for b in ends)
        return ast.copy_location(ast.List(whole[start:stop], ast.Load()), node)
    index = number_of(node.slice, lookup)
    return whole[index] if isinstance(index, int) and -len(whole) <= index < len(whole) else None


FOLDED = ("len", "min", "max", "abs", "int")
"""Python's own functions that are computed when their arguments are constants."""


def folds(node: ast.Call) -> bool:
    """True for a call of one of Python's own functions that may be computed."""
    return isinstance(node.func, ast.Name) and node.func.id in FOLDED


def computed(node: ast.Call, ctx: Ctx) -> ast.expr | None:
    """The value of `len([...])`, `min(16, 8)` and the like, None when it is no constant."""
    assert isinstance(node.func, ast.Name) or not folds(node)
    if not folds(node) or ctx.closure.get(node.func.id) is not MISSING:  # type: ignore[attr-defined]
        return None
    if node.func.id == "len" and len(node.args) == 1 and isinstance(node.args[0], ast.List):  # type: ignore[attr-defined]
        return ast.copy_location(ast.Constant(len(node.args[0].elts)), node)
    value = number_of(node, ctx.constant)
    return None if value is None else ast.copy_location(ast.Constant(value), node)


def joined(node: ast.BinOp) -> ast.expr | None:
    """One list display for the sum of two."""
    if not (isinstance(node.op, ast.Add) and isinstance(node.left, ast.List) and isinstance(node.right, ast.List)):
        return None
    return ast.copy_location(ast.List([*node.left.elts, *node.right.elts], ast.Load()), node)


def flattened(node: ast.List) -> ast.List:
    """The display with the items of starred displays in their place."""
    items = []
    for item in node.elts:
        inner = item.value if isinstance(item, ast.Starred) else None
        items += inner.elts if isinstance(inner, ast.List) else [item]
    return ast.copy_location(ast.List(items, node.ctx), node)


def dtype_shown(node: ast.FormattedValue) -> ast.expr | None:
    """The text of an element type within an f-string."""
    value = node.value
    plain = isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id == "pl"
    return ast.copy_location(ast.Constant(f"pl.{value.attr}"), node) if plain else None  # type: ignore[attr-defined]


def check_count(ctx: Ctx, target: ast.Tuple | ast.List, value: ast.List | ast.Tuple) -> None:
    """Refuse to unpack a list of extents into more or fewer names.

    Raises:
        ParserSyntaxError: the counts differ.
    """
    if len(target.elts) != len(value.elts) and not any(isinstance(t, ast.Starred) for t in target.elts):
        message = f"{len(target.elts)} names take {len(value.elts)} extents"
        ctx.fail(ParserSyntaxError, message, target, "write one name per axis")


def dtypes_compared(ctx: Ctx, node: ast.Compare) -> ast.expr | None:
    """`True` or `False` for `pl.FP32 == pl.FP16`, which the language itself cannot compare."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return None
    sides = [ctx.constant(s) for s in (node.left, node.comparators[0])]
    if not all(isinstance(s, DataType) for s in sides):
        return None
    same = sides[0] is sides[1]
    return ast.copy_location(ast.Constant(same == isinstance(node.ops[0], (ast.Eq, ast.Is))), node)


def placed(node: Node, at: ast.AST) -> Node:
    """`node` and everything below it at the place of `at`."""
    for inner in ast.walk(node):
        if "lineno" in inner._attributes:
            ast.copy_location(inner, at)
    return node
