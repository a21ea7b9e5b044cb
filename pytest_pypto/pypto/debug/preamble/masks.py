"""Comparison masks.

A mask that only `sel` and `sels` read is a bool tensor of the logical shape. Packed, it is a UINT8 tile: bit k (lowest
first) of byte j of a row stands for column 8j + k, and rows are padded to 32 bytes.
"""

from __future__ import annotations

from typing import Any

import torch

from .regions import _with_valid


def _pack_mask(mask: torch.Tensor, like: torch.Tensor | None = None) -> Any:
    """The packed form of a bool tensor; valid columns follow from those of `like`, the compared operand."""
    cols = mask.shape[-1]
    width = (cols + 255) // 256 * 32
    bits = torch.zeros((*mask.shape[:-1], width * 8), dtype=torch.uint8)
    bits[..., :cols] = mask
    weights = torch.tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=torch.uint8)
    out = (bits.reshape(*mask.shape[:-1], width, 8) * weights).sum(dim=-1).to(torch.uint8)
    valid = None if like is None else getattr(like, "_pypto_valid_shape", None)
    rows = tuple(mask.shape[:-1]) if valid is None else tuple(valid[:-1])
    last = cols if valid is None else valid[-1]
    return _with_valid(out, (*rows, -(-last // 8)))


def _unpack_mask(packed: torch.Tensor, shape: Any) -> torch.Tensor:
    """The bool tensor of the logical `shape` that the bits of `packed` (integers of any width) stand for."""
    raw = packed.contiguous().view(torch.uint8)
    bits = (raw.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8)) & 1
    flat = bits.reshape(*raw.shape[:-1], raw.shape[-1] * 8).bool()
    size = tuple(int(s) for s in shape)
    out = torch.zeros(size, dtype=torch.bool)
    part = flat[tuple(slice(0, s) for s in size)]
    out[tuple(slice(0, s) for s in part.shape)] = part
    return out
