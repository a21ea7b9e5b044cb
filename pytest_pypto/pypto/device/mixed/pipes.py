"""Bounded pipes between the cube core and the vector lanes of one block.

A pipe way has producers and consumers: cube to lanes (`c2v`) one producer and one or two consumers, lanes to cube
(`v2c`) the other way round. A message carries the valid box of the pushed tile. A slot is taken by a push and given
back when every consumer has freed it; a push waits while all slots are taken, a pop while a producer lacks a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..findings import FindingKind
from ..machine.dtypes import Array
from ..machine.numbers import converter
from ..machine.tiles import Tile


@dataclass(slots=True)
class Message:
    """One pushed tile: its valid elements, the extents of its box, which elements have no value.

    `site` is the sender with the number of the pushing site.
    """

    data: Array
    rows: int
    cols: int
    split: int
    holes: Array | None
    site: Any
    clock: list[int] | None


class Ring:
    """One way of one pipe of one block."""

    __slots__ = (
        "consumers", "decl", "freed", "high", "id", "messages", "popped", "producers", "pushed", "released",
        "slots", "way",
    )  # fmt: skip

    def __init__(self, pipe: int, way: str, slots: int, producers: int, consumers: int, decl: Any) -> None:
        self.id, self.way, self.slots, self.decl = pipe, way, slots, decl
        self.producers, self.consumers = producers, consumers
        self.pushed, self.popped, self.freed = [0] * producers, [0] * consumers, [0] * consumers
        self.messages: list[dict[int, Message]] = [{} for _ in range(producers)]
        self.released: list[list[list[int]]] = [[] for _ in range(consumers)]
        self.high = 0

    def can_push(self, lane: int) -> bool:
        """True when a slot is free for producer `lane`."""
        return self.pushed[lane] - min(self.freed) < self.slots

    def can_pop(self, lane: int) -> bool:
        """True when every producer has sent the next message of consumer `lane`."""
        return min(self.pushed) > self.popped[lane]

    def push(self, ag: Any, message: Message) -> None:
        """Send; the caller has made sure that there is a slot."""
        lane = ag.lane if self.producers > 1 else 0
        number = self.pushed[lane]
        if ag.clock is not None:
            if number >= self.slots:
                for freed in self.released:
                    ag.join(freed[number - self.slots])
            message.clock = ag.tick()
        self.messages[lane][number] = message
        self.pushed[lane] = number + 1
        self.high = max(self.high, number + 1 - min(self.freed))

    def pop(self, ag: Any) -> tuple[int, list[Message]]:
        """The next message from every producer, and its number."""
        lane = ag.lane if self.consumers > 1 else 0
        number = self.popped[lane]
        found = [m[number] for m in self.messages]
        self.popped[lane] = number + 1
        if ag.clock is not None:
            for message in found:
                ag.join(message.clock)
        return number, found

    def free(self, ag: Any, tell: Any) -> None:
        """Give the oldest popped slot back."""
        lane = ag.lane if self.consumers > 1 else 0
        number = self.freed[lane]
        if number >= self.popped[lane]:
            tell(ag, FindingKind.LEFTOVER, f"frees a slot of pipe {self.id} ({self.way}) that it has not popped")
            return
        self.freed[lane] = number + 1
        if ag.clock is not None:
            self.released[lane].append(ag.tick())
        if number < min(self.freed):
            for m in self.messages:
                m.pop(number, None)


def lane_part(message: Message, tile: Tile, lane: int, split: int, stride: int | None) -> tuple[Array, Array | None]:
    """What lane `lane` gets of a cube message for a tile of the popped type: elements, and their holes."""
    if split == 0:
        return message.data, message.holes
    if split in (1, 3):
        start, stop = _span(lane, tile.type.rows, stride)
        cut: Any = (slice(start, stop), slice(None))
    else:
        start, stop = _span(lane, tile.type.cols, stride)
        cut = (slice(None), slice(start, stop))
    holes = message.holes
    return message.data[cut], None if holes is None else holes[cut]


def _span(lane: int, extent: int, stride: int | None) -> tuple[int, int]:
    """Lane 0 ends where lane 1 starts: at the given stride, else at the extent of a lane's box."""
    step = extent if stride is None else stride
    return (0, min(step, extent)) if lane == 0 else (step, step + extent)


def joined(messages: list[Message], tile: Tile, split: int, stride: int | None) -> tuple[Array, Array | None]:
    """The cube's tile from the messages of all lanes: side by side, or the one of lane 0 without a split."""
    if split == 0 or len(messages) == 1:
        return messages[0].data, messages[0].holes
    rows, cols = tile.vr, tile.vc
    whole = np.zeros((rows, cols), messages[0].data.dtype)
    missing = np.ones((rows, cols), np.bool_)
    for lane, m in enumerate(messages):
        down = split in (1, 3)
        step = stride if stride is not None else (m.rows if down else m.cols)
        r, c = (lane * step, 0) if down else (0, lane * step)
        h, w = max(min(m.data.shape[0], rows - r), 0), max(min(m.data.shape[1], cols - c), 0)
        whole[r : r + h, c : c + w] = m.data[:h, :w]
        missing[r : r + h, c : c + w] = False if m.holes is None else m.holes[:h, :w]
    return whole, missing if missing.any() else None


def fill(tile: Tile, data: Array, holes: Array | None) -> Array | None:
    """Write the arrived elements into the slot; gives the undefined elements of the tile's valid box."""
    rows, cols = min(data.shape[0], tile.vr), min(data.shape[1], tile.vc)
    if rows and cols:
        change = converter(data.dtype, tile.dtype)
        tile.writer(rows, cols)(change(data[:rows, :cols]))
    if (rows, cols) == (tile.vr, tile.vc) and holes is None:
        return None
    missing = np.ones((tile.vr, tile.vc), np.bool_)
    missing[:rows, :cols] = False if holes is None else holes[:rows, :cols]
    return missing if missing.any() else None
