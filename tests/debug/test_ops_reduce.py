"""Reductions against numpy: only valid cells take part, sums of narrow floats accumulate wide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir.dtypes import DataType

from .arrays import FLOATS, NUMPY, close, padded, sample, to_numpy, to_torch, wide
from .build import region, run_op, tensor, tile

SHAPE, VALID = (4, 6), (3, 5)
TYPES = (*FLOATS, DataType.INT16, DataType.INT32)
FNS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def scratch(dtype: DataType) -> Any:
    return to_torch(sample(SHAPE, dtype, 9), dtype), tile(SHAPE, dtype)


def operands(space: str, kind: str, op: str, a: np.ndarray, dtype: DataType, ragged: bool) -> list[Any]:
    types = tensor if space == "tensor" else tile
    x = (to_torch(padded(a, SHAPE, dtype), dtype), types(SHAPE, dtype, VALID if ragged else None))
    needs = space == "tile" and (kind == "row" or op.startswith("arg"))
    return [x, scratch(dtype)] if needs else [x]


def wanted(a: np.ndarray, op: str, axis: int, dtype: DataType) -> np.ndarray:
    if dtype in FLOATS:
        return np.asarray(FNS[op](wide(a), axis=axis, keepdims=True)).astype(np.float32).astype(NUMPY[dtype])
    with np.errstate(all="ignore"):
        kind = {} if op in ("max", "min") else {"dtype": a.dtype}
        return np.asarray(FNS[op](a, axis=axis, keepdims=True, **kind))


PAIRS = [pytest.param(op, t, id=f"{op}-{t}") for op in FNS for t in TYPES if (op, t) != ("min", DataType.BF16)]
"""There is no minimum of BF16."""


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("op", "dtype"), PAIRS)
@pytest.mark.parametrize("kind", ["row", "col"])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_reduction(space: str, kind: str, op: str, dtype: DataType, ragged: bool) -> None:
    axis = 1 if kind == "row" else 0
    a = sample(VALID if ragged else SHAPE, dtype, 1, low=0.25 if op == "sum" else -4.0)
    result, made = run_op(f"{space}.{kind}_{op}", operands(space, kind, op, a, dtype, ragged))
    assert made.dtype is dtype  # type: ignore[attr-defined]
    want = wanted(a, op, axis, dtype)
    assert result.shape == ((4, 1) if kind == "row" else (1, 6))
    if ragged:
        assert region(result) == want.shape
    close(
        to_numpy(result[: want.shape[0], : want.shape[1]], dtype), want, dtype, ulps=2 if op in ("sum", "prod") else 0
    )


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.INT32], ids=str)
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("kind", ["row", "col"])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_position_of_the_extreme(space: str, kind: str, op: str, dtype: DataType, ragged: bool) -> None:
    axis = 1 if kind == "row" else 0
    a = sample(VALID if ragged else SHAPE, dtype, 2)
    a[:, -1] = a[:, 0]
    a[-1] = a[0]
    result, made = run_op(f"{space}.{kind}_{op}", operands(space, kind, op, a, dtype, ragged))
    assert made.dtype is DataType.INT32  # type: ignore[attr-defined]
    want = np.expand_dims(getattr(np, op)(wide(a), axis=axis), axis)
    np.testing.assert_array_equal(result.numpy()[: want.shape[0], : want.shape[1]], want)


def test_all_negative_rows_do_not_see_the_padding() -> None:
    x = torch.full((2, 16), -3.0)
    x[:, 7:] = 0
    for op in ("max", "prod"):
        result, _ = run_op(f"tile.row_{op}", [(x, tile((2, 16), valid=(2, 7))), (x, tile((2, 16)))])
        assert result.tolist() == [[-3.0]] * 2 if op == "max" else [[(-3.0) ** 7]] * 2


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keep", [True, False])
def test_tensor_reductions_honour_axis_and_keep_dim(axis: int, keep: bool) -> None:
    a = sample((2, 3, 4), DataType.FP32, 3)
    x = (to_torch(a, DataType.FP32), tensor((2, 3, 4)))
    result, _ = run_op("tensor.row_sum", [x], {"axis": axis, "keep_dim": keep})
    close(to_numpy(result, DataType.FP32), wide(a).sum(axis=axis, keepdims=keep).astype(np.float32), DataType.FP32, 2)
    result, _ = run_op("tensor.col_argmax", [x], {"axis": axis, "keep_dim": keep})
    want = a.argmax(axis=axis)
    np.testing.assert_array_equal(result.numpy(), np.expand_dims(want, axis) if keep else want)


def test_column_reductions_of_tiles_of_rank_three_collapse_the_first_axis() -> None:
    a = sample((2, 3, 4), DataType.FP32, 4)
    result, _ = run_op("tile.col_sum", [(to_torch(a, DataType.FP32), tile((2, 3, 4)))])
    close(to_numpy(result, DataType.FP32), a.sum(axis=0, keepdims=True), DataType.FP32, 1)


def test_sums_of_narrow_floats_accumulate_wide() -> None:
    """4096 ones in FP16 or BF16: an accumulator of the element type would stop at 2048 or 256."""
    for dtype in (DataType.FP16, DataType.BF16):
        a = np.ones((1, 4096), np.float32).astype(NUMPY[dtype])
        x = (to_torch(a, dtype), tile((1, 4096), dtype))
        result, _ = run_op("tile.row_sum", [x, x])
        assert result.tolist() == [[4096.0]]


def test_nan_and_infinities_take_part() -> None:
    a = np.array([[np.nan, 1.0], [np.inf, 2.0]], np.float32)
    x = (to_torch(a, DataType.FP32), tile((2, 2)))
    for op in ("sum", "max"):
        result, _ = run_op(f"tile.row_{op}", [x, x])
        assert np.isnan(result.numpy()[0, 0])
        assert np.isinf(result.numpy()[1, 0])


def test_an_empty_region_gives_padding() -> None:
    x = torch.full((4, 4), 5.0)
    code_operand = (x, tile((4, 4), valid=(4, 4)))
    result, _ = run_op("tile.row_max", [code_operand, (x, tile((4, 4)))])
    assert result.tolist() == [[5.0]] * 4
    from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE

    space: dict[str, Any] = {}
    exec(_PREAMBLE, space)
    empty = space["_with_valid"](torch.full((4, 4), 5.0), (0, 0))
    for op in ("sum", "prod", "max", "min"):
        made = space["_reduce"](empty, op, -1)
        assert region(made) == (0, 0)
        assert made.shape == (4, 1)
    assert space["_arg_reduce"](empty, "max", -1).dtype == torch.int32
