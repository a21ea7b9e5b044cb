"""The PyPTO language, conventionally imported as `pl`; names are imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES: dict[str, str] = {
    "parser.modules": "parse loads parse_program loads_program",
    "typing": "Tensor Tile Scalar Array Tuple DynVar InOut IntLike Out RUNTIME dynamic TaskId",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'pypto.language' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
