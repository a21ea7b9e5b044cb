"""The pass manager under its public import name."""

from __future__ import annotations

from ..lazy import lazy_names

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassManager"]  # noqa: F822  lazy names
_BASE = __name__.rsplit(".", 2)[0]
__getattr__, __dir__ = lazy_names(
    __name__, {f"{_BASE}.passes.manager": "OptimizationStrategy PassDumpLevel PassManager"}, globals()
)
