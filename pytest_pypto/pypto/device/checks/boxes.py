"""Which windows of one buffer meet: all pairs at once for windows of equal strides, one by one for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..host.graph import overlap
from ..machine.dtypes import Array
from ..machine.gm import GmArg

_FEW = 64
"""Pairs up to this number are compared one by one."""
_CHUNK = 1 << 22
"""Most pairs that are compared in one step."""


def meeting_pairs(a: Sequence[GmArg], b: Sequence[GmArg]) -> Iterator[tuple[int, int]]:
    """Index pairs (i, j) such that window `a[i]` and window `b[j]`, of one buffer, share an element."""
    if len(a) * len(b) <= _FEW:
        yield from ((i, j) for i, x in enumerate(a) for j, y in enumerate(b) if meets(x, y))
        return
    groups_a, groups_b = _by_strides(a), _by_strides(b)
    for strides, left in groups_a.items():
        for other, right in groups_b.items():
            if strides == other and strides[-1] == 1:
                yield from _same(a, left, b, right, strides)
            else:
                yield from ((i, j) for i in left for j in right if meets(a[i], b[j]))


def _by_strides(windows: Sequence[GmArg]) -> dict[tuple[int, ...], list[int]]:
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, w in enumerate(windows):
        groups.setdefault(w.strides, []).append(i)
    return groups


def _bounds(windows: Sequence[GmArg], which: Sequence[int], strides: tuple[int, ...]) -> tuple[Array, Array]:
    """First and one past the last position per axis."""
    rest = np.array([windows[i].offset for i in which], np.int64)
    low = np.zeros((len(which), len(strides)), np.int64)
    for axis, stride in enumerate(strides):
        low[:, axis], rest = (rest // stride, rest % stride) if stride else (0, rest)
    return low, low + np.array([windows[i].shape for i in which], np.int64)


def _same(
    a: Sequence[GmArg], left: list[int], b: Sequence[GmArg], right: list[int], strides: tuple[int, ...]
) -> Iterator[tuple[int, int]]:
    low_a, high_a = _bounds(a, left, strides)
    low_b, high_b = _bounds(b, right, strides)
    step = max(_CHUNK // max(len(right), 1), 1)
    for start in range(0, len(left), step):
        part = slice(start, start + step)
        hit = np.ones((len(left[part]), len(right)), np.bool_)
        for axis in range(len(strides)):
            hit &= low_a[part, None, axis] < high_b[None, :, axis]
            hit &= low_b[None, :, axis] < high_a[part, None, axis]
        for i, j in np.argwhere(hit):
            yield left[start + int(i)], right[int(j)]


def meets(a: GmArg, b: GmArg) -> bool:
    """True when two windows share an element; exact, also for windows of different strides."""
    if not overlap(a, b):
        return False
    if a.strides == b.strides and (len(a.strides) == 1 or a.strides[-1] == 1):
        return True
    return bool(np.intersect1d(elements(a), elements(b)).size)


def elements(a: GmArg) -> Array:
    """Element numbers of a window in its buffer."""
    spots = np.array([a.offset], np.int64)
    for n, s in zip(a.shape, a.strides, strict=True):
        spots = (spots[:, None] + np.arange(n, dtype=np.int64) * s).reshape(-1)
    return spots
