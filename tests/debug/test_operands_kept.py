"""No operator changes an operand, or what an operand is a window of, unless it is one that works in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.expr import const_value
from pytest_pypto.pypto.ir.program import Function
from pytest_pypto.pypto.ir.types import TensorType, TileType, Type

from .build import call
from .cases import CASES, Example, Kit
from .cases.kit import FULL

_FIRST = (
    *("tensor.assemble", "tensor.write", "tensor.gather_row"),
    *("tile.assemble", "tile.write", "tile.gather_row", "tile.scatter", "tile.fillpad_inplace"),
    *("tile.matmul_acc", "tile.batch_matmul_acc", "tile.matmul_mx_acc", "tile.gemv_acc"),
)
TARGETS = dict.fromkeys(_FIRST, 0) | {"tile.store": 2, "tile.mscatter": 2}
"""The operand that an operator writes in place. Accumulators of tiles count when they are a window of a larger one."""


def given(operand: Any) -> bool:
    """The operand is data of some type."""
    return isinstance(operand, tuple) and len(operand) == 2 and isinstance(operand[1], Type)


def twice(type_: TensorType | TileType) -> TensorType | TileType:
    """The type with twice as many rows."""
    rows = const_value(type_.shape[0])
    assert rows is not None
    shape = (e.index(2 * rows), *type_.shape[1:])
    if isinstance(type_, TensorType):
        return TensorType(shape, type_.dtype, None, type_.tensor_view)
    return TileType(shape, type_.dtype, None, type_.tile_view, type_.space)


def changed_by(op: str, example: Example, which: int) -> set[int]:
    """Operands that change when operand `which` is the first half of a parameter."""
    params = {n: e.Var(f"x{n}", o[1]) for n, o in enumerate(example.operands) if given(o)}
    type_ = params[which].type
    assert isinstance(type_, (TensorType, TileType))
    params[which] = e.Var("whole", twice(type_))
    space = "tensor" if isinstance(type_, TensorType) else "tile"
    part = call(f"{space}.slice", [params[which], tuple(type_.shape), (0,) * len(type_.shape)])
    window = e.Var("window", part.type)
    operands = [params.get(n, o) for n, o in enumerate(example.operands)]
    made = call(op, [window if n == which else o for n, o in enumerate(operands)], example.kwargs)
    result = e.Var("out", made.type)
    lines = (s.AssignStmt(window, part), s.AssignStmt(result, made), s.ReturnStmt((result,)))
    values = {n: example.operands[n][0].clone() for n in params}
    values[which] = torch.cat([values[which]] * 2)
    before = {n: v.clone() for n, v in values.items()}
    run_oracle(Function("f", list(params.values()), [made.type], s.SeqStmts(lines)), list(values.values()))
    return {n for n in params if values[n].numpy(force=True).tobytes() != before[n].numpy(force=True).tobytes()}


@pytest.mark.parametrize("op", sorted(CASES))
def test_operands_stay_what_they_were(op: str) -> None:
    case, ran = CASES[op], False
    for dtype in case.dtypes[:2]:
        example = case.make(Kit(op, dtype, FULL))
        for which in range(len(example.operands) if example is not None else 0):
            if given(example.operands[which]) and isinstance(example.operands[which][1], (TensorType, TileType)):
                found = changed_by(op, example, which)
                assert found <= {TARGETS.get(op, -1)}, f"{op} of {dtype}, window at operand {which}"
                ran = ran or bool(found)
    assert ran == (op in TARGETS)
