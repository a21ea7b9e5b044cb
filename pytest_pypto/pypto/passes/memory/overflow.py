"""What to say when a memory is too small."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import expr as e
from ...ir.enums import MemorySpace
from ...ir.span import UNKNOWN
from ...ir.types import TileType
from ..device_ir import kernel_error
from .liveness import Buffer
from .reserved import Reserved

_ROWS = 12


def overflow_error(
    function: str, space: MemorySpace, used: int, limit: int, buffers: Sequence[Buffer], reserved: Reserved
) -> ValueError:
    """The error for a space that does not hold what a function needs: a table, the biggest tile, the nearest fix."""
    lines = [f"{space.name} buffer usage ({used} bytes) exceeds platform limit ({limit} bytes)"]
    taken = reserved.end(space)
    if taken:
        rings = any(r.name.endswith("_slot_buffer") for r in reserved.ranges)
        advice = "; pl.cross_core_slot(slot_num=N) with a smaller N makes the rings shallower" if rings else ""
        lines[0] += f". {taken} bytes of it are reserved for pipes{advice}"
    lines.append(f"in function '{function}', what fills {space.name}:")
    ranked = sorted(buffers, key=lambda b: (-b.size, b.order))
    rows = [(f"{r.size}", f"reserved '{r.name}'") for r in reserved.ranges if space is reserved.space]
    rows += [(f"{b.size}", _describe(b)) for b in ranked]
    width = max(len(r[0]) for r in rows)
    lines += [f"  {size:>{width}} bytes  {what}" for size, what in rows[:_ROWS]]
    if len(rows) > _ROWS:
        lines.append(f"  ... and {len(rows) - _ROWS} smaller ones")
    biggest = ranked[0] if ranked else None
    if biggest is not None:
        lines.append(_fix(biggest, used - limit))
    span = biggest.lives[0].var.span if biggest is not None and biggest.lives else UNKNOWN
    return kernel_error("\n".join(lines), span)


def _describe(buffer: Buffer) -> str:
    names = list(dict.fromkeys(life.var.name_hint for life in buffer.lives))
    shown = ", ".join(f"'{n}'" for n in names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    first = buffer.lives[0].var.type if buffer.lives else None
    return f"{_shape(first)} {shown}" if isinstance(first, TileType) else buffer.base.name_hint


def _shape(tile: TileType | None) -> str:
    if tile is None:
        return ""
    return f"[{', '.join(str(e.const_value(d)) for d in tile.shape)}] {tile.dtype}"


def _fix(buffer: Buffer, excess: int) -> str:
    tile = buffer.lives[0].var.type if buffer.lives else None
    name = buffer.lives[0].var.name_hint if buffer.lives else buffer.base.name_hint
    shape = _shape(tile) if isinstance(tile, TileType) else ""
    return (
        f"{excess} bytes too many. Nearest fix: work on '{name}' {shape} in smaller boxes (a pl.range loop over row "
        "blocks), or end the use of one of the tiles above before the next is made"
    )
