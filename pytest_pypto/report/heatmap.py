"""Density of mismatches as characters; colours only where the caller says there is a terminal."""

from __future__ import annotations

from collections.abc import Sequence

SHADES = " .:-=+*#%@"
"""One character per density: blank for none, `@` for all."""

_COLOURS = ("", "34", "36", "36", "32", "32", "33", "33", "31", "31")


def render(heat: Sequence[str], *, colour: bool = False) -> list[str]:
    """Lines of a map from rows of digits 0..9, framed; empty for no rows."""
    if not heat:
        return []
    width = max(len(row) for row in heat)
    frame = "+" + "-" * width + "+"
    return [frame, *("|" + _row(row, colour) + "|" for row in heat), frame]


def _row(row: str, colour: bool) -> str:
    if not colour:
        return "".join(SHADES[int(c)] for c in row)
    return "".join(f"\x1b[{_COLOURS[int(c)]}m{SHADES[int(c)]}\x1b[0m" if int(c) else " " for c in row)
