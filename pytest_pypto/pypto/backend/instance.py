"""Backend objects: the queries of the public interface, answered from the architecture's record."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import ClassVar

from ..ir.enums import CoreType, MemorySpace
from .handler import VEC_ALIGN, Handler, handler_for
from .kinds import BackendType
from .soc import Cluster, Core, Die, Mem, SoC

_CUBE_SPACES = (
    *(MemorySpace.Mat, MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias),
    *(MemorySpace.LeftScale, MemorySpace.RightScale),
)


def _soc(handler: Handler) -> SoC:
    def mems(*spaces: MemorySpace) -> list[Mem]:
        return [Mem(s, handler.capacity[s], VEC_ALIGN) for s in spaces if s in handler.capacity]

    cube = Core(CoreType.CUBE, mems(*_CUBE_SPACES))
    vector = Core(CoreType.VECTOR, mems(MemorySpace.Vec))
    return SoC(Die(Cluster({cube: 1, vector: 2}), handler.clusters_per_die), handler.dies)


class Backend:
    """One architecture as the public interface shows it; `get_backend_instance(type)` gives one."""

    backend_type: ClassVar[BackendType]
    _made: ClassVar[dict[type, Backend]] = {}

    def __init__(self, *args: object, **kwargs: object) -> None:
        if type(self) is Backend:
            raise TypeError("Backend has no instances of its own; use Backend910B.instance() or Backend950.instance()")
        if args or kwargs:
            raise TypeError(f"{type(self).__name__}() takes no arguments")
        self._handler = handler_for(self.backend_type)
        self.soc = _soc(self._handler)

    def get_type_name(self) -> str:
        """The name of the architecture, such as `Ascend910B`."""
        return self.backend_type.name

    def get_handler(self) -> Handler:
        """The facts that passes and code generation read."""
        return self._handler

    def get_mem_size(self, mem_type: MemorySpace) -> int:
        """Bytes of one memory space of a core.

        Raises:
            ValueError: the architecture has no such on-chip memory.
        """
        size = self._handler.limit(mem_type)
        if size is None:
            known = ", ".join(s.name for s in self._handler.capacity)
            raise ValueError(f"{self.get_type_name()} has no on-chip memory {mem_type.name}; it has {known}")
        return size

    def get_core_count(self, core_type: CoreType) -> int:
        """Cores of one kind on the whole chip."""
        return sum(n for core, n in self.soc.cores().items() if core.core_type == core_type)

    def find_mem_path(self, from_mem: MemorySpace, to_mem: MemorySpace) -> list[MemorySpace]:
        """The shortest chain of copies from one space to another, both ends included; empty when there is none."""
        before: dict[MemorySpace, MemorySpace | None] = {from_mem: None}
        queue = deque([from_mem])
        while queue:
            at = queue.popleft()
            if at is to_mem:
                return _trace(before, at)
            for nxt in sorted(self._handler.paths.get(at, ()), key=lambda s: s.value):
                if nxt not in before:
                    before[nxt] = at
                    queue.append(nxt)
        return []

    def export_to_file(self, path: str) -> None:
        """Write the description to a JSON file."""
        sizes = {space.name: size for space, size in self._handler.capacity.items()}
        cores = {kind.name: self.get_core_count(kind) for kind in CoreType}
        record = {"schema": 1, "backend_type": self.get_type_name(), "memory": sizes, "cores": cores}
        Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @staticmethod
    def import_from_file(path: str) -> Backend:
        """The backend that a file of `export_to_file` describes.

        Raises:
            ValueError: not such a file, or its numbers are not those of the architecture it names.
        """
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            backend = get_backend_instance(BackendType[record["backend_type"]])
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a backend description written by export_to_file: {error!r}") from None
        known = {space.name: size for space, size in backend.get_handler().capacity.items()}
        if record.get("memory") != known:
            named = record["backend_type"]
            raise ValueError(f"{path}: memory sizes {record.get('memory')} differ from those of {named}: {known}")
        return backend


def _trace(before: dict[MemorySpace, MemorySpace | None], end: MemorySpace) -> list[MemorySpace]:
    path: list[MemorySpace] = []
    at: MemorySpace | None = end
    while at is not None:
        path.append(at)
        at = before[at]
    return path[::-1]


class Backend910B(Backend):
    """The a2a3 family."""

    backend_type = BackendType.Ascend910B

    @staticmethod
    def instance() -> Backend910B:
        """The one object of this class."""
        found = Backend._made.setdefault(Backend910B, Backend910B())
        assert isinstance(found, Backend910B)
        return found


class Backend950(Backend):
    """The a5 family."""

    backend_type = BackendType.Ascend950

    @staticmethod
    def instance() -> Backend950:
        """The one object of this class."""
        found = Backend._made.setdefault(Backend950, Backend950())
        assert isinstance(found, Backend950)
        return found


def get_backend_instance(backend_type: BackendType) -> Backend:
    """The backend object of an architecture.

    Raises:
        TypeError: not a `BackendType`.
    """
    handler_for(backend_type)
    return Backend910B.instance() if backend_type is BackendType.Ascend910B else Backend950.instance()
