"""Operators that only move data give the same bits for every element type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import MemorySpace

from .arrays import CLASSES, close, sample, to_numpy, to_torch
from .build import run_op, tensor, tile

Case = tuple[str, Callable[[Any], list[Any]], dict[str, Any], Callable[[np.ndarray], np.ndarray]]
INDEX = (torch.tensor([[2, 0, 3, 1]], dtype=torch.int32), tensor((1, 4), DataType.INT32))
TILE_INDEX = (INDEX[0], tile((1, 4), DataType.INT32))


def rows(x: np.ndarray) -> np.ndarray:
    return x[[2, 0, 3, 1]]


CASES: list[Case] = [
    ("tensor.reshape", lambda x: [x, (2, 32)], {}, lambda a: a.reshape(2, 32)),
    ("tile.reshape", lambda x: [x, (2, 32)], {}, lambda a: a.reshape(2, 32)),
    ("tensor.transpose", lambda x: [x, 0, 1], {}, lambda a: a.T),
    ("tile.transpose", lambda x: [x, 0, 1], {}, lambda a: a.T),
    ("tile.transpose_view", lambda x: [x], {}, lambda a: a.T),
    ("tensor.concat", lambda x: [x, x], {}, lambda a: np.concatenate([a, a], 1)),
    ("tile.concat", lambda x: [x, x], {}, lambda a: np.concatenate([a, a], 1)),
    ("tensor.view", lambda x: [x, (2, 32)], {}, lambda a: a.reshape(2, 32)),
    ("tensor.set_validshape", lambda x: [x, 4, 16], {}, lambda a: a),
    ("tile.set_validshape", lambda x: [x, 4, 16], {}, lambda a: a),
    ("tile.move", lambda x: [x], {"target_memory": MemorySpace.Mat}, lambda a: a),
    ("tensor.scatter_update", lambda x: [x, INDEX, x], {}, lambda a: a[[1, 3, 0, 2]]),
    ("tile.scatter_update", lambda x: [x, TILE_INDEX, x], {}, lambda a: a[[1, 3, 0, 2]]),
]


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_values_are_moved_unchanged(case: Case, dtype: DataType) -> None:
    name, operands, kwargs, want = case
    a = sample((4, 16), dtype, 7)
    types = tensor if name.startswith("tensor.") else tile
    x = (to_torch(a, dtype), types((4, 16), dtype))
    result, _ = run_op(name, operands(x), kwargs)
    close(to_numpy(result, dtype), want(a), dtype)
