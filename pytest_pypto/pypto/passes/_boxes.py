"""Boxed tiles: their bytes have fractal addresses only when the tile is made of whole boxes."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import expr as e
from ..ir.dtypes import DataType

_ROWS = 16
_ROW_BYTES = 32


def has_whole_boxes(shape: Sequence[e.Expr], dtype: DataType) -> bool:
    """True when a matrix is cut into boxes of 16 rows and 32 bytes without a rest, whichever axis runs first.

    Other tiles are kept row after row, so their bytes must not be read in another layout.
    """
    extents = e.static_dims(shape)
    if extents is None or len(extents) != 2:
        return False
    return extents[0] % _ROWS == 0 and extents[1] % box_columns(dtype) == 0


def box_columns(dtype: DataType) -> int:
    """Elements in a row of a box."""
    return _ROW_BYTES // max(dtype.get_byte(), 1)
