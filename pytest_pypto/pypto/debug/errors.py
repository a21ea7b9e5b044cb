"""Errors of script generation."""

from __future__ import annotations


class UnsupportedOpError(ValueError):
    """The program uses something that `torch_codegen` has no script for; the text names it and the next step."""
