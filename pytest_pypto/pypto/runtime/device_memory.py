"""Memory of a simulated chip: allocations with stable addresses, seen as bytes or as tensors."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .device_tensor import DeviceTensor, checked_shape


@dataclass(eq=False)
class _Buffer:
    """Device memory: bytes at a stable address."""

    base: int
    raw: torch.Tensor
    view: torch.Tensor | None = None

    def tensor(self) -> torch.Tensor:
        """The memory as the tensor it was allocated for."""
        return self.raw if self.view is None else self.view


class DeviceMemory:
    """The allocations of one worker. Subclasses say when it is open (`_ready`)."""

    def __init__(self) -> None:
        self._buffers: dict[int, _Buffer] = {}
        self._raw: set[int] = set()

    def _ready(self, operation: str, worker_id: int = 0) -> None:
        """Raise unless the worker is open and `worker_id` is its own."""
        raise NotImplementedError("subclasses of DeviceMemory say when they are open")

    def _release_all(self) -> None:
        """Free everything; what `malloc` gave and nobody freed is reported."""
        if self._raw:
            text = f"ChipWorker closed with {len(self._raw)} malloc() buffer(s) not freed; call free() on each"
            warnings.warn(text, ResourceWarning, stacklevel=4)
        self._buffers.clear()
        self._raw.clear()

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Allocate device memory.

        Raises:
            ValueError: not a positive int. RuntimeError: the worker is closed.
        """
        self._ready("malloc", worker_id)
        pointer = self._allocate(_positive(nbytes)).base
        self._raw.add(pointer)
        return pointer

    def _allocate(self, nbytes: int) -> _Buffer:
        raw = torch.empty(nbytes, dtype=torch.uint8)
        buffer = _Buffer(raw.data_ptr(), raw)
        self._buffers[buffer.base] = buffer
        return buffer

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free memory of `malloc`.

        Raises:
            ValueError: not an address that `malloc` returned.
        """
        self._ready("free", worker_id)
        if ptr not in self._raw:
            raise ValueError(f"{ptr!r} is no address of ChipWorker.malloc(), or it was freed already")
        self._raw.discard(ptr)
        self._buffers.pop(ptr, None)

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from host memory to an allocation.

        Raises:
            ValueError: not the base of a live allocation, or more bytes than it has.
        """
        self._ready("copy_to", worker_id)
        self._room(dst_dev_ptr, _positive(nbytes))
        ctypes.memmove(dst_dev_ptr, src_host_ptr, nbytes)

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from an allocation to host memory; errors as for `copy_to`."""
        self._ready("copy_from", worker_id)
        self._room(src_dev_ptr, _positive(nbytes))
        ctypes.memmove(dst_host_ptr, src_dev_ptr, nbytes)

    def _room(self, pointer: int, nbytes: int) -> None:
        buffer = self._buffers.get(pointer)
        if buffer is None:
            raise ValueError(f"copying requires the allocation base of a live allocation, got {pointer!r}")
        if nbytes > buffer.raw.numel():
            raise ValueError(f"cannot copy {nbytes} bytes, the allocation has {buffer.raw.numel()}")

    def alloc_tensor(
        self, shape: Sequence[int], dtype: torch.dtype, *, init: torch.Tensor | None = None, worker_id: int = 0
    ) -> DeviceTensor:
        """Allocate a tensor. Without `init` it holds NaN, or the smallest number of an integer type.

        Raises:
            TypeError, ValueError: a bad shape, or an `init` of another shape or dtype.
        """
        self._ready("alloc_tensor", worker_id)
        dims = checked_shape(shape)
        if not isinstance(dtype, torch.dtype):
            raise TypeError(f"dtype must be a torch.dtype, got {dtype!r}")
        if init is not None and (tuple(init.shape) != dims or init.dtype != dtype):
            raise ValueError(
                f"init must have shape={dims} dtype={dtype}, got shape={tuple(init.shape)} dtype={init.dtype}"
            )
        size = dtype.itemsize
        for dim in dims:
            size *= dim
        buffer = self._allocate(size)
        buffer.view = buffer.raw.view(dtype).view(dims)
        try:
            _fill(buffer.view, init)
        except BaseException:
            self._buffers.pop(buffer.base, None)
            raise
        return DeviceTensor(buffer.base, dims, dtype, buffer=buffer)

    def free_tensor(self, t: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor; freeing twice does nothing.

        Raises:
            ValueError: a handle whose address belongs to a newer allocation, or of another worker.
        """
        self._ready("free_tensor", 0)
        if worker_id != 0:
            raise ValueError(f"the tensor belongs to worker_id 0, not {worker_id!r}")
        live = self._buffers.get(t.data_ptr)
        if live is None:
            return
        if live is not t.buffer:
            raise ValueError(f"stale DeviceTensor: address {t.data_ptr:#x} belongs to a newer allocation")
        del self._buffers[t.data_ptr]

    def read_tensor(self, t: DeviceTensor) -> torch.Tensor:
        """A copy of a device tensor on the host."""
        self._ready("read_tensor")
        return self._live(t, "").clone()

    def _live(self, t: DeviceTensor, where: str) -> torch.Tensor:
        if t.buffer is None:
            raise TypeError(f"{where}a raw-pointer DeviceTensor cannot be dispatched; allocate it with alloc_tensor()")
        live = self._buffers.get(t.data_ptr)
        if live is None or live is not t.buffer:
            raise ValueError(f"{where}{t!r} is not a live allocation owned by this ChipWorker")
        return live.tensor()


def _positive(nbytes: int) -> int:
    if isinstance(nbytes, bool) or not isinstance(nbytes, int) or nbytes <= 0:
        raise ValueError(f"nbytes must be a positive int, got {nbytes!r}")
    return nbytes


def _fill(view: torch.Tensor, init: torch.Tensor | None) -> None:
    if init is not None:
        view.copy_(init.contiguous().cpu())
    elif view.dtype.is_floating_point and view.dtype.itemsize > 1:
        view.fill_(float("nan"))
    elif view.dtype is torch.bool:
        view.fill_(True)
    elif view.dtype.is_floating_point:
        view.view(torch.uint8).fill_(0xFF)
    else:
        view.fill_(torch.iinfo(view.dtype).min)
