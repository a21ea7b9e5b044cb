"""Names of multi-device programs, conventionally imported as `pld`."""

from __future__ import annotations

from typing import Any

from ..ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from ..ir.types import CommCtxType, WindowBufferType
from .op.functions import function
from .typing import CommCtx, DistributedTensor


class _Space:
    """`pld.tensor`, `pld.tile`, `pld.system`: functions made on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        made = function(f"pld.{self._name}.{name}", f"{__name__}.{self._name}")
        setattr(self, name, made)
        return made


tensor, tile, system = _Space("tensor"), _Space("tile"), _Space("system")

_FUNCTIONS = {
    **dict.fromkeys(("alloc_window_buffer", "window"), "tensor"),
    **dict.fromkeys(("get_comm_ctx", "nranks", "rank", "world_size"), "system"),
    **dict.fromkeys(("remote_load", "remote_store"), "tile"),
}
__all__ = [
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "WindowBufferType",
    "system",
    "tensor",
    "tile",
    *_FUNCTIONS,
]


def __getattr__(name: str) -> Any:
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'pypto.language.distributed' has no attribute {name!r}")
    made = getattr(globals()[_FUNCTIONS[name]], name)
    globals()[name] = made
    return made
