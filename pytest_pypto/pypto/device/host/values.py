"""Values of the host program: tensors, task ids, arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...ir.dtypes import DataType
from ..machine.bind import BindError
from ..machine.dtypes import NUMPY, Array, DType
from ..machine.gm import GlobalBuffer, GmArg, dense_strides

_D = DataType
PTO_NAMES: Mapping[DataType, str] = {
    _D.BOOL: "i1",
    _D.INT8: "i8",
    _D.INT16: "i16",
    _D.INT32: "i32",
    _D.INT64: "i64",
    _D.INDEX: "index",
    _D.UINT8: "ui8",
    _D.UINT16: "ui16",
    _D.UINT32: "ui32",
    _D.UINT64: "ui64",
    _D.FP16: "f16",
    _D.BF16: "bf16",
    _D.FP32: "f32",
    _D.FP8E4M3FN: "f8e4m3fn",
    _D.FP8E5M2: "f8e5m2",
    _D.FP8E8M0: "f8e8m0",
}


def storage(dtype: DataType) -> DType:
    """The numpy type of an element type of the language.

    Raises:
        BindError: the machine has no storage for it.
    """
    name = PTO_NAMES.get(dtype)
    if name is None:
        known = ", ".join(str(d) for d in PTO_NAMES)
        raise BindError(f"the simulated device has no storage for element type {dtype}; it has {known}")
    return NUMPY[name]


@dataclass(frozen=True)
class TaskId:
    """The id of a submitted task; `number` None is the invalid id, which is no dependency."""

    number: int | None


INVALID = TaskId(None)


class HostTensor:
    """A tensor of the host program. `task` is the task whose result it is, for explicit dependencies on values."""

    __slots__ = ("arg", "dtype", "task")

    def __init__(self, arg: GmArg, dtype: DataType, task: int | None = None) -> None:
        self.arg, self.dtype, self.task = arg, dtype, task

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.arg.shape

    @property
    def root(self) -> GlobalBuffer:
        """The buffer it lies in."""
        return self.arg.root

    def array(self) -> Array:
        """The elements as a view."""
        return self.arg.array()

    def by(self, task: int | None) -> HostTensor:
        """The same tensor as the result of `task`."""
        return HostTensor(self.arg, self.dtype, task)

    def part(self, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> HostTensor:
        """A strided window, `offset` elements after the first."""
        arg = GmArg(self.arg.root, self.arg.offset + offset, shape, strides)
        return HostTensor(arg, self.dtype, self.task)

    @property
    def dense(self) -> bool:
        """True when the elements lie one after the other."""
        pairs = zip(self.arg.shape, self.arg.strides, dense_strides(self.arg.shape), strict=True)
        return all(a == b or n <= 1 for n, a, b in pairs)


def fresh(values: Array, dtype: DataType, name: str) -> HostTensor:
    """A new tensor with its own storage, filled with `values`."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return HostTensor(GlobalBuffer(flat, name, "created", values.shape).whole(), dtype)
