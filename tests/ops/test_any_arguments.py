"""Whatever is passed to an operator function, it answers with a call or with a TypeError or ValueError of its own."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import INDEX, DataType
from pytest_pypto.pypto.ir.enums import MemorySpace, PadValue, PipeType
from pytest_pypto.pypto.language.op import array_ops, prefetch_ops, system_ops, tensor_ops, tile_ops, unified_ops
from pytest_pypto.pypto.language.op.dispatch import call_op, signature
from tests.ops.vectors import Reader

_MODULES = {
    "": unified_ops,
    "tensor.": tensor_ops,
    "tile.": tile_ops,
    "system.": system_ops,
    "array.": array_ops,
    "prefetch.": prefetch_ops,
}
PATHS = sorted(p + n for p, m in _MODULES.items() for n in dir(m) if signature(p + n) is not None)
_SHAPES = ["16,16", "16,1", "1,16", "16", "0,16", "M,16", "1,16,16", ""]
_DTYPES = ["fp32", "fp16", "int32", "uint32", "int8", "bool"]
_FIXED: list[Any] = [
    *(0, 1, -1, 16, 2.5, 1e400, True, 10**30, "row", "hard", "", None, DataType.FP32, DataType.INT32),
    *(MemorySpace.Vec, MemorySpace.Mat, PadValue.min, PipeType.V, object(), {}, [[1]]),
    *(e.index(2), e.ConstInt(3, DataType.INT32), e.ConstFloat(1.0, DataType.FP32)),
    *(e.Var("s", t.ScalarType(INDEX)), e.Var("u", t.UnknownType.get())),
]
_INTERNAL = re.compile(
    "has no attribute|unhashable|not subscriptable|not iterable|unsupported operand|not supported between"
)
_TRIES = 60


def _value(rng: random.Random) -> Any:
    kind = rng.randrange(4)
    if kind < 2:
        return Reader().operand(f"{'Tt'[kind]}[{rng.choice(_SHAPES)}]{rng.choice(_DTYPES)}")
    return (
        rng.choice(_FIXED)
        if kind == 2
        else [rng.choice([0, 1, 16, -3, 2.5, None, "a"]) for _ in range(rng.randrange(4))]
    )


def test_all_functions_are_tried() -> None:
    assert len(PATHS) > 400


@pytest.mark.parametrize("path", PATHS)
def test_any_arguments(path: str) -> None:
    rng, texts = random.Random(path), []
    for _ in range(_TRIES):
        args = [_value(rng) for _ in range(rng.randrange(6))]
        try:
            assert isinstance(call_op(path, args, {}), e.Expr)
        except (TypeError, ValueError) as error:
            texts.append(str(error))
    assert [x for x in texts if _INTERNAL.search(x)] == []
