"""Where mismatches lie: in words, in tile and lane terms, and as a coarse density map."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch

HEAT_ROWS, HEAT_COLUMNS = 16, 32
LANE_AXIS = {"UP_DOWN": 0, "LEFT_RIGHT": 1}


@dataclass(frozen=True)
class Layout:
    """How an output is made up.

    Attributes:
        tile: rows and columns of the block that one step writes (both lanes together), or None when not known.
        split: name of the split mode; it decides which half of a tile is whose lane.
    """

    tile: tuple[int, int] | None = None
    split: str = "NONE"


def place(index: tuple[int, ...], layout: Layout) -> str:
    """`tile (2, 0) element (3, 5) lane 1` for an index, or "" without a known tile."""
    if layout.tile is None or not index:
        return ""
    row, column = (index[-2] if len(index) > 1 else 0), index[-1]
    rows, columns = layout.tile
    text = f"tile ({row // rows}, {column // columns}) element ({row % rows}, {column % columns})"
    axis = LANE_AXIS.get(layout.split)
    if axis is None:
        return text
    inside, extent = (row % rows, rows) if axis == 0 else (column % columns, columns)
    return f"{text} lane {int(inside >= (extent + 1) // 2)}"


def plane(bad: torch.Tensor) -> torch.Tensor:
    """The mask as a matrix: leading axes are folded into rows; a scalar is 1x1."""
    if bad.dim() == 0:
        return bad.reshape(1, 1)
    return bad.reshape(1, -1) if bad.dim() == 1 else bad.reshape(-1, bad.shape[-1])


def pattern(bad: torch.Tensor, layout: Layout) -> str:
    """Where the true elements of a mask lie, in one phrase; "" for an empty mask.

    Looks for, in this order: all elements, one element, one lane, whole rows or columns (bands or every k-th), one
    tile, the last tile of each row or column of tiles, otherwise the bounding box.
    """
    mask = plane(bad)
    count = int(mask.sum())
    if not count:
        return ""
    if count == mask.numel():
        return f"all {count} elements"
    if count == 1:
        row, column = (int(i) for i in mask.nonzero()[0])
        return f"one element, row {row} column {column}"
    rows, columns = mask.any(1).nonzero().flatten().tolist(), mask.any(0).nonzero().flatten().tolist()
    found = _lane(mask, layout, count)
    return found or _bands(mask, count, rows, columns) or _tiles(mask, layout, count) or _box(count, rows, columns)


def _lane(mask: torch.Tensor, layout: Layout, count: int) -> str:
    axis = LANE_AXIS.get(layout.split)
    if axis is None or layout.tile is None:
        return ""
    extent = layout.tile[axis]
    at = mask.nonzero()[:, axis]
    upper = at % extent >= (extent + 1) // 2
    if bool(upper.all()) or not bool(upper.any()):
        where = sorted(set(at.tolist()))
        what = "rows" if axis == 0 else "columns"
        return f"all {count} lie in {what} {_runs(where)} = lane {int(bool(upper.all()))} of the {layout.split} split"
    return ""


def _bands(mask: torch.Tensor, count: int, rows: list[int], columns: list[int]) -> str:
    if count == len(rows) * mask.shape[1] and len(rows) < mask.shape[0]:
        return f"all {count} fill {'row' if len(rows) == 1 else 'rows'} {_runs(rows)}"
    if count == len(columns) * mask.shape[0] and len(columns) < mask.shape[1]:
        return f"all {count} fill {'column' if len(columns) == 1 else 'columns'} {_runs(columns)}"
    if len(rows) * 4 <= mask.shape[0]:
        return f"all {count} lie in {'row' if len(rows) == 1 else 'rows'} {_runs(rows)}"
    if len(columns) * 4 <= mask.shape[1]:
        return f"all {count} lie in {'column' if len(columns) == 1 else 'columns'} {_runs(columns)}"
    return ""


def _tiles(mask: torch.Tensor, layout: Layout, count: int) -> str:
    if layout.tile is None:
        return ""
    at = mask.nonzero()
    grid = at // torch.tensor(layout.tile)
    tiles = sorted({(int(r), int(c)) for r, c in grid.tolist()})
    if len(tiles) == 1:
        return f"all {count} lie in tile {tiles[0]} of {layout.tile[0]}x{layout.tile[1]}"
    last = [(n - 1) // t for n, t in zip(mask.shape, layout.tile, strict=True)]
    for axis, what in ((0, "row"), (1, "column")):
        if last[axis] > 0 and all(t[axis] == last[axis] for t in tiles):
            return f"all {count} lie in the last {what} of tiles"
    return ""


def _box(count: int, rows: list[int], columns: list[int]) -> str:
    inside = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
    filled = "fill" if inside == count else f"({100 * count / inside:.0f} % of them) lie in"
    return f"{count} elements {filled} rows {rows[0]}-{rows[-1]}, columns {columns[0]}-{columns[-1]}"


def _runs(numbers: list[int]) -> str:
    """`0-3, 8-11`; `every 4th from 1 to 29` for an arithmetic row; shortened after four runs."""
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) > 2 and len(steps) == 1 and (step := steps.pop()) > 1:
        ordinal = {2: "2nd", 3: "3rd"}.get(step, f"{step}th")
        return f"every {ordinal} from {numbers[0]} to {numbers[-1]}"
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs]
    more = len(texts) - 4
    return ", ".join(texts[:4]) + (f" and {more} more run{'s'[: more > 1]}" if more > 0 else "")


def heat(bad: torch.Tensor) -> tuple[str, ...]:
    """Share of true elements on a grid of at most 16 x 32 cells, a digit 0..9 a cell (0 none, 9 all)."""
    mask = plane(bad).double()
    if not mask.numel():
        return ()
    rows, columns = min(HEAT_ROWS, mask.shape[0]), min(HEAT_COLUMNS, mask.shape[1])
    lines = []
    for part in torch.tensor_split(mask, rows, 0):
        cells = [float(cell.mean()) for cell in torch.tensor_split(part, columns, 1)]
        lines.append("".join(str(0 if c == 0 else max(1, int(c * 9))) for c in cells))
    return tuple(lines)
