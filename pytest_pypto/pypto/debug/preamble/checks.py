"""Assertions that scripts with checks carry."""

from __future__ import annotations

from typing import Any

import torch


def _chk(value: Any, name: str, shape: tuple[int | None, ...], *dtypes: torch.dtype) -> None:
    """Assert that `value` is a tensor of `shape` (None: any extent) and one of `dtypes`, its valid cells inside it."""
    assert isinstance(value, torch.Tensor), f"Expected {name} to be a Tensor, got {type(value).__name__}"
    have = tuple(value.shape)
    if None not in shape:
        assert have == shape, f"Shape mismatch for {name}: expected {shape}, got {have}"
    else:
        assert len(have) == len(shape), f"Rank mismatch for {name}: expected {len(shape)}D, got {len(have)}D"
        for k, (want, got) in enumerate(zip(shape, have, strict=False)):
            assert want is None or want == got, f"Dim {k} mismatch for {name}: expected {want}, got {got}"
    assert value.dtype in dtypes, f"Dtype mismatch for {name}: expected {dtypes[0]}, got {value.dtype}"
    valid = getattr(value, "_pypto_valid_shape", None)
    inside = valid is None or all(v <= s for v, s in zip(valid, have, strict=False))
    assert inside, f"Valid shape mismatch for {name}: {valid} exceeds {have}"


def _chk_param(value: Any, name: str, *dtypes: torch.dtype) -> None:
    """Assert that an argument is a tensor of one of `dtypes`; kernels may get partial data, so no shape is checked."""
    assert isinstance(value, torch.Tensor), f"Expected {name} to be a Tensor, got {type(value).__name__}"
    assert value.dtype in dtypes, f"Dtype mismatch for {name}: expected {dtypes[0]}, got {value.dtype}"
