"""Negative tests: an error of the front end or the compiler, its class, its line, and words of its message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_pypto.failures import as_failure
from pytest_pypto.harness.errors import ArgumentError

_PLACE = re.compile(r"(?P<file>[^\s:\"']+\.py|<[^<>\s]+>):(?P<line>\d+)(?::(?P<column>\d+))?")


@dataclass
class Expected:
    """The error that was seen.

    Attributes:
        error: the exception, None until the block has ended.
    """

    error: BaseException | None = field(default=None)

    @property
    def line(self) -> int | None:
        """Line the error points at, None when it names none."""
        return line_of(self.error) if self.error is not None else None


@contextmanager
def expect_error(
    kind: str | type[BaseException] = Exception, *, line: int | None = None, keywords: str | Sequence[str] = ()
) -> Iterator[Expected]:
    """Fail unless the block raises the error that is described.

    Args:
        kind: class of the error, or the name of it or of one of its bases.
        line: line of the source file that the error must point at.
        keywords: words that the message must contain; case does not matter.

    Raises:
        AssertionError: nothing was raised, or something else.
        ArgumentError: `line` is no number, or `kind` is neither a class nor a name.
    """
    __tracebackhide__ = True
    if line is not None and type(line) is not int:
        raise as_failure(ArgumentError(f"pypto: line={line!r} is no line number; words go into keywords="))
    if not isinstance(kind, str) and not (isinstance(kind, type) and issubclass(kind, BaseException)):
        raise as_failure(ArgumentError(f"pypto: {kind!r} is no class of errors, and no name of one"))
    seen = Expected()
    try:
        yield seen
    except pytest.fail.Exception:
        raise  # a fixture used in a wrong way is not the error that was expected
    except Exception as exc:  # any class may be the expected one
        seen.error = exc
    if seen.error is None:
        raise as_failure(AssertionError(f"pypto: expected {_name(kind)}, but nothing was raised"))
    problems = _problems(seen.error, kind, line, [keywords] if isinstance(keywords, str) else list(keywords))
    if problems:
        shown = f"{type(seen.error).__name__}: {seen.error}"
        text = "pypto: " + "; ".join(problems) + f"\nthe error was\n{shown}"
        raise as_failure(AssertionError(text)) from None


def _name(kind: str | type[BaseException]) -> str:
    return kind if isinstance(kind, str) else kind.__name__


def _problems(
    error: BaseException, kind: str | type[BaseException], line: int | None, keywords: list[str]
) -> list[str]:
    found = []
    names = [cls.__name__ for cls in type(error).__mro__]
    fits = kind in names if isinstance(kind, str) else isinstance(error, kind)
    if not fits:
        found.append(f"expected {_name(kind)}, got {type(error).__name__}")
    at = line_of(error)
    if line is not None and at != line:
        found.append(f"expected the error at line {line}, it points at {'no line' if at is None else f'line {at}'}")
    missing = [word for word in keywords if word.lower() not in str(error).lower()]
    if missing:
        found.append(f"the message does not say {', '.join(map(repr, missing))}")
    return found


def line_of(error: Any) -> int | None:
    """Line an error points at: its span, otherwise the first `file:line` in its message."""
    span = getattr(error, "span", None)
    if isinstance(span, dict):
        found = span.get("begin_line") or span.get("line")
        return int(found) if found else None
    begin = getattr(span, "begin_line", None)
    if isinstance(begin, int) and begin > 0:
        return begin
    match = _PLACE.search(str(error))
    return int(match["line"]) if match else None
