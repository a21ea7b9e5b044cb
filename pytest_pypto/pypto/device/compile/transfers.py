"""Copies between global memory and tiles, and their checks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ..findings import FindingKind
from ..machine.bind import BindError, Part
from ..machine.dtypes import Array, is_small_float, numpy_type
from ..machine.gm import GmView
from ..machine.numbers import converter, plain, to_float
from ..machine.tiles import Tile
from .handles import Teller

Move = Callable[[Array], None]


def box_of(tile: Tile, sizes: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of the tile that a window of `sizes` fills: flattened row-major to two axes.

    Raises:
        BindError: the window does not fit the tile.
    """
    if not all(sizes):
        return (0, 0)
    rows, cols = prod(sizes[:-1]), sizes[-1]
    if rows * cols == tile.vr * tile.vc and (rows, cols) != (tile.vr, tile.vc):
        rows, cols = tile.vr, tile.vc
    if rows > tile.type.rows or cols > tile.type.cols:
        raise BindError(
            f"a window of {'x'.join(map(str, sizes))} does not fit a tile of {tile.type.rows}x{tile.type.cols}"
        )
    return rows, cols


def outside(rows: int, cols: int, tile: Tile) -> str:
    """Message for a store that is larger than the valid box of its source."""
    return f"stores {rows}x{cols} elements of a tile whose valid box is {tile.vr}x{tile.vc}"


def _split(tile: Tile, rows: int, cols: int) -> tuple[Array, tuple[int, ...]] | None:
    """A view of the leading box with the shape to give the window, or None when boxes are cut."""
    if tile.view is not None:
        return tile.view[:rows, :cols], (rows, cols)
    if tile.boxes is None:
        return None
    br, bc = tile.type.box
    if rows % br or cols % bc:
        return None
    return tile.boxes[: rows // br, :, : cols // bc, :], (rows // br, br, cols // bc, bc)


def loader(tile: Tile, sizes: tuple[int, ...], dtype: str) -> Move:
    """A function that copies a window of `sizes` into the tile."""
    rows, cols = box_of(tile, sizes)
    if not rows or not cols:
        return lambda window: None
    pair, source = _split(tile, rows, cols), numpy_type(dtype)
    straight = plain(source, tile.dtype)
    if pair is not None and straight:
        target, shape = pair
        if source == tile.dtype and shape == sizes:
            return partial(np.copyto, target)
        return lambda window: np.copyto(target, window.reshape(shape), casting="unsafe")
    put, change = tile.writer(rows, cols), converter(source, tile.dtype)
    return lambda window: put(change(window.reshape(rows, cols)))


def storer(tile: Tile, sizes: tuple[int, ...], dtype: str, atomic: bool) -> Move:
    """A function that copies the tile into a window of `sizes`, rounding to nearest even; or adds it."""
    rows, cols = box_of(tile, sizes)
    if not rows or not cols:
        return lambda window: None
    target = numpy_type(dtype)
    if atomic:
        return _adder(tile, rows, cols)
    pair = _split(tile, rows, cols)
    straight = plain(tile.dtype, target)
    if pair is not None and straight:
        source, shape = pair
        if shape == sizes:
            return lambda window: np.copyto(window, source, casting="unsafe")
        return lambda window: np.copyto(split_window(window, shape), source, casting="unsafe")
    read, change = tile.reader(rows, cols), converter(tile.dtype, target)
    return lambda window: np.copyto(split_window(window, (rows, cols)), change(read()), casting="unsafe")


def split_window(window: Array, shape: tuple[int, ...]) -> Array:
    """`window` with another shape as a view.

    Raises:
        BindError: the strides do not allow it (an N-D window that is not contiguous in its leading axes).
    """
    out = window.reshape(shape)
    if window.size and not np.shares_memory(out, window):
        raise BindError(f"a window of strides {window.strides} cannot be written as {shape}")
    return out


def _adder(tile: Tile, rows: int, cols: int) -> Move:
    read = tile.reader(rows, cols)

    def add(window: Array) -> None:
        target = split_window(window, (rows, cols))
        change = converter(tile.dtype, target.dtype)
        if is_small_float(target.dtype):
            target[...] = to_float(target) + to_float(change(read()))
        else:
            target += change(read())

    return add


class Loads:
    """Loads into run-time handles or of run-time sizes; bound once per combination."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.known: dict[Any, Move] = {}

    def __call__(self, tile: Tile, window: Array) -> None:
        key = (tile, window.shape)
        run = self.known.get(key)
        if run is None:
            run = self.known[key] = loader(tile, window.shape, self.dtype)
        run(window)


class Stores:
    """Stores of run-time handles or of run-time sizes."""

    def __init__(self, dtype: str, atomic: bool) -> None:
        self.dtype, self.atomic = dtype, atomic
        self.known: dict[Any, Move] = {}

    def __call__(self, tile: Tile, window: Array) -> None:
        key = (tile, window.shape)
        run = self.known.get(key)
        if run is None:
            run = self.known[key] = storer(tile, window.shape, self.dtype, self.atomic)
        run(window)


def window_text(verb: str, view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> str:
    """Message for a window that leaves its tensor."""
    spans = ", ".join(f"{o}:{o + n}" for o, n in zip(offsets, sizes, strict=True))
    shape = "x".join(map(str, view.limits))
    return f"the {verb} of [{spans}] leaves {view.root.name!r}, which has {shape} elements here"


class BadWindow:
    """A window that leaves its tensor: report it, then transfer the part that lies inside."""

    def __init__(self, tell: Teller, verb: str) -> None:
        self.tell, self.verb = tell, verb

    def _inside(
        self, ag: Any, view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...]
    ) -> tuple[Array, tuple[slice, ...]]:
        self.tell(ag, FindingKind.OUT_OF_BOUNDS, window_text(self.verb, view, offsets, sizes))
        low = [max(o, 0) for o in offsets]
        high = [
            max(min(o + max(n, 0), limit), a) for o, n, limit, a in zip(offsets, sizes, view.limits, low, strict=True)
        ]
        inner = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        placed = tuple(slice(a - o, b - o) for o, a, b in zip(offsets, low, high, strict=True))
        return view.arr[inner], placed

    def load(self, ag: Any, view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...], tile: Tile) -> None:
        """Load what lies inside; the rest reads as zeros."""
        found, placed = self._inside(ag, view, offsets, sizes)
        whole = np.zeros(tuple(max(n, 0) for n in sizes), view.arr.dtype)
        whole[placed] = found
        loader(tile, whole.shape, _name(view))(whole)

    def store(self, ag: Any, view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...], tile: Tile) -> None:
        """Store what lies inside."""
        found, placed = self._inside(ag, view, offsets, sizes)
        whole = np.zeros(tuple(max(n, 0) for n in sizes), view.arr.dtype)
        storer(tile, whole.shape, _name(view), False)(whole)
        found[...] = whole[placed]


def _name(view: GmView) -> str:
    from ..machine.dtypes import NAMES

    return NAMES[view.root.dtype]


class ShadowLoad:
    """Shadow of loads into run-time handles."""

    def __init__(self, shadow: Any, site: int) -> None:
        self.shadow, self.site = shadow, site
        self.known: dict[Any, Any] = {}

    def __call__(self, ag: Any, cells: Any, tile: Tile, sizes: tuple[int, ...]) -> None:
        key = (tile, sizes)
        if key not in self.known:
            rows, cols = box_of(tile, tuple(max(n, 0) for n in sizes))
            made = self.shadow.transition(self.site, writes=[Part(tile, rows, cols)]) if rows and cols else None
            self.known[key] = made
        if self.known[key] is not None:
            self.known[key].apply(cells, ag)


class ShadowStore:
    """Checks of stores from run-time handles: inside the valid box, and defined."""

    def __init__(self, shadow: Any, site: int, tell: Teller) -> None:
        self.shadow, self.site, self.tell = shadow, site, tell
        self.known: dict[Any, Any] = {}

    def __call__(self, ag: Any, cells: Any, tile: Tile, sizes: tuple[int, ...]) -> None:
        key = (tile, sizes)
        found = self.known.get(key)
        if found is None:
            rows, cols = box_of(tile, tuple(max(n, 0) for n in sizes))
            if rows > tile.vr or cols > tile.vc:
                self.tell(ag, FindingKind.OUTSIDE_VALID, outside(rows, cols, tile))
                return
            empty = not rows or not cols or self.shadow is None
            moves = [] if empty else [self.shadow.transition(self.site, reads=[Part(tile, rows, cols)])]
            found = self.known[key] = moves
        for move in found:
            move.apply(cells, ag)


class IndexedLoad:
    """`mgather`: rows or single elements of a tensor chosen by an index tile (read as unsigned)."""

    def __init__(self, shadow: Any, site: int, attrs: Any, tell: Teller, log: bool) -> None:
        self.shadow, self.site, self.tell, self.log = shadow, site, tell, log
        self.rows = attrs.get("coalesce", "row") == "row"
        self.outside = str(attrs.get("gatherOob", "undefined"))
        self.known: dict[Any, Any] = {}

    def __call__(self, ag: Any, cells: Any, view: GmView, index: Tile, out: Tile) -> None:
        picks = np.array(index.reader(index.vr, index.vc)()).astype(np.uint32).astype(np.int64)
        if cells is not None:
            self._note(ag, cells, index, out)
        source = view.arr.reshape(-1, view.limits[-1]) if self.rows and view.arr.size else view.arr.reshape(-1)
        at, zero = self._resolve(ag, picks.reshape(-1) if self.rows else picks, source.shape[0])
        for i in np.unique(at[~zero]) if self.log else ():
            where, size = self._spot(view, int(i))
            ag.trace.append((self.site, view, where, size))
            if view.marks is not None:
                ag.watch_load(self.site, view, where, size)
        if len(source):
            values = source[at]
            values[zero] = 0
        else:
            values = np.zeros((at.shape[0], out.vc), source.dtype)
        rows, cols = min(values.shape[0], out.vr), min(values.shape[1], out.vc)
        out.writer(rows, cols)(converter(source.dtype, out.dtype)(values[:rows, :cols]))
        ag.moved(self.site, rows * cols)

    def _spot(self, view: GmView, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Offsets and sizes of row or element number `i`."""
        shape = view.limits[:-1] if self.rows else view.limits
        where = tuple(int(x) for x in np.unravel_index(i, shape)) if shape else ()
        ones = (1,) * len(where)
        return ((*where, 0), (*ones, view.limits[-1])) if self.rows else (where, ones)

    def _resolve(self, ag: Any, at: Array, limit: int) -> tuple[Array, Array]:
        bad = at >= limit
        zero = np.zeros(at.shape, np.bool_)
        if not bad.any():
            return at, zero
        if not limit:
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"index {int(at[bad][0])} leaves a tensor without elements")
            return np.zeros_like(at), bad
        if self.outside == "wrap":
            return at % limit, zero
        if self.outside == "clamp":
            return np.minimum(at, limit - 1), zero
        if self.outside != "zero":
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"index {int(at[bad][0])} leaves a tensor of {limit} entries")
        return np.where(bad, 0, at), bad

    def _note(self, ag: Any, cells: Any, index: Tile, out: Tile) -> None:
        key = (index, out)
        if key not in self.known:
            parts = [Part(index, index.vr, index.vc)]
            self.known[key] = self.shadow.transition(self.site, reads=parts, writes=[Part(out, out.vr, out.vc)])
        self.known[key].apply(cells, ag)


class IndexedStore:
    """`mscatter`: `tensor.flat[index[i, j]] = tile[i, j]`; later elements win."""

    def __init__(self, shadow: Any, site: int, tell: Teller, log: bool) -> None:
        self.shadow, self.site, self.tell, self.log = shadow, site, tell, log
        self.known: dict[Any, Any] = {}

    def __call__(
        self,
        ag: Any,
        cells: Any,
        view: GmView,
        offsets: tuple[int, ...],
        sizes: tuple[int, ...],
        src: Tile,
        index: Tile,
    ) -> None:
        if cells is not None:
            key = (src, index)
            if key not in self.known:
                parts = [Part(t, src.vr, src.vc) for t in (src, index)]
                self.known[key] = self.shadow.transition(self.site, reads=parts)
            self.known[key].apply(cells, ag)
        offsets, sizes = self._window(ag, view, offsets, sizes)
        window = view.arr[tuple(slice(o, o + n) for o, n in zip(offsets, sizes, strict=True))]
        at = np.array(index.reader(src.vr, src.vc)()).astype(np.int64).reshape(-1)
        values = converter(src.dtype, window.dtype)(np.array(src.reader(src.vr, src.vc)())).reshape(-1)
        inside = (at >= 0) & (at < window.size)
        if not inside.all():
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, f"index {int(at[~inside][0])} leaves {window.size} elements")
        for i, x in zip(at[inside], values[inside], strict=True):
            spot = tuple(int(n) for n in np.unravel_index(int(i), window.shape))
            window[spot] = x
            if self.log:
                where = tuple(o + s for o, s in zip(offsets, spot, strict=True))
                ag.trace.append((self.site, view, where, (1,) * len(where)))
                if view.marks is not None:
                    view.marks[where] = True
                if view.guard:
                    ag.watch_store(self.site, view)
        ag.moved(self.site, int(inside.sum()))

    def _window(self, ag: Any, view: GmView, offsets: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
        """Offsets and sizes of the window; one that leaves its tensor is reported and cut."""
        low = tuple(min(max(o, 0), n) for o, n in zip(offsets, view.limits, strict=True))
        kept = tuple(max(min(o + s, n) - a, 0) for o, s, n, a in zip(offsets, sizes, view.limits, low, strict=True))
        if low != offsets or kept != sizes:
            self.tell(ag, FindingKind.OUT_OF_BOUNDS, window_text("scatter", view, offsets, sizes))
        return low, kept
