"""Errors of code generation."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.span import UNKNOWN, Span


class CodegenError(ValueError):
    """A construct that code generation cannot express; `span` is its place in the source.

    The message names the construct, its place and the next step.
    """

    def __init__(self, reason: str, span: Span = UNKNOWN) -> None:
        self.reason = reason
        self.span = span
        super().__init__(f"{span}: {reason}" if span.is_valid() else reason)


class PartialCodegenError(RuntimeError):
    """Some units failed; `files` holds what the others produced, by path relative to the artifact directory."""

    def __init__(self, message: str, files: Mapping[str, str]) -> None:
        self.files = dict(files)
        super().__init__(message)
