"""Element types between numpy, where expected values are computed, and torch, where the script runs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from pytest_pypto.pypto.ir.dtypes import DataType

NUMPY: dict[DataType, Any] = {
    DataType.FP32: np.float32,
    DataType.FP16: np.float16,
    DataType.BF16: ml_dtypes.bfloat16,
    DataType.INT8: np.int8,
    DataType.INT16: np.int16,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
    DataType.UINT8: np.uint8,
    DataType.UINT16: np.uint16,
    DataType.UINT32: np.uint32,
    DataType.UINT64: np.uint64,
    DataType.BOOL: np.bool_,
    DataType.INDEX: np.int64,
}
FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)
SIGNED = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64)
UNSIGNED = (DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64)
INTS = (*SIGNED, *UNSIGNED)
CLASSES = (*FLOATS, *INTS)
"""One type per class of behaviour: float widths, signed widths, unsigned widths."""


def to_torch(a: np.ndarray, dtype: DataType) -> torch.Tensor:
    """An array of the type's numpy form as the torch tensor a script computes with."""
    if dtype is DataType.BF16:
        return torch.from_numpy(a.view(np.int16).copy()).view(torch.bfloat16)
    if dtype is DataType.UINT64:
        return torch.from_numpy(a.view(np.int64).copy())
    held = {DataType.UINT16: np.int32, DataType.UINT32: np.int64}.get(dtype)
    return torch.from_numpy(np.array(a if held is None else a.astype(held)))


def to_numpy(t: torch.Tensor, dtype: DataType) -> np.ndarray:
    """A result in the type's numpy form."""
    t = t.detach().contiguous()
    if dtype is DataType.BF16:
        return t.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    if dtype is DataType.UINT64:
        return t.numpy().view(np.uint64)
    out: np.ndarray = t.numpy().astype(NUMPY[dtype]) if dtype in NUMPY else t.numpy()
    return out


def sample(shape: tuple[int, ...], dtype: DataType, seed: int = 0, low: float = -4.0, high: float = 4.0) -> np.ndarray:
    """Random values of a type; integers over their whole range mixed with small ones, without zero."""
    g = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if dtype in FLOATS:
        return g.uniform(low, high, shape).astype(np.float32).astype(kind)
    if dtype is DataType.BOOL:
        return g.integers(0, 2, shape).astype(kind)
    info = np.iinfo(kind)
    wide = g.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
    small = g.integers(1, 9, shape).astype(kind)
    mixed = np.where(g.random(shape) < 0.5, wide, small)
    return np.where(mixed == 0, kind(1), mixed).astype(kind)


def poison(shape: tuple[int, ...], dtype: DataType) -> np.ndarray:
    """What padding holds in the tests: NaN, or the largest integer."""
    kind = NUMPY[dtype]
    if dtype in FLOATS:
        return np.full(shape, np.nan, np.float32).astype(kind)
    return np.full(shape, True if dtype is DataType.BOOL else np.iinfo(kind).max, kind)


def padded(a: np.ndarray, shape: tuple[int, ...], dtype: DataType) -> np.ndarray:
    """`a` in the corner of a poisoned array."""
    out = poison(shape, dtype)
    out[tuple(slice(0, s) for s in a.shape)] = a
    return out


def wide(a: np.ndarray) -> np.ndarray:
    """Floats as float64, integers as they are."""
    return a.astype(np.float64) if a.dtype.kind not in "iub" else a


def close(have: np.ndarray, want: np.ndarray, dtype: DataType, ulps: int = 0) -> None:
    """Assert equality, for floats within `ulps` units of the last place (and with equal NaNs and infinities)."""
    assert have.shape == want.shape
    if dtype not in FLOATS or ulps == 0:
        a, b = wide(have), wide(want)
        np.testing.assert_array_equal(a, b)
        return
    bits = {DataType.FP32: 23, DataType.FP16: 10, DataType.BF16: 7}[dtype]
    a, b = wide(have), wide(want)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    ok = ~np.isnan(b)
    same_inf = np.isinf(b) | np.isinf(a)
    np.testing.assert_array_equal(a[ok & same_inf], b[ok & same_inf])
    rest = ok & ~same_inf
    tiny = {DataType.FP32: 1e-44, DataType.FP16: 6e-8, DataType.BF16: 1e-40}[dtype]
    limit = ulps * 2.0**-bits * np.abs(b[rest]) + ulps * tiny
    assert (np.abs(a[rest] - b[rest]) <= limit).all(), np.abs(a[rest] - b[rest]).max()
