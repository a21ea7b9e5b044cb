"""What every worker offers, whatever it drives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from .config import RunConfig
from .device_tensor import DeviceTensor

if TYPE_CHECKING:
    from .worker import RegistrationHandle


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
