"""Every tile operation of the machine by name."""

from __future__ import annotations

from collections.abc import Mapping

from . import cube, elementwise, moves, reduce, select, sort
from .bind import OpSpec

TILE_OPS: Mapping[str, OpSpec] = {
    **elementwise.TABLE,
    **select.TABLE,
    **reduce.TABLE,
    **cube.TABLE,
    **moves.TABLE,
    **sort.TABLE,
}
"""Operations `pto.<name> ins(...) outs(...)` on tiles; loads, stores and pipes are not among them."""
