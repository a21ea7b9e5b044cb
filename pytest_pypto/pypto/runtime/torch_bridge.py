"""torch tensors as numpy arrays and back, without copying.

bfloat16 and the 8-bit floats travel as views of their bytes: numpy gets them as `ml_dtypes` types.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch

from ..ir.dtypes import DataType

_D = DataType


def _torch(*names: str) -> torch.dtype | None:
    for name in names:
        found = getattr(torch, name, None)
        if isinstance(found, torch.dtype):
            return found
    return None


@cache
def torch_dtype_table() -> dict[DataType, torch.dtype]:
    """IR element type -> torch type, for those that this torch has."""
    rows = {
        _D.FP16: _torch("float16"),
        _D.FP32: _torch("float32"),
        _D.BF16: _torch("bfloat16"),
        _D.INT8: _torch("int8"),
        _D.INT16: _torch("int16"),
        _D.INT32: _torch("int32"),
        _D.INT64: _torch("int64"),
        _D.UINT8: _torch("uint8"),
        _D.UINT16: _torch("uint16"),
        _D.UINT32: _torch("uint32"),
        _D.UINT64: _torch("uint64"),
        _D.BOOL: _torch("bool"),
        _D.INDEX: _torch("int64"),
        _D.FP8E4M3FN: _torch("float8_e4m3fn"),
        _D.FP8E5M2: _torch("float8_e5m2"),
        _D.FP8E8M0: _torch("float8_e8m0fnu"),
        _D.FP4: _torch("float4_e2m1fn_x2"),
    }
    return {key: value for key, value in rows.items() if value is not None}


def torch_dtype(dtype: DataType) -> torch.dtype | None:
    """The torch type of an IR element type, or None where torch has none."""
    return torch_dtype_table().get(dtype)


@cache
def _byte_views() -> dict[torch.dtype, tuple[torch.dtype, Any]]:
    """torch type without numpy counterpart -> (torch type of the same width, numpy type of the view)."""
    rows = [
        ("bfloat16", torch.int16, ml_dtypes.bfloat16),
        ("float8_e4m3fn", torch.uint8, ml_dtypes.float8_e4m3fn),
        ("float8_e5m2", torch.uint8, ml_dtypes.float8_e5m2),
        ("float8_e8m0fnu", torch.uint8, getattr(ml_dtypes, "float8_e8m0fnu", np.uint8)),
        ("float4_e2m1fn_x2", torch.uint8, np.uint8),
    ]
    found = [(getattr(torch, name, None), carrier, view) for name, carrier, view in rows]
    return {key: (carrier, view) for key, carrier, view in found if isinstance(key, torch.dtype)}


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The tensor's memory as a numpy array; writing to it writes to the tensor.

    The tensor must be on the CPU; a non-contiguous one gives a strided array.
    """
    plain = tensor.detach()
    views = _byte_views().get(plain.dtype)
    if views is None:
        made: np.ndarray[Any, Any] = plain.numpy()
        return made
    carrier, view = views
    return plain.view(carrier).numpy().view(view)


def as_tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """A numpy array as a torch tensor over the same memory, with the torch type of its element type."""
    for key, (carrier, view) in _byte_views().items():
        if array.dtype == np.dtype(view) and array.dtype != np.uint8:
            raw = array.view(np.int16 if carrier is torch.int16 else np.uint8)
            return torch.from_numpy(raw).view(key)
    return torch.from_numpy(array)
