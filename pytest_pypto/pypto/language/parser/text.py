"""The text being parsed: bounds on hostile input, lines, places, comments."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from ...ir.span import Span
from .diagnostics import ParserSyntaxError

MAX_CHARS = 8_000_000
MAX_LINE = 200_000
MAX_NESTING = 90
MAX_DIGITS = 640
"""Bounds checked before Python's own parser sees the text: its recursion is in C and depends on the stack."""

_BRACKETS = re.compile(r"""[()\[\]{}]|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""")
_RUNS = re.compile(r"(?:(?:\bnot\b|\blambda\b|\bawait\b)\s*:?\s*){60}|[-+~]{60}|(?:[-+~]\s){60}")
_STRING_OR_HASH = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\#""")
_LINE_BREAK = re.compile(r"\r\n|\r|\n")
"""Line breaks as Python's parser counts them; `str.splitlines` knows more."""
_DIGITS = re.compile(rf"[0-9A-Fa-f_]{{{MAX_DIGITS},}}")

_SHORTER = f"up to {MAX_DIGITS} digits and 59 operators in a row are accepted"
_SHOWN = 200
"""Characters of a line that the report of an unreadable text shows."""

SourceMap = Mapping[int, tuple[str, int, int]]


def check_bounds(text: str, filename: str) -> None:
    """Refuse text that Python's parser might not survive.

    Raises:
        ParserSyntaxError: too long, a line too long, too deeply nested, a NUL character, a number with too many digits.
    """
    if len(text) > MAX_CHARS:
        raise ParserSyntaxError(f"{filename} has {len(text)} characters; the parser accepts up to {MAX_CHARS}")
    if "\0" in text:
        raise refused(text, filename, text.index("\0"), "NUL character in the text", "is this a text file?")
    found = _DIGITS.search(text) or _RUNS.search(text)
    if found:
        raise refused(text, filename, found.start(), "number, name or chain of operators is too long", _SHORTER)
    _check_lines(text, filename)
    _check_nesting(text, filename)


def refused(text: str, filename: str, offset: int, message: str, hint: str) -> ParserSyntaxError:
    """The error for what stands at `offset` of a text that cannot be read, with its report attached."""
    line = text.count("\n", 0, offset) + 1
    start = text.rfind("\n", 0, offset) + 1
    shown = [_short(t) for t in _LINE_BREAK.split(text)[: line + 1]]
    error = ParserSyntaxError(message, Span(filename, line, offset - start + 1), hint, source_lines=shown)
    error.attach_report()
    return error


def line_of(text: str, number: int | None) -> str | None:
    """Line `number`, counted from 1, or None when there is none."""
    lines = _LINE_BREAK.split(text)
    return lines[number - 1] if number is not None and 1 <= number <= len(lines) else None


def _short(line: str) -> str:
    """A line as a report can show it."""
    shown = line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in shown)


def _check_lines(text: str, filename: str) -> None:
    start, deepest = 0, 4 * MAX_NESTING
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if stop - start > MAX_LINE:
            message = f"line has {stop - start} characters; the parser accepts up to {MAX_LINE}"
            raise refused(text, filename, start, message, "break the line inside its brackets")
        if text[start : start + deepest].isspace() and stop - start > deepest:
            raise refused(text, filename, start, f"indentation is deeper than {MAX_NESTING} levels", "split it")
        start = stop + 1


def _check_nesting(text: str, filename: str) -> None:
    if max(text.count("("), text.count("["), text.count("{")) <= MAX_NESTING // 3:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        token = found.group()
        if token in ("(", "[", "{"):
            depth += 1
            if depth > MAX_NESTING:
                message = f"brackets are nested deeper than {MAX_NESTING} levels"
                raise refused(text, filename, found.start(), message, "name the inner expressions")
        elif token in (")", "]", "}"):
            depth = max(0, depth - 1)


class Source:
    """Lines of a file, and the way from AST nodes to places in it.

    `line_offset` and `column_offset` are added for text that was cut out of a file and dedented. With a source map, a
    generated line stands for a place in another file.
    """

    def __init__(
        self,
        text: str,
        filename: str,
        line_offset: int = 0,
        column_offset: int = 0,
        source_map: SourceMap | None = None,
        file_lines: list[str] | None = None,
    ) -> None:
        self.text = text
        self.filename = filename
        self.lines = _LINE_BREAK.split(text)
        self.line_offset = line_offset
        self.column_offset = column_offset
        self.source_map = source_map
        self.file_lines = self.lines if file_lines is None else file_lines
        self._ascii = text.isascii()

    def span(self, node: ast.AST) -> Span:
        """The place of a node."""
        line, column, end_line, end_column = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        if not self._ascii:
            column, end_column = self._chars(line, column), self._chars(end_line, end_column)
        if self.source_map is not None and line in self.source_map:
            return self._mapped(line, column, end_line, end_column)
        down, right = self.line_offset, self.column_offset + 1
        return Span(self.filename, line + down, column + right, end_line + down, end_column + right)

    def span_at(self, line: int, column: int) -> Span:
        """The place of 0-based `column` in 1-based `line` of the text."""
        return Span(self.filename, line + self.line_offset, column + 1 + self.column_offset)

    def _chars(self, line: int, column: int) -> int:
        """AST columns count UTF-8 bytes; places count characters."""
        text = self.lines[line - 1] if 1 <= line <= len(self.lines) else ""
        return len(text.encode()[:column].decode(errors="replace"))

    def _mapped(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        assert self.source_map is not None
        filename, to_line, to_column = self.source_map[line]
        text = self.lines[line - 1]
        shift = to_column - 1 - (len(text) - len(text.lstrip()))
        end = (to_line, end_column + 1 + shift) if end_line == line else (-1, -1)
        return Span(filename, to_line, max(1, column + 1 + shift), *end)

    def lines_of(self, filename: str) -> list[str] | None:
        """Lines of the file a place lies in, for error reports."""
        return self.file_lines if filename == self.filename else file_lines(filename)


def file_lines(filename: str) -> list[str] | None:
    """Lines of a file, or None when it cannot be read."""
    import linecache

    return [line.rstrip("\n") for line in linecache.getlines(filename)] or None


def comments_of(source: Source, tree: ast.AST) -> dict[int, str]:
    """Comment text by line number: what follows `#`, without one leading blank."""
    if source.text.find("#", 1) < 0:
        return {}
    inside = _string_lines(tree) if '"""' in source.text or "'''" in source.text else frozenset()
    found: dict[int, str] = {}
    for number, line in enumerate(source.lines, 1):
        if "#" not in line or number in inside:
            continue
        for token in _STRING_OR_HASH.finditer(line):
            if token.group() == "#":
                text = line[token.end() :].rstrip()
                found[number] = text[1:] if text.startswith(" ") else text
                break
    return found


def _string_lines(tree: ast.AST) -> frozenset[int]:
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno:
            inside.update(range(node.lineno, node.end_lineno or node.lineno))
    return frozenset(inside)
