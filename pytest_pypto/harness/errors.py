"""Errors of the harness."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_pypto.harness.verdict import Verdict


class CaseError(Exception):
    """The test itself is wrong (inputs, golden, arguments), so nothing was checked."""


class ArgumentError(CaseError, TypeError):
    """An argument is not the kind of thing that is expected in its place."""


class CannotRun(Exception):
    """A layer cannot run here; the message says why and what to do."""


class CheckFailed(AssertionError):
    """A check found something; `verdict` holds all of it and the message is the report."""

    def __init__(self, message: str, verdict: Verdict) -> None:
        super().__init__(message)
        self.verdict = verdict
