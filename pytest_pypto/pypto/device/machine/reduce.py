"""Reductions and row/column broadcasts. Only valid elements take part."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import numbers as num
from .bind import DYNAMIC, Bind, BindError, OpSpec, Part, Run, nothing, reads_first_valid
from .dtypes import Array, is_small_float
from .elementwise import BINARY, compute_type, spread
from .tiles import Tile

REDUCE: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def _reduce(key: str, axis: int) -> Callable[[Bind], Run]:
    fn = REDUCE[key]

    def make(b: Bind) -> Run:
        src, out = b.tile(0), b.out
        rows, cols = src.vr, src.vc
        kept = min(rows, out.vr) if axis == 1 else min(cols, out.vc)
        if not rows or not cols or not kept:
            return nothing
        shape = (kept, 1) if axis == 1 else (1, kept)
        box = (kept, cols) if axis == 1 else (rows, kept)
        target = out.direct(*shape)
        direct = src.direct(*box)
        if target is not None and direct is not None and src.dtype == out.dtype and not is_small_float(src.dtype):
            line = target[:, 0] if axis == 1 else target[0]
            return partial(fn.reduce, direct, axis, src.dtype, line)
        read, put, work = src.reader(*box), out.writer(*shape), compute_type(src.dtype)
        change = num.converter(work, out.dtype)
        return lambda: put(change(fn.reduce(read(), axis=axis, dtype=work, keepdims=True)))

    return make


def _position(fn: Callable[..., Any], axis: int) -> Callable[[Bind], Run]:
    def make(b: Bind) -> Run:
        src, out = b.tile(0), b.out
        rows, cols = src.vr, src.vc
        kept = min(rows, out.vr) if axis == 1 else min(cols, out.vc)
        if not rows or not cols or not kept:
            return nothing
        read = src.reader(*((kept, cols) if axis == 1 else (rows, kept)))
        put = out.writer(*((kept, 1) if axis == 1 else (1, kept)))
        return lambda: put(np.expand_dims(fn(num.to_float(read()), axis=axis), axis))

    return make


def _reduced(axis: int) -> Callable[[Bind], list[Part]]:
    def writes(b: Bind) -> list[Part]:
        src, out = b.tile(0), b.out
        if not src.vr or not src.vc:
            return []
        return [Part(out, min(src.vr, out.vr), 1) if axis == 1 else Part(out, 1, min(src.vc, out.vc))]

    return writes


def _vector(b: Bind, which: int, axis: int) -> tuple[Tile, int, int]:
    """The broadcast operand and the extents that are read of it; `axis` is the one it is repeated along."""
    vec, out = b.tile(which), b.out
    rows, cols = (out.vr, 1) if axis == 1 else (1, out.vc)
    if vec.type.rows < rows or vec.type.cols < cols:
        raise BindError(
            f"a vector of {vec.type.rows}x{vec.type.cols} cannot serve a result with {out.vr}x{out.vc} valid elements"
        )
    if axis == 1 and b.name == "trowexpandadd" and vec.type.cols > 1 and vec.type.blayout == "row_major":
        cols = vec.type.cols  # a row-major carrier: one 32-byte block per row
    return vec, rows, cols


def _expdif(x: Any, v: Any) -> Any:
    return np.exp(x - v)


def _expand_op(key: str, axis: int) -> Callable[[Bind], Run]:
    fn, integer = (_expdif, _expdif) if key == "expdif" else BINARY[key]

    def make(b: Bind) -> Run:
        out = b.out
        if not out.vr or not out.vc:
            return nothing
        vec, rows, cols = _vector(b, 1, axis)
        if cols > 1 and axis == 1:
            return _carrier(b, fn, vec, rows, cols)
        return spread(fn, out, [b.tile(0), _thin(vec, rows, cols)], integer)

    return make


def _thin(vec: Tile, rows: int, cols: int) -> Tile:
    """`vec` cut to the extents that are read, so that numpy repeats it."""
    from dataclasses import replace

    if (vec.type.rows, vec.type.cols) == (rows, cols):
        return vec
    typ = replace(vec.type, rows=rows, cols=cols, v_row=None, v_col=None)
    return vec.window(0, 0, typ, rows, cols)


def _carrier(b: Bind, fn: Callable[..., Any], vec: Tile, rows: int, cols: int) -> Run:
    out, work = b.out, compute_type(b.out.dtype)
    read, block = b.tile(0).reader(out.vr, out.vc), vec.reader(rows, cols)
    put = out.writer(out.vr, out.vc)
    columns = np.arange(out.vc) % cols
    to, tv = num.converter(b.tile(0).dtype, work), num.converter(vec.dtype, work)
    return lambda: put(fn(to(read()), tv(block())[:, columns]))


def _expand(axis: int) -> Callable[[Bind], Run]:
    def make(b: Bind) -> Run:
        out = b.out
        if not out.vr or not out.vc:
            return nothing
        vec, rows, cols = _vector(b, 0, axis)
        read, put = vec.reader(rows, cols), out.writer(out.vr, out.vc)
        change, shape = num.converter(vec.dtype, out.dtype), (out.vr, out.vc)
        return lambda: put(np.broadcast_to(change(read()), shape))

    return make


def _reads_expand(which: int, axis: int) -> Callable[[Bind], list[Part]]:
    def reads(b: Bind) -> list[Part]:
        out = b.out
        if not out.vr or not out.vc:
            return []
        main = [Part(b.tile(0), out.vr, out.vc)] if which else []
        return [*main, Part(*_vector(b, which, axis))]

    return reads


def _fill(b: Bind) -> Run:
    out, value = b.out, b.ins[0]
    rows, cols, dtype = out.vr, out.vc, out.dtype
    if not rows or not cols:
        return (lambda _s: None) if value is DYNAMIC else nothing
    target = out.direct(rows, cols)
    put = out.writer(rows, cols)

    def run(s: Any) -> None:
        put(np.full((rows, cols), num.scalar_of(s, dtype)))

    if value is DYNAMIC:
        return run
    scalar = num.scalar_of(value, dtype)
    return partial(target.fill, scalar) if target is not None else (lambda: run(value))


def _count(b: Bind) -> Run:
    """`tci`: start, start ± 1, ... along the row."""
    out, value = b.out, b.ins[0]
    step = -1 if b.attrs.get("descending") else 1
    put, dtype = out.writer(1, out.vc), out.dtype
    steps = (step * np.arange(out.vc)).reshape(1, -1)

    def run(s: Any) -> None:
        put((steps + int(s)).astype(dtype))

    return run if value is DYNAMIC else lambda: run(value)


def _tri(b: Bind) -> Run:
    out, value = b.out, b.ins[0]
    upper = bool(b.attrs.get("upperOrLower"))
    put, dtype = out.writer(out.vr, out.vc), out.dtype
    offsets = np.arange(out.vc)[None, :] - np.arange(out.vr)[:, None]

    def run(d: Any) -> None:
        put(((offsets >= int(d)) if upper else (offsets <= int(d))).astype(dtype))

    return run if value is DYNAMIC else lambda: run(value)


def philox(key: tuple[int, int], counter: tuple[int, int, int, int], words: int, rounds: int) -> Array:
    """`words` 32-bit words of a counter-based generator (Philox 4x32): deterministic in key and counter."""
    blocks = -(-words // 4)
    wide, mask = np.uint64, np.uint64(0xFFFFFFFF)
    first = sum(c << (32 * i) for i, c in enumerate(counter))
    lanes = [np.array([((first + i) >> (32 * k)) & 0xFFFFFFFF for i in range(blocks)], wide) for k in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = lanes[0] * wide(0xD2511F53), lanes[2] * wide(0xCD9E8D57)
        lanes = [
            (p1 >> wide(32)) ^ lanes[1] ^ wide(k0),
            p1 & mask,
            (p0 >> wide(32)) ^ lanes[3] ^ wide(k1),
            p0 & mask,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(lanes, axis=1).astype(np.uint32).reshape(-1)[:words]


def _random(b: Bind) -> Run:
    out = b.out
    rows, cols, dtype = out.vr, out.vc, out.dtype
    put, rounds = out.writer(rows, cols), int(b.attrs.get("rounds", 10))
    fixed = list(b.ins)

    def run(*given: Any) -> None:
        rest = iter(given)
        k0, k1, *counter = (int(next(rest) if v is DYNAMIC else v) & 0xFFFFFFFF for v in fixed)
        c0, c1, c2, c3 = counter
        put(philox((k0, k1), (c0, c1, c2, c3), rows * cols, rounds).reshape(rows, cols).view(dtype))

    return run


def _no_reads(b: Bind) -> list[Part]:
    return []


def _one_row(b: Bind) -> list[Part]:
    return [Part(b.out, 1, b.out.vc)]


def _table() -> dict[str, OpSpec]:
    table: dict[str, OpSpec] = {}
    for key in REDUCE:
        table[f"trow{key}"] = OpSpec(_reduce(key, 1), reads_first_valid, _reduced(1), scratch=(1,))
        table[f"tcol{key}"] = OpSpec(_reduce(key, 0), reads_first_valid, _reduced(0), scratch=(1,))
    for key, fn in (("max", np.argmax), ("min", np.argmin)):
        table[f"trowarg{key}"] = OpSpec(_position(fn, 1), reads_first_valid, _reduced(1), scratch=(1,))
        table[f"tcolarg{key}"] = OpSpec(_position(fn, 0), reads_first_valid, _reduced(0), scratch=(1,))
    for axis, word in ((1, "row"), (0, "col")):
        table[f"t{word}expand"] = OpSpec(_expand(axis), _reads_expand(0, axis))
        for key in ("add", "sub", "mul", "div", "max", "min", "expdif"):
            scratch = (2,) if (word, key) == ("row", "add") else ()
            table[f"t{word}expand{key}"] = OpSpec(_expand_op(key, axis), _reads_expand(1, axis), scratch=scratch)
    table["texpands"] = OpSpec(_fill, _no_reads)
    table["tci"] = OpSpec(_count, _no_reads, _one_row)
    table["ttri"] = OpSpec(_tri, _no_reads)
    table["trandom"] = OpSpec(_random, _no_reads)
    return table


TABLE = _table()
