"""Every operator of the language has a handler, or is refused by name."""

from __future__ import annotations

import json
import re

import pytest

from pytest_pypto.pypto.debug import UnsupportedOpError, torch_codegen
from pytest_pypto.pypto.debug.torch_codegen import _OP_MAP
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.op_table import all_ops
from pytest_pypto.pypto.ir.program import Function
from tests.kit import SPEC, needs_spec

from .build import tensor

ACROSS_DEVICES = ("pld.", "dist.", "builtin.")


def listed() -> list[str]:
    return [row["op"] for row in json.loads((SPEC / "ops.json").read_text(encoding="utf-8"))["ops"]]


@needs_spec
def test_every_listed_operator_is_known() -> None:
    assert [n for n in listed() if n not in _OP_MAP and not n.startswith(ACROSS_DEVICES)] == []


def test_every_operator_of_the_table_is_known() -> None:
    assert [n for n in all_ops() if n not in _OP_MAP and not n.startswith(ACROSS_DEVICES)] == []


def test_handlers_exist_only_for_operators_of_the_table() -> None:
    assert [n for n in _OP_MAP if n not in all_ops()] == []


@pytest.mark.parametrize("name", [n for n in all_ops() if n.startswith(ACROSS_DEVICES)])
def test_operators_across_devices_are_refused_by_name(name: str) -> None:
    a = e.Var("a", tensor((2,)))
    f = Function("f", [a], [], s.EvalStmt(e.Call(e.Op(name), [a], type=a.type)))
    with pytest.raises(UnsupportedOpError, match=f"Unsupported op '{re.escape(name)}'.*across devices"):
        torch_codegen(f)
