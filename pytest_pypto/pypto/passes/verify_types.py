"""Checks of types: assignments agree with their values, conditions are booleans, bounds are integers."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import BOOL
from ..ir.enums import FunctionType
from ..ir.program import Function
from ..ir.types import ArrayType, ScalarType, ShapedType, TensorType, TileType, Type, UnknownType
from ..ir.visitor import walk_stmts
from .diagnostic_types import Diagnostic
from .verify_flow import Rule, error, last_yield, per_function


def type_checked(func: Function) -> Iterator[Diagnostic]:
    """Kinds and element types agree across assignments, yields, conditions and bounds."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.AssignStmt):
            yield from compare(stmt.var.type, stmt.value.type, f"'{stmt.var.name_hint}'", stmt)
        elif isinstance(stmt, s.IfStmt):
            yield from _condition(stmt)
            yield from _results(stmt.then_body, stmt.return_vars, stmt)
            yield from _results(stmt.else_body, stmt.return_vars, stmt)
        elif isinstance(stmt, s.ForStmt):
            yield from _bounds(stmt)
            yield from _carries(stmt)
        elif isinstance(stmt, s.WhileStmt):
            yield from _condition(stmt)
            yield from _carries(stmt)


def compare(have: Type, got: Type, what: str, stmt: s.Stmt) -> Iterator[Diagnostic]:
    """Differences of kind, element type and rank."""
    if isinstance(have, UnknownType) or isinstance(got, UnknownType):
        return
    kinds = (TensorType, TileType, ArrayType, ScalarType)
    if any(isinstance(have, k) is not isinstance(got, k) for k in kinds):
        yield error("TypeChecked", f"{what} has type {have}, its value has type {got}", stmt.span, 101)
    elif isinstance(have, ShapedType) and isinstance(got, ShapedType):
        if have.dtype is not got.dtype:
            yield error("TypeChecked", f"{what} has dtype {have.dtype}, its value {got.dtype}", stmt.span, 102)
        elif len(have.shape) != len(got.shape):
            text = f"{what} has {len(have.shape)} dimensions, its value {len(got.shape)}"
            yield error("TypeChecked", text, stmt.span, 103)
        elif any(_differ(a, b) for a, b in zip(have.shape, got.shape, strict=True)):
            yield error("TypeChecked", f"{what} has type {have}, its value has type {got}", stmt.span, 104)


def _differ(a: e.Expr, b: e.Expr) -> bool:
    return isinstance(a, e.ConstInt) and isinstance(b, e.ConstInt) and a.value != b.value


def _condition(stmt: s.IfStmt | s.WhileStmt) -> Iterator[Diagnostic]:
    type_ = stmt.condition.type
    if isinstance(type_, UnknownType):
        return
    if not isinstance(type_, ScalarType):
        yield error("TypeChecked", f"a condition must be a scalar, got {type_}", stmt.span, 106)
    elif type_.dtype is not BOOL:
        yield error("TypeChecked", f"a condition must be a bool, got {type_.dtype}", stmt.span, 108)


def _bounds(loop: s.ForStmt) -> Iterator[Diagnostic]:
    for bound in (loop.start, loop.stop, loop.step):
        if not isinstance(bound.type, (ScalarType, UnknownType)):
            yield error("TypeChecked", f"loop bounds must be scalars, got {bound.type}", loop.span, 107)


def _results(body: s.Stmt | None, results: tuple[e.Var, ...], stmt: s.Stmt) -> Iterator[Diagnostic]:
    found = last_yield(body)
    if found is not None and len(found.value) == len(results):
        for var, value in zip(results, found.value, strict=True):
            yield from compare(var.type, value.type, f"'{var.name_hint}'", stmt)


def _carries(loop: s.ForStmt | s.WhileStmt) -> Iterator[Diagnostic]:
    for arg in loop.iter_args:
        yield from compare(arg.type, arg.initValue.type, f"'{arg.name_hint}'", loop)
    yield from _results(loop.body, loop.iter_args, loop)
    yield from _results(loop.body, loop.return_vars, loop)


def array_not_escaped(func: Function) -> Iterator[Diagnostic]:
    """Arrays stay inside a function."""
    if func.func_type is FunctionType.Inline:
        return
    for param in func.params:
        if isinstance(param.type, ArrayType):
            yield error("ArrayNotEscaped", f"parameter '{param.name_hint}' is an array", param.span)
    for type_ in func.return_types:
        if isinstance(type_, ArrayType):
            yield error("ArrayNotEscaped", "an array is returned", func.span)


TYPE_RULES: dict[str, Rule] = {
    "TypeChecked": per_function(type_checked),
    "ArrayNotEscaped": per_function(array_not_escaped),
}
