"""Errors of the parser: classes, codes, and the block that shows one to its author."""

from __future__ import annotations

from typing import Any

from .exceptions import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    authors_error,
    concise_error_message,
    span_dict,
)

_LAZY = {
    "ErrorRenderer": "renderer",
    "ErrorCategory": "error_codes",
    "ErrorCode": "error_codes",
    "get_error_code": "error_codes",
}


def __getattr__(name: str) -> Any:
    from ....lazy import import_module

    if name in _LAZY:
        return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
    if name in ("renderer", "error_codes"):
        return import_module(f"{__name__}.{name}")
    if name == "BUG_CLASS_EXCEPTIONS":
        from ....errors import InternalError

        return (InternalError, AssertionError)
    raise AttributeError(f"module 'pypto.language.parser.diagnostics' has no attribute {name!r}")


__all__ = [
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "authors_error",
    "concise_error_message",
    "span_dict",
]
