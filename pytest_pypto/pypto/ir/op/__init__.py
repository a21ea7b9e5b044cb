"""Builders of operator calls: `pypto.ir.op.tensor`, `.tile`, `.system`, `.array`, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("tensor", "tile", "system", "array")


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'pypto.ir.op' has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
