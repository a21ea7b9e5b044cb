"""The text block that shows a parser error to its author."""

from __future__ import annotations

import os
import sys
from typing import Any

from .exceptions import ParserError

_CONTEXT = 2
_TAB = 4
_SHORT = 50


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
