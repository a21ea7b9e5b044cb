"""Element by element: unary, binary, ternary, with a scalar, partial, select, compare, convert."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from . import numbers as num
from .bind import DYNAMIC, Bind, BindError, OpSpec, Part, Run, getter, nothing, operand, reads_like_out
from .dtypes import F32, Array, DType, is_float, is_small_float
from .rounding import NEAREST_EVEN
from .tiles import Tile

Fn = Callable[..., Any]


def compute_type(dtype: DType) -> DType:
    """The type in which arithmetic on `dtype` runs."""
    return F32 if is_small_float(dtype) else dtype


def spread(fn: Fn, out: Tile, operands: list[Tile | Any], integer: Fn | None = None) -> Run:
    """`out = fn(*operands)` over the valid box of `out`; constants are given as numpy scalars.

    Operands are converted to the computing type of `out` first; a small float is rounded once, at the end.
    """
    rows, cols = out.vr, out.vc
    if not rows or not cols:
        return nothing
    if not is_float(out.dtype):
        fn = integer or fn
    work = compute_type(out.dtype)
    target = out.direct(rows, cols)
    arrays: list[Any] = []
    for x in operands:
        arrays.append(x.direct(*operand(x, rows, cols)) if isinstance(x, Tile) else x)
    plain = all(a is not None for a in arrays) and all(
        not isinstance(x, Tile) or x.dtype == out.dtype for x in operands
    )
    if target is not None and plain and work == out.dtype:
        if fn in (np.maximum, np.minimum):  # these take the result by keyword only
            return partial(fn, *arrays, out=target)
        if isinstance(fn, np.ufunc):
            return partial(fn, *arrays, target)
        return lambda: target.__setitem__(..., fn(*arrays))
    readers = [_reading(x, rows, cols, work) for x in operands]
    put = out.writer(rows, cols)
    if len(readers) == 1:
        one = readers[0]
        return lambda: put(fn(one()))
    if len(readers) == 2:
        left, right = readers
        return lambda: put(fn(left(), right()))
    return lambda: put(fn(*[r() for r in readers]))


def _reading(x: Any, rows: int, cols: int, work: DType) -> Callable[[], Any]:
    if not isinstance(x, Tile):
        return lambda: x
    read = getter(x, rows, cols)
    if x.dtype == work:
        return read
    change = num.converter(x.dtype, work)
    return lambda: change(read())


def _integers_only(name: str) -> Fn:
    def refuse(*_: Any) -> Any:
        raise BindError(f"{name} works on integer tiles only")

    return refuse


def _floats_of(fn: Fn) -> Fn:
    """`fn` of an integer tile: computed in FP64, converted back (nearest even, saturating)."""

    def run(x: Array) -> Array:
        return num.float_to_int(np.asarray(fn(x.astype(np.float64))), x.dtype, "RINT")

    return run


def _lrelu(x: Array, slope: Any) -> Array:
    out: Array = np.where(x > 0, x, slope * x)
    return out


def _rsqrt(x: Array) -> Array:
    out: Array = 1 / np.sqrt(x)
    return out


def _relu(x: Array) -> Array:
    out: Array = np.maximum(x, x.dtype.type(0))
    return out


BINARY: dict[str, tuple[Fn, Fn]] = {
    "add": (np.add, np.add),
    "sub": (np.subtract, np.subtract),
    "mul": (np.multiply, np.multiply),
    "div": (np.divide, num.int_div),
    "max": (np.maximum, np.maximum),
    "min": (np.minimum, np.minimum),
    "fmod": (np.fmod, num.int_fmod),
    "rem": (np.remainder, num.int_rem),
    "and": (_integers_only("and"), np.bitwise_and),
    "or": (_integers_only("or"), np.bitwise_or),
    "xor": (_integers_only("xor"), np.bitwise_xor),
    "shl": (_integers_only("shl"), num.shift_left),
    "shr": (_integers_only("shr"), num.shift_right),
    "lrelu": (_lrelu, _lrelu),
    "prelu": (_lrelu, _lrelu),
}
"""(on floats, on integers) per operation."""

UNARY: dict[str, tuple[Fn, Fn]] = {
    "exp": (np.exp, _floats_of(np.exp)),
    "log": (np.log, _floats_of(np.log)),
    "sqrt": (np.sqrt, _floats_of(np.sqrt)),
    "rsqrt": (_rsqrt, _floats_of(_rsqrt)),
    "recip": (np.reciprocal, _floats_of(np.reciprocal)),
    "neg": (np.negative, np.negative),
    "abs": (np.abs, np.abs),
    "relu": (_relu, _relu),
    "not": (_integers_only("not"), np.invert),
}


def _check(fn: Fn, out: Tile) -> None:
    if is_float(out.dtype) and getattr(fn, "__name__", "") == "refuse":
        fn()


def _binary(key: str) -> Callable[[Bind], Run]:
    fn, integer = BINARY[key]

    def make(b: Bind) -> Run:
        _check(fn, b.out)
        return spread(fn, b.out, [b.tile(0), b.tile(1)], integer)

    return make


def with_scalar(fn: Fn, integer: Fn, b: Bind, tiles: list[Tile], at: int, value: Any) -> Run:
    """`out = fn(tiles with the scalar at position `at`)`; a run-time scalar is converted at each call."""
    _check(fn, b.out)
    work = compute_type(b.out.dtype)
    # the scalar takes the element type first, then the computing type
    if value is not DYNAMIC:
        scalar = np.asarray(num.scalar_of(value, b.out.dtype)).astype(work)[()]
        return spread(fn, b.out, [*tiles[:at], scalar, *tiles[at:]], integer)
    if not b.out.vr or not b.out.vc:
        return lambda _s: None
    cell = np.zeros((), work)
    run = spread(fn, b.out, [*tiles[:at], cell, *tiles[at:]], integer)
    dtype = b.out.dtype

    def dynamic(s: Any) -> None:
        cell[()] = num.scalar_of(s, dtype)
        run()

    return dynamic


def _scalar(key: str) -> Callable[[Bind], Run]:
    fn, integer = BINARY[key]
    return lambda b: with_scalar(fn, integer, b, [b.tile(0)], 1, b.ins[1])


def _unary(key: str) -> Callable[[Bind], Run]:
    fn, integer = UNARY[key]

    def make(b: Bind) -> Run:
        _check(fn, b.out)
        return spread(fn, b.out, [b.tile(0)], integer)

    return make


def _addc(a: Any, b: Any, c: Any) -> Any:
    return a + b + c


def _subc(a: Any, b: Any, c: Any) -> Any:
    return a - b - c


def _ternary(fn: Fn, scalar: bool) -> Callable[[Bind], Run]:
    if scalar:
        return lambda b: with_scalar(fn, fn, b, [b.tile(0), b.tile(2)], 1, b.ins[1])
    return lambda b: spread(fn, b.out, [b.tile(0), b.tile(1), b.tile(2)])


def _part(key: str) -> Callable[[Bind], Run]:
    fn = BINARY[key][0]

    def make(b: Bind) -> Run:
        out, work = b.out, compute_type(b.out.dtype)
        boxes = [(min(t.vr, out.vr), min(t.vc, out.vc)) for t in (b.tile(0), b.tile(1))]
        reads = [_reading(t, out.type.rows, out.type.cols, work) for t in (b.tile(0), b.tile(1))]
        both = (min(boxes[0][0], boxes[1][0]), min(boxes[0][1], boxes[1][1]))
        old, put = out.reader(out.type.rows, out.type.cols), out.writer(out.type.rows, out.type.cols)

        def run() -> None:
            x, y = reads[0](), reads[1]()
            result = np.array(old())
            for (r, c), source in zip(boxes, (x, y), strict=True):
                result[:r, :c] = source[:r, :c]
            r, c = both
            result[:r, :c] = fn(x[:r, :c], y[:r, :c])
            put(result)

        return run

    return make


def _part_reads(b: Bind) -> list[Part]:
    return [Part(t, min(t.vr, b.out.vr), min(t.vc, b.out.vc)) for t in (b.tile(0), b.tile(1))]


def _part_writes(b: Bind) -> list[Part]:
    return [Part(b.out, p.rows, p.cols) for p in _part_reads(b)]


def _convert(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    mode = str(b.attrs.get("rmode", "NONE")).upper()
    if mode not in num.ROUND_MODES:
        raise BindError(f"unknown round mode {mode!r}; known are {', '.join(num.ROUND_MODES)}")
    if not out.vr or not out.vc:
        return nothing
    change = num.converter(src.dtype, out.dtype, mode)
    read, put = getter(src, out.vr, out.vc), out.writer(out.vr, out.vc)
    if num.plain(src.dtype, out.dtype) and (mode in NEAREST_EVEN or num.widens(src.dtype, out.dtype)):
        source, target = src.direct(*operand(src, out.vr, out.vc)), out.direct(out.vr, out.vc)
        if source is not None and target is not None:
            return partial(np.copyto, target, source, casting="unsafe")
    return lambda: put(change(read()))


def _reads_tiles(*which: int) -> Callable[[Bind], list[Part]]:
    def reads(b: Bind) -> list[Part]:
        rows, cols = b.out.vr, b.out.vc
        if not rows or not cols:
            return []
        tiles = [b.ins[i] for i in which]
        return [Part(t, *operand(t, rows, cols)) for t in tiles if isinstance(t, Tile)]

    return reads


def _table() -> dict[str, OpSpec]:
    table: dict[str, OpSpec] = {}
    for key in ("add", "sub", "mul", "div", "max", "min", "fmod", "and", "or", "shl", "shr"):
        table[f"t{key}"] = OpSpec(_binary(key), reads_like_out)
        table[f"t{key}s"] = OpSpec(_scalar(key), reads_like_out)
    table["tlrelu"] = OpSpec(_scalar("lrelu"), reads_like_out)
    for key in ("xor", "rem", "prelu"):
        table[f"t{key}"] = OpSpec(_binary(key), _reads_tiles(0, 1), scratch=(2,))
    for key in ("xor", "rem"):
        table[f"t{key}s"] = OpSpec(_scalar(key), _reads_tiles(0), scratch=(2,))
    for key in UNARY:
        table[f"t{key}"] = OpSpec(_unary(key), _reads_tiles(0), scratch=(1,) if key == "rsqrt" else ())
    for key, fn in (("addc", _addc), ("subc", _subc)):
        table[f"t{key}"] = OpSpec(_ternary(fn, False), reads_like_out)
        table[f"t{key[:-1]}sc"] = OpSpec(_ternary(fn, True), _reads_tiles(0, 2))
    for key in ("add", "mul", "max", "min"):
        table[f"tpart{key}"] = OpSpec(_part(key), _part_reads, _part_writes)
    table["tcvt"] = OpSpec(_convert, reads_like_out)
    return table


TABLE = _table()
