"""The one parser: user source, jit specialisations and printed text -> IR. It reads text and never executes it."""

from __future__ import annotations

from typing import Any

from ...lazy import import_module

_HOME = {
    **dict.fromkeys(("parse", "loads", "parse_program", "loads_program", "parse_all"), "modules"),
    **dict.fromkeys(("function", "program", "inline", "InlineFunction"), "decorators"),
    **dict.fromkeys(
        (
            *("ParserError", "ParserSyntaxError", "ParserTypeError", "UndefinedVariableError", "SSAViolationError"),
            *("UnsupportedFeatureError", "InvalidOperationError", "ScopeIsolationError", "ErrorRenderer"),
        ),
        "diagnostics",
    ),
}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pypto.language.parser' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
