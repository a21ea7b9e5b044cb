"""`pl.MemRef(...)` inside annotations: declared allocations, their slots, and placed memory."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import expr as e
from ...ir.enums import MemorySpace
from .context import Ctx
from .diagnostics import ParserTypeError
from .extents import index_expr
from .names import MISSING


def is_memref(ctx: Ctx, node: ast.expr) -> bool:
    """True for `pl.MemRef(...)`, a slot of one, and a closure name that holds one."""
    if isinstance(node, ast.Subscript):
        return is_memref(ctx, node.value)
    if isinstance(node, ast.Call):
        path = ctx.path(node.func)
        return path is not None and path[1] == "MemRef"
    if isinstance(node, (ast.Name, ast.Attribute)):
        return isinstance(ctx.constant(node), e.MemRef)
    return False


def memref_of(ctx: Ctx, node: ast.expr) -> e.MemRef:
    """The MemRef that an annotation names."""
    if isinstance(node, ast.Subscript):
        whole = memref_of(ctx, node.value)
        return _slot(ctx, whole, node)
    if isinstance(node, ast.Call):
        return _call(ctx, node)
    declared = ctx.constant(node)
    assert isinstance(declared, e.MemRef)
    return _from_closure(ctx, declared, node)


def _slot(ctx: Ctx, whole: e.MemRef, node: ast.Subscript) -> e.MemRef:
    if whole.slot_count_ == 1:
        ctx.fail(
            ParserTypeError,
            f"'{whole.name_hint}' has one slot and cannot be indexed",
            node,
            f'declare it with slots: pl.MemRef("{whole.name_hint}", slots=2)',
        )
    place = index_expr(ctx, node.slice)
    value = e.const_value(place)
    if value is not None and not 0 <= value < whole.slot_count_:
        message = (
            f"Slot index {value} is out of range for '{whole.name_hint}', declared with {whole.slot_count_} slot(s)"
        )
        ctx.fail(ParserTypeError, message, node.slice, f"slots are 0..{whole.slot_count_ - 1}")
    return e.MemRef(
        whole.base_, whole.byte_offset_, whole.size_, whole.span, whole.is_pinned_, whole.slot_count_, place
    )


def _from_closure(ctx: Ctx, declared: e.MemRef, node: ast.expr) -> e.MemRef:
    """A MemRef that the author keeps in a variable; without a name of its own it takes the variable's."""
    own = declared.base_.name_hint
    name = own or (node.id if isinstance(node, ast.Name) else getattr(node, "attr", ""))
    if not declared.is_pinned_:
        base = ctx.base(name)
        return e.MemRef(base, declared.byte_offset_, declared.size_, ctx.span(node))
    return _declared(ctx, name, declared.slot_count_, node, declared)


def _declared(ctx: Ctx, name: str, slots: int, node: ast.expr, owner: e.MemRef | None) -> e.MemRef:
    previous = ctx.declared.get(name)
    if previous is not None and previous.slot_count_ != slots:
        message = f"'{name}' is declared with {previous.slot_count_} and with {slots} slot(s)"
        ctx.fail(ParserTypeError, message, node, "one name is one allocation: declare it once")
    if owner is not None:
        _check_owner(ctx, name, owner, node)
    made = e.MemRef(ctx.base(name), 0, 0, ctx.span(node), True, slots)
    ctx.declared[name] = made
    return made


def _check_owner(ctx: Ctx, name: str, owner: e.MemRef, node: ast.expr) -> None:
    if ctx.memref_owners.setdefault(name, owner) is not owner:
        ctx.fail(ParserTypeError, f"two declared allocations are called '{name}'", node, "give one of them a name")
    other = next((n for n, m in ctx.memref_owners.items() if m is owner and n != name), None)
    if other is not None:
        message = f"one declared allocation is used under two names, '{other}' and '{name}'"
        ctx.fail(ParserTypeError, message, node, "use one name, or declare two allocations")


def _call(ctx: Ctx, node: ast.Call) -> e.MemRef:
    slots = _slots(ctx, node)
    args = node.args
    if len(args) <= 1:
        return _declared(ctx, _declared_name(ctx, node), slots, node, None)
    if len(args) == 3 and not _legacy_address(ctx, args):
        base = _base(ctx, args[0])
        offset = index_expr(ctx, args[1])
        return e.MemRef(base, offset, _int(ctx, args[2], "size"), ctx.span(node), False, slots)
    return _legacy(ctx, node)


def _declared_name(ctx: Ctx, node: ast.Call) -> str:
    first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
    if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value:
        return first.value
    hint = 'write pl.MemRef("scratch"), or keep pl.MemRef() in a variable outside the function and name that'
    ctx.fail(
        ParserTypeError, "a declared pl.MemRef in an annotation needs a name (a string literal)", first or node, hint
    )


def _slots(ctx: Ctx, node: ast.Call) -> int:
    for keyword in node.keywords:
        if keyword.arg == "slots":
            value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
            if type(value) is not int or value < 1:
                ctx.fail(ParserTypeError, "slots= of pl.MemRef is a positive integer literal", keyword.value)
            return value
        if keyword.arg != "name":
            message = f"Unknown keyword argument '{keyword.arg}' in pl.MemRef()"
            ctx.fail(ParserTypeError, message, keyword, "keywords: name, slots")
    return 1


def _base(ctx: Ctx, node: ast.expr) -> e.Var:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ctx.base(node.value)
    if isinstance(node, ast.Name):
        var = ctx.scopes.find(node.id)
        return var if var is not None and node.id in ctx.bases else ctx.base(node.id)
    ctx.fail(ParserTypeError, f"the base of a pl.MemRef is a name or a string, got {ast.unparse(node)}", node)


def _int(ctx: Ctx, node: ast.expr, what: str) -> int:
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if type(value) is int and value >= 0:
        return value
    ctx.fail(ParserTypeError, f"the {what} of a pl.MemRef is a non-negative integer, got {ast.unparse(node)}", node)


def _legacy_address(ctx: Ctx, args: list[ast.expr]) -> bool:
    return isinstance(args[0], ast.Constant) and isinstance(args[0].value, int)


def _legacy(ctx: Ctx, node: ast.Call) -> e.MemRef:
    """`pl.MemRef(addr, size, id)` and `pl.MemRef(space, addr, size, id)`."""
    args: list[Any] = list(node.args)
    space: Any = MemorySpace.DDR
    if len(args) == 4:
        space = ctx.constant(args.pop(0))
    if len(args) != 3 or space is MISSING or not isinstance(space, MemorySpace):
        hint = 'write pl.MemRef("name"), or pl.MemRef(base, offset, size)'
        ctx.fail(ParserTypeError, f"Unsupported pl.MemRef arguments: {ast.unparse(node)}", node, hint)
    address, size, number = (_int(ctx, a, w) for a, w in zip(args, ("address", "size", "id"), strict=True))
    base = ctx.base(f"mem_{space.name.lower()}_{number}")
    return e.MemRef(base, address, size, ctx.span(node))
