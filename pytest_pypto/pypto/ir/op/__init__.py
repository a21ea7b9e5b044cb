"""Builders of operator calls: `pypto.ir.op.tensor`, `.tile`, `.system`, `.array`, imported on first use."""

from __future__ import annotations

from typing import Any

from ...lazy import import_module

_MODULES = ("tensor", "tile", "system", "array")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pypto.ir.op' has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
