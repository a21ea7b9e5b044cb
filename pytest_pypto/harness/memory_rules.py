"""Facts that the memory check needs about the machine and the operators; kept apart from the compiler's own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ALIGN = 32
"""Every on-chip buffer starts at a multiple of this many bytes."""

_KIB = 1024
_CAPACITY: Mapping[str, Mapping[str, int]] = {
    "a2a3": {
        "Vec": 184 * _KIB,
        "Mat": 512 * _KIB,
        "Left": 64 * _KIB,
        "Right": 64 * _KIB,
        "Acc": 128 * _KIB,
        "Bias": _KIB,
    },
    "a5": {
        "Vec": 240 * _KIB,
        "Mat": 512 * _KIB,
        "Left": 64 * _KIB,
        "Right": 64 * _KIB,
        "Acc": 256 * _KIB,
        "Bias": 4 * _KIB,
        "LeftScale": 4 * _KIB,
        "RightScale": 4 * _KIB,
    },
}


def capacity(platform: str) -> Mapping[str, int]:
    """Bytes of each on-chip memory of one core."""
    return _CAPACITY[platform.removesuffix("sim")]


_VIEWS = frozenset(
    {"slice", "reshape", "view", "reinterpret", "reinterpret_view", "transpose_view", "set_validshape", "get_slot"}
)
_IN_PLACE = {"assemble": 0, "write": 0, "scatter": 0, "mscatter": 0, "gather_row": 0, "fillpad_inplace": 0}
_IN_PLACE |= {"matmul_acc": 0, "batch_matmul_acc": 0, "gemv_acc": 0, "matmul_mx_acc": 0}
_NEVER = frozenset(
    {"recip", "rsqrt", "row_sum", "row_max", "row_min", "row_prod", "row_argmax", "row_argmin", "col_argmax"}
    | {"col_argmin", "move", "extract", "transpose", "concat", "fmod", "fmods", "mrgsort", "sort32", "fillpad_expand"}
    | {"gather", "gatherb", "gather_mask", "gather_compare", "ands", "ors", "xors"}
)
_SOME = {"sel": (0, 3), "sels": (0,), "row_expand_add": (1, 2)}


def _short(op: str) -> str:
    return op.removeprefix("tile.") if op.startswith("tile.") else ""


def is_view(op: str) -> bool:
    """Whether the result is another name for bytes of the first operand."""
    return _short(op) in _VIEWS


def in_place_operand(op: str) -> int | None:
    """Position of the operand that the operator updates and returns, or None."""
    return _IN_PLACE.get(_short(op))


def forbidden_operands(op: str, args: Sequence[Any]) -> frozenset[int]:
    """Positions of operands whose bytes the result must not share."""
    short = _short(op)
    if short in _NEVER:
        return frozenset(range(len(args)))
    if short in _SOME:
        return frozenset(_SOME[short])
    if short.startswith(("row_expand", "col_expand")):
        return frozenset({1})
    return frozenset()
