"""What the maker of an operation sees, and what it tells the rest of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .dtypes import Array
from .tiles import Tile

Run = Callable[..., None]


class _Dynamic:
    """Stands for a scalar operand whose value comes at run time."""

    def __repr__(self) -> str:
        return "DYNAMIC"


DYNAMIC: Any = _Dynamic()


class BindError(Exception):
    """Operands that an operation cannot take; the message is completed with the place by the caller."""


class BoundsError(BindError):
    """A window or an index that leaves its tile or tensor."""


@dataclass
class Bind:
    """One operation with its operands: tiles, constants, or DYNAMIC for run-time scalars.

    The callable that a maker returns takes the run-time scalars, in operand order, as positional arguments.
    """

    name: str
    ins: Sequence[Any]
    outs: Sequence[Tile]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def tile(self, i: int) -> Tile:
        """Operand `i`, which must be a tile.

        Raises:
            BindError: it is a scalar, or there are fewer operands.
        """
        found = self.ins[i] if i < len(self.ins) else None
        if not isinstance(found, Tile):
            raise BindError(f"operand {i} of {self.name} must be a tile")
        return found

    @property
    def out(self) -> Tile:
        """The first result."""
        return self.outs[0]


@dataclass(frozen=True)
class Part:
    """Elements `[row:row+rows, col:col+cols]` of a tile."""

    tile: Tile
    rows: int
    cols: int
    row: int = 0
    col: int = 0

    @property
    def empty(self) -> bool:
        """True when there is no element."""
        return self.rows <= 0 or self.cols <= 0


Parts = Callable[[Bind], list[Part]]


@dataclass(frozen=True)
class OpSpec:
    """How an operation runs and what it touches.

    `reads` are the parts that carry data in; `writes` the parts written (default: the valid box of the results).
    `copies` means undefined elements travel instead of being used. `scratch` operands are clobbered. `keeps` means
    elements of the result outside `writes` keep their content (updates in place); otherwise they become undefined.
    `merges` means that data decide which elements of `writes` change, so that the old content counts as used.
    `unit` is the engine that does the work.
    """

    make: Callable[[Bind], Run]
    reads: Parts
    writes: Parts | None = None
    copies: bool = False
    scratch: tuple[int, ...] | Callable[[Bind], tuple[int, ...]] = ()
    keeps: bool = False
    merges: bool = False
    unit: str = "vector"

    def written(self, b: Bind) -> list[Part]:
        """The parts that the operation writes."""
        return [p for p in (self.writes or writes_out)(b) if not p.empty]

    def read(self, b: Bind) -> list[Part]:
        """The parts that carry data in."""
        return [p for p in self.reads(b) if not p.empty]

    def clobbered(self, b: Bind) -> list[Tile]:
        """Scratch tiles."""
        which = self.scratch(b) if callable(self.scratch) else self.scratch
        return [b.ins[i] for i in which if i < len(b.ins) and isinstance(b.ins[i], Tile)]


def nothing() -> None:
    """The run of an operation on empty boxes."""


def operand(tile: Tile, rows: int, cols: int) -> tuple[int, int]:
    """Extents of `tile` that serve a result of `rows` x `cols`: the same, or 1 where an extent 1 is repeated.

    Raises:
        BindError: the tile is smaller and cannot be repeated.
    """
    r = rows if tile.type.rows >= rows else tile.type.rows
    c = cols if tile.type.cols >= cols else tile.type.cols
    if (r != rows and r != 1) or (c != cols and c != 1):
        raise BindError(
            f"an operand of {tile.type.rows}x{tile.type.cols} cannot serve a result with {rows}x{cols} valid elements"
        )
    return r, c


def reads_like_out(b: Bind) -> list[Part]:
    """Every tile operand, at the coordinates of the result's valid box."""
    rows, cols = b.out.vr, b.out.vc
    if not rows or not cols:
        return []
    return [Part(t, *operand(t, rows, cols)) for t in b.ins if isinstance(t, Tile)]


def reads_first_valid(b: Bind) -> list[Part]:
    """The valid box of the first operand."""
    t = b.tile(0)
    return [Part(t, t.vr, t.vc)]


def writes_out(b: Bind) -> list[Part]:
    """The valid boxes of all results."""
    return [Part(t, t.vr, t.vc) for t in b.outs]


def getter(tile: Tile, rows: int, cols: int) -> Callable[[], Array]:
    """Reader of the operand part that serves `rows` x `cols`."""
    return tile.reader(*operand(tile, rows, cols))
