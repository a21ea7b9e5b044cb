"""Tiles as views of a byte memory: dense, or boxed with fractal addresses.

Byte address of element (r, c) of a tile with R rows, C columns, element size e:

* unboxed: row-major `(r*C + c)*e`, column-major `(c*R + r)*e`;
* boxed, inner box (br, bc): `(box*br*bc + inside)*e`, where box counts boxes in the order of `blayout`
  and inside counts elements of one box in the order of `slayout`;
* a tile with a boxed layout that does not consist of whole boxes is stored dense, in the order of `slayout`, so that
  its transposed view is the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..text.types import TileT
from .dtypes import Array, DType, numpy_type

Reader = Callable[[], Array]
Writer = Callable[[Array], None]


class Tile:
    """A handle: where the bytes are, how they are laid out, and how many rows and columns are valid.

    Exactly one of `view` (2-D), `boxes` (4-D: box row, row in box, box column, column in box) and `index` (flat
    element numbers) gives access to the elements.
    """

    __slots__ = ("addr", "boxes", "dtype", "flat", "form", "index", "root", "site", "space", "type", "vc", "view", "vr")

    space: str
    addr: int
    type: TileT
    dtype: DType
    vr: int
    vc: int
    view: Array | None
    boxes: Array | None
    index: Array | None
    flat: Array
    form: str
    root: tuple[int, int]
    site: int

    @classmethod
    def at(cls, memory: Array, addr: int, typ: TileT, vr: int, vc: int, site: int = 0) -> Tile:
        """A tile of type `typ` at byte `addr` of `memory` (uint8)."""
        self = cls.__new__(cls)
        self.space, self.addr, self.type = typ.space, addr, typ
        self.dtype = numpy_type(typ.dtype)
        self.vr, self.vc, self.site = vr, vc, site
        self.root = (addr, addr + typ.nbytes)
        self.flat = memory
        self.form = dense_form(typ)
        self.index = None
        self.view, self.boxes = views(memory, addr, typ, self.dtype)
        return self

    def with_valid(self, vr: int, vc: int) -> Tile:
        """The same storage with other valid extents."""
        other = self._copy()
        other.vr, other.vc = vr, vc
        return other

    def retyped(self, typ: TileT, vr: int, vc: int) -> Tile:
        """The same bytes seen as another type."""
        other = Tile.at(self.flat, self.addr, typ, vr, vc, self.site)
        other.root = self.root
        return other

    def window(self, row: int, col: int, typ: TileT, vr: int, vc: int) -> Tile:
        """The part `[row:row+rows, col:col+cols]` as a tile that shares the storage.

        Raises:
            ValueError: the part leaves the tile.
        """
        if row < 0 or col < 0 or row + typ.rows > self.type.rows or col + typ.cols > self.type.cols:
            raise ValueError(
                f"part [{row}:{row + typ.rows}, {col}:{col + typ.cols}] leaves the tile of "
                f"{self.type.rows}x{self.type.cols}"
            )
        other = self._copy()
        other.type, other.vr, other.vc = typ, vr, vc
        br, bc = self.type.box
        if self.view is not None:
            other.view = self.view[row : row + typ.rows, col : col + typ.cols]
        elif self.boxes is not None and not (row % br or col % bc or typ.rows % br or typ.cols % bc):
            other.boxes = self.boxes[row // br : (row + typ.rows) // br, :, col // bc : (col + typ.cols) // bc]
        else:
            other.boxes = None
            other.index = self.addresses()[row : row + typ.rows, col : col + typ.cols]
        return other

    def _copy(self) -> Tile:
        other = Tile.__new__(Tile)
        for name in Tile.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def addresses(self) -> Array:
        """Byte address of every element, as a 2-D array of int64 (for exact checks, not for the fast path)."""
        if self.index is not None:
            return self.index
        source = self.view if self.view is not None else self.boxes
        assert source is not None
        base = source.__array_interface__["data"][0] - self.flat.__array_interface__["data"][0]
        out = np.full(source.shape, base, np.int64)
        for axis, (n, stride) in enumerate(zip(source.shape, source.strides, strict=True)):
            shape = [1] * source.ndim
            shape[axis] = n
            out = out + (np.arange(n, dtype=np.int64) * stride).reshape(shape)
        return out.reshape(self.type.rows, self.type.cols)

    def direct(self, rows: int, cols: int) -> Array | None:
        """The first `rows` x `cols` elements as a 2-D view, or None when the layout is boxed."""
        return None if self.view is None else self.view[:rows, :cols]

    def reader(self, rows: int, cols: int) -> Reader:
        """A function that gives the first `rows` x `cols` elements (a view or a copy; do not write to it)."""
        if self.view is not None:
            found = self.view[:rows, :cols]
            return lambda: found
        if self.index is not None:
            memory, dtype = self.flat, self.dtype
            spots = byte_spots(self.index[:rows, :cols], dtype)
            return lambda: memory[spots].view(dtype)[..., 0]
        boxes, shape = self.boxes, (self.type.rows, self.type.cols)
        assert boxes is not None
        if (rows, cols) == shape:
            return lambda: boxes.reshape(shape)
        return lambda: boxes.reshape(shape)[:rows, :cols]

    def writer(self, rows: int, cols: int) -> Writer:
        """A function that writes the first `rows` x `cols` elements, converting as numpy does."""
        if self.view is not None:
            target = self.view[:rows, :cols]

            def put(x: Array) -> None:
                target[...] = x

            return put
        if self.index is not None:
            return _scatter(self.flat, byte_spots(self.index[:rows, :cols], self.dtype), self.dtype, (rows, cols))
        return self._boxed_writer(rows, cols)

    def _boxed_writer(self, rows: int, cols: int) -> Writer:
        boxes, (br, bc) = self.boxes, self.type.box
        assert boxes is not None
        shape = (self.type.rows, self.type.cols)

        def whole(x: Array) -> None:
            boxes[...] = x.reshape(shape[0] // br, br, shape[1] // bc, bc)

        def part(x: Array) -> None:
            full = boxes.reshape(shape)  # a copy, because the boxes are not contiguous
            full = full.copy() if full.base is not None else full
            full[:rows, :cols] = x
            whole(full)

        return whole if (rows, cols) == shape else part


def dense_form(typ: TileT) -> str:
    """What identifies the element order of a boxed tile without whole boxes; empty for all other tiles.

    Such a tile is stored dense, so another boxed view of its bytes sees other elements, unless the tile is one line.
    """
    if typ.boxed or typ.slayout == "none_box":
        return ""
    if 1 in (typ.rows, typ.cols):
        return f"line of {typ.rows * typ.cols}"
    return f"{typ.cols}x{typ.rows}" if typ.slayout == "col_major" else f"{typ.rows}x{typ.cols}"


def views(memory: Array, addr: int, typ: TileT, dtype: DType) -> tuple[Array | None, Array | None]:
    """(2-D view, None) of a dense tile, (None, 4-D view) of a boxed one."""
    rows, cols, size = typ.rows, typ.cols, dtype.itemsize
    if not typ.boxed:
        row_major = (typ.blayout if typ.slayout == "none_box" else typ.slayout) == "row_major"
        strides = (cols * size, size) if row_major else (size, rows * size)
        return np.ndarray((rows, cols), dtype, memory.data, addr, strides), None
    br, bc = typ.box
    inner = (bc, 1) if typ.slayout == "row_major" else (1, br)
    outer = (cols // bc, 1) if typ.blayout == "row_major" else (1, rows // br)
    box = br * bc
    strides4 = tuple(n * size for n in (outer[0] * box, inner[0], outer[1] * box, inner[1]))
    return None, np.ndarray((rows // br, br, cols // bc, bc), dtype, memory.data, addr, strides4)


def byte_spots(index: Array, dtype: DType) -> Array:
    """Addresses of the single bytes of the elements at byte addresses `index`: one more axis."""
    out: Array = index[..., None] + np.arange(dtype.itemsize)
    return out


def _scatter(memory: Array, spots: Array, dtype: DType, shape: tuple[int, int]) -> Writer:
    def put(x: Array) -> None:
        dense: Any = np.empty(shape, dtype)
        dense[...] = x
        memory[spots] = dense.view(np.uint8).reshape(spots.shape)

    return put
