"""Global memory: buffers, the views that tasks get of them, and the views that kernels make of those."""

from __future__ import annotations

import itertools
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from .bind import BindError
from .dtypes import Array, DType

_ids = itertools.count(1)


class GlobalBuffer:
    """One tensor of the run: its elements as a flat array, and what the sanitizers know about them.

    `role` is `in`, `out`, `inout` (arguments of the entry) or `created`. `defined` is None when every element has a
    value, else one bool per element. `address` is the simulated byte address. `guard` tells the kernels to announce
    stores, because the buffer is an input and its old content may have to be kept. `base` is the buffer whose bytes
    these are: another one for a reinterpretation, and for a tensor that is passed twice; else the buffer itself.
    """

    __slots__ = (
        "address",
        "base",
        "before",
        "defined",
        "dtype",
        "flat",
        "guard",
        "id",
        "manual_dep",
        "name",
        "param",
        "producer",
        "role",
        "shape",
        "touched",
        "views",
    )  # fmt: skip

    def __init__(
        self,
        flat: Array,
        name: str,
        role: str,
        shape: tuple[int, ...],
        *,
        track: bool = False,
        address: int = 0,
        base: GlobalBuffer | None = None,
    ) -> None:
        self.flat, self.name, self.role, self.shape = flat, name, role, shape
        self.dtype: DType = flat.dtype
        self.id = next(_ids)
        self.address = address
        self.defined: Array | None = np.zeros(flat.size, np.bool_) if track else None
        self.views: dict[Any, GmView] = {}
        self.before: Array | None = None
        self.manual_dep = False
        self.producer: int | None = None
        self.param: int | None = None
        self.guard = False
        self.base: GlobalBuffer = self if base is None else base.base
        if base is not None:
            self._share(base.base)

    def _share(self, base: GlobalBuffer) -> None:
        """Take over what the sanitizers know of the same bytes.

        Flags per element carry over between elements of one size; otherwise nobody tracks the bytes any longer.
        """
        self.address, self.manual_dep, self.guard = base.address, base.manual_dep, base.guard
        if base.dtype.itemsize == self.dtype.itemsize and base.flat.size == self.flat.size:
            self.defined = base.defined
        elif base.defined is not None:
            base.defined = None
            base.views.clear()

    def close(self) -> None:
        """Forget the views, so that the buffer is freed as soon as nobody holds it."""
        self.views.clear()

    def whole(self) -> GmArg:
        """The buffer as one dense tensor."""
        return GmArg(self, 0, self.shape, dense_strides(self.shape))


@lru_cache(maxsize=1024)
def nested(strides: tuple[int, ...]) -> bool:
    """Innermost stride 1, and each stride divides the one before."""
    return strides[-1:] == (1,) and all(outer % inner == 0 for outer, inner in pairwise(strides) if inner)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * max(shape[i + 1], 1)
    return tuple(out)


class GmArg:
    """A tensor argument of a task: a strided window of a buffer, in elements. `valid` is its valid shape."""

    __slots__ = ("_box", "_is_box", "offset", "root", "shape", "strides", "valid")

    def __init__(
        self,
        root: GlobalBuffer,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        valid: tuple[int, ...] | None = None,
    ) -> None:
        self.root, self.offset, self.shape, self.strides, self.valid = root, offset, shape, strides, valid
        self._box: tuple[tuple[int, int], ...] | None = None
        self._is_box: bool | None = None

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """Intervals per axis in the buffer, from the position of the first element (for nested strides)."""
        if self._box is None:
            rest, found = self.offset, []
            for n, s in zip(self.shape, self.strides, strict=True):
                start, rest = divmod(rest, s) if s else (0, rest)
                found.append((start, start + n))
            self._box = tuple(found)
        return self._box

    @property
    def is_box(self) -> bool:
        """Whether `box` says which elements these are: nested strides, and no row runs on into the next one."""
        if self._is_box is None:
            pairs = zip(pairwise(self.strides), self.box[1:], strict=True)
            fits = (not inner or end <= outer // inner for (outer, inner), (_, end) in pairs)
            self._is_box = nested(self.strides) and all(fits)
        return self._is_box

    def array(self) -> Array:
        """The elements as a numpy view."""
        return strided(self.root.flat, self.offset, self.shape, self.strides)

    def span(self) -> tuple[int, int]:
        """First and one past the last element number in the buffer."""
        return self.offset, self.offset + extent(self.shape, self.strides)

    def in_bytes(self) -> GmArg:
        """The same window with bytes as its elements, to compare it with one of other elements."""
        size = self.root.dtype.itemsize
        return GmArg(self.root.base, self.offset * size, (*self.shape, size), (*(s * size for s in self.strides), 1))

    def shifted(self, elements: int) -> GmArg:
        """The rest of the buffer from `elements` further on, as a flat tensor (pointer arithmetic)."""
        start = self.offset + elements
        return GmArg(self.root, start, (self.root.flat.size - start,), (1,))


def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Elements from the first to the last of a strided window, both included; 0 for an empty one."""
    if not all(shape):
        return 0
    return sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1


def strided(flat: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """A window of a flat array as a view.

    Raises:
        BindError: the window leaves the array.
    """
    size = extent(shape, strides)
    if offset < 0 or offset + size > flat.size or any(s < 0 for s in strides):
        raise BindError(f"elements {offset}..{offset + size - 1} leave a buffer of {flat.size} elements")
    if not flat.size:
        return flat.reshape(shape)
    item = flat.dtype.itemsize
    raw = flat.view(np.uint8)  # the small floats have no buffer form of their own
    steps = tuple(s * item if n > 1 else item for n, s in zip(shape, strides, strict=True))
    try:
        return np.ndarray(shape, flat.dtype, raw.data, offset * item, steps)
    except ValueError as exc:
        raise BindError(f"a window of {'x'.join(map(str, shape))} elements: {exc}") from None


class GmView:
    """What `make_tensor_view` gives: an N-D array over an argument, with the extents that may be accessed.

    `marks` has the `defined` flags of the buffer in the shape of the view, None when everything is defined. `guard`
    says that stores must be announced, because the buffer is an input.
    """

    __slots__ = ("arg", "arr", "guard", "limits", "marks", "n0", "n1", "offset", "root", "strides")

    def __init__(self, arg: GmArg, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.arg, self.root, self.offset, self.strides = arg, arg.root, arg.offset, strides
        self.limits = accessible(arg, shape, strides)
        flat = arg.root.flat
        self.arr = strided(flat, arg.offset, self.limits, strides)
        self.n0 = self.limits[0]
        self.n1 = self.limits[1] if len(self.limits) > 1 else 1
        flags = self.root.defined
        self.marks = None if flags is None else strided(flags, self.offset, self.limits, self.strides)
        self.guard = self.root.guard


def accessible(arg: GmArg, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of a declared view that lie inside the actual argument."""
    if len(shape) == len(arg.shape) and all(
        a == b or n <= 1 or m <= 1 for a, b, n, m in zip(strides, arg.strides, shape, arg.shape, strict=True)
    ):
        return tuple(max(min(a, b), 0) for a, b in zip(shape, arg.shape, strict=True))
    room = extent(arg.shape, arg.strides)
    limits = [max(n, 0) for n in shape]
    while all(limits) and extent(tuple(limits), strides) > room:
        axis = max(range(len(limits)), key=lambda i: (limits[i] > 1, strides[i]))
        over = extent(tuple(limits), strides) - room
        limits[axis] = max(limits[axis] - max(-(-over // max(strides[axis], 1)), 1), 0)
    return tuple(limits)


def view_of(arg: GmArg, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> GmView:
    """The view of `arg` that a kernel declares, remembered on the buffer.

    Raises:
        BindError: the element types differ.
    """
    root = arg.root
    key = (arg.offset, arg.shape, arg.strides, shape, strides)
    found = root.views.get(key)
    if found is None:
        if root.dtype != dtype:
            raise BindError(f"the kernel reads {dtype.name}, the argument {root.name!r} holds {root.dtype.name}")
        found = root.views[key] = GmView(arg, shape, strides)
    return found
