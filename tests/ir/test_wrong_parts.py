"""Nodes made of things of another kind are refused when they are made, with what was given and what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pypto import DataType, ir

X = ir.Var("x", ir.ScalarType(DataType.INT32))
CASES: list[tuple[Callable[[], Any], str]] = [
    (lambda: ir.Var(None, X.type), "Var.name, type. takes a string and an ir type, got None"),
    (lambda: ir.Var("x", None), "takes a string and an ir type, got 'x' and None"),
    (lambda: ir.Var("x", DataType.INT32), "takes a string and an ir type"),
    (lambda: ir.IterArg("x", X.type, 0), "initial value of IterArg 'x' must be an ir.Expr, got 0"),
    (lambda: ir.IterArg("x", None, X), "takes a string and an ir type"),
    (lambda: ir.Call(None, []), "ir.GlobalVar.'kernel'. first, got None"),
    (lambda: ir.Call("tile.add", [X, X]), "Call.. takes an ir.Op.'tile.add'. .* got 'tile.add'"),
    (lambda: ir.Call(ir.Op("tile.add"), [X, 1]), "operands of Call 'tile.add' must be ir.Expr, got 1"),
    (lambda: ir.Submit("k", [], []), "Submit.. takes an ir.Op"),
    (lambda: ir.Add(X, 1, DataType.INT32, ir.Span.unknown()), "operands of Add must be ir.Expr"),
    (lambda: ir.Neg(1, DataType.INT32, ir.Span.unknown()), "the operand of Neg must be an ir.Expr, got 1"),
    (lambda: ir.MakeTuple([X, 4]), "elements of a MakeTuple must be ir.Expr, got 4"),
    (lambda: ir.AssignStmt(X, 1), "AssignStmt takes an ir.Var and an ir.Expr"),
    (lambda: ir.AssignStmt("x", X), "AssignStmt takes an ir.Var and an ir.Expr"),
    (lambda: ir.EvalStmt(None), "EvalStmt takes an ir.Expr, got None"),
    (lambda: ir.ReturnStmt([X, 1]), "value of ReturnStmt must be ir.Expr, got 1"),
    (lambda: ir.YieldStmt([None]), "value of YieldStmt must be ir.Expr, got None"),
    (lambda: ir.SeqStmts([X]), "stmts of SeqStmts must be ir.Stmt"),
    (lambda: ir.Function("f", ["x"], [], ir.SeqStmts([])), "params of Function 'f' must be ir.Var, got 'x'"),
    (lambda: ir.Function("f", [X], [None], ir.SeqStmts([])), "return_types of Function 'f' must be ir.Type, got None"),
    (lambda: ir.Function("f", [X], [], X), "the body of Function 'f' must be an ir.Stmt"),
]


@pytest.mark.parametrize(("make", "said"), CASES)
def test_parts_of_another_kind(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        make()
