"""From lifetimes to boxes: aliases merged, conflicts found, high-water marks counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...backend.handler import Handler
from ...ir.enums import FunctionType, MemorySpace
from ...ir.program import Function, Program
from .lives import Lives, Tile, last_line

_M = MemorySpace
SPACES = (_M.Vec, _M.Mat, _M.Left, _M.LeftScale, _M.Right, _M.RightScale, _M.Acc, _M.Bias)
"""Order of the panels."""
DEVICE = frozenset({FunctionType.AIC, FunctionType.AIV, FunctionType.InCore})


@dataclass(slots=True)
class Box:
    """A range of bytes with one content over a range of lines."""

    tile: Tile
    last: int
    aliases: list[str] = field(default_factory=list)
    """Other names of the same bytes whose lifetimes touch this one."""
    conflict: list[str] = field(default_factory=list)
    """Tiles of other allocations that are needed at the same time in some of these bytes."""

    @property
    def end(self) -> int:
        """First byte after the box."""
        return self.tile.offset + self.tile.size

    def meets(self, other: Box) -> bool:
        """Whether the two share bytes."""
        return self.tile.offset < other.end and other.tile.offset < self.end


@dataclass(frozen=True, slots=True)
class Panel:
    """One memory space of one function. `limit` is None when the architecture is not known."""

    space: MemorySpace
    high_water: int
    limit: int | None
    tiles: int
    bases: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One function with its panels, and the lines of the dump that it takes."""

    function: Function
    first: int
    last: int
    panels: tuple[Panel, ...]


class NotAllocatedError(ValueError):
    """The tiles of a dump have no addresses yet."""


def cards(program: Program, handler: Handler | None) -> list[Card]:
    """A card for each device function that has tiles with buffers.

    Raises:
        NotAllocatedError: the buffers of some function have no addresses.
    """
    found = []
    for function in program.functions.values():
        if function.func_type in DEVICE:
            tiles = Lives(function).collect()
            if any(not tile.ring for tile in tiles):
                panels = tuple(_panels(function, tiles, handler))
                found.append(Card(function, function.span.begin_line, last_line(function.body), panels))
    return sorted(found, key=lambda card: card.first)


def _panels(function: Function, tiles: list[Tile], handler: Handler | None) -> Iterable[Panel]:
    for space in SPACES:
        here = [t for t in tiles if t.space is space]
        if not here:
            continue
        boxes = merge(here)
        mark_conflicts(boxes)
        _require_addresses(function, space, boxes)
        high = max(box.end for box in boxes)
        limit = handler.limit(space) if handler is not None else None
        count = sum(1 for t in here if not t.ring)
        yield Panel(space, high, limit, count, len({t.base for t in here}), tuple(boxes))


def _require_addresses(function: Function, space: MemorySpace, boxes: list[Box]) -> None:
    """Buffers that all start at 0 and are needed at the same time have not been placed."""
    lowest: dict[str, int] = {}
    for box in boxes:
        if not box.tile.ring:
            lowest[box.tile.base] = min(box.tile.offset, lowest.get(box.tile.base, box.tile.offset))
    if len(lowest) > 1 and not any(lowest.values()) and any(box.conflict for box in boxes):
        raise NotAllocatedError(
            f"the {len(lowest)} buffers of {function.name} in {space.name} all start at 0: they have no addresses yet; "
            "give the dump of AllocateMemoryAddr or a later one"
        )


def merge(tiles: list[Tile]) -> list[Box]:
    """One box per content: names of the same bytes of one allocation join while their lifetimes touch."""
    boxes: list[Box] = []
    open_: dict[tuple[str, int, int], Box] = {}
    for tile in sorted(tiles, key=lambda t: t.first):
        where = (tile.base, tile.offset, tile.size)
        box = open_.get(where)
        if box is not None and tile.first <= box.last:
            box.aliases.append(tile.name)
            box.last = max(box.last, tile.last)
        else:
            open_[where] = Box(tile, tile.last)
            boxes.append(open_[where])
    return boxes


def mark_conflicts(boxes: list[Box]) -> None:
    """Note where tiles of different allocations need the same bytes at the same time.

    The line that last reads one tile may define the next.
    """
    alive: list[Box] = []
    for box in boxes:
        alive = [other for other in alive if other.last > box.tile.first]
        for other in alive:
            if other.tile.base != box.tile.base and other.meets(box) and other.tile.first < box.last:
                other.conflict.append(box.tile.name)
                box.conflict.append(other.tile.name)
        alive.append(box)
