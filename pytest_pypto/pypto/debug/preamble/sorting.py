"""Sorting of (value, index) pairs that lie interleaved along the last axis, in descending order, stable."""

from __future__ import annotations

from typing import Any

import torch

from .regions import _region


def _sort32(src: torch.Tensor, idx: torch.Tensor) -> Any:
    """Every 32 values of a row sorted in descending order, interleaved with the raw bits of their `idx` entries.

    The last axis doubles for FP32 values. For FP16 the low 16 bits of each index are kept. Padding sorts last.
    """
    bits = idx.to(torch.int64)
    if src.dtype == torch.float32:
        words = torch.where(bits >= 1 << 31, bits - (1 << 32), bits).to(torch.int32).view(torch.float32)
    else:
        low = bits & 0xFFFF
        words = torch.where(low >= 1 << 15, low - (1 << 16), low).to(torch.int16).view(src.dtype)
    lead, n = tuple(src.shape[:-1]), src.shape[-1]
    order = _descending(_sort_keys(src).reshape(*lead, n // 32, 32))
    values = src.reshape(*lead, n // 32, 32).gather(-1, order)
    words = words.reshape(*lead, n // 32, 32).gather(-1, order)
    return torch.stack([values, words], dim=-1).reshape(*lead, 2 * n)


def _sort_keys(src: torch.Tensor) -> torch.Tensor:
    """The values as sort keys: padding counts as the lowest of all."""
    valid = _region(src)[-1]
    if valid == src.shape[-1]:
        return src
    keys = src.clone()
    keys[..., valid:] = float("-inf")
    return keys


def _descending(keys: torch.Tensor) -> torch.Tensor:
    return torch.sort(keys, dim=-1, descending=True, stable=True).indices


def _merge_pairs(pairs: torch.Tensor) -> torch.Tensor:
    """Rows of pairs `[..., n, 2]` in descending order of the first element, stable."""
    order = _descending(pairs[..., 0])
    return torch.take_along_dim(pairs, order.unsqueeze(-1), dim=-2)


def _mrgsort_runs(src: torch.Tensor, block_len: Any) -> Any:
    """Every four neighbouring sorted runs of `block_len` elements (a pair counts two) merged into one."""
    group = 4 * int(block_len)
    if int(block_len) <= 0 or int(block_len) % 64:
        raise ValueError(f"mrgsort: block_len must be a positive multiple of 64, got {int(block_len)}")
    out = src.clone()
    for start in range(0, src.shape[-1], group):
        part = src[..., start : start + group]
        pairs = part.reshape(*part.shape[:-1], part.shape[-1] // 2, 2)
        out[..., start : start + group] = _merge_pairs(pairs).reshape(part.shape)
    return out


def _mrgsort_lists(lists: tuple[torch.Tensor, ...], width: int, exhausted: bool) -> Any:
    """Two to four sorted lists of pairs merged into one row of `width` elements.

    With `exhausted` the merge ends when one list is used up; the rest of the row is zero.
    """
    merged = torch.cat(lists, dim=-1)
    pairs = merged.reshape(*merged.shape[:-1], merged.shape[-1] // 2, 2)
    order = _descending(pairs[..., 0])
    out = torch.take_along_dim(pairs, order.unsqueeze(-1), dim=-2).reshape(merged.shape)
    if exhausted:
        ends, end = [], 0
        for t in lists:
            end += t.shape[-1] // 2
            ends.append((order == end - 1).int().argmax(dim=-1))
        last = torch.stack(ends).amin(dim=0).unsqueeze(-1)
        out = torch.where(torch.arange(out.shape[-1]) <= 2 * last + 1, out, torch.zeros_like(out))
    full = out.new_zeros((*out.shape[:-1], width))
    full[..., : min(width, out.shape[-1])] = out[..., :width]
    return full
