"""Scalar operators on IR expressions, under the module name users import."""

from __future__ import annotations

__all__ = [
    *("abs_", "add", "and_", "bit_and", "bit_not", "bit_or", "bit_shift_left", "bit_shift_right", "bit_xor", "cast"),
    *("eq", "floordiv", "ge", "gt", "le", "lt", "max_", "min_", "mod", "mul", "ne", "neg", "not_", "or_", "pow"),
    *("sub", "truediv"),
]
