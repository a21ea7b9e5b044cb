"""`pl.system`: synchronisation, cross-core pipes, tasks."""

from __future__ import annotations

from typing import Final

from .functions import namespace

AUTO: Final = -1
"""Base of a reserved buffer that the compiler places."""

__all__, __getattr__, __dir__ = namespace(__name__, "system")
__all__ += ["AUTO"]
