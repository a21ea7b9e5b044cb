"""The lines of one function while they are written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from ...ir.span import Span

INDENT = "    "


_WORD = re.compile(r"[A-Za-z_]\w*")


class Lines:
    """Lines with their indentation and the source place each comes from."""

    def __init__(self, comments: bool = False) -> None:
        self._rows: list[str] = []
        self._depth = 0
        self._comments = comments
        self._places: dict[int, str] = {}
        self._droppable: dict[int, str] = {}
        self._kept: list[int] = []

    def add(self, text: str, span: Span | None = None, only_for: str | None = None) -> None:
        """Append a line at the current depth. A line `only_for` a name is left out when no other line mentions it."""
        if only_for is not None:
            self._droppable[len(self._rows)] = only_for
        if span is not None and span.is_valid():
            self._places[len(self._rows)] = str(span)
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
        used = Counter(w for row in self._rows for w in set(_WORD.findall(row.split("#", 1)[0])))
        unused = {k for k, name in self._droppable.items() if used[name] == 1}
        self._kept = [k for k in range(len(self._rows)) if k not in unused]
        return "".join(f"{self._rows[k]}\n" for k in self._kept)

    @property
    def positions(self) -> dict[int, str]:
        """Source place (`file:line:col`) by line of the text, counted from 0."""
        return {n: self._places[k] for n, k in enumerate(self._kept) if k in self._places}
