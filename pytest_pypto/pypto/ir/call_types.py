"""Result types of calls between functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import expr as e
from . import stmt as s
from .program import Function
from .types import ShapedType, TensorType, TupleType, Type, UnknownType
from .visitor import IRMutator


def deduce_call_return_type(
    callee_params: Sequence[e.Var], args: Sequence[e.Expr], return_types: Sequence[Type]
) -> Type:
    """The type of a call: the declared results, with the callee's symbolic extents replaced by the caller's.

    One result gives its type, several a tuple, none `UnknownType`.
    """
    return call_result_type(callee_params, args, return_types, None)


def call_result_type(
    params: Sequence[e.Var], args: Sequence[e.Expr], return_types: Sequence[Type], function: Function | None
) -> Type:
    """As `deduce_call_return_type`; without declared results the first `return` of `function` tells them."""
    types = list(return_types)
    if not types and function is not None:
        types = _returned_types(function.body)
    if not types:
        return UnknownType.get()
    mapping = symbol_map(params, args)
    if mapping:
        mutator = IRMutator()
        mutator.var_map.update(mapping)
        types = [mutator.visit_type(t) for t in types]
    types = [without_memref(t) for t in types]
    return types[0] if len(types) == 1 else TupleType(tuple(types))


def symbol_map(params: Sequence[e.Var], args: Sequence[e.Expr]) -> dict[e.Var, e.Expr]:
    """What the callee's scalars and symbolic extents are for the caller."""
    found: dict[e.Var, e.Expr] = {}
    for param, arg in zip(params, args, strict=False):
        if isinstance(param.type, ShapedType) and isinstance(arg.type, ShapedType):
            for dim, have in zip(param.type.shape, arg.type.shape, strict=False):
                if isinstance(dim, e.Var):
                    found.setdefault(dim, have)
        else:
            found[param] = arg
    return {k: v for k, v in found.items() if k is not v}


def without_memref(type_: Type) -> Type:
    """The type with no memory placed; results of calls never carry a MemRef."""
    from dataclasses import replace

    return replace(type_, memref=None) if isinstance(type_, TensorType) and type_.memref is not None else type_


def _returned_types(body: s.Stmt) -> list[Type]:
    for stmt in _walk(body):
        if isinstance(stmt, s.ReturnStmt):
            return [v.type for v in stmt.value]
    return []


def _walk(body: s.Stmt) -> Any:
    from .visitor import walk_stmts

    return walk_stmts(body)
