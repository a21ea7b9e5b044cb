"""Workers: a device that stays open over many dispatches, with memory of its own."""

from __future__ import annotations

import ctypes
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from .compiled import _Callable, _dispatch_view
from .config import RunConfig
from .device_tensor import DeviceTensor, checked_shape
from .options import RunOptions
from .platforms import check_platform

if TYPE_CHECKING:
    from ..device import DeviceSettings

DEFAULT_RUNTIME = "tensormap_and_ringbuffer"


class Worker(ABC):
    """What every worker offers: memory, dispatch, registration, a life cycle."""

    __test__ = False

    @abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Allocate device memory; returns its address."""

    @abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Free memory of `malloc`."""

    @abstractmethod
    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy from host to device memory."""

    @abstractmethod
    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy from device to host memory."""

    @abstractmethod
    def alloc_tensor(
        self, shape: Sequence[int], dtype: torch.dtype, *, init: torch.Tensor | None = None, worker_id: int = 0
    ) -> DeviceTensor:
        """Allocate a tensor on the device, with the contents of `init` when given."""

    @abstractmethod
    def free_tensor(self, t: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor of `alloc_tensor`."""

    @abstractmethod
    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Dispatch an artifact once."""

    @abstractmethod
    def register(self, compiled: Any) -> RegistrationHandle:
        """Load an artifact for many dispatches."""

    @abstractmethod
    def init(self) -> None:
        """Open the device."""

    @abstractmethod
    def close(self) -> None:
        """Close the device."""

    def __enter__(self) -> Worker:
        self.init()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(eq=False)
class _Buffer:
    """Device memory: bytes at a stable address."""

    base: int
    raw: torch.Tensor
    view: torch.Tensor | None = None

    def tensor(self) -> torch.Tensor:
        """The memory as the tensor it was allocated for."""
        return self.raw if self.view is None else self.view


@dataclass(frozen=True, slots=True)
class Binding:
    """What a worker is bound to; two workers with one binding are interchangeable."""

    level: int
    platform: str
    device_id: int
    runtime: str


_active: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_chip_workers", default=())


class ChipWorker(Worker):
    """One chip of the simulator.

    Args:
        config: platform and device id; the defaults of `RunConfig` when omitted.
        level: 2, the only level of a single chip.
        runtime: wire name; artifacts made for another runtime are refused.
        enable_sdma: accepted for compatibility; the simulator has no separate copy engine.
        auto_init: open the device at once (the default).
        settings: settings of the simulated device for every run, sanitizers for instance.

    Raises:
        ValueError: another level. RuntimeError: a hardware platform.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = 2,
        runtime: str = DEFAULT_RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
        settings: DeviceSettings | None = None,
    ) -> None:
        if level != 2:
            raise ValueError(f"ChipWorker only supports level=2, got {level!r}")
        chosen = config if config is not None else RunConfig()
        self._binding = Binding(level, chosen.platform, chosen.device_id, runtime)
        check_platform("ChipWorker", chosen.arch, chosen.platform, chosen.platform)
        self._sdma = bool(enable_sdma)
        self._settings = settings
        self._buffers: dict[int, _Buffer] = {}
        self._raw: set[int] = set()
        self._freed: set[int] = set()
        self._registered: dict[int, RegistrationHandle] = {}
        self._keep: list[Any] = []
        self._initialized = False
        self._tokens: list[Token[tuple[ChipWorker, ...]]] = []
        if auto_init is None or auto_init:
            self.init()

    @property
    def level(self) -> int:
        """2."""
        return self._binding.level

    @property
    def platform(self) -> str:
        """The platform it is bound to."""
        return self._binding.platform

    @property
    def device_id(self) -> int:
        """The device it is bound to."""
        return self._binding.device_id

    @property
    def runtime(self) -> str:
        """Wire name of its runtime."""
        return self._binding.runtime

    @property
    def initialized(self) -> bool:
        """True between `init` and `close`."""
        return self._initialized

    @property
    def aicpu_dlopen_count(self) -> int:
        """Orchestrations loaded so far."""
        return len(self._keep)

    @property
    def host_dlopen_count(self) -> int:
        """Host libraries loaded so far; the simulator has none."""
        return 0

    def init(self) -> None:
        """Open the device; nothing happens when it is open."""
        self._initialized = True

    def close(self) -> None:
        """Free what is still allocated and close; nothing happens when it is closed."""
        if not self._initialized:
            return
        if self._raw:
            text = f"ChipWorker closed with {len(self._raw)} malloc() buffer(s) not freed; call free() on each"
            warnings.warn(text, ResourceWarning, stacklevel=2)
        self._buffers.clear()
        self._raw.clear()
        self._initialized = False

    def __enter__(self) -> ChipWorker:
        if any(w._binding == self._binding for w in _active.get()):
            where = f"{self.platform} device {self.device_id}"
            raise ValueError(f"a ChipWorker for {where} is already active in an enclosing scope")
        self.init()
        self._tokens.append(_active.set((*_active.get(), self)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _active.reset(self._tokens.pop())
        self.close()

    @staticmethod
    def current(
        *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """The innermost worker entered with `with` that has this binding, or None.

        Raises:
            RuntimeError: it exists but was made without SDMA, which is required.
        """
        wanted = Binding(level, platform, device_id, runtime)
        for worker in reversed(_active.get()):
            if worker._binding == wanted and worker._initialized:
                if require_sdma and not worker._sdma:
                    raise RuntimeError("the active ChipWorker was created without enable_sdma=True")
                return worker
        return None

    def _ready(self, operation: str, worker_id: int = 0) -> None:
        if not self._initialized:
            raise RuntimeError(f"ChipWorker.{operation}() requires an initialized ChipWorker; call init() first")
        if worker_id != 0:
            raise ValueError(f"ChipWorker only supports worker_id=0, got {worker_id!r}")

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
        self._freed.discard(buffer.base)
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
        self._freed.add(ptr)

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
        self._freed.add(t.data_ptr)

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

    def run(self, compiled: Any, *args: Any, config: RunConfig | None = None) -> Any:
        """Dispatch once on this worker's platform and device; a config contributes rings, threads and diagnostics.

        Raises:
            RuntimeError: the worker is closed. ValueError: another platform, runtime, or worker's tensor.
            TypeError: arguments that do not fit.
        """
        self._ready("run")
        if not isinstance(compiled, _Callable):
            raise TypeError(f"ChipWorker.run() takes a CompiledProgram first, got {type(compiled).__name__}")
        self._check_binding(compiled)
        for place, arg in enumerate(args):
            if isinstance(arg, DeviceTensor):
                self._live(arg, f"At position {place}: ")
        options = RunOptions() if config is None else _dispatch_view(config)
        bound = RunOptions(
            platform=self.platform,
            device_id=self.device_id,
            aicpu_thread_num=options.aicpu_thread_num,
            ring_task_window=options.ring_task_window,
            ring_heap=options.ring_heap,
            ring_dep_pool=options.ring_dep_pool,
            dfx=options.dfx,
        )
        if not any(k is compiled for k in self._keep):
            self._keep.append(compiled)
        return compiled._run(args, bound, self._settings)

    def _check_binding(self, compiled: _Callable) -> None:
        kind = type(compiled).__name__
        if compiled.platform != self.platform:
            raise ValueError(
                f"{kind}.platform='{compiled.platform}' does not match ChipWorker.platform='{self.platform}'; "
                "compile for the worker's platform, or make the worker with RunConfig(platform=compiled.platform)"
            )
        if compiled.runtime_name != self.runtime:
            raise ValueError(
                f"the artifact requires runtime='{compiled.runtime_name}' but ChipWorker was constructed with "
                f"runtime='{self.runtime}'; pass runtime='{compiled.runtime_name}' to ChipWorker"
            )

    def register(self, compiled: Any) -> RegistrationHandle:
        """Load an artifact now; the handle dispatches it. The same artifact gets the same number."""
        self._ready("register")
        self._check_binding(compiled)
        compiled.load()
        known = next((h for h in self._registered.values() if h.compiled is compiled), None)
        cid = known.cid if known is not None else len(self._registered)
        handle = RegistrationHandle(self, compiled, cid)
        self._registered.setdefault(cid, handle)
        return handle


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


class RegistrationHandle:
    """An artifact loaded on a worker."""

    def __init__(self, worker: ChipWorker, compiled: Any, cid: int) -> None:
        self._worker = worker
        self.compiled = compiled
        self.cid = cid
        self.closed = False

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Dispatch once.

        Raises:
            RuntimeError: after `unregister`, or when the worker is closed.
        """
        if self.closed or not self._worker.initialized:
            raise RuntimeError(f"registration {self.cid} has been unregistered or its worker closed; register again")
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        """Give this handle up; other handles of the same artifact stay."""
        self.closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unregister()
