"""Workers: a device that stays open over many dispatches, with memory of its own."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .compiled import _Callable, _dispatch_view
from .config import RunConfig
from .device_memory import DeviceMemory
from .device_tensor import DeviceTensor
from .options import RunOptions
from .platforms import check_platform
from .worker_base import Worker

if TYPE_CHECKING:
    from ..device import DeviceSettings

__all__ = ["ChipWorker", "RegistrationHandle", "Worker"]
DEFAULT_RUNTIME = "tensormap_and_ringbuffer"


@dataclass(frozen=True, slots=True)
class Binding:
    """What a worker is bound to; two workers with one binding are interchangeable."""

    level: int
    platform: str
    device_id: int
    runtime: str


_active: ContextVar[tuple[ChipWorker, ...]] = ContextVar("pypto_chip_workers", default=())


class ChipWorker(DeviceMemory, Worker):
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
        super().__init__()
        chosen = config if config is not None else RunConfig()
        self._binding = Binding(level, chosen.platform, chosen.device_id, runtime)
        check_platform("ChipWorker", chosen.arch, chosen.platform, chosen.platform)
        self._sdma = bool(enable_sdma)
        self._settings = settings
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
        self._release_all()
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
