"""Comparison masks and selection. A mask is packed: bit k (least significant first) of byte j is column 8*j + k."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers as num
from .bind import DYNAMIC, Bind, BindError, OpSpec, Part, Run, getter, nothing, operand
from .dtypes import Array
from .tiles import Tile

COMPARE: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _predicate(b: Bind) -> Callable[..., Array]:
    mode = b.attrs.get("cmpMode", "eq")
    if mode not in COMPARE:
        raise BindError(f"unknown cmpMode {mode!r}; known are {', '.join(COMPARE)}")
    return COMPARE[str(mode)]


def _packer(b: Bind) -> tuple[Callable[[Array], None], int, int]:
    src, out = b.tile(0), b.out
    rows, cols = src.vr, src.vc
    if out.dtype.itemsize != 1:
        raise BindError("a comparison gives a mask of 8-bit elements")
    nbytes = -(-cols // 8)
    if rows > out.type.rows or nbytes > out.type.cols:
        raise BindError(f"a mask of {out.type.rows}x{out.type.cols} bytes cannot hold {rows}x{cols} bits")
    put = out.writer(rows, nbytes)
    dtype = out.dtype
    return (lambda bits: put(np.packbits(bits, axis=1, bitorder="little").view(dtype))), rows, cols


def _compare(b: Bind) -> Run:
    src = b.tile(0)
    if not src.vr or not src.vc:
        return nothing
    test, (pack, rows, cols) = _predicate(b), _packer(b)
    left, right = getter(src, rows, cols), getter(b.tile(1), rows, cols)
    return lambda: pack(test(num.to_float(left()), num.to_float(right())))


def _compare_scalar(b: Bind) -> Run:
    src = b.tile(0)
    value = b.ins[1]
    if not src.vr or not src.vc:
        return (lambda _s: None) if value is DYNAMIC else nothing
    test, (pack, rows, cols) = _predicate(b), _packer(b)
    left, dtype = getter(src, rows, cols), src.dtype

    def run(s: Any) -> None:
        pack(test(num.to_float(left()), num.to_float(np.asarray(num.scalar_of(s, dtype)))))

    return run if value is DYNAMIC else lambda: run(value)


def mask_bits(mask: Tile, rows: int, cols: int) -> Callable[[], Array]:
    """A function that unpacks the first `rows` x `cols` bits of a mask tile of any integer type."""
    width = mask.type.cols * mask.dtype.itemsize * 8
    if rows > mask.type.rows or cols > width:
        raise BindError(f"a mask of {mask.type.rows}x{width} bits cannot select {rows}x{cols} elements")
    elements = -(-cols // (8 * mask.dtype.itemsize))
    read = mask.reader(rows, elements)

    def bits() -> Array:
        data = np.ascontiguousarray(read()).view(np.uint8)
        return np.unpackbits(data, axis=1, count=cols, bitorder="little").view(np.bool_)

    return bits


def _select(b: Bind) -> Run:
    out = b.out
    if not out.vr or not out.vc:
        return nothing
    bits = mask_bits(b.tile(0), out.vr, out.vc)
    left, right = getter(b.tile(1), out.vr, out.vc), getter(b.tile(2), out.vr, out.vc)
    lt, rt = (num.converter(b.tile(i).dtype, out.dtype) for i in (1, 2))
    put = out.writer(out.vr, out.vc)
    return lambda: put(np.where(bits(), lt(left()), rt(right())))


def _select_scalar(b: Bind) -> Run:
    out, value = b.out, b.ins[3]
    if not out.vr or not out.vc:
        return (lambda _s: None) if value is DYNAMIC else nothing
    bits = mask_bits(b.tile(0), out.vr, out.vc)
    read, put = getter(b.tile(1), out.vr, out.vc), out.writer(out.vr, out.vc)
    dtype = out.dtype

    def run(s: Any) -> None:
        put(np.where(bits(), read(), num.scalar_of(s, dtype)))

    return run if value is DYNAMIC else lambda: run(value)


def _mask_part(b: Bind, rows: int, cols: int) -> Part:
    mask = b.tile(0)
    return Part(mask, rows, -(-cols // (8 * mask.dtype.itemsize)))


def _reads_select(*data: int) -> Callable[[Bind], list[Part]]:
    def reads(b: Bind) -> list[Part]:
        rows, cols = b.out.vr, b.out.vc
        if not rows or not cols:
            return []
        return [_mask_part(b, rows, cols), *(Part(b.tile(i), *operand(b.tile(i), rows, cols)) for i in data)]

    return reads


def _reads_compare(b: Bind) -> list[Part]:
    src = b.tile(0)
    if not src.vr or not src.vc:
        return []
    return [Part(t, *operand(t, src.vr, src.vc)) for t in b.ins if isinstance(t, Tile)]


def _writes_mask(b: Bind) -> list[Part]:
    src = b.tile(0)
    return [Part(b.out, src.vr, -(-src.vc // 8))]


TABLE = {
    "tcmp": OpSpec(_compare, _reads_compare, _writes_mask),
    "tcmps": OpSpec(_compare_scalar, _reads_compare, _writes_mask),
    "tsel": OpSpec(_select, _reads_select(1, 2), scratch=(3,)),
    "tsels": OpSpec(_select_scalar, _reads_select(1), scratch=(2,)),
}
