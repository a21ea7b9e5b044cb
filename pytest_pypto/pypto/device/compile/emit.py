"""Lines of Python source with indentation, fresh names and block counters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Emitter:
    """Collects the source of one kernel; `space` holds the objects that the source refers to by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self.depth = 1
        self.blocks = 0
        self._fresh = 0

    def line(self, text: str) -> None:
        """Add one line."""
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str = "v") -> str:
        """A name that is used nowhere else."""
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    def bind(self, prefix: str, value: Any) -> str:
        """Make `value` reachable from the source; gives its name there."""
        name = self.name(prefix)
        self.space[name] = value
        return name

    @contextlib.contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside are one level deeper."""
        self.depth += 1
        yield
        self.depth -= 1

    def open_block(self) -> int:
        """Start a counted block: adds the line that counts its executions."""
        block = self.blocks
        self.blocks += 1
        self.line(f"n[{block}] += 1")
        return block

    def source(self, header: list[str]) -> str:
        """The whole function."""
        return "\n".join([*header, *self.lines, ""])
