"""Row and column vectors, fills and repeats against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType

from .arrays import FLOATS, NUMPY, close, padded, sample, to_numpy, to_torch, wide
from .build import region, run_op, tensor, tile, valid_part

SHAPE, VALID = (4, 6), (3, 5)
FNS: dict[str, Any] = {
    "add": lambda a, v: a + v,
    "sub": lambda a, v: a - v,
    "mul": lambda a, v: a * v,
    "div": lambda a, v: a / v,
    "max": np.maximum,
    "min": np.minimum,
    "expdif": lambda a, v: np.exp(a - v),
}


def vector_of(kind: str, shape: tuple[int, int]) -> tuple[int, int]:
    return (shape[0], 1) if kind == "row" else (1, shape[1])


def types(space: str) -> Any:
    return tensor if space == "tensor" else tile


FORMS = [
    pytest.param(kind, op, t, id=f"{kind}-{op}-{t}")
    for kind in ("row", "col")
    for op in FNS
    for t in FLOATS
    if (kind, op, t) != ("row", "add", DataType.BF16)
]
"""row_expand_add has no BF16 form."""


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("kind", "op", "dtype"), FORMS)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_vector(space: str, kind: str, op: str, dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a, v = sample(shape, dtype, 1), sample(vector_of(kind, shape), dtype, 2, low=0.5)
    with np.errstate(all="ignore"):
        want = np.asarray(FNS[op](wide(a), wide(v))).astype(np.float32).astype(NUMPY[dtype])
    valid = VALID if ragged else None
    vshape = vector_of(kind, SHAPE)
    x = (to_torch(padded(a, SHAPE, dtype), dtype), types(space)(SHAPE, dtype, valid))
    y = (
        to_torch(padded(v, vshape, dtype), dtype),
        types(space)(vshape, dtype, vector_of(kind, VALID) if ragged else None),
    )
    result, _ = run_op(f"{space}.{kind}_expand_{op}", [x, y])
    if space == "tile":
        assert region(result) == shape
    have = result[: shape[0], : shape[1]]
    close(to_numpy(have, dtype), want, dtype, ulps=8 if op == "expdif" else 1)


@pytest.mark.parametrize("op", ["add", "mul", "max", "min", "sub"])
@pytest.mark.parametrize("kind", ["row", "col"])
def test_integer_vectors_wrap(kind: str, op: str) -> None:
    dtype = DataType.INT32
    a, v = sample(SHAPE, dtype, 3), sample(vector_of(kind, SHAPE), dtype, 4)
    with np.errstate(all="ignore"):
        want = FNS[op](a, v)
    x, y = (to_torch(a, dtype), tile(SHAPE, dtype)), (to_torch(v, dtype), tile(v.shape, dtype))
    result, _ = run_op(f"tile.{kind}_expand_{op}", [x, y])
    close(to_numpy(result, dtype), want, dtype)


def test_row_expand_add_repeats_a_block_per_row() -> None:
    """A carrier of one 32-byte block per row: the block is repeated along the columns."""
    a, block = sample((2, 16), DataType.FP32, 5), sample((2, 8), DataType.FP32, 6)
    space: dict[str, Any] = {}
    exec(_PREAMBLE, space)
    out = space["_row_expand_add"](to_torch(a, DataType.FP32), to_torch(block, DataType.FP32))
    close(to_numpy(out, DataType.FP32), a + np.tile(block, (1, 2)), DataType.FP32)


@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.INT32], ids=str)
@pytest.mark.parametrize("kind", ["row", "col"])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_repeat_ignores_the_target_values(space: str, kind: str, dtype: DataType) -> None:
    target, v = padded(sample((1, 1), dtype), SHAPE, dtype), sample(vector_of(kind, SHAPE), dtype, 7)
    x, y = (to_torch(target, dtype), types(space)(SHAPE, dtype)), (to_torch(v, dtype), types(space)(v.shape, dtype))
    result, _ = run_op(f"{space}.{kind}_expand", [x, y])
    close(to_numpy(result, dtype), np.broadcast_to(v, SHAPE), dtype)


def test_repeat_keeps_the_region_of_the_target() -> None:
    v = sample((4, 1), DataType.FP32, 7)
    x = (to_torch(padded(sample(VALID, DataType.FP32), SHAPE, DataType.FP32), DataType.FP32), tile(SHAPE, valid=VALID))
    result, _ = run_op("tile.row_expand", [x, (to_torch(v, DataType.FP32), tile((4, 1)))])
    assert region(result) == VALID
    close(to_numpy(valid_part(result), DataType.FP32), np.broadcast_to(v[:3], VALID), DataType.FP32)


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_expands_fills_the_shape_of_the_target(space: str) -> None:
    x = (to_torch(sample(SHAPE, DataType.FP32), DataType.FP32), types(space)(SHAPE))
    result, _ = run_op(f"{space}.expands", [x, e.ConstFloat(2.5, DataType.FP32)])
    assert result.tolist() == [[2.5] * 6] * 4


def test_expand_clone_repeats_one_axis() -> None:
    v = sample((2, 1, 3), DataType.FP32, 8)
    x = (to_torch(v, DataType.FP32), tensor((2, 1, 3)))
    target = (to_torch(sample((2, 4, 3), DataType.FP32), DataType.FP32), tensor((2, 4, 3)))
    result, _ = run_op("tensor.expand_clone", [x, target])
    close(to_numpy(result, DataType.FP32), np.broadcast_to(v, (2, 4, 3)), DataType.FP32)
