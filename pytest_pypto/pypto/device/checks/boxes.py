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
            if strides is not None and strides == other:
                yield from _boxes(a, left, b, right)
            else:
                yield from ((i, j) for i in left for j in right if meets(a[i], b[j]))


def _by_strides(windows: Sequence[GmArg]) -> dict[tuple[int, ...] | None, list[int]]:
    """Windows that are boxes by their strides; the others under None."""
    groups: dict[tuple[int, ...] | None, list[int]] = {}
    for i, w in enumerate(windows):
        groups.setdefault(w.strides if w.is_box else None, []).append(i)
    return groups


def _boxes(a: Sequence[GmArg], left: list[int], b: Sequence[GmArg], right: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of boxes, all of the same strides, that meet on every axis."""
    boxes_a, boxes_b = (np.array([w[i].box for i in which], np.int64) for w, which in ((a, left), (b, right)))
    step = max(_CHUNK // max(len(right), 1), 1)
    for start in range(0, len(left), step):
        part = boxes_a[start : start + step, None]
        hit = ((part[..., 0] < boxes_b[None, ..., 1]) & (boxes_b[None, ..., 0] < part[..., 1])).all(2)
        for i, j in np.argwhere(hit):
            yield left[start + int(i)], right[int(j)]


def meets(a: GmArg, b: GmArg) -> bool:
    """True when two windows share an element; exact, also for windows of different strides."""
    if not overlap(a, b):
        return False
    if a.strides == b.strides and a.is_box and b.is_box:
        return True
    return bool(np.intersect1d(elements(a), elements(b)).size)


def elements(a: GmArg) -> Array:
    """Element numbers of a window in its buffer."""
    spots = np.array([a.offset], np.int64)
    for n, s in zip(a.shape, a.strides, strict=True):
        spots = (spots[:, None] + np.arange(n, dtype=np.int64) * s).reshape(-1)
    return spots
