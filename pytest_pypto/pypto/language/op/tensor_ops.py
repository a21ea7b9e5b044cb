"""`pl.tensor`: functions on tensors in global memory."""

from __future__ import annotations

from .functions import namespace

__all__, __getattr__, __dir__ = namespace(__name__, "tensor")
