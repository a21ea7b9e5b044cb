"""Type texts of the `.pto` dialect."""

from __future__ import annotations

from ...ir.dtypes import DataType
from ...ir.enums import CompactMode, MemorySpace
from ...ir.expr import Expr, const_value
from ...ir.types import TileType
from ..errors import CodegenError

_D = DataType
_ELEMENT = {
    _D.FP32: "f32",
    _D.FP16: "f16",
    _D.BF16: "bf16",
    _D.FP8E4M3FN: "f8E4M3FN",
    _D.FP8E5M2: "f8E5M2",
    _D.FP8E8M0: "f8E8M0FNU",
    _D.FP4: "f4E2M1FN",
    _D.HF8: "hf8",
    _D.HF4: "hf4",
    _D.INT64: "i64",
    _D.INT32: "i32",
    _D.INT16: "i16",
    _D.INT8: "i8",
    _D.INT4: "i4",
    _D.UINT64: "ui64",
    _D.UINT32: "ui32",
    _D.UINT16: "ui16",
    _D.UINT8: "ui8",
    _D.UINT4: "ui4",
    _D.BOOL: "i1",
    _D.INDEX: "index",
}
_LOC = {
    MemorySpace.Vec: "vec",
    MemorySpace.Mat: "mat",
    MemorySpace.Left: "left",
    MemorySpace.Right: "right",
    MemorySpace.Acc: "acc",
    MemorySpace.Bias: "bias",
    MemorySpace.LeftScale: "scaling",
    MemorySpace.RightScale: "scaling",
}


def element_text(dtype: DataType) -> str:
    """`f32`, `bf16`, `ui8`, `index`, ...

    Raises:
        CodegenError: a type that kernels cannot hold (task ids).
    """
    text = _ELEMENT.get(dtype)
    if text is None:
        raise CodegenError(f"values of type {dtype} cannot be used in a kernel; keep them in the host function")
    return text


def pointer_text(dtype: DataType) -> str:
    """`!pto.ptr<f32>`."""
    return f"!pto.ptr<{element_text(dtype)}>"


def tensor_view_text(rank: int, dtype: DataType) -> str:
    """`!pto.tensor_view<?x?xf32>`; extents are operands of the view, never part of the type."""
    return f"!pto.tensor_view<{'?x' * rank}{element_text(dtype)}>"


def window_text(extents: list[int | None], dtype: DataType) -> str:
    """`!pto.partition_tensor_view<64x96xf32>`; None prints as `?`."""
    dims = "".join(f"{'?' if d is None else d}x" for d in extents)
    return f"!pto.partition_tensor_view<{dims}{element_text(dtype)}>"


def tile_box(type_: TileType) -> tuple[int, int]:
    """Rows and columns of the physical tile; rank 1 counts as one row.

    Raises:
        CodegenError: an extent is not a constant, or the rank is above 2.
    """
    dims = [const_value(d) for d in type_.shape]
    if len(dims) > 2 or any(d is None for d in dims):
        raise CodegenError(
            f"a tile of shape {[str(d) for d in type_.shape]} has no fixed two-dimensional box; "
            "use constant extents (a partial tile is a valid_shape, not a smaller shape)"
        )
    fixed = [d for d in dims if d is not None]
    return (1, fixed[0]) if len(fixed) == 1 else (fixed[0], fixed[1])


def tile_valid(type_: TileType) -> tuple[Expr | int, Expr | int]:
    """Valid rows and columns; rank 1 counts as one row."""
    valid = type_.valid_shape
    return (1, valid[0]) if len(valid) == 1 else (valid[0], valid[1])


def tile_text(type_: TileType, valid: tuple[int, int] | None = None) -> str:
    """`!pto.tile_buf<loc=vec, ...>`; `valid` gives static valid extents, else they are operands (`?`).

    Raises:
        CodegenError: the memory space is not known.
    """
    if type_.memory_space is None or type_.memory_space not in _LOC:
        raise CodegenError(
            "a tile without an on-chip memory space reached code generation; run InferTileMemorySpace before it"
        )
    view = type_.get_effective_tile_view()
    rows, cols = tile_box(type_)
    v_row, v_col = ("?", "?") if valid is None else valid
    compact = ", compact=1" if view.compact is CompactMode.normal else ""
    return (
        f"!pto.tile_buf<loc={_LOC[type_.memory_space]}, dtype={element_text(type_.dtype)}, rows={rows}, cols={cols}, "
        f"v_row={v_row}, v_col={v_col}, blayout={view.blayout.name}, slayout={view.slayout.name}, "
        f"fractal={view.fractal}, pad={view.pad.value}{compact}>"
    )


def space_text(space: MemorySpace) -> str:
    """`#pto.address_space<vec>`."""
    return f"#pto.address_space<{_LOC[space]}>"
