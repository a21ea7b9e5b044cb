"""The handlers of the operators: importing the package registers them all."""

from __future__ import annotations

from . import elementwise, indexed, memory, products, reductions, scalars, shapes, system
from .table import OP_MAP

__all__ = ["OP_MAP", "elementwise", "indexed", "memory", "products", "reductions", "scalars", "shapes", "system"]
