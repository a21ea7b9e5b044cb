"""Import names of the vendor's core module; everything here lives elsewhere."""

from __future__ import annotations

import importlib
from typing import Any

from ..lazy import lazy_names

_BASE = __name__.rpartition(".")[0]
_SUBMODULES = ("backend", "codegen", "ir", "passes", "testing")
_get, _listing = lazy_names(
    __name__,
    {
        f"{_BASE}.errors": "Error InternalError check internal_check internal_check_span",
        f"{_BASE}.logs": "LogLevel set_log_level get_log_level log_debug log_info log_warn log_error log_fatal "
        "log_event",
        f"{_BASE}.ir.dtypes": "DataType",
    },
    globals(),
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_listing(), *_SUBMODULES})
