"""Builders for synchronisation, pipes and tasks."""

from __future__ import annotations

from .functions import namespace

__all__, __getattr__, __dir__ = namespace(__name__, "system")
