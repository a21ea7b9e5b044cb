"""Small questions that passes on device functions ask of the IR."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType, MemorySpace, is_incore_type
from ..ir.program import Function
from ..ir.span import UNKNOWN, Span
from ..ir.types import TensorType, TileType, TupleType, Type
from ..ir.visitor import defs_of, exprs_of, walk_exprs
from ._util import PassError

CUBE_SPACES = frozenset(
    {
        *(MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias),
        *(MemorySpace.LeftScale, MemorySpace.RightScale),
    }
)
"""Memory spaces of the cube core."""

WRITE_TARGET = {"tile.store": 2, "tile.mscatter": 2, "tensor.assemble": 0, "tensor.write": 0}
"""Operators that write into a tensor, and the operand that is the tensor; the result is the same tensor."""


def place(span: Span) -> str:
    """` [file:line:col]`, or nothing when the place is unknown."""
    return f" [{span}]" if span.is_valid() else ""


class KernelError(PassError):
    """A pass cannot make a kernel of what the author wrote; the text ends with the place."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span
        self.args = (f"{self.args[0]}{place(span)}",)


def kernel_error(message: str, span: Span = UNKNOWN) -> KernelError:
    """The error to raise, with the place in the user's source."""
    return KernelError(message, span)


def op_call(stmt: s.Stmt) -> e.Call | None:
    """The operator call that a statement consists of (assigned or for its effect), or None."""
    value = stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr if isinstance(stmt, s.EvalStmt) else None
    if isinstance(value, e.Call) and not isinstance(value.op, e.GlobalVar):
        return value
    return None


def op_name(stmt: s.Stmt) -> str:
    """Name of the operator a statement calls; empty when it is no operator call."""
    call = op_call(stmt)
    return "" if call is None else call.op.name


def tile_of(expr: object) -> TileType | None:
    """The type of a tile expression, or None for anything else."""
    type_ = expr.type if isinstance(expr, e.Expr) else None
    return type_ if isinstance(type_, TileType) else None


def tile_space(expr: object) -> MemorySpace | None:
    """Memory space of a tile expression; None when it is no tile or the space is open."""
    tile = tile_of(expr)
    return None if tile is None else tile.space


def first_tile(call: e.Call) -> e.Expr | None:
    """The first operand that is a tile, or None."""
    return next((a for a in call.args if isinstance(a.type, TileType)), None)


def is_device(func: Function) -> bool:
    """True for functions that run on a core and have a body of their own."""
    return is_incore_type(func.func_type) and bool(s.stmts_of(func.body))


def type_exprs(type_: Type) -> Iterator[e.Expr]:
    """The expressions inside a type: extents, valid extents, strides, offset and slot of the MemRef."""
    if isinstance(type_, TupleType):
        for part in type_.types:
            yield from type_exprs(part)
    elif isinstance(type_, (TensorType, TileType)):
        yield from type_.shape
        view = type_.tile_view if isinstance(type_, TileType) else type_.tensor_view
        if view is not None:
            yield from view.valid_shape or ()
            yield from view.stride or ()
        if type_.memref is not None:
            yield type_.memref.byte_offset_
            if type_.memref.slot_index_ is not None:
                yield type_.memref.slot_index_


def vars_in(expr: e.Expr) -> Iterator[e.Var]:
    """Variables below an expression, with those that call attributes name."""
    for x in walk_exprs(expr):
        if isinstance(x, e.Var):
            yield x
        elif isinstance(x, (e.Call, e.Submit)) and x.attrs:
            yield from attr_vars(x.attrs)


def attr_vars(attrs: dict[str, Any]) -> Iterator[e.Var]:
    """Variables that attribute values name."""
    for value in attrs.values():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, e.Expr):
                yield from vars_in(item)


def type_vars(type_: Type) -> Iterator[e.Var]:
    """Variables that a type mentions."""
    for expr in type_exprs(type_):
        if not isinstance(expr, e.ConstInt):
            yield from vars_in(expr)


def own_uses(stmt: s.Stmt) -> Iterator[e.Var]:
    """Variables a statement itself reads: in its expressions and in the types of what it defines."""
    for expr in exprs_of(stmt):
        yield from vars_in(expr)
    for var in defs_of(stmt):
        yield from type_vars(var.type)


def nested_bodies(stmt: s.Stmt) -> tuple[s.Stmt, ...]:
    """The bodies directly below a compound statement."""
    if isinstance(stmt, s.IfStmt):
        return (stmt.then_body,) if stmt.else_body is None else (stmt.then_body, stmt.else_body)
    if isinstance(stmt, (s.ForStmt, s.WhileStmt, s.ScopeStmt)):
        return (stmt.body,)
    return (stmt,) if isinstance(stmt, s.SeqStmts) else ()


def all_uses(stmt: s.Stmt) -> Iterator[e.Var]:
    """Variables read by a statement and everything below it."""
    yield from own_uses(stmt)
    for body in nested_bodies(stmt):
        for inner in s.stmts_of(body):
            yield from all_uses(inner)


def with_bodies(stmt: s.Stmt, bodies: Sequence[s.Stmt]) -> s.Stmt:
    """A compound statement with other bodies, in the order of `nested_bodies`."""
    if isinstance(stmt, s.IfStmt):
        other = bodies[1] if len(bodies) > 1 else None
        if bodies[0] is stmt.then_body and other is stmt.else_body:
            return stmt
        return replace(stmt, then_body=bodies[0], else_body=other)
    if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
        return stmt if bodies[0] is stmt.body else replace(stmt, body=bodies[0])
    raise TypeError(f"{type(stmt).__name__} has no bodies")


def body_like(old: s.Stmt, stmts: Iterable[s.Stmt]) -> s.Stmt:
    """A sequence of `stmts` in place of `old`; `old` itself when the statements are the same objects."""
    made = tuple(stmts)
    before = s.stmts_of(old)
    if (
        isinstance(old, s.SeqStmts)
        and len(made) == len(before)
        and all(a is b for a, b in zip(made, before, strict=True))
    ):
        return old
    return s.SeqStmts(made, old.span)


def op_stmt(name: str, args: Sequence[e.Expr], kwargs: dict[str, Any], span: Span) -> s.EvalStmt:
    """A statement that calls an operator for its effect."""
    return s.EvalStmt(e.Call(e.Op(name), args, kwargs=kwargs, span=span), span)


def op_assign(var: e.Var, name: str, args: Sequence[e.Expr], kwargs: dict[str, Any], span: Span) -> s.AssignStmt:
    """`var = name(args, kwargs)`, the call typed like the variable."""
    return s.AssignStmt(var, e.Call(e.Op(name), args, kwargs=kwargs, type=var.type, span=span), span)


def is_core_function(func: Function) -> bool:
    """True for AIC and AIV functions."""
    return func.func_type in (FunctionType.AIC, FunctionType.AIV)
