"""Types in the words of the author, for messages."""

from __future__ import annotations

from ...ir.types import Type


def print_type(type_: Type) -> str:
    """The printed form of a type."""
    from ...ir.printer import python_print_type

    return python_print_type(type_)
