"""Performance hints that passes give while they run; the pipeline collects them with its other diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..ir.span import UNKNOWN, Span
from ..logs import child_log
from .diagnostic_types import Diagnostic, DiagnosticSeverity

_log = child_log("passes")
_sink: ContextVar[list[Diagnostic] | None] = ContextVar("pypto_hints", default=None)


@contextmanager
def collecting(found: list[Diagnostic]) -> Iterator[None]:
    """Append the hints given inside the `with` block to `found`."""
    token = _sink.set(found)
    try:
        yield
    finally:
        _sink.reset(token)


def hint(code: str, rule: str, message: str, span: Span = UNKNOWN) -> None:
    """Give a performance hint with its code (`PH-MR-001`) and the name of what noticed it."""
    made = Diagnostic(DiagnosticSeverity.PerfHint, rule, message, span, hint_code=code)
    sink = _sink.get()
    if sink is not None:
        sink.append(made)
    _log.debug("%s", made)
