"""Errors of the parser, and the text block that shows one to its author.

`str(error)` is the message alone. The place, the source line with a caret under the whole span, and the hint are
attached as a note, so that tracebacks and pytest show them; `ErrorRenderer` makes the same block on demand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from ...ir.span import Span

_CONTEXT = 2
_TAB = 4
_SHORT = 50


class ParserError(Exception):
    """Base of everything the parser refuses.

    Attributes:
        message: what is wrong, one sentence.
        span: place as a dict (filename, line, column, end_line, end_column; also file, begin_line, begin_column), or None.
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
        blocks = [ErrorRenderer(use_color=False).render(e) for e in (self, *self.related)]
        self.__notes__ = ["\n" + "\n\n".join(blocks)]


class ParserSyntaxError(ParserError):
    """The text is Python, but not a form of the language."""


class ParserTypeError(ParserError):
    """A type or annotation does not fit."""


class UndefinedVariableError(ParserError):
    """A name that nothing defines."""


class SSAViolationError(ParserError):
    """A second assignment where only one is allowed; `previous_span` is the place of the first."""

    def __init__(self, message: str, span: Any = None, previous_span: Any = None, **rest: Any) -> None:
        super().__init__(message, span, **rest)
        self.previous_span = span_dict(previous_span) if isinstance(previous_span, Span) else previous_span


class UnsupportedFeatureError(ParserError):
    """Python that the language does not have."""


class InvalidOperationError(ParserError):
    """An operator that does not exist, or refuses its operands."""


class ScopeIsolationError(ParserError):
    """A name of an isolated scope used outside."""


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


class ErrorRenderer:
    """Makes the text block of an error: message, place, source lines, caret, hint."""

    def __init__(self, use_color: bool | None = None) -> None:
        self.use_color = _terminal_has_color() if use_color is None else use_color

    def render(self, error: ParserError) -> str:
        """The block for `error` alone (see `ParserError.related` for the others)."""
        lines = [f"{self._paint('Error', '1;31')}: {error.message}"]
        span = error.span
        if span is not None and span.get("line", -1) > 0:
            lines += self._place(error, span)
        for label, text in (("help", error.hint), ("note", error.note)):
            if text:
                lines.append(f"   = {self._paint(label, '1;36')}: {text}")
        return "\n".join(lines)

    def _place(self, error: ParserError, span: dict[str, Any]) -> list[str]:
        line, column = span["line"], span["column"]
        out = [f"  --> {span['filename']}:{line}:{column}"]
        source = error.source_lines or []
        if not 1 <= line <= len(source):
            return out
        first, last = max(1, line - _CONTEXT), min(len(source), line + _CONTEXT)
        width = len(str(last))
        bar = f"{' ' * width} |"
        out.append(bar)
        for number in range(first, last + 1):
            text = source[number - 1]
            out.append(f"{number:>{width}} | {text.expandtabs(_TAB)}".rstrip())
            if number == line:
                out.append(f"{bar} {self._caret(text, column, span, error.message)}")
        out.append(bar)
        return out

    def _caret(self, text: str, column: int, span: dict[str, Any], message: str) -> str:
        start = max(column - 1, 0)
        end_line, end_column = span.get("end_line", -1), span.get("end_column", -1)
        if end_line == span["line"] and end_column > column:
            stop = min(end_column - 1, len(text))
        elif end_line > span["line"]:
            stop = len(text.rstrip())
        else:
            stop = _word_end(text, start)
        pad = len(text[:start].expandtabs(_TAB))
        marks = "^" * max(1, len(text[:stop].expandtabs(_TAB)) - pad)
        sentence = message.split(". ")[0]
        label = f" {sentence}" if len(sentence) < _SHORT else ""
        return " " * pad + self._paint(marks + label, "1;31")

    def _paint(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.use_color else text


def _word_end(text: str, start: int) -> int:
    stop = start
    while stop < len(text) and (text[stop].isalnum() or text[stop] in "_."):
        stop += 1
    return max(stop, start + 1)


def _terminal_has_color() -> bool:
    return "NO_COLOR" not in os.environ and sys.stderr.isatty()
