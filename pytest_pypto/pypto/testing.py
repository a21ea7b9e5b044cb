"""What tests of PyPTO itself need: forgetting the selected backend, and raising each kind of error on purpose."""

from __future__ import annotations

from .backend import reset_for_testing
from .errors import Error, InternalError

__all__ = ["raise_error", "raise_internal_error", "reset_for_testing"]


def raise_error(message: str) -> None:
    """Raise `pypto.Error`."""
    raise Error(message)


def raise_internal_error(message: str) -> None:
    """Raise `pypto.InternalError`."""
    raise InternalError(message)
