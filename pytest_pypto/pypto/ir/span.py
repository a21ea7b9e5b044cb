"""Source places."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """A place in a source file; lines and columns are 1-based, -1 means unknown. Compared by identity."""

    filename: str
    begin_line: int
    begin_column: int
    end_line: int = -1
    end_column: int = -1

    def to_string(self) -> str:
        """`file:line:col`."""
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"

    def is_valid(self) -> bool:
        """True when line and column are known."""
        return self.begin_line > 0 and self.begin_column > 0

    @staticmethod
    def unknown() -> Span:
        """The place of things made by the compiler."""
        return UNKNOWN

    def __str__(self) -> str:
        return self.to_string()


UNKNOWN = Span("", -1, -1)
