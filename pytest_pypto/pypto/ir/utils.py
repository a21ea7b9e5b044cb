"""Helpers for code that builds IR by hand."""

from __future__ import annotations

from .builder import caller_span
from .dtypes import DataType
from .enums import CAST_MODES
from .expr import Expr, MakeTuple, make_tuple
from .scalar_ops import as_scalar
from .span import Span


def get_span(span: Span | None = None) -> Span:
    """`span`, or the caller's line."""
    return span if span is not None else caller_span()


def to_expr(value: int | float | bool | Expr, span: Span | None = None) -> Expr:
    """A number as a constant: ints INDEX, floats FP32."""
    return as_scalar(value, get_span(span))


def to_make_tuple(values: list[int | Expr], span: Span | None = None) -> MakeTuple:
    """A list of extents or offsets as an operand."""
    return make_tuple(values, get_span(span))


def resolve_cast_mode(mode: str | int) -> int:
    """The stored number of a rounding mode.

    Raises:
        ValueError: no such mode.
    """
    if isinstance(mode, int) and 0 <= mode < len(CAST_MODES):
        return mode
    if mode in CAST_MODES:
        return CAST_MODES.index(str(mode))
    raise ValueError(f"unknown rounding mode {mode!r}; one of {', '.join(CAST_MODES)}")


__all__ = ["DataType", "get_span", "resolve_cast_mode", "to_expr", "to_make_tuple"]
