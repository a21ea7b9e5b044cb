"""Sorting, gathering and scattering inside a core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers as num
from .bind import DYNAMIC, Bind, BindError, BoundsError, OpSpec, Part, Run, nothing
from .dtypes import Array
from .select import COMPARE
from .tiles import Tile

PATTERNS = {
    "P0101": (2, 0),
    "P1010": (2, 1),
    "P0001": (4, 0),
    "P0010": (4, 1),
    "P0100": (4, 2),
    "P1000": (4, 3),
    "P1111": (1, 0),
}
"""Mask pattern: (stride, first column)."""


def _pattern(b: Bind) -> tuple[int, int]:
    name = str(b.attrs.get("maskPattern"))
    if name not in PATTERNS:
        raise BindError(f"unknown maskPattern {name!r}; known are {', '.join(PATTERNS)}")
    return PATTERNS[name]


def _bits(x: Array, dtype: np.dtype[Any]) -> Array:
    """`x` reinterpreted as `dtype` when the widths agree, else converted."""
    if x.dtype == dtype:
        return x
    if x.dtype.itemsize == dtype.itemsize:
        return np.ascontiguousarray(x).view(dtype)
    return num.converter(x.dtype, dtype)(x)


def _gather(b: Bind) -> Run:
    if "maskPattern" in b.attrs:
        return _gather_mask(b)
    if "cmpMode" in b.attrs:
        return _gather_compare(b)
    src, index, out = b.tile(0), b.tile(1), b.out
    rows, cols = min(out.vr, index.type.rows), min(out.vc, index.type.cols)
    if not rows or not cols:
        return nothing
    data, spots = src.reader(src.type.rows, src.type.cols), index.reader(rows, cols)
    put = out.writer(rows, cols)
    size = src.type.rows * src.type.cols

    def run() -> None:
        flat = np.ascontiguousarray(data()).reshape(-1)
        at = spots().astype(np.int64)
        _inside(at, size, b.name)
        put(flat[at])

    return run


def _inside(at: Array, size: int, name: str) -> None:
    bad = (at < 0) | (at >= size)
    if bad.any():
        raise BoundsError(f"{name} has index {int(at[bad][0])}, outside 0..{size - 1}")


def _gather_mask(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    stride, first = _pattern(b)
    rows = min(src.vr, out.vr)
    cols = min(-(-(src.vc - first) // stride), out.vc)
    if rows <= 0 or cols <= 0:
        return nothing
    read, put, dtype = src.reader(rows, src.vc), out.writer(rows, cols), out.dtype
    return lambda: put(_bits(read()[:, first::stride][:, :cols], dtype))


def _gather_compare(b: Bind) -> Run:
    src, value, out = b.tile(0), b.ins[1], b.out
    mode = str(b.attrs["cmpMode"])
    if mode not in COMPARE:
        raise BindError(f"unknown cmpMode {mode!r}; known are {', '.join(COMPARE)}")
    test, offset = COMPARE[mode], int(b.attrs.get("offset", 0))
    read, dtype = src.reader(src.vr, src.vc), src.dtype
    old, put = out.reader(src.vr, out.type.cols), out.writer(src.vr, out.type.cols)
    counts = b.outs[1].writer(1, src.vr) if len(b.outs) > 1 else None

    def run(k: Any) -> None:
        hits = test(num.to_float(read()), num.to_float(np.asarray(num.scalar_of(k, dtype))))
        result = np.array(old())
        for row, line in enumerate(hits):
            found = np.nonzero(line)[0][: result.shape[1]] + offset
            result[row, : len(found)] = found
        put(result)
        if counts is not None:
            counts(hits.sum(axis=1)[None, :])

    return run if value is DYNAMIC else lambda: run(value)


def _gather_blocks(b: Bind) -> Run:
    """`tgatherb`: each byte offset moves one block of 32 bytes."""
    src, offsets, out = b.tile(0), b.tile(1), b.out
    each = 32 // out.dtype.itemsize
    rows, blocks = min(out.vr, offsets.type.rows), min(-(-out.vc // each), offsets.type.cols)
    if not rows or not blocks:
        return nothing
    data, spots = src.reader(src.type.rows, src.type.cols), offsets.reader(rows, blocks)
    cols, dtype = min(blocks * each, out.type.cols), out.dtype
    put, size = out.writer(rows, cols), src.type.nbytes

    def run() -> None:
        raw = np.ascontiguousarray(data()).reshape(-1).view(np.uint8)
        at = spots().astype(np.int64)
        _inside(at + 31, size, b.name)
        _inside(at, size, b.name)
        moved = raw[at[:, :, None] + np.arange(32)]
        put(moved.reshape(rows, -1).view(dtype)[:, :cols])

    return run


def _scatter(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    full = (out.type.rows, out.type.cols)
    old, put = out.reader(*full), out.writer(*full)
    read = src.reader(src.vr, src.vc)
    if "maskPattern" in b.attrs:
        stride, first = _pattern(b)

        def masked() -> None:
            result = np.array(old())
            result[: src.vr, first : first + src.vc * stride : stride] = read()
            put(result)

        return masked
    spots = b.tile(1).reader(src.vr, src.vc)

    def run() -> None:
        result = np.ascontiguousarray(np.array(old()))
        at = spots().astype(np.int64)
        _inside(at, result.size, b.name)
        result.reshape(-1)[at.reshape(-1)] = np.array(read()).reshape(-1)
        put(result)

    return run


def _sort32(b: Bind) -> Run:
    src, index, out = b.tile(0), b.tile(1), b.out
    rows, cols = src.vr, src.vc
    if cols % 32:
        raise BindError(f"tsort32 sorts groups of 32 columns, got {cols}")
    if src.dtype.itemsize not in (2, 4):
        raise BindError("tsort32 takes FP32 or FP16 values with 32-bit indices")
    read, ids = src.reader(rows, cols), index.reader(rows, cols)
    put, dtype = out.writer(rows, min(2 * cols, out.type.cols)), out.dtype

    def run() -> None:
        values, labels = np.array(read()), np.array(ids())
        keys = num.to_float(values).reshape(rows, -1, 32)
        order = np.argsort(-keys, axis=2, kind="stable")
        v = np.take_along_axis(values.reshape(rows, -1, 32), order, 2).reshape(rows, cols)
        i = np.take_along_axis(labels.reshape(rows, -1, 32), order, 2).reshape(rows, cols)
        put(_interleave(v, i, dtype))

    return run


def _interleave(values: Array, labels: Array, dtype: np.dtype[Any]) -> Array:
    """(value, index bits) pairs; 16-bit values carry the low 16 bits of the index."""
    rows, cols = values.shape
    bits = labels.astype(f"u{values.dtype.itemsize}")
    pairs = np.empty((rows, cols, 2), dtype)
    pairs[..., 0] = values
    pairs[..., 1] = bits.view(dtype)
    return pairs.reshape(rows, 2 * cols)


def _merged(runs: list[Array]) -> Array:
    """One descending list of pairs from several; equal values keep the order of the lists."""
    pairs = np.concatenate(runs)
    order = np.argsort(-num.to_float(pairs[:, 0]), kind="stable")
    return pairs[order]


def _merge(b: Bind) -> Run:
    if len(b.ins) == 2 and not isinstance(b.ins[1], Tile):
        return _merge_runs(b)
    lists, out = [t for t in b.ins[:-1] if isinstance(t, Tile)], b.out
    reads = [t.reader(1, t.vc) for t in lists]
    total = min(sum(t.vc for t in lists), out.type.cols)
    put = out.writer(1, total)

    def run() -> None:
        runs = [np.array(read()).reshape(-1, 2) for read in reads]
        put(_merged(runs).reshape(1, -1)[:, :total])

    return run


def _merge_runs(b: Bind) -> Run:
    src, length, out = b.tile(0), b.ins[1], b.out
    read, put = src.reader(src.vr, src.vc), out.writer(src.vr, src.vc)

    def run(block: Any) -> None:
        size = int(block)
        if size <= 0 or size % 2:
            raise BindError(f"tmrgsort has block length {size}; expected a positive even number")
        data = np.array(read())
        for row in range(data.shape[0]):
            for start in range(0, data.shape[1], 4 * size):
                stop = min(start + 4 * size, data.shape[1])
                runs = [data[row, s : min(s + size, stop)].reshape(-1, 2) for s in range(start, stop, size)]
                data[row, start:stop] = _merged(runs).reshape(-1)
        put(data)

    return run if length is DYNAMIC else lambda: run(length)


def _valid(*which: int) -> Callable[[Bind], list[Part]]:
    def reads(b: Bind) -> list[Part]:
        return [
            Part(b.ins[i], b.ins[i].vr, b.ins[i].vc) for i in which if i < len(b.ins) and isinstance(b.ins[i], Tile)
        ]

    return reads


def _reads_gather(b: Bind) -> list[Part]:
    """Which elements are gathered is data, so the source counts as read where it is valid and may be undefined."""
    if len(b.ins) == 1 or "cmpMode" in b.attrs:
        return _valid(0)(b)
    return [*_valid(0)(b), Part(b.tile(1), min(b.out.vr, b.tile(1).type.rows), min(b.out.vc, b.tile(1).type.cols))]


def _reads_scatter(b: Bind) -> list[Part]:
    src = b.tile(0)
    return [Part(t, src.vr, src.vc) for t in b.ins if isinstance(t, Tile)]


def _reads_merge(b: Bind) -> list[Part]:
    if len(b.ins) == 2 and not isinstance(b.ins[1], Tile):
        return _valid(0)(b)
    return [Part(t, 1, t.vc) for t in b.ins[:-1] if isinstance(t, Tile)]


def _merge_scratch(b: Bind) -> tuple[int, ...]:
    return () if len(b.ins) == 2 and not isinstance(b.ins[1], Tile) else (len(b.ins) - 1,)


TABLE: dict[str, OpSpec] = {
    "tgather": OpSpec(_gather, _reads_gather, scratch=(2,)),
    "tgatherb": OpSpec(_gather_blocks, _valid(0, 1)),
    "tscatter": OpSpec(_scatter, _reads_scatter, keeps=True, merges=True),
    "tsort32": OpSpec(_sort32, _valid(0, 1)),
    "tmrgsort": OpSpec(_merge, _reads_merge, scratch=_merge_scratch),
}
