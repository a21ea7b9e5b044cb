"""`pl.<name>`, which take tensors, tiles or scalars."""

from __future__ import annotations

from .functions import namespace

__all__, __getattr__, __dir__ = namespace(__name__, "")
