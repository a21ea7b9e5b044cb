"""Reductions, and operators that repeat a row or column vector over a matrix."""

from __future__ import annotations

from .. import extents as x
from ..dtypes import FP32, DataType
from ..enums import TileLayout
from ..expr import const_value, index
from ..op_table import Inference, Rule
from ..types import ScalarType, TensorType, TileType, TileView, Type
from .common import VEC, Dims, axis, is_one, op, promote, require_dtype, require_same_dtype, tensor, tile

_MIN_TYPES = (DataType.INT16, DataType.INT32, DataType.FP16, FP32)
_ADD_TYPES = (DataType.INT8, DataType.INT16, DataType.INT32, DataType.FP16, FP32)
_ONE = index(1)


def _refuse_empty(i: Inference, valid: Dims) -> None:
    if any(const_value(v) == 0 for v in valid):
        i.fail(f"requires a valid region that is not empty, but got {x.text(valid)}")


# --- reductions ------------------------------------------------------------------------------------------------------


def _tensor_reduce(default_axis: int, arg: bool, allowed: tuple[DataType, ...]) -> Rule:
    def rule(i: Inference) -> Type:
        a = i.tensor(0)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        _refuse_empty(i, a.valid_shape)
        dtype, keep = DataType.INT32 if arg else a.dtype, i.kwargs.get("keep_dim", True)
        rank = len(a.shape)
        # A rank-1 tensor has no second-last axis: its only one is meant.
        k = axis(i, i.kwargs.get("axis", max(default_axis, -rank)), rank)
        one: Dims = (_ONE,) if keep else ()
        shape = (*a.shape[:k], *one, *a.shape[k + 1 :])
        if not shape:
            return ScalarType(dtype)
        return tensor(shape, dtype, (*a.valid_shape[:k], *one, *a.valid_shape[k + 1 :]))

    return rule


def _tile_reduce(rows: bool, arg: bool, allowed: tuple[DataType, ...]) -> Rule:
    def rule(i: Inference) -> Type:
        a = i.tile(0)
        if allowed:
            require_dtype(i, a.dtype, allowed)
        _refuse_empty(i, a.valid_shape)
        if i.has(1):
            _check_scratch(i, a, i.tile(1), rows, arg)
        k = len(a.shape) - 1 if rows else 0
        shape = (*a.shape[:k], _ONE, *a.shape[k + 1 :])
        valid = (*a.valid_shape[:k], _ONE, *a.valid_shape[k + 1 :])
        layout = TileLayout.col_major if rows and len(shape) == 2 else TileLayout.row_major
        return tile(shape, DataType.INT32 if arg else a.dtype, valid, view=TileView(blayout=layout))

    return rule


def _check_scratch(i: Inference, a: TileType, tmp: TileType, rows: bool, arg: bool) -> None:
    require_same_dtype(i, a.dtype, tmp.dtype, "tile and scratch")
    small = len(tmp.shape) != len(a.shape) or any(map(x.less, tmp.shape, a.shape))
    if small or (rows and arg and not x.all_equal(tmp.shape, a.shape)):
        size = "the shape" if arg else "at least the shape"
        i.fail(f"requires a scratch tile of {size} {x.text(a.shape)}, but got {x.text(tmp.shape)}")


_REDUCTIONS = (
    ("sum", "sum", ()),
    ("max", "maximum", ()),
    ("min", "minimum", _MIN_TYPES),
    ("prod", "product", ()),
    ("argmax", "position of the maximum (the lowest on ties)", ()),
    ("argmin", "position of the minimum (the lowest on ties)", ()),
)


def _reductions() -> None:
    for name, what, types in _REDUCTIONS:
        arg = name.startswith("arg")
        for side, default, over in (("row", -1, "the columns of each row"), ("col", -2, "the rows of each column")):
            rows = side == "row"
            allowed = types if rows else ()
            scratch = "tmp_tile:tile@Vec"
            if not rows and not arg:
                scratch = f"{scratch}?" if name == "sum" else ""
            op(
                f"tensor.{side}_{name}",
                "input:tensor",
                _tensor_reduce(default, arg, allowed),
                "axis:int=- keep_dim:bool=-",
                category="reduction",
                doc=f"{what} over {over}",
            )
            op(
                f"tile.{side}_{name}",
                f"tile:tile@Vec {scratch}",
                _tile_reduce(rows, arg, allowed),
                category="reduction",
                space=VEC,
                scratch=(1,) if scratch else (),
                no_alias=(-1,) if rows or arg else (),
                doc=f"{what} over {over}",
            )


# --- row and column vectors ------------------------------------------------------------------------------------------


def _check_row_vector(i: Inference, a: Dims, v: Dims) -> None:
    rows_differ = len(a) > 1 and len(v) > 1 and x.difference(a[-2], v[-2]) not in (0, None)
    if not v or not is_one(v[-1]) or rows_differ:
        i.fail(f"requires one number per row (shape [..., {_rows(a)}, 1]), but got {x.text(v)} for {x.text(a)}")


def _rows(a: Dims) -> str:
    return x.text(a[-2:-1])[1:-1] or "M"


def _check_column_vector(i: Inference, a: Dims, v: Dims) -> None:
    columns_differ = not v or not a or x.difference(a[-1], v[-1]) not in (0, None)
    if columns_differ or (len(v) > 1 and not is_one(v[-2])):
        i.fail(
            f"requires one number per column (shape [1, {x.text(a[-1:])[1:-1]}]), but got {x.text(v)} for {x.text(a)}"
        )


def _expand(rows: bool, same_dtype: bool = False) -> Rule:
    def rule(i: Inference) -> Type:
        a, v = i.shaped(0), i.shaped(1)
        if rows:
            _check_row_vector(i, a.shape, v.shape)
        elif isinstance(a, TensorType):
            _check_column_vector(i, a.shape, v.shape)
        if same_dtype:
            require_same_dtype(i, a.dtype, v.dtype)
            require_dtype(i, a.dtype, _ADD_TYPES)
        dtype = promote(a.dtype, v.dtype)
        if isinstance(a, TileType):
            return tile(a.shape, dtype, a.valid_shape, like=a)
        return tensor(a.shape, dtype)

    return rule


_EXPANDS = (
    ("", "{v} repeated"),
    ("_add", "x + {v}"),
    ("_sub", "x - {v}"),
    ("_mul", "x * {v}"),
    ("_div", "x / {v}"),
    ("_max", "the larger of x and {v}"),
    ("_min", "the smaller of x and {v}"),
    ("_expdif", "exp(x - {v})"),
)


def _row_and_column() -> None:
    for suffix, text in _EXPANDS:
        row, col = text.format(v="the row's number"), text.format(v="the column's number")
        add = suffix == "_add"
        target = "target" if not suffix else None
        op(
            f"tensor.row_expand{suffix}",
            f"{target or 'tensor'}:tensor row_vec:tensor",
            _expand(True, add),
            category="broadcast",
            doc=row,
        )
        op("tensor.col_expand" + suffix, "tensor:tensor col_vec:tensor", _expand(False), category="broadcast", doc=col)
        op(
            f"tile.row_expand{suffix}",
            f"{target or 'tile'}:tile@Vec row_vec:tile@Vec{' tmp:tile@Vec?' if add else ''}",
            _expand(True, add),
            category="broadcast",
            space=VEC,
            no_alias=(1, 2) if add else (1,),
            scratch=(2,) if add else (),
            doc=row,
        )
        op(
            f"tile.col_expand{suffix}",
            "target:tile@Vec col_tile:tile@Vec",
            _expand(False),
            category="broadcast",
            space=VEC,
            no_alias=(1,),
            doc=col,
        )


def _expands(i: Inference) -> Type:
    a, s = i.shaped(0), i.scalar(1)
    if isinstance(a, TensorType):
        return tensor(a.shape, a.dtype)
    return tile(a.shape, promote(a.dtype, s), a.valid_shape, like=a)


def register_all() -> None:
    """Add the records of this module."""
    _reductions()
    _row_and_column()
    doc = "the shape of target filled with a scalar"
    op("tensor.expands", "target:tensor scalar:scalar", _expands, category="broadcast", doc=doc)
    op("tile.expands", "target:tile@Vec scalar:scalar", _expands, category="broadcast", space=VEC, doc=doc)
