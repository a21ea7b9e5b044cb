"""One case per error: its class, how the message starts, and the exact place."""

from __future__ import annotations

import pytest

from .error_cases_flow import LOOPS, SCOPES, STATEMENTS
from .error_cases_modules import CALLS, MODULES
from .error_cases_types import ANNOTATIONS, EXPRESSIONS, MEMREFS, SUBSCRIPTS, tile
from .marked import error_of, function, host, unmark


def _cases() -> list[object]:
    cases = [*ANNOTATIONS, *MODULES]
    for group in (EXPRESSIONS, SUBSCRIPTS, STATEMENTS, LOOPS, SCOPES):
        cases += [(cls, message, function(body)) for cls, message, body in group]
    cases += [(cls, message, host(body)) for cls, message, body in CALLS]
    cases += [(cls, message, tile(f"{text}, pl.Mem.Vec")) for cls, message, text in MEMREFS]
    return [pytest.param(*case, id=f"{i:03d}-{case[1][:40]}") for i, case in enumerate(cases)]


@pytest.mark.parametrize(("cls", "message", "source"), _cases())
def test_error_names_its_place(cls: str, message: str, source: str) -> None:
    clean, place = unmark(source)
    error = error_of(clean)
    assert (type(error).__name__, str(error)[: len(message)]) == (cls, message)
    assert error.span is not None
    got = tuple(error.span[key] for key in ("line", "column", "end_line", "end_column"))
    assert got == (place.line, place.column, place.end_line, place.end_column)
    assert error.span["filename"] == error.span["file"] == "user.py"
    assert error.related == ()


def test_every_hint_is_one_line() -> None:
    for case in _cases():
        error = error_of(unmark(case.values[2])[0])  # type: ignore[attr-defined]
        assert error.hint is None or "\n" not in error.hint
