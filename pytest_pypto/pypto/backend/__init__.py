"""Architectures: which one is selected, and what is true of it."""

from __future__ import annotations

from .instance import Backend, Backend910B, Backend950, get_backend_instance
from .kinds import BackendType
from .soc import Cluster, Core, Die, Mem, SoC
from .state import get_backend_type, is_backend_configured, reset_for_testing, selected_backend, set_backend_type

__all__ = [
    "Backend",
    "Backend910B",
    "Backend950",
    "BackendType",
    "Cluster",
    "Core",
    "Die",
    "Mem",
    "SoC",
    "get_backend_instance",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "selected_backend",
    "set_backend_type",
]
