"""`pl.tile`: functions on tiles, the on-chip buffers."""

from __future__ import annotations

from ...ir.enums import MaskPattern as MaskPattern
from ...ir.types import MemRefType as MemRefType
from .functions import namespace

__all__, __getattr__, __dir__ = namespace(__name__, "tile")
