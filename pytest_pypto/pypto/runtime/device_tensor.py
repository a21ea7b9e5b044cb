"""Handles of device memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch


@runtime_checkable
class DeviceBuffer(Protocol):
    """The allocation behind a `DeviceTensor`."""

    base: int

    def tensor(self) -> torch.Tensor:
        """The memory as a tensor."""
        ...


def checked_shape(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape of positive ints.

    Raises:
        ValueError: empty, or an extent that is not positive. TypeError: an extent that is no int.
    """
    dims = tuple(shape)
    if not dims:
        raise ValueError("shape must be non-empty")
    for dim in dims:
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"shape must contain ints, got {dim!r} in {dims!r}")
    if any(dim <= 0 for dim in dims):
        raise ValueError(f"shape must have only positive dimensions, got {dims!r}")
    return dims


@dataclass(frozen=True, eq=False)
class DeviceTensor:
    """A tensor that stays on a device: pointer, shape and torch dtype.

    It is never uploaded or read back by a dispatch, belongs to the worker that allocated it, and is freed explicitly.

    Raises:
        ValueError: a pointer that is no positive int, a shape that is empty or not positive, a buffer elsewhere.
        TypeError: extents that are no ints, a dtype that is no torch dtype, a buffer that is no buffer.
    """

    data_ptr: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    buffer: DeviceBuffer | None = None

    def __init__(
        self, data_ptr: int, shape: Sequence[int], dtype: torch.dtype, *, buffer: DeviceBuffer | None = None
    ) -> None:
        if isinstance(data_ptr, bool) or not isinstance(data_ptr, int) or data_ptr <= 0:
            raise ValueError(f"data_ptr must be a positive int, got {data_ptr!r}")
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype must be a torch.dtype, got {dtype!r}")
        if buffer is not None:
            base = getattr(buffer, "base", None)
            if isinstance(base, bool) or not isinstance(base, int) or not callable(getattr(buffer, "tensor", None)):
                raise TypeError(f"buffer must have an int .base and a callable .tensor, got {buffer!r}")
            if base != data_ptr:
                raise ValueError(f"buffer.base {base:#x} differs from data_ptr {data_ptr:#x}")
        put = object.__setattr__
        put(self, "data_ptr", data_ptr)
        put(self, "shape", checked_shape(shape))
        put(self, "dtype", dtype)
        put(self, "buffer", buffer)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceTensor) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, tuple[int, ...], torch.dtype]:
        return self.data_ptr, self.shape, self.dtype

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr={self.data_ptr:#x}, shape={self.shape}, dtype={self.dtype})"


@dataclass(frozen=True)
class StackedDeviceTensor:
    """One shard per chip, seen as one tensor whose leading axis is the chip.

    Raises:
        ValueError: rank below 2, shards or worker ids that do not match. TypeError: a shard that is no `DeviceTensor`.
    """

    shards: tuple[DeviceTensor, ...]
    full_shape: tuple[int, ...]
    worker_ids: tuple[int, ...]

    def __init__(self, shards: Sequence[DeviceTensor], full_shape: Sequence[int], worker_ids: Sequence[int]) -> None:
        shape = checked_shape(full_shape)
        if len(shape) < 2:
            raise ValueError(f"a stacked tensor needs rank 2 or more, got shape {shape}")
        for shard in shards:
            if not isinstance(shard, DeviceTensor):
                raise TypeError(f"shards must be DeviceTensor objects, got {shard!r}")
        if len(shards) != shape[0] or len(worker_ids) != shape[0] or len(set(worker_ids)) != len(worker_ids):
            raise ValueError(
                f"shape {shape} needs {shape[0]} shards on distinct workers, got {len(shards)} shards and "
                f"worker ids {list(worker_ids)}"
            )
        if any(s.shape != shape[1:] or s.dtype != shards[0].dtype for s in shards):
            raise ValueError(f"every shard must have shape {shape[1:]} and one dtype, got {[s.shape for s in shards]}")
        put = object.__setattr__
        put(self, "shards", tuple(shards))
        put(self, "full_shape", shape)
        put(self, "worker_ids", tuple(worker_ids))

    @property
    def shape(self) -> tuple[int, ...]:
        """The full shape."""
        return self.full_shape

    @property
    def dtype(self) -> torch.dtype:
        """Element type of every shard."""
        return self.shards[0].dtype

    def __getitem__(self, key: Any) -> DeviceTensor:
        """Shard `key`; only whole shards can be taken.

        Raises:
            IndexError: outside the tensor, or no leading index. TypeError: a leading index that is no int.
            ValueError: part of a shard.
        """
        parts = list(key) if isinstance(key, tuple) else [key]
        if parts.count(Ellipsis) > 1:
            raise IndexError("an index can have one ellipsis")
        if not parts or parts[0] is Ellipsis:
            raise IndexError("the leading index, which names the shard, is missing")
        first, rest = parts[0], [p for p in parts[1:] if p is not Ellipsis]
        if isinstance(first, bool) or not isinstance(first, int):
            raise TypeError(f"the leading index must be an int, got {first!r}")
        if not -len(self.shards) <= first < len(self.shards):
            raise IndexError(f"shard {first} is outside 0..{len(self.shards) - 1}")
        if len(rest) > len(self.full_shape) - 1:
            raise IndexError(f"too many indices for shape {self.full_shape}")
        for part, extent in zip(rest, self.full_shape[1:], strict=False):
            if not isinstance(part, slice) or part.indices(extent) != (0, extent, 1):
                raise ValueError(f"only whole shards can be taken, got index {part!r} for an extent of {extent}")
        return self.shards[first]
