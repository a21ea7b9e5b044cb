"""Element types."""

from __future__ import annotations

from typing import ClassVar, Final


class DataType:
    """One element type; there is exactly one object per type, reachable as `DataType.<NAME>`.

    `str()` gives the canonical text (`fp32`, `bfloat16`); `.name` gives the member name (`FP32`, `BF16`).
    """

    __slots__ = ("_bits", "_code", "_ctype", "_text", "name")
    _by_name: ClassVar[dict[str, DataType]] = {}
    _by_text: ClassVar[dict[str, DataType]] = {}

    BOOL: ClassVar[DataType]
    INT4: ClassVar[DataType]
    INT8: ClassVar[DataType]
    INT16: ClassVar[DataType]
    INT32: ClassVar[DataType]
    INT64: ClassVar[DataType]
    INDEX: ClassVar[DataType]
    UINT4: ClassVar[DataType]
    UINT8: ClassVar[DataType]
    UINT16: ClassVar[DataType]
    UINT32: ClassVar[DataType]
    UINT64: ClassVar[DataType]
    FP4: ClassVar[DataType]
    FP8E4M3FN: ClassVar[DataType]
    FP8E5M2: ClassVar[DataType]
    FP8E8M0: ClassVar[DataType]
    FP16: ClassVar[DataType]
    FP32: ClassVar[DataType]
    BF16: ClassVar[DataType]
    HF4: ClassVar[DataType]
    HF8: ClassVar[DataType]
    TASK_ID: ClassVar[DataType]
    DEFAULT_CONST_INT: ClassVar[DataType]
    DEFAULT_CONST_FLOAT: ClassVar[DataType]

    name: str
    _bits: int
    _code: int
    _text: str
    _ctype: str

    def __new__(cls, *args: object, **kwargs: object) -> DataType:
        raise TypeError("DataType has fixed members; write pl.FP32, pl.INT32, ... instead of constructing one")

    @classmethod
    def _define(cls, name: str, bits: int, code: int, text: str, ctype: str) -> None:
        self = object.__new__(cls)
        self.name, self._bits, self._code, self._text, self._ctype = name, bits, code, text, ctype
        cls._by_name[name] = self
        cls._by_text[text] = self
        setattr(cls, name, self)

    def __init_subclass__(cls) -> None:
        raise TypeError("DataType cannot be subclassed")

    @classmethod
    def from_name(cls, name: str) -> DataType | None:
        """The member called `name` (`FP32`), or None."""
        return cls._by_name.get(name)

    @classmethod
    def from_string(cls, text: str) -> DataType | None:
        """The type whose `str()` is `text` (`fp32`), or None."""
        return cls._by_text.get(text)

    @classmethod
    def members(cls) -> tuple[DataType, ...]:
        """Every type, in the order of the language reference."""
        return tuple(cls._by_name.values())

    def get_bit(self) -> int:
        """Bits of one element."""
        return self._bits

    def get_byte(self) -> int:
        """Bytes of one element, rounded up: 1 for BOOL and the 4-bit types."""
        return (self._bits + 7) // 8

    def is_float(self) -> bool:
        """True for FP*, BF16 and HF*."""
        return self.name.startswith(("FP", "BF", "HF"))

    def is_int(self) -> bool:
        """True for signed, unsigned and INDEX."""
        return self.is_signed_int() or self.is_unsigned_int()

    def is_signed_int(self) -> bool:
        """True for INT* and INDEX."""
        return self.name.startswith("INT") or self.name == "INDEX"

    def is_unsigned_int(self) -> bool:
        """True for UINT*."""
        return self.name.startswith("UINT")

    def code(self) -> int:
        """Wire code."""
        return self._code

    def to_string(self) -> str:
        """The same as `str()`."""
        return self._text

    def to_c_type_string(self) -> str:
        """The C++ spelling used in readable host programs."""
        return self._ctype

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[type[DataType], str]]:
        return getattr, (DataType, self.name)

    def __copy__(self) -> DataType:
        return self

    def __deepcopy__(self, memo: object) -> DataType:
        return self


for _row in (
    ("BOOL", 1, 0x00, "bool", "bool"),
    ("INT4", 4, 0x10, "int4", "int4_t"),
    ("INT8", 8, 0x11, "int8", "int8_t"),
    ("INT16", 16, 0x12, "int16", "int16_t"),
    ("INT32", 32, 0x13, "int32", "int32_t"),
    ("INT64", 64, 0x14, "int64", "int64_t"),
    ("INDEX", 64, 0x15, "index", "int64_t"),
    ("UINT4", 4, 0x20, "uint4", "uint4_t"),
    ("UINT8", 8, 0x21, "uint8", "uint8_t"),
    ("UINT16", 16, 0x22, "uint16", "uint16_t"),
    ("UINT32", 32, 0x23, "uint32", "uint32_t"),
    ("UINT64", 64, 0x24, "uint64", "uint64_t"),
    ("FP4", 4, 0x30, "fp4", "float4_t"),
    ("FP8E4M3FN", 8, 0x31, "fp8e4m3fn", "float8_e4m3_t"),
    ("FP8E5M2", 8, 0x32, "fp8e5m2", "float8_e5m2_t"),
    ("FP8E8M0", 8, 0x36, "fp8e8m0", "float8_e8m0_t"),
    ("FP16", 16, 0x33, "fp16", "half"),
    ("FP32", 32, 0x34, "fp32", "float"),
    ("BF16", 16, 0x40, "bfloat16", "bfloat16_t"),
    ("HF4", 4, 0x41, "hf4", "hifloat4_t"),
    ("HF8", 8, 0x42, "hf8", "hifloat8_t"),
    ("TASK_ID", 64, 0x50, "task_id", "PTO2TaskId"),
):
    DataType._define(*_row)
DataType.DEFAULT_CONST_INT = DataType.INT64
DataType.DEFAULT_CONST_FLOAT = DataType.FP32


def integer_range(dtype: DataType) -> tuple[int, int] | None:
    """Least and greatest integer of an integer type or BOOL; None for other types."""
    if dtype.is_signed_int():
        return -(1 << dtype.get_bit() - 1), (1 << dtype.get_bit() - 1) - 1
    return (0, (1 << dtype.get_bit()) - 1) if dtype.is_unsigned_int() or dtype is DataType.BOOL else None


def fitting(value: int, dtype: DataType) -> int:
    """`value`, which has to be one of the values of an integer type (other types take any).

    Raises:
        ValueError: it lies outside; the message names the range and, where there is one, the value of the same bits.
    """
    limits = integer_range(dtype)
    if limits is None or limits[0] <= value <= limits[1]:
        return value
    low, high = limits
    message = f"{value} is no value of type {dtype.name}, which has {low} .. {high}"
    if dtype is not DataType.BOOL and -(high + 1) <= value < 1 << dtype.get_bit():
        message += f"; {(value - low) % (1 << dtype.get_bit()) + low} has the same bits"
    raise ValueError(message)


INDEX: Final = DataType.INDEX
BOOL: Final = DataType.BOOL
FP32: Final = DataType.FP32
INT32: Final = DataType.INT32
INT64: Final = DataType.INT64
TASK_ID: Final = DataType.TASK_ID
