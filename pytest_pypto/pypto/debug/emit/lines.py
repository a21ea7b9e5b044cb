"""The lines of one function while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.span import Span

INDENT = "    "


class Lines:
    """Lines with their indentation and the source place each comes from."""

    def __init__(self, comments: bool = False) -> None:
        self._rows: list[str] = []
        self._depth = 0
        self._comments = comments
        self.positions: dict[int, str] = {}
        """Source place (`file:line:col`) by line number, counted from 0."""

    def add(self, text: str, span: Span | None = None) -> None:
        """Append a line at the current depth."""
        if span is not None and span.is_valid():
            self.positions[len(self._rows)] = str(span)
            if self._comments:
                text += f"  # {span.filename.replace(chr(92), '/').rsplit('/', 1)[-1]}:{span.begin_line}"
        self._rows.append(INDENT * self._depth + text)

    @contextmanager
    def block(self, header: str, span: Span | None = None) -> Iterator[None]:
        """A compound statement; an empty body becomes `pass`."""
        self.add(header, span)
        self._depth += 1
        start = len(self._rows)
        yield
        if len(self._rows) == start:
            self.add("pass")
        self._depth -= 1

    def __len__(self) -> int:
        return len(self._rows)

    def text(self) -> str:
        """All lines, each ended."""
        return "".join(f"{row}\n" for row in self._rows)
