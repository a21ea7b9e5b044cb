"""Matrix products: FP32 or INT32 accumulation, contraction over the valid columns of the left operand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .bind import Bind, BindError, OpSpec, Part, Run, nothing
from .dtypes import F32, Array, is_float
from .tiles import Tile

Matrix = Callable[[], Array]


def _as_work(x: Array) -> Array:
    """FP32 for floats; FP64 for integers, which is exact for every sum that fits INT32 and uses the fast product."""
    return x.astype(F32, copy=False) if is_float(x.dtype) else x.astype(np.float64)


def _rows_first(t: Tile, rows: int, cols: int) -> Matrix:
    read = t.reader(rows, cols)
    return lambda: _as_work(read())


def _right(t: Tile, rows: int, cols: int) -> Matrix:
    """The right operand; boxes with column-major insides are read transposed, which is the contiguous way."""
    if t.boxes is None or t.type.slayout != "col_major":
        return _rows_first(t, rows, cols)
    turned = t.boxes.transpose(2, 3, 0, 1)
    shape = (t.type.cols, t.type.rows)
    return lambda: _as_work(turned.reshape(shape))[:cols, :rows].T


def extents(b: Bind, left: Tile, right: Tile) -> tuple[int, int, int]:
    """Rows, contraction, columns of a product.

    The whole physical box is written where the operands reach; only the valid part of it means anything.
    """
    rows = min(left.type.rows, b.out.type.rows)
    cols = min(right.type.cols, b.out.type.cols)
    depth = left.vc
    if depth > right.type.rows:
        raise BindError(f"the left operand has {depth} valid columns, the right one only {right.type.rows} rows")
    return rows, depth, cols


def _store(out: Tile, rows: int, cols: int) -> Callable[[Array], None]:
    put = out.writer(rows, cols)
    if out.dtype == F32:
        return put
    if out.dtype.kind != "i":
        raise BindError(f"products accumulate in f32 or i32, not {out.type.dtype}")
    dtype = out.dtype
    return lambda x: put(x.astype(np.int64).astype(dtype))


def _product(first: int, mode: str) -> Callable[[Bind], Run]:
    """`first` is the index of the left operand; `mode` is "", "acc" or "bias"."""

    def make(b: Bind) -> Run:
        left, right = b.tile(first), b.tile(first + 1)
        if not left.vr or not left.vc or not right.vc or not b.out.vr or not b.out.vc:
            return nothing
        rows, depth, cols = extents(b, left, right)
        a, w, put = _rows_first(left, rows, depth), _right(right, depth, cols), _store(b.out, rows, cols)
        if mode == "":
            return lambda: put(a() @ w())
        extra = b.tile(0) if mode == "acc" else b.tile(first + 2)
        wanted = (rows, cols) if mode == "acc" else (1, cols)
        if extra.type.rows < wanted[0] or extra.type.cols < wanted[1]:
            raise BindError(f"the {mode} operand of {extra.type.rows}x{extra.type.cols} does not cover {wanted}")
        add = extra.reader(*wanted)
        return lambda: put(a() @ w() + add())

    return make


def _scaled(read: Matrix, scale: Tile, axis: int, rows: int, cols: int) -> Matrix:
    """Multiply blocks of 32 along the contraction axis with powers of two 2^(e - 127)."""
    shape = (rows, cols // 32) if axis == 1 else (rows // 32, cols)
    get = scale.reader(*shape)
    return lambda: read() * np.repeat(get().astype(F32), 32, axis=axis)


def _product_mx(first: int, mode: str) -> Callable[[Bind], Run]:
    def make(b: Bind) -> Run:
        left, ls, right, rs = (b.tile(first + i) for i in range(4))
        rows, depth, cols = extents(b, left, right)
        if depth % 32:
            raise BindError(f"a scaled product contracts over multiples of 32, got {depth}")
        a = _scaled(_rows_first(left, rows, depth), ls, 1, rows, depth)
        w = _scaled(_right(right, depth, cols), rs, 0, depth, cols)
        put = _store(b.out, rows, cols)
        if mode == "":
            return lambda: put(a() @ w())
        extra = b.tile(0) if mode == "acc" else b.tile(first + 4)
        add = extra.reader(rows if mode == "acc" else 1, cols)
        return lambda: put(a() @ w() + add())

    return make


def _reads(first: int, mode: str, scales: bool = False) -> Callable[[Bind], list[Part]]:
    def reads(b: Bind) -> list[Part]:
        left = b.tile(first)
        right = b.tile(first + (2 if scales else 1))
        out = b.out
        if not left.vc or not out.vr or not out.vc or not left.vr or not right.vc:
            return []
        parts = [Part(left, min(left.vr, out.vr), left.vc), Part(right, left.vc, min(right.vc, out.vc))]
        if scales:
            parts.append(Part(b.tile(first + 1), min(left.vr, out.vr), left.vc // 32))
            parts.append(Part(b.tile(first + 3), left.vc // 32, min(right.vc, out.vc)))
        if mode == "acc":
            parts.append(Part(b.tile(0), out.vr, out.vc))
        elif mode == "bias":
            parts.append(Part(b.tile(len(b.ins) - 1), 1, out.vc))
        return parts

    return reads


TABLE: dict[str, OpSpec] = {}
for _name in ("tmatmul", "tgemv"):
    TABLE[_name] = OpSpec(_product(0, ""), _reads(0, ""), unit="cube")
    TABLE[f"{_name}.acc"] = OpSpec(_product(1, "acc"), _reads(1, "acc"), unit="cube")
    TABLE[f"{_name}.bias"] = OpSpec(_product(0, "bias"), _reads(0, "bias"), unit="cube")
TABLE["tmatmul.mx"] = OpSpec(_product_mx(0, ""), _reads(0, "", True), unit="cube")
TABLE["tmatmul.mx.acc"] = OpSpec(_product_mx(1, "acc"), _reads(1, "acc", True), unit="cube")
TABLE["tmatmul.mx.bias"] = OpSpec(_product_mx(0, "bias"), _reads(0, "bias", True), unit="cube")
