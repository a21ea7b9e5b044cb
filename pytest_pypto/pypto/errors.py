"""Base errors of the public API, and the checks that raise them."""

from __future__ import annotations

from .ir.span import Span


class Error(Exception):
    """An error the user can act on."""


class InternalError(RuntimeError):
    """A broken assumption inside the compiler."""


def check(condition: bool, message: str) -> None:
    """Raise `Error(message)` unless the condition holds."""
    if not condition:
        raise Error(message)


def internal_check(condition: bool, message: str) -> None:
    """Raise `InternalError(message)` unless the condition holds."""
    if not condition:
        raise InternalError(message)


def internal_check_span(condition: bool, message: str, span: Span) -> None:
    """Raise `InternalError` with the place unless the condition holds."""
    if not condition:
        raise InternalError(f"{span}: {message}" if span.is_valid() else message)
