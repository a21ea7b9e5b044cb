"""Element types of the machine as numpy types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DType = np.dtype[Any]

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
BF16 = np.dtype(ml_dtypes.bfloat16)

NUMPY: Mapping[str, DType] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "f16": np.dtype(np.float16),
    "bf16": BF16,
    "f32": F32,
    "f64": F64,
    "f8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "f8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
}
"""`.pto` element type to numpy type. The 4-bit types have no storage here."""

NAMES: Mapping[DType, str] = {v: k for k, v in NUMPY.items() if k not in ("index",)}
_SMALL = frozenset(NUMPY[n] for n in ("f16", "bf16", "f8e4m3fn", "f8e5m2", "f8e8m0"))
_FLOATS = _SMALL | {F32, F64}


def numpy_type(name: str) -> DType:
    """The numpy type of `.pto` element type `name`.

    Raises:
        KeyError: the machine has no storage for it (4-bit types).
    """
    found = NUMPY.get(name)
    if found is None:
        raise KeyError(f"the simulated device has no storage for element type {name}; it has {', '.join(NUMPY)}")
    return found


def is_float(dtype: DType) -> bool:
    """True for every floating type, the small ones of ml_dtypes included."""
    return dtype in _FLOATS


def is_small_float(dtype: DType) -> bool:
    """True for types whose arithmetic runs in FP32 with one rounding: FP16, BF16 and the 8-bit floats."""
    return dtype in _SMALL
