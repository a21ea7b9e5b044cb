"""The text of ReportInstrument: how much of each memory every kernel uses, and which tiles lie where."""

from __future__ import annotations

from collections.abc import Iterator

from ..backend.handler import current_handler
from ..ir import expr as e
from ..ir.enums import MemorySpace
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import defs_of, walk_stmts
from ._util import base_name

_Place = tuple[int, int]
"""Offset and size in bytes."""


def memory_report(program: Program) -> str:
    """One block per kernel with on-chip buffers; the limits are those of the selected architecture."""
    blocks = [_block(f) for f in program.functions.values()]
    text = "\n".join(b for b in blocks if b)
    return text or "no function has on-chip buffers with addresses\n"


def _block(func: Function) -> str:
    spaces: dict[MemorySpace, dict[_Place, list[str]]] = {}
    for var, tile in _tiles(func):
        place = _place(tile)
        if place is not None and tile.space is not None:
            names = spaces.setdefault(tile.space, {}).setdefault(place, [])
            if base_name(var.name_hint) not in names:
                names.append(base_name(var.name_hint))
    if not spaces:
        return ""
    lines = [f"function {func.name} ({func.func_type.name})"]
    for space in sorted(spaces, key=lambda m: m.name):
        lines += _lines(space, spaces[space])
    return "\n".join(lines) + "\n"


def _tiles(func: Function) -> Iterator[tuple[e.Var, TileType]]:
    for var in [*func.params, *(v for x in walk_stmts(func.body) for v in defs_of(x))]:
        if isinstance(var.type, TileType) and var.type.memref is not None:
            yield var, var.type


def _place(tile: TileType) -> _Place | None:
    assert tile.memref is not None
    offset = e.const_value(tile.memref.byte_offset_)
    return None if offset is None else (offset, tile.memref.size_)


def _lines(space: MemorySpace, places: dict[_Place, list[str]]) -> list[str]:
    used = max(offset + size for offset, size in places)
    handler = current_handler()
    limit = None if handler is None else handler.limit(space)
    whole = "" if limit is None else f" of {limit} ({100 * used / limit:.1f} %)"
    rows = [f"  {space.name}: {used} bytes{whole}, {len(places)} range(s)"]
    rows += [f"    {o:>8} .. {o + n:>8}  {', '.join(names)}" for (o, n), names in sorted(places.items())]
    return rows
