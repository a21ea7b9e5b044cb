"""Every operator of the table, printed and read back: the text is legal and means the same call."""

from __future__ import annotations

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir import structural_equal, structural_hash
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.enums import FunctionType
from pytest_pypto.pypto.ir.op_table import all_ops
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.ir.program import Function, Program
from tests.ops.samples import sample


def _program(call: e.Call) -> Program:
    params = [a for a in call.args if isinstance(a, e.Var)]
    if isinstance(call.type, t.UnknownType):
        return Program([Function("f", params, [], s.EvalStmt(call), type=FunctionType.InCore)], "P")
    y = e.Var("y", call.type)
    body = s.SeqStmts((s.AssignStmt(y, call), s.ReturnStmt((y,))))
    return Program([Function("f", params, [y.type], body, type=FunctionType.InCore)], "P")


@pytest.mark.parametrize("name", sorted(all_ops()))
def test_round_trip(name: str) -> None:
    program = _program(sample(all_ops()[name]))
    read = pl.parse(python_print(program))
    assert structural_equal(program, read, enable_auto_mapping=True)
    assert structural_hash(program, enable_auto_mapping=True) == structural_hash(read, enable_auto_mapping=True)
