"""Tensors as arrays over the same memory, for every element type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.runtime.torch_bridge import as_array, as_tensor, torch_dtype

PAIRS = [
    (torch.float32, np.float32),
    (torch.float16, np.float16),
    (torch.bfloat16, ml_dtypes.bfloat16),
    (torch.int8, np.int8),
    (torch.int16, np.int16),
    (torch.int32, np.int32),
    (torch.int64, np.int64),
    (torch.uint8, np.uint8),
    (torch.bool, np.bool_),
    (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    (torch.float8_e5m2, ml_dtypes.float8_e5m2),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda v: str(v))
def test_values_and_memory_are_shared_both_ways(ours: torch.dtype, theirs: type) -> None:
    tensor = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).to(ours)
    array = as_array(tensor)
    assert array.dtype == np.dtype(theirs)
    assert np.array_equal(array.astype(np.float32), tensor.float().numpy())
    array[0, 0] = 1
    assert tensor[0, 0].float().item() == 1.0
    back = as_tensor(array)
    assert back.dtype == ours
    assert back.data_ptr() == tensor.data_ptr()


def test_bfloat16_keeps_its_bits() -> None:
    values = torch.tensor([1.01953125, -3.0, 65280.0, float("inf")]).bfloat16()
    assert as_array(values).view(np.uint16).tolist() == values.view(torch.int16).numpy().view(np.uint16).tolist()


def test_a_tensor_that_needs_gradients_is_read_too() -> None:
    assert as_array(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (DataType.INDEX, torch.int64),
        (DataType.BF16, torch.bfloat16),
        (DataType.FP32, torch.float32),
        (DataType.HF8, None),
    ],
)
def test_element_types_of_the_ir(dtype: DataType, expected: torch.dtype | None) -> None:
    assert torch_dtype(dtype) is expected
