"""`pl.prefetch`: asynchronous prefetches into the cache."""

from __future__ import annotations

from .functions import namespace

__all__, __getattr__, __dir__ = namespace(__name__, "prefetch")
