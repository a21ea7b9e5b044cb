"""Bytes of tiles, tensors and windows."""

from __future__ import annotations

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import scalar_ops as ops
from ...ir.dtypes import DataType
from ...ir.enums import MemorySpace, TileLayout
from ...ir.types import TensorType, TileType


def bytes_of(count: int, dtype: DataType) -> int:
    """Bytes of `count` elements; types below one byte are packed."""
    return (
        (count * dtype.get_bit() + 7) // 8
        if dtype.get_bit() < 8 and dtype is not DataType.BOOL
        else count * dtype.get_byte()
    )


def padded(n: int, multiple: int) -> int:
    """`n` rounded up to a multiple."""
    return -(-n // multiple) * multiple


def tile_size(tile: TileType, handler: Handler) -> int:
    """Bytes a tile takes: its physical shape, with accumulator rows padded to the box; 0 when a shape is symbolic."""
    dims = e.static_dims(tile.shape)
    if dims is None:
        return 0
    count = 1
    for i, extent in enumerate(dims):
        rows = tile.space is MemorySpace.Acc and i == len(dims) - 2
        count *= padded(extent, handler.acc_row_multiple(tile.dtype)) if rows else extent
    return bytes_of(count, tile.dtype)


def tensor_size(tensor: TensorType) -> int:
    """Bytes of a tensor; 0 when its shape is symbolic."""
    dims = e.static_dims(tensor.shape)
    if dims is None:
        return 0
    count = 1
    for extent in dims:
        count *= extent
    return bytes_of(count, tensor.dtype)


def element_strides(type_: TensorType | TileType) -> tuple[e.Expr, ...]:
    """Elements from one index to the next, per axis; rows of columns for a column-major tile without boxes."""
    if isinstance(type_, TensorType) and type_.tensor_view is not None and type_.tensor_view.stride:
        return type_.tensor_view.stride
    strides: list[e.Expr] = []
    shape = type_.shape
    if isinstance(type_, TileType) and type_.get_effective_tile_view().blayout is TileLayout.col_major:
        order = range(len(shape))
    else:
        order = range(len(shape) - 1, -1, -1)
    step: e.Expr = e.index(1)
    placed: dict[int, e.Expr] = {}
    for axis in order:
        placed[axis] = step
        step = times(step, shape[axis])
    strides = [placed[i] for i in range(len(shape))]
    return tuple(strides)


def is_boxed(type_: TileType) -> bool:
    """True for tiles stored in fractal boxes."""
    return type_.get_effective_tile_view().slayout is not TileLayout.none_box


def times(a: e.Expr, b: e.Expr) -> e.Expr:
    """a * b, folded where both are constant or one is 0 or 1."""
    x, y = e.const_value(a), e.const_value(b)
    if x is not None and y is not None:
        return e.index(x * y)
    if x == 0 or y == 0:
        return e.index(0)
    return b if x == 1 else a if y == 1 else ops.mul(a, b)


def plus(a: e.Expr, b: e.Expr) -> e.Expr:
    """a + b, folded where both are constant or one is 0."""
    x, y = e.const_value(a), e.const_value(b)
    if x is not None and y is not None:
        return e.index(x + y)
    return b if x == 0 else a if y == 0 else ops.add(a, b)


def window_offset(type_: TensorType | TileType, offsets: tuple[e.Expr, ...]) -> e.Expr:
    """Byte offset of the first element of a window."""
    total: e.Expr = e.index(0)
    for offset, stride in zip(offsets, element_strides(type_), strict=False):
        total = plus(total, times(offset, stride))
    bits = type_.dtype.get_bit()
    if bits < 8:
        value = e.const_value(total)
        return e.index(value * bits // 8) if value is not None else ops.floordiv(times(total, e.index(bits)), 8)
    return times(total, e.index(type_.dtype.get_byte()))


def window_size(type_: TensorType | TileType, extents: tuple[e.Expr, ...]) -> int:
    """Bytes from the first to the last element of a window; 0 when something is symbolic."""
    dims, strides = e.static_dims(extents), e.static_dims(element_strides(type_))
    if dims is None or strides is None or len(dims) != len(strides):
        return 0
    last = sum((n - 1) * s for n, s in zip(dims, strides, strict=True) if n > 0)
    return bytes_of(last + 1, type_.dtype)
