"""Shadow states of memory segments: who wrote each byte, and which bytes have no value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..machine.dtypes import Array


class State:
    """What is known of one segment. Uniform segments hold a plain number; others one entry per byte.

    `writer` is the number of the write record, 0 for nobody. `undefined` says whether the byte has no value.
    """

    __slots__ = ("size", "undefined", "writer")

    def __init__(self, size: int, writer: int | Array, undefined: bool | Array) -> None:
        self.size, self.writer, self.undefined = size, writer, undefined

    @property
    def uniform(self) -> bool:
        """True when one writer made the whole segment."""
        return isinstance(self.writer, int)

    def writers(self) -> Array:
        """Writer of each byte."""
        return np.full(self.size, self.writer, np.int32) if isinstance(self.writer, int) else self.writer

    def holes(self) -> Array:
        """Undefined flag of each byte."""
        if isinstance(self.undefined, bool):
            return np.full(self.size, self.undefined, np.bool_)
        return self.undefined


@dataclass(frozen=True)
class Record:
    """One write site on one tile: `root` is the byte range of the buffer it belongs to.

    `exempt` writes never count as dead stores: scratch, push slots, fills, empty tiles. `form` is the dense order of a
    boxed tile without whole boxes.
    """

    site: int
    space: str
    root: tuple[int, int]
    exempt: bool
    form: str = ""


def uniform(size: int, writer: int, undefined: bool) -> State:
    """A segment made by one write."""
    return State(size, writer, undefined)


def compressed(size: int, writer: Array, undefined: Array) -> tuple[State, object]:
    """A state from one entry per byte, and a key that is equal for equal states."""
    first, hole = int(writer[0]), bool(undefined[0])
    if (writer == first).all() and (undefined == hole).all():
        return State(size, first, hole), (first, hole)
    return State(size, writer, undefined), (writer.tobytes(), undefined.tobytes())
