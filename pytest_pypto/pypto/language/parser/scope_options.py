"""Keywords of `pl.at`, `pl.spmd` and `pl.split_aiv`: literal options, also through names from outside the function."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from ...ir.enums import SplitMode
from .context import Ctx
from .diagnostics import ParserSyntaxError
from .names import MISSING

M = TypeVar("M", bound=Enum)


def member(ctx: Ctx, node: ast.expr, enum: type[M], what: str) -> M:
    """An enum member written out or held by a name from outside.

    Raises:
        ParserSyntaxError: anything else.
    """
    value = ctx.constant(node) if isinstance(node, (ast.Name, ast.Attribute)) else MISSING
    if isinstance(value, enum):
        return value
    good = ", ".join(f"pl.{enum.__name__}.{m}" for m in enum.__members__)
    message = f"Expected pl.{enum.__name__}.<name> for {what}, got {ast.unparse(node)}"
    ctx.fail(ParserSyntaxError, message, node, f"one of {good}")


def literal(ctx: Ctx, node: ast.expr, kind: type, what: str) -> Any:
    """A literal of one Python type, or a name from outside that holds one."""
    value = node.value if isinstance(node, ast.Constant) else ctx.constant(node)
    if type(value) is not kind:
        word = {str: "a string literal", bool: "True or False", int: "an integer literal"}[kind]
        ctx.fail(ParserSyntaxError, f"{what} must be {word}, got {ast.unparse(node)}", node)
    return value


def identifier(ctx: Ctx, node: ast.expr, what: str) -> str:
    """A string literal that can become part of a function name; empty means none."""
    text: str = literal(ctx, node, str, what)
    if text and not text.isidentifier():
        ctx.fail(ParserSyntaxError, f"{what} must be an identifier, got {text!r}", node, "letters, digits and _")
    return text


def positive(ctx: Ctx, node: ast.expr, what: str) -> int:
    """A positive integer literal, or a name from outside that holds one."""
    value: int = literal(ctx, node, int, what)
    if value < 1:
        ctx.fail(ParserSyntaxError, f"{what} must be positive, got {value}", node)
    return value


@dataclass(slots=True)
class Optimizations:
    """What `optimizations=[...]` says."""

    split: SplitMode | None = None
    slot_num: int | None = None


def optimizations(ctx: Ctx, node: ast.expr, where: str) -> Optimizations:
    """`[pl.split(mode), pl.cross_core_slot(slot_num=N)]`, each at most once; a closure list is accepted too."""
    made = Optimizations()
    if isinstance(node, (ast.List, ast.Tuple)):
        for item in node.elts:
            _entry(ctx, item, made, where)
        return made
    value = ctx.constant(node)
    if not isinstance(value, (list, tuple)):
        hint = "write optimizations=[pl.split(pl.SplitMode.UP_DOWN)]"
        ctx.fail(ParserSyntaxError, f"{where}(optimizations=...) must be a list, got {ast.unparse(node)}", node, hint)
    for item in value:
        _object(ctx, item, made, where, node)
    return made


def _entry(ctx: Ctx, node: ast.expr, made: Optimizations, where: str) -> None:
    if isinstance(node, (ast.Name, ast.Attribute)):
        value = ctx.constant(node)
        if value is not MISSING:
            _object(ctx, value, made, where, node)
            return
    path = ctx.path(node.func) if isinstance(node, ast.Call) else None
    name = path[1].removeprefix("optimizations.") if path is not None and path[0] == "pl" else ""
    if name == "split":
        _split(ctx, node, made, where)  # type: ignore[arg-type]
    elif name == "cross_core_slot":
        _slot(ctx, node, made, where)  # type: ignore[arg-type]
    else:
        hint = "entries: pl.split(pl.SplitMode.X), pl.cross_core_slot(slot_num=N)"
        ctx.fail(ParserSyntaxError, f"Unsupported entry in {where}(optimizations=[...])", node, hint)


def _split(ctx: Ctx, call: ast.Call, made: Optimizations, where: str) -> None:
    if len(call.args) != 1:
        ctx.fail(ParserSyntaxError, "pl.split() takes one pl.SplitMode", call, "pl.split(pl.SplitMode.UP_DOWN)")
    _set_split(ctx, member(ctx, call.args[0], SplitMode, "pl.split()"), made, where, call)
    for keyword in call.keywords:
        if keyword.arg != "slot_num":
            message = f"Unknown keyword argument '{keyword.arg}' in pl.split()"
            ctx.fail(ParserSyntaxError, message, keyword, "use pl.cross_core_slot(slot_num=N) for the ring depth")
        from .expressions import warn

        warn(ctx, "pl.split(slot_num=) is deprecated: use pl.cross_core_slot(slot_num=)", call, DeprecationWarning)
        _set_slot(ctx, positive(ctx, keyword.value, "slot_num="), made, where, call)


def _slot(ctx: Ctx, call: ast.Call, made: Optimizations, where: str) -> None:
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "slot_num")]
    if len(given) != 1 or len(call.keywords) + len(call.args) != 1:
        ctx.fail(ParserSyntaxError, "pl.cross_core_slot() takes slot_num=<positive integer>", call)
    _set_slot(ctx, positive(ctx, given[0], "slot_num="), made, where, call)


def _set_split(ctx: Ctx, mode: SplitMode, made: Optimizations, where: str, node: ast.expr) -> None:
    if made.split is not None:
        ctx.fail(ParserSyntaxError, f"pl.split() appears twice in {where}(optimizations=[...])", node, "keep one")
    made.split = mode


def _set_slot(ctx: Ctx, slots: int, made: Optimizations, where: str, node: ast.expr) -> None:
    if made.slot_num is not None:
        message = f"pl.cross_core_slot() appears twice in {where}(optimizations=[...])"
        ctx.fail(ParserSyntaxError, message, node, "keep one")
    made.slot_num = slots


def _object(ctx: Ctx, item: Any, made: Optimizations, where: str, node: ast.expr) -> None:
    """An option object from outside the function: what `pl.split(...)` returns when Python calls it."""
    mode, slots = getattr(item, "mode", None), getattr(item, "slot_num", None)
    if not isinstance(mode, SplitMode) and type(slots) is not int:
        hint = "entries: pl.split(pl.SplitMode.X), pl.cross_core_slot(slot_num=N)"
        ctx.fail(ParserSyntaxError, f"Unsupported entry in {where}(optimizations=[...])", node, hint)
    if isinstance(mode, SplitMode):
        _set_split(ctx, mode, made, where, node)
    if type(slots) is int:
        _set_slot(ctx, slots, made, where, node)
