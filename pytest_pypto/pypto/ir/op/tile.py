"""Builders for operators on tiles."""

from __future__ import annotations

from .functions import namespace
from .values import cast_mode as resolve_cast_mode
from .values import compare_mode as resolve_gather_compare_cmp_mode
from .values import pad_value as normalize_pad_value

__all__, __getattr__, __dir__ = namespace(__name__, "tile")
__all__ += ["normalize_pad_value", "resolve_cast_mode", "resolve_gather_compare_cmp_mode"]
