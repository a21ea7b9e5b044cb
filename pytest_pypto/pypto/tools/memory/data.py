"""The map as plain data, which is also what the page embeds."""

from __future__ import annotations

from typing import Any

from ...backend.handler import Handler
from .boxes import Box, Card, Panel


def as_data(dump: str, pass_name: str, handler: Handler | None, detected: bool, cards: list[Card]) -> dict[str, Any]:
    """Everything the page shows, ready for JSON."""
    backend = None
    if handler is not None:
        backend = {"name": handler.backend_type.name, "arch": handler.arch, "detected": detected}
    return {"dump": dump, "pass_name": pass_name, "backend": backend, "functions": [_function(c) for c in cards]}


def _function(card: Card) -> dict[str, Any]:
    return {
        "name": card.function.name,
        "kind": card.function.func_type.name,
        "first": card.first,
        "last": card.last,
        "spaces": [_space(panel) for panel in card.panels],
        "boxes": [_box(box) for panel in card.panels for box in panel.boxes],
    }


def _space(panel: Panel) -> dict[str, Any]:
    return {
        "space": panel.space.name,
        "hwm": panel.high_water,
        "limit": panel.limit,
        "tiles": panel.tiles,
        "bases": panel.bases,
    }


def _box(box: Box) -> dict[str, Any]:
    tile = box.tile
    return {
        "name": tile.name,
        "space": tile.space.name,
        "base": tile.base,
        "offset": tile.offset,
        "size": tile.size,
        "first": tile.first,
        "last": box.last,
        "type": tile.kind,
        "aliases": box.aliases,
        "view": tile.view,
        "ring": tile.ring,
        "conflict": bool(box.conflict),
        "conflicts_with": box.conflict,
    }
