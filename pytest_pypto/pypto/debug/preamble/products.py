"""Matrix products: the contraction runs over the left operand's valid columns and accumulates in FP32 or INT32."""

from __future__ import annotations

from typing import Any

import torch

from .regions import _region, _with_valid


def _wide(t: torch.Tensor) -> torch.Tensor:
    """`t` in the type products are accumulated in: FP32 for floats, INT32 for integers."""
    return t.float() if t.dtype.is_floating_point else t.to(torch.int32)


def _matmul(a: torch.Tensor, b: torch.Tensor) -> Any:
    """`a @ b` over the valid columns of `a`, in FP32 or INT32; valid rows come from `a`, valid columns from `b`."""
    left, right = _region(a), _region(b)
    k = left[-1]
    out = torch.matmul(_wide(a[..., :k]), _wide(b[..., :k] if b.dim() == 1 else b[..., :k, :]))
    if a.dim() < 2 or b.dim() < 2 or (left == tuple(a.shape) and right == tuple(b.shape)):
        return out
    return _with_valid(out, (*out.shape[:-2], left[-2], right[-1]))


def _accumulate(acc: torch.Tensor, product: torch.Tensor, start: Any = False) -> Any:
    """Add `product` to the storage of `acc` (with `start`, overwrite it), which may be a window; returns `acc`."""
    if start:
        acc.copy_(product)
    else:
        acc.add_(product)
    return acc


def _gemv(a: torch.Tensor, b: torch.Tensor, plus: torch.Tensor | None = None) -> Any:
    """`[1, K] @ [K, N]` (plus an accumulator or a bias) in row 0 of a 16-row accumulator; rows 1-15 are padding."""
    row = _matmul(a, b)[:1]
    valid = (1, _region(b)[-1])
    if plus is not None:
        row = row + plus[:1].to(row.dtype)
    out = row.new_zeros((16, b.shape[-1]))
    out[:1] = row
    return _with_valid(out, valid)


def _gemv_into(acc: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
    """Add `[1, K] @ [K, N]` to row 0 of `acc`, which is a window; returns `acc`."""
    acc[:1].add_(_matmul(a, b)[:1])
    return _with_valid(acc.detach(), (1, _region(b)[-1]))


def _matmul_mx(a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor) -> Any:
    """The product of block-scaled operands: one scale per 32 elements along K of each row of `a`, column of `b`."""
    k = a.shape[-1]
    rows = a_scale.repeat_interleave(32, dim=-1)[..., :k]
    cols = b_scale.repeat_interleave(32, dim=-2)[..., :k, :]
    left, right = a.float() * rows, b.float() * cols
    valid = _region(a)[-1]
    out = torch.matmul(left[..., :valid], right[..., :valid, :])
    if _region(a) == tuple(a.shape) and _region(b) == tuple(b.shape):
        return out
    return _with_valid(out, (_region(a)[-2], _region(b)[-1]))
