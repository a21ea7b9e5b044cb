"""Errors of the parser.

The place, the source line with a caret under the whole span, and the hint are attached as a note, so that tracebacks
and pytest show them; `str(error)` is the message alone. Before Python 3.11, which knows no notes, the same text is part
of `str(error)`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ....ir.span import Span


class ParserError(Exception):
    """Base of everything the parser refuses.

    Attributes:
        message: what is wrong, one sentence.
        span: place as a dict (filename, line, column, end_line, end_column; also file, begin_line, begin_column).
        hint: what to do instead, or None.
        note: background, or None.
        source_lines: lines of the file the span lies in, or None.
        related: further errors found in the same text.
    """

    def __init__(
        self,
        message: str,
        span: Span | dict[str, Any] | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span_dict(span) if isinstance(span, Span) else span
        self.hint = hint
        self.note = note
        self.source_lines = list(source_lines) if source_lines is not None else None
        self.related: tuple[ParserError, ...] = ()
        self.poisoned = False
        """True for an error that only follows from another one already recorded."""

    def attach_report(self) -> None:
        """Put the rendered block, and those of `related`, where tracebacks show them."""
        from .renderer import ErrorRenderer

        blocks = [ErrorRenderer(use_color=False).render(e) for e in (self, *self.related)]
        report = "\n" + "\n\n".join(blocks)
        if sys.version_info >= (3, 11):
            self.__notes__ = [report]
        else:
            self.args = (f"{self.message}\n{report}",)


class ParserSyntaxError(ParserError):
    """The text is Python, but not a form of the language."""


class ParserTypeError(ParserError):
    """A type or annotation does not fit."""


class UndefinedVariableError(ParserError):
    """A name that nothing defines."""


class SSAViolationError(ParserError):
    """A second assignment where only one is allowed; `previous_span` is the place of the first."""

    def __init__(
        self,
        message: str,
        span: Span | dict[str, Any] | None = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
        previous_span: Any = None,
    ) -> None:
        super().__init__(message, span, hint, note, source_lines)
        self.previous_span = span_dict(previous_span) if isinstance(previous_span, Span) else previous_span


class UnsupportedFeatureError(ParserError):
    """Python that the language does not have."""


class InvalidOperationError(ParserError):
    """An operator that does not exist, or refuses its operands."""


class ScopeIsolationError(ParserError):
    """A name of an isolated scope used outside."""


def authors_error(caught: Any) -> bool:
    """For `__tracebackhide__`: pytest leaves our frames out of the traceback of an error that is the author's."""
    return bool(caught.errisinstance(ParserError))


def span_dict(span: Span) -> dict[str, Any]:
    """The public form of a place."""
    return {
        "filename": span.filename,
        "line": span.begin_line,
        "column": span.begin_column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "file": span.filename,
        "begin_line": span.begin_line,
        "begin_column": span.begin_column,
    }


def concise_error_message(exc: Exception, strip_trailing_span: bool = False) -> str:
    """The first line of an error's text; `strip_trailing_span` drops a place in brackets at its end."""
    lines = str(exc).strip().splitlines()
    text = lines[0] if lines else type(exc).__name__
    if strip_trailing_span and text.endswith("]"):
        head, bracket, place = text.rpartition(" [")
        if bracket and ":" in place:
            return head
    return text
