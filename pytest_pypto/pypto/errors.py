"""Base errors of the public API, and the checks that raise them."""

from __future__ import annotations

import sys

from .ir.span import Span


class Error(Exception):
    """An error the user can act on."""


class InternalError(RuntimeError):
    """A broken assumption inside the compiler."""


def attach_note(error: BaseException, text: str) -> None:
    """Add a paragraph to what a traceback shows of an error: a note, or part of the message before Python 3.11."""
    if sys.version_info >= (3, 11):
        error.add_note(text)
    else:
        error.args = (f"{error}\n{text}", *error.args[1:])


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
