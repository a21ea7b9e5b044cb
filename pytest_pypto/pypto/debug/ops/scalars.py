"""Scalar operands of tensor operators: converted to the element type before the operation."""

from __future__ import annotations

import math
import struct

from ...ir.dtypes import DataType
from ..dtypes import SETTLED, is_narrow_float, torch_name
from .table import Site, number


def as_element(site: Site, k: int, dtype: DataType | None) -> str:
    """The text of scalar operand `k` as an element of `dtype` would hold it."""
    operand = site.args[k]
    value = operand.constant
    if dtype is None:
        return operand.text
    if value is not None:
        return number(element_of(value, dtype))
    if operand.dtype is dtype or (operand.dtype is DataType.INDEX and dtype is DataType.INT64):
        return operand.text
    if dtype is DataType.FP32 and operand.dtype is not None:
        return operand.text
    if (dtype.is_float() and not is_narrow_float(dtype)) or dtype in (*SETTLED, DataType.UINT64):
        return f'_cast_scalar({operand.text}, "{dtype}")'
    return f"_scalar({operand.text}, {torch_name(dtype)})"


def element_of(value: int | float | bool, dtype: DataType) -> int | float | bool:
    """A constant as an element of `dtype` holds it: rounded to the float type, or truncated and wrapped."""
    if dtype is DataType.BOOL:
        return bool(value)
    if dtype.is_float():
        return _float_of(float(value), dtype)
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    bits = dtype.get_bit()
    low = 0 if dtype.is_unsigned_int() and bits < 64 else -(1 << (bits - 1))  # 64-bit words are held as signed ones
    return (int(value) - low) % (1 << bits) + low


def _float_of(value: float, dtype: DataType) -> float:
    if not math.isfinite(value):
        return value
    if dtype is DataType.FP16:
        try:
            rounded: float = struct.unpack("<e", struct.pack("<e", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
        return rounded
    if dtype is DataType.BF16:
        try:
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
        except OverflowError:
            return math.copysign(math.inf, value)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        narrow: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0]
        return narrow
    return value
