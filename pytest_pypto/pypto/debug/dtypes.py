"""The torch side of element types."""

from __future__ import annotations

from ..ir.dtypes import DataType
from .errors import UnsupportedOpError

_NATIVE = {
    DataType.FP16: "float16",
    DataType.FP32: "float32",
    DataType.BF16: "bfloat16",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.INDEX: "int64",
    DataType.UINT8: "uint8",
    DataType.BOOL: "bool",
}
_WIDENED = {DataType.UINT16: "int32", DataType.UINT32: "int64", DataType.UINT64: "int64"}
_STORAGE = {
    DataType.UINT16: ("uint16", "int16"),
    DataType.UINT32: ("uint32", "int32"),
    DataType.UINT64: ("uint64",),
    DataType.FP8E4M3FN: ("float8_e4m3fn",),
    DataType.FP8E5M2: ("float8_e5m2",),
    DataType.FP8E8M0: ("float8_e8m0fnu", "uint8"),
}
"""Other torch types an argument of a type may have: the native one, and the signed one of the same width."""

SETTLED = frozenset(
    {
        *(DataType.UINT16, DataType.UINT32, DataType.INT4, DataType.UINT4),
        *(DataType.FP8E4M3FN, DataType.FP8E5M2, DataType.FP8E8M0, DataType.FP4, DataType.HF8),
    }
)
"""Types whose values a result must be brought back to, because the torch type that holds them can hold more."""


def torch_name(dtype: DataType) -> str:
    """`torch.float32` for FP32; what holds the type when torch has no arithmetic for it.

    Raises:
        UnsupportedOpError: HF4, whose element format is not documented.
    """
    if dtype is DataType.HF4:
        raise UnsupportedOpError("element type hf4 is not supported by torch_codegen: its format is not documented")
    return "torch." + (_NATIVE.get(dtype) or _WIDENED.get(dtype) or "float32")


def accepted(dtype: DataType) -> tuple[str, ...]:
    """The torch types an argument of type `dtype` may have, the usual one first."""
    return (torch_name(dtype), *(f"torch.{name}" for name in _STORAGE.get(dtype, ())))


def is_odd(dtype: DataType | None) -> bool:
    """True when arguments of the type may come in another torch type than the one the script computes in."""
    return dtype in _STORAGE or dtype in SETTLED


def is_stored_otherwise(dtype: DataType | None) -> bool:
    """True when arguments of the type may come in a torch type that has no arithmetic."""
    return dtype in _STORAGE


def is_narrow_float(dtype: DataType | None) -> bool:
    """FP16 and BF16, which torch stores but products and sums must not accumulate in."""
    return dtype in (DataType.FP16, DataType.BF16)


def settle(text: str, dtype: DataType | None) -> str:
    """`text`, brought back to the values of `dtype` where that is needed."""
    return f'_held({text}, "{dtype}")' if dtype in SETTLED else text
