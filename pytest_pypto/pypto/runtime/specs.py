"""Small records of test harnesses: results, tensor and scalar specifications."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

_CTYPES: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_SHAPED = (torch.randn, torch.rand, torch.zeros, torch.ones)


@dataclass
class RunResult:
    """Outcome of one case."""

    __test__: ClassVar[bool] = False

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: dict[str, Any] | None = None

    def __str__(self) -> str:
        parts = [self.test_name] if self.test_name else []
        text = "PASS" if self.passed else "FAIL"
        if parts:
            text += f": {parts[0]}"
        if not self.passed and self.error:
            text += f" - {self.error}" if parts else f": {self.error}"
        return text + (f" ({self.execution_time:.2f}s)" if self.execution_time else "")


@dataclass
class TensorSpec:
    """A tensor to make: zeros, a constant, a given tensor, or what a function gives."""

    __test__: ClassVar[bool] = False

    name: str
    shape: Sequence[int]
    dtype: torch.dtype
    init_value: float | torch.Tensor | Callable[..., torch.Tensor] | None = None
    is_output: bool = False

    def create_tensor(self) -> torch.Tensor:
        """The tensor.

        Raises:
            TypeError: `init_value` is none of the accepted kinds.
        """
        value = self.init_value
        shape = list(self.shape)
        if value is None:
            return torch.zeros(shape, dtype=self.dtype)
        if isinstance(value, torch.Tensor):
            return value.to(self.dtype).clone()
        if isinstance(value, (int, float)):
            return torch.full(shape, value, dtype=self.dtype)
        if value in _SHAPED:
            return value(shape, dtype=torch.float32).to(self.dtype)
        if callable(value):
            return value().to(self.dtype)
        raise TypeError(
            f"init_value of '{self.name}' must be None, a number, a tensor or a function, got {type(value).__name__}"
        )


@dataclass
class ScalarSpec:
    """A number to pass, with its C type.

    Raises:
        ValueError: an unknown C type.
    """

    __test__: ClassVar[bool] = False

    name: str
    value: float
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in _CTYPES:
            raise ValueError(f"ctype must be one of {', '.join(_CTYPES)}, got {self.ctype!r}")

    def to_ctypes(self) -> Any:
        """The value as a ctypes scalar."""
        return _CTYPES[self.ctype](self.value)
