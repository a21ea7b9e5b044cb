"""Work of single operations, and the clock that is made from it.

The clock is a model of our own: fixed start costs per operation and bytes or products per tick. It is exact and
repeatable, and predicts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ..machine.bind import Bind, OpSpec, Part
from ..text.types import itemsize

START_TICKS = {"vector": 8, "cube": 16, "move": 8, "load": 32, "store": 32, "scalar": 1, "pipe": 16}
"""Ticks before the first element, per engine."""
VECTOR_BYTES = 256
"""Bytes the vector engine handles per tick."""
CUBE_PRODUCTS = 4096
"""Multiply-adds of the cube engine per tick."""
MOVE_BYTES = 128
"""Bytes moved per tick, on chip and to global memory."""


@dataclass(frozen=True)
class Cost:
    """Work of one execution: elements produced, multiply-adds, bytes read and written per memory space."""

    unit: str
    elements: int = 0
    products: int = 0
    read: tuple[tuple[str, int], ...] = ()
    written: tuple[tuple[str, int], ...] = ()
    op: str = ""

    @cached_property
    def ticks(self) -> int:
        """Ticks on the cost clock."""
        start = START_TICKS.get(self.unit, 1)
        if self.unit == "cube":
            return start + -(-self.products // CUBE_PRODUCTS)
        moved = max(sum(n for _, n in self.read), sum(n for _, n in self.written))
        rate = VECTOR_BYTES if self.unit == "vector" else MOVE_BYTES
        return start + -(-moved // rate)


def _bytes(parts: list[Part]) -> tuple[tuple[str, int], ...]:
    total: dict[str, int] = {}
    for p in parts:
        size = max(p.rows, 0) * max(p.cols, 0) * itemsize(p.tile.type.dtype)
        total[p.tile.space] = total.get(p.tile.space, 0) + size
    return tuple(sorted(total.items()))


def cost_of(spec: OpSpec, b: Bind) -> Cost:
    """The work of an operation with fixed tiles."""
    reads, writes = spec.read(b), spec.written(b)
    elements = sum(p.rows * p.cols for p in writes)
    products = 0
    if spec.unit == "cube" and len(reads) > 1:
        left = next(p for p in reads if p.tile.space == "left")
        right = next(p for p in reads if p.tile.space == "right")
        products = left.rows * left.cols * right.cols
    return Cost(spec.unit, elements, products, _bytes(reads), _bytes(writes), b.name)


def merged(total: Mapping[str, int], part: tuple[tuple[str, int], ...], times: int) -> dict[str, int]:
    """`total` plus `times` times `part`."""
    out = dict(total)
    for space, n in part:
        out[space] = out.get(space, 0) + n * times
    return out
