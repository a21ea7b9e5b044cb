"""`@pl.jit`: functions specialised by their arguments, compiled once per specialisation."""

from __future__ import annotations

from typing import Any

__all__ = ["JITFunction", "jit"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'pypto.jit' has no attribute {name!r}")
    from . import decorator

    value = getattr(decorator, name)
    globals()[name] = value
    return value
