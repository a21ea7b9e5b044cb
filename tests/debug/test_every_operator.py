"""Every operator that the oracle handles, run and compared with an independent expression.

Per element type that its type rule admits, on full and on partly valid operands, and on edge values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.debug.torch_codegen import _OP_MAP
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.expr import const_value
from pytest_pypto.pypto.ir.program import Function
from pytest_pypto.pypto.ir.types import ShapedType, Type

from .arrays import CLASSES, close, to_numpy
from .build import call, region
from .cases import CASES, Example, Kit


def test_every_handler_has_a_case() -> None:
    assert sorted(CASES) == sorted(_OP_MAP)


def made_call(op: str, example: Example) -> tuple[e.Call, dict[int, e.Var]]:
    """The call of an example, and its tensor operands by position."""
    pairs = {
        n: o for n, o in enumerate(example.operands) if isinstance(o, tuple) and len(o) == 2 and isinstance(o[1], Type)
    }
    variables = {n: e.Var(f"x{n}", o[1]) for n, o in pairs.items()}
    made = call(op, [variables.get(n, o) for n, o in enumerate(example.operands)], example.kwargs)
    return made, variables


def outcome(op: str, example: Example) -> tuple[Any, Type]:
    """The result of an example and its type, with the oracle's own checks of shapes and types."""
    made, variables = made_call(op, example)
    result = e.Var("out", made.type)
    body = s.SeqStmts((s.AssignStmt(result, made), s.ReturnStmt((result,))))
    f = Function("f", list(variables.values()), [made.type], body)
    return run_oracle(f, [example.operands[n][0] for n in variables], check_shapes=True), made.type


def admitted(op: str, dtype: DataType) -> bool:
    """The type rule of the operator takes operands of this element type."""
    try:
        example = CASES[op].make(Kit(op, dtype))
        if example is not None:
            made_call(op, example)
    except (TypeError, ValueError):
        return False
    return True


def compare(op: str, example: Example, dtype: DataType) -> None:
    """Assert the valid part of a result, its region and its element type."""
    result, type_ = outcome(op, example)
    if callable(example.want):
        example.want(result)
        return
    assert isinstance(type_, ShapedType)
    said = [const_value(v) for v in type_.valid_shape]
    assert all(s is None or n <= have <= s for n, have, s in zip(example.want.shape, region(result), said, strict=True))
    have = to_numpy(result, type_.dtype)[tuple(slice(0, n) for n in example.want.shape)]
    close(have, np.asarray(example.want), type_.dtype, example.ulps)


@pytest.mark.parametrize("op", sorted(CASES))
def test_operator(op: str) -> None:
    case = CASES[op]
    for dtype in case.dtypes:
        for form in case.forms:
            try:
                example = case.make(Kit(op, dtype, form))
                if example is not None:
                    compare(op, example, dtype)
            except Exception as exc:
                exc.add_note(f"{op} of {dtype}, {form}")
                raise
    if not case.unsaid:
        missed = [str(t) for t in CLASSES if t not in case.dtypes and admitted(op, t)]
        assert not missed, f"{op} takes {missed} too"
