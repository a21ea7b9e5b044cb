"""Modules whose names are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


def import_module(name: str, package: str | None = None) -> ModuleType:
    """Import a module from within a module's `__getattr__`.

    Raises:
        ImportError: the module was found but an attribute it needs is missing, as with a library that is too old. As
            an AttributeError this would pass for "no such name" and its reason would be lost.
    """
    try:
        return importlib.import_module(name, package)
    except AttributeError as exc:
        raise ImportError(f"{name} cannot be imported: {exc}", name=name) from exc


def lazy_names(
    module: str, table: Mapping[str, str], namespace: dict[str, Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module.

    Args:
        module: the module's `__name__`, for messages.
        table: full module name -> names it provides, separated by blanks; `old:new` provides `old` as `new`.
        namespace: the module's `globals()`, where a name stays once it was imported.
    """
    home: dict[str, tuple[str, str]] = {}
    for where, names in table.items():
        for entry in names.split():
            source, _, shown = entry.partition(":")
            home[shown or source] = (where, source)

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        where, source = home[name]
        value = getattr(import_module(where), source)
        namespace[name] = value
        return value

    def listing() -> list[str]:
        return sorted({*namespace, *home})

    return get, listing
