"""One independent expression per operator of the oracle; `CASES` is read by `test_every_operator.py`."""

from __future__ import annotations

from . import broadcast, elementwise, indexed, moving, products, reductions, system
from .kit import CASES, Case, Example, Kit

__all__ = ["CASES", "Case", "Example", "Kit", "broadcast", "elementwise", "indexed", "moving", "products"]
__all__ += ["reductions", "system"]
