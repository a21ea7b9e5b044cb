"""Copies between tiles: move, extract, insert, transpose, concat, fill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from . import numbers as num
from .bind import DYNAMIC, Bind, BindError, BoundsError, OpSpec, Part, Run, nothing
from .dtypes import Array, is_float
from .tiles import Tile


def copy(src: Tile, dst: Tile, rows: int, cols: int) -> Run:
    """A function that copies `rows` x `cols` elements, converting to nearest even, between any two layouts."""
    if rows <= 0 or cols <= 0:
        return nothing
    straight = src.dtype == dst.dtype or (is_float(src.dtype) and is_float(dst.dtype))
    pair = common_views(src, dst, rows, cols) if straight else None
    if pair is not None:
        return partial(np.copyto, pair[1], pair[0], casting="unsafe")
    change = num.converter(src.dtype, dst.dtype)
    read, put = src.reader(rows, cols), dst.writer(rows, cols)
    return lambda: put(change(read()))


def common_views(a: Tile, b: Tile, rows: int, cols: int) -> tuple[Array, Array] | None:
    """Views of the leading `rows` x `cols` elements of both tiles with one shape, or None when boxes are cut."""
    if a.index is not None or b.index is not None:
        return None
    if a.view is not None and b.view is not None:
        return a.view[:rows, :cols], b.view[:rows, :cols]
    (ar, ac), (br, bc) = _box(a), _box(b)
    big = (max(ar, br), max(ac, bc))
    small = (min(ar, br), min(ac, bc))
    if big[0] % small[0] or big[1] % small[1]:
        return None
    if 1 in (ar, br):  # one side is dense: split it like the other
        small = big
    if rows % big[0] or cols % big[1]:
        return None
    return _refined(a, rows, cols, big, small), _refined(b, rows, cols, big, small)


def _box(t: Tile) -> tuple[int, int]:
    return t.type.box if t.boxes is not None else (1, 1)


def _refined(t: Tile, rows: int, cols: int, big: tuple[int, int], small: tuple[int, int]) -> Array:
    """A 6-D view: (rows/big, big/small, small) x (cols/big, big/small, small)."""
    shape = (rows // big[0], big[0] // small[0], small[0], cols // big[1], big[1] // small[1], small[1])
    if t.view is not None:
        return t.view[:rows, :cols].reshape(shape)
    assert t.boxes is not None
    br, bc = t.type.box
    boxes = t.boxes[: rows // br, :, : cols // bc, :]
    sr, sc = boxes.strides[0], boxes.strides[2]
    rs, cs = boxes.strides[1], boxes.strides[3]
    row_strides = (sr, small[0] * rs, rs) if br == big[0] else (big[0] // small[0] * sr, sr, rs)
    col_strides = (sc, small[1] * cs, cs) if bc == big[1] else (big[1] // small[1] * sc, sc, cs)
    raw = boxes.view(np.dtype(f"u{boxes.dtype.itemsize}"))  # the 8-bit floats have no form that as_strided takes
    return np.lib.stride_tricks.as_strided(raw, shape, (*row_strides, *col_strides)).view(boxes.dtype)


def _move_box(b: Bind) -> tuple[int, int]:
    src, out = b.tile(0), b.out
    return min(out.vr, src.type.rows), min(out.vc, src.type.cols)


def _move(b: Bind) -> Run:
    return copy(b.tile(0), b.out, *_move_box(b))


def _reads_move(b: Bind) -> list[Part]:
    return [Part(b.tile(0), *_move_box(b))]


def _writes_move(b: Bind) -> list[Part]:
    return [Part(b.out, *_move_box(b))]


def cut(t: Tile, row: int, col: int, rows: int, cols: int) -> Tile:
    """The window of `t` that starts at (row, col).

    Raises:
        BindError: it leaves the tile.
    """
    typ = replace(t.type, rows=max(rows, 1), cols=max(cols, 1), v_row=None, v_col=None)
    try:
        return t.window(row, col, typ, rows, cols)
    except ValueError as exc:
        raise BoundsError(str(exc)) from None


def _offsets(b: Bind) -> tuple[int, int] | None:
    row, col = b.ins[1], b.ins[2]
    return None if row is DYNAMIC or col is DYNAMIC else (int(row), int(col))


def _at_offset(b: Bind, build: Callable[[int, int], Run]) -> Run:
    """Run `build(row, col)` now for constant offsets, else at each call (remembered per offset)."""
    fixed = _offsets(b)
    if fixed is not None:
        return build(*fixed)
    known: dict[tuple[int, int], Run] = {}
    given = [b.ins[1], b.ins[2]]

    def run(*values: Any) -> None:
        rest = iter(values)
        key = (
            int(next(rest) if given[0] is DYNAMIC else given[0]),
            int(next(rest) if given[1] is DYNAMIC else given[1]),
        )
        found = known.get(key)
        if found is None:
            found = known[key] = build(*key)
        found()

    return run


def _extract(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    if not out.vr or not out.vc:
        return nothing if _offsets(b) is not None else lambda *_: None
    return _at_offset(b, lambda r, c: copy(cut(src, r, c, out.vr, out.vc), out, out.vr, out.vc))


def _insert(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    if not src.vr or not src.vc:
        return nothing if _offsets(b) is not None else lambda *_: None
    return _at_offset(b, lambda r, c: copy(src, cut(out, r, c, src.vr, src.vc), src.vr, src.vc))


def _reads_extract(b: Bind) -> list[Part]:
    out, fixed = b.out, _offsets(b)
    assert fixed is not None
    return [Part(b.tile(0), out.vr, out.vc, *fixed)]


def _reads_source(b: Bind) -> list[Part]:
    src = b.tile(0)
    return [Part(src, src.vr, src.vc)]


def _writes_insert(b: Bind) -> list[Part]:
    src, fixed = b.tile(0), _offsets(b)
    assert fixed is not None
    return [Part(b.out, src.vr, src.vc, *fixed)]


def _transpose_box(b: Bind) -> tuple[int, int]:
    src, out = b.tile(0), b.out
    return min(src.vr, out.type.cols), min(src.vc, out.type.rows)


def _transpose(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    rows, cols = _transpose_box(b)
    if not rows or not cols:
        return nothing
    read, put = src.reader(rows, cols), out.writer(cols, rows)
    change = num.converter(src.dtype, out.dtype)
    return lambda: put(change(read()).T.copy())


def _reads_transpose(b: Bind) -> list[Part]:
    return [Part(b.tile(0), *_transpose_box(b))]


def _writes_transpose(b: Bind) -> list[Part]:
    rows, cols = _transpose_box(b)
    return [Part(b.out, cols, rows)]


def _concat_parts(b: Bind) -> list[Part]:
    a, c, out = b.tile(0), b.tile(1), b.out
    if a.vc + c.vc > out.type.cols or max(a.vr, c.vr) > out.type.rows:
        raise BindError(f"{a.vr}x{a.vc} beside {c.vr}x{c.vc} does not fit into {out.type.rows}x{out.type.cols}")
    return [Part(out, a.vr, a.vc), Part(out, c.vr, c.vc, 0, a.vc)]


def _concat(b: Bind) -> Run:
    runs = []
    for src, part in zip((b.tile(0), b.tile(1)), _concat_parts(b), strict=True):
        if not part.empty:
            runs.append((src.reader(part.rows, part.cols), cut(part.tile, 0, part.col, part.rows, part.cols)))
    puts = [(read, window.writer(window.type.rows, window.type.cols)) for read, window in runs]

    def run() -> None:
        values = [np.array(read()) for read, _ in puts]
        for (_, put), x in zip(puts, values, strict=True):
            put(x)

    return run


def _reads_both(b: Bind) -> list[Part]:
    return [Part(t, t.vr, t.vc) for t in (b.tile(0), b.tile(1))]


def _fillpad(b: Bind) -> Run:
    src, out = b.tile(0), b.out
    rows, cols = min(src.vr, out.vr), min(src.vc, out.vc)
    fill = num.pad_value(out.dtype, out.type.pad)
    change, shape = num.converter(src.dtype, out.dtype), (out.vr, out.vc)
    if not out.vr or not out.vc:
        return nothing
    read, put = src.reader(rows, cols), out.writer(*shape)

    def run() -> None:
        whole = np.full(shape, fill)
        whole[:rows, :cols] = change(read())
        put(whole)

    return run


def _reads_fillpad(b: Bind) -> list[Part]:
    src, out = b.tile(0), b.out
    return [Part(src, min(src.vr, out.vr), min(src.vc, out.vc))]


TABLE: dict[str, OpSpec] = {
    "tmov": OpSpec(_move, _reads_move, _writes_move, copies=True, unit="move"),
    "textract": OpSpec(_extract, _reads_extract, copies=True, unit="move"),
    "tinsert": OpSpec(_insert, _reads_source, _writes_insert, copies=True, keeps=True, unit="move"),
    "ttrans": OpSpec(_transpose, _reads_transpose, _writes_transpose, copies=True, scratch=(1,)),
    "tconcat": OpSpec(_concat, _reads_both, _concat_parts, copies=True),
    "tfillpad": OpSpec(_fillpad, _reads_fillpad, copies=True),
    "tfillpad_expand": OpSpec(_fillpad, _reads_fillpad, copies=True),
}
