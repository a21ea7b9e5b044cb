"""What one lane holds of a tile, and the extents, offsets and types that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir import stmt as s
from ...ir.types import TileType
from ..device_ir import kernel_error

AXIS_NAMES = ("rows", "columns")


@dataclass(frozen=True, slots=True)
class Part:
    """Lane 0 holds cells `[0, half)` of `axis`, lane 1 those from `stride` on; the whole tile has `full` cells there.

    `stride` is `half` unless the boundary was rebalanced over a ragged valid extent.
    """

    axis: int
    full: int
    half: int
    stride: int

    @property
    def even(self) -> bool:
        """True when both lanes hold equally many of the whole tile's cells."""
        return self.half == self.stride and 2 * self.half == self.full


def halve(extent: int) -> int:
    """Cells of lane 0: half, rounded up."""
    return (extent + 1) // 2


@dataclass(frozen=True, slots=True)
class Lane:
    """How a body is divided: along `axis` (0 rows, 1 columns), by the run-time lane number `index`.

    `rebalanced` is the stride that replaces half the extent when every split tile comes from one ragged boundary.
    """

    axis: int
    index: e.Expr
    rebalanced: int = 0

    @property
    def mode(self) -> int:
        """Code of the split: 1 rows, 2 columns."""
        return self.axis + 1

    def part(self, extent: int) -> Part:
        """The part of a tile of `extent` cells on the split axis."""
        half = halve(extent)
        return Part(self.axis, extent, half, self.rebalanced or half)

    def start(self, stride: int) -> e.Expr:
        """First cell of this lane."""
        return ops.mul(self.index, e.index(stride))

    def offset(self, base: e.Expr, stride: int) -> e.Expr:
        """`base` moved to this lane's first cell."""
        return ops.add(base, self.start(stride))

    def valid(self, whole: e.Expr, part: Part) -> e.Expr:
        """This lane's valid extent on the split axis, given that of the whole tile; constant when both are equal."""
        if e.const_value(whole) == part.full and part.even:
            return e.index(part.half)
        limit = part.stride if part.stride != part.half else part.half
        most = ops.max_(whole, self.start(part.stride))
        return ops.min_(ops.sub(most, self.start(part.stride)), e.index(limit))


def constant(dim: e.Expr, what: str, stmt: s.Stmt) -> int:
    """A physical extent as an int.

    Raises:
        ValueError: it is known at run time only.
    """
    value = e.const_value(dim)
    if value is None:
        raise kernel_error(
            f"{what} has a run-time extent on the axis that is split between the vector lanes; load a constant box and "
            "state the run-time extent as its valid shape",
            stmt.span,
        )
    return value


def replaced(items: tuple[e.Expr, ...], at: int, item: e.Expr) -> tuple[e.Expr, ...]:
    """`items` with one element exchanged."""
    return (*items[:at], item, *items[at + 1 :])


def lane_type(tile: TileType, part: Part, lane: Lane) -> TileType:
    """The type of one lane's part of a tile: half the box, and the valid extent of this lane."""
    shape = replaced(tile.shape, part.axis, e.index(part.half))
    whole = tile.valid_shape
    valid = replaced(whole, part.axis, lane.valid(whole[part.axis], part))
    view = tile.tile_view
    full = all(_same_const(a, b) for a, b in zip(valid, shape, strict=True))
    if view is None:
        view = None if full else replace(tile.get_effective_tile_view(), valid_shape=valid)
    else:
        view = replace(view, valid_shape=None if full else valid)
    return TileType(shape, tile.dtype, None, view, tile.space)


def _same_const(a: e.Expr, b: e.Expr) -> bool:
    return a is b or (e.const_value(a) is not None and e.const_value(a) == e.const_value(b))


def window_axis(extents: tuple[e.Expr, ...], axis: int, stmt: s.Stmt) -> tuple[int, int]:
    """Axis of a window in tensor coordinates that a tile axis divides, and how many tile cells one step there is.

    A window of higher rank is flattened to rows and columns; rows are divided along its outermost axis that is not 1.

    Raises:
        ValueError: that axis is odd and carries more than one row per step.
    """
    if axis == 1 or len(extents) <= 2:
        return len(extents) - 2 + axis if len(extents) > 1 else 0, 1
    for at in range(len(extents) - 1):
        steps = e.const_value(extents[at])
        if steps == 1 and at < len(extents) - 2:
            continue
        inner = 1
        for dim in extents[at + 1 : -1]:
            inner *= constant(dim, "the window", stmt)
        if steps is None or (steps % 2 and inner > 1):
            raise kernel_error(
                f"a window of {steps if steps is not None else 'run-time'} planes of {inner} rows cannot be divided "
                "into two equal boxes for the vector lanes; make the outer extent even, or split by columns",
                stmt.span,
            )
        return at, inner
    raise AssertionError("a window has at least one axis")


Change = Callable[[e.Expr], e.Expr]


def in_tuple(arg: e.Expr, at: int, change: Change, stmt: s.Stmt) -> e.Expr:
    """A tuple operand with one element changed."""
    if not isinstance(arg, e.MakeTuple):
        raise kernel_error("expected a written-out list of extents or offsets", stmt.span)
    return e.MakeTuple(replaced(arg.elements, at, change(arg.elements[at])), arg.span)
