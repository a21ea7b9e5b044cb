"""The functions a mixed kernel becomes, and the wrappers around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType
from ...ir.program import Function
from ...ir.types import TupleType, Type
from ...ir.visitor import deep_clone, walk_stmts
from ..device_ir import body_like, nested_bodies, with_bodies


def cloned(func: Function, body: s.Stmt, **changes: Any) -> Function:
    """A function with fresh parameters and variables."""
    fresh = [e.Var(p.name_hint, p.type, p.span) for p in func.params]
    mapping: dict[e.Var, e.Expr] = dict(zip(func.params, fresh, strict=True))
    pairs = list(zip(fresh, func.param_directions, strict=True))
    return func.with_(params=pairs, body=deep_clone(body, mapping), **changes)


def result_type(types: tuple[Type, ...]) -> Type | None:
    """The type of a call of a function that returns `types`."""
    if not types:
        return None
    return types[0] if len(types) == 1 else TupleType(types)


def returned(func: Function) -> tuple[e.Expr, ...]:
    """What a function returns; of several returns the first."""
    return next((x.value for x in walk_stmts(func.body) if isinstance(x, s.ReturnStmt)), ())


def make_group(func: Function, aic: Function, aiv: Function) -> Function:
    """The group that calls both halves and returns the parameters that the vector half returns."""
    params = [e.Var(p.name_hint, p.type, p.span) for p in func.params]
    span = func.span
    cube = s.EvalStmt(e.Call(e.GlobalVar(aic.name), params, span=span), span)
    vector = e.Call(e.GlobalVar(aiv.name), params, type=result_type(func.return_types), span=span)
    position = {p: i for i, p in enumerate(aiv.params)}
    values = returned(aiv)
    tail: list[s.Stmt]
    if all(isinstance(v, e.Var) and v in position for v in values):
        back = tuple(params[position[v]] for v in values if isinstance(v, e.Var))
        tail = [s.EvalStmt(vector, span), *([s.ReturnStmt(back, span)] if back else [])]
    else:
        tail = _return_result(vector, func)
    pairs = list(zip(params, func.param_directions, strict=True))
    return func.with_(params=pairs, body=s.SeqStmts((cube, *tail), span), type=FunctionType.Group)


def _return_result(call: e.Call, func: Function) -> list[s.Stmt]:
    var = e.Var("r", call.type, func.span)
    assign = s.AssignStmt(var, call, func.span)
    if len(func.return_types) == 1:
        return [assign, s.ReturnStmt((var,), func.span)]
    parts = tuple(e.TupleGetItemExpr(var, i, func.span) for i in range(len(func.return_types)))
    return [assign, s.ReturnStmt(parts, func.span)]


def rewrite_group_caller(func: Function, halves: Mapping[str, tuple[str, str]]) -> Function:
    """A group in which each call of a split kernel is a call of its cube half, then of its vector half."""
    body = _rewrite(func.body, halves)
    return func if body is func.body else func.with_(body=body)


def _rewrite(body: s.Stmt, halves: Mapping[str, tuple[str, str]]) -> s.Stmt:
    made: list[s.Stmt] = []
    for stmt in s.stmts_of(body):
        bodies = nested_bodies(stmt)
        call = stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr if isinstance(stmt, s.EvalStmt) else None
        if bodies:
            made.append(with_bodies(stmt, [_rewrite(b, halves) for b in bodies]))
        elif isinstance(call, e.Call) and isinstance(call.op, e.GlobalVar) and call.op.name in halves:
            made.extend(_both(stmt, call, halves[call.op.name]))
        else:
            made.append(stmt)
    return body_like(body, made)


def _both(stmt: s.Stmt, call: e.Call, names: tuple[str, str]) -> list[s.Stmt]:
    cube = s.EvalStmt(e.Call(e.GlobalVar(names[0]), call.args, attrs=call.attrs, span=call.span), stmt.span)
    made = e.Call(e.GlobalVar(names[1]), call.args, attrs=call.attrs, type=call.type, span=call.span)
    if isinstance(stmt, s.AssignStmt):
        return [cube, replace(stmt, value=made)]
    return [cube, s.EvalStmt(made, stmt.span)]
