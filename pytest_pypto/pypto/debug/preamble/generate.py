"""Operators that make values from nothing: triangles and random words."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

import torch

from .regions import _coerce_shape, _with_valid


def _tri(
    diagonal: Any, shape: Iterable[Any], dtype: torch.dtype, upper: bool, valid: Iterable[Any] | None = None
) -> Any:
    """Ones on and below the diagonal (`upper`: on and above it), zeros elsewhere and outside the valid box."""
    rows, cols = _coerce_shape(shape)
    i, j = torch.arange(rows).unsqueeze(1), torch.arange(cols)
    edge = i + int(diagonal)
    out = (j >= edge if upper else j <= edge).to(dtype)
    if valid is None:
        return out
    box = _coerce_shape(valid)
    out[box[0] :] = 0
    out[:, box[1] :] = 0
    return _with_valid(out, box)


def _random_words(
    key: tuple[Any, Any], counter: tuple[Any, Any, Any, Any], shape: Iterable[Any], rounds: int
) -> torch.Tensor:
    """Philox4x32 words (int64, 0 to 2**32 - 1) in row-major order; every four add one to the 128-bit counter."""
    size = _coerce_shape(shape)
    blocks = -(-prod(size) // 4)
    low = 0xFFFFFFFF
    start = sum((int(c) & low) << (32 * n) for n, c in enumerate(counter))
    words = [[(start + b) >> (32 * n) & low for b in range(blocks)] for n in range(4)]
    k0, k1 = int(key[0]) & low, int(key[1]) & low
    for _ in range(rounds):
        p0 = [w * 0xD2511F53 for w in words[0]]
        p1 = [w * 0xCD9E8D57 for w in words[2]]
        words = [
            [(p >> 32) ^ w ^ k0 for p, w in zip(p1, words[1], strict=False)],
            [p & low for p in p1],
            [(p >> 32) ^ w ^ k1 for p, w in zip(p0, words[3], strict=False)],
            [p & low for p in p0],
        ]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    flat = torch.tensor(words, dtype=torch.int64).T.reshape(-1)
    return flat[: prod(size)].reshape(size)


def _random(
    key: tuple[Any, Any],
    counter: tuple[Any, Any, Any, Any],
    shape: Iterable[Any],
    rounds: int,
    signed: bool,
    valid: Iterable[Any] | None = None,
) -> Any:
    """Random 32-bit words that depend on key and counter only: INT32 (`signed`) or UINT32 held in int64."""
    words = _random_words(key, counter, shape, rounds)
    out = torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32) if signed else words
    return out if valid is None else _with_valid(out, _coerce_shape(valid))
