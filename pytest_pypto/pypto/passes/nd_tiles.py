"""Tiles of rank > 2 as two-dimensional ones: shapes, valid regions, windows and pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product as cartesian

from ..ir import expr as e
from ..ir import extents
from ..ir.dtypes import INDEX
from ..ir.types import TileType, TileView
from ._util import PassError
from .fold_scalars import fold_binary
from .integers import Analyzer

Dims = Sequence[e.Expr]


@dataclass(frozen=True)
class Flat:
    """What a tile of rank > 2 became.

    `dims` are its extents as the program sees them. With `columns` the pages lie side by side (behind a transposed
    view), else below each other. `pages` holds separate tiles, one per page; `lazy` makes them when they are needed.
    """

    dims: tuple[int, ...]
    columns: bool = False
    pages: tuple[e.Var, ...] = ()
    lazy: tuple[Callable[[], e.Var], ...] = ()

    def page(self, i: int) -> e.Var:
        """The tile of page i."""
        return self.pages[i] if self.pages else self.lazy[i]()

    def made(self) -> tuple[e.Var, ...]:
        """The tiles of all pages."""
        return self.pages or tuple(make() for make in self.lazy)


def arith(kind: type[e.BinaryExpr], a: e.Expr, b: e.Expr) -> e.Expr:
    """INDEX arithmetic, folded."""
    return fold_binary(kind(a, b, INDEX, a.span), Analyzer())


def static_shape(type_: TileType, like: e.IRNode | None) -> tuple[int, ...]:
    """The extents as numbers.

    Raises (PassError): one is not constant.
    """
    shape = e.static_dims(type_.shape)
    if shape is None:
        raise PassError(
            f"a tile needs constant extents, got {extents.text(type_.shape)}; cut the dimension into chunks or reshape",
            like,
        )
    return shape


def flat_shape(dims: Sequence[int]) -> tuple[int, int]:
    """[d0, ..., dk, L] as [d0 * ... * dk, L]."""
    rows = 1
    for extent in dims[:-1]:
        rows *= extent
    return rows, dims[-1]


def page_indices(dims: Sequence[int]) -> list[tuple[int, ...]]:
    """Positions on the batch axes, in storage order."""
    return list(cartesian(*(range(d) for d in dims[:-2])))


def flat_valid(type_: TileType, like: e.IRNode | None) -> tuple[e.Expr, e.Expr]:
    """The valid region in two dimensions.

    Raises (PassError): the valid cells are not the first rows.
    """
    shape, valid = type_.shape, type_.valid_shape
    rows: e.Expr = e.index(1)
    partial = False
    for extent, limit in zip(shape[:-1], valid[:-1], strict=True):
        full = extents.equal(extent, limit)
        if partial and not full:
            raise PassError(
                f"the valid region {extents.text(valid)} of a tile {extents.text(shape)} is not a run of rows; work on "
                "one page at a time",
                like,
            )
        rows = arith(e.Mul, rows, limit)
        partial = partial or e.const_value(extent) != 1
    return rows, valid[-1]


def flat_type(type_: TileType, like: e.IRNode | None) -> TileType:
    """The two-dimensional type with the same space, layout and padding."""
    shape = flat_shape(static_shape(type_, like))
    view = type_.tile_view
    valid = flat_valid(type_, like)
    if view is None:
        plain = TileType(shape, type_.dtype, None, None, type_.space)
        eff = plain.get_effective_tile_view()
        made = TileView(valid, None, None, eff.blayout, eff.slayout, eff.fractal)
    else:
        made = TileView(valid, None, None, view.blayout, view.slayout, view.fractal, view.pad, view.compact)
    return TileType(shape, type_.dtype, None, made, type_.space)


def fold_index(dims: Sequence[int], at: Dims) -> tuple[e.Expr, e.Expr]:
    """A position as row and column."""
    row: e.Expr = e.index(0)
    for extent, place in zip(dims[:-1], at[:-1], strict=True):
        row = arith(e.Add, arith(e.Mul, row, e.index(extent)), place)
    return row, at[-1]


def is_run_of_rows(dims: Sequence[int], window: Sequence[int], at: Dims) -> bool:
    """A window whose rows follow each other in storage."""
    inside = False
    for extent, size, place in zip(dims[:-1], window[:-1], at[:-1], strict=True):
        whole = size == extent and e.const_value(place) == 0
        if inside and not whole:
            return False
        inside = inside or size > 1
    return True
