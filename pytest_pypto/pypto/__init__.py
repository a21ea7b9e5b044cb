"""The embedded PyPTO: a pure-Python implementation of the public PyPTO API. Names are imported on first use."""

from __future__ import annotations

from typing import Any

from . import passes as _package
from .lazy import import_module, lazy_names
from .pypto_core import passes

# The package `passes` holds the compiler's own modules; the public name is the vendor's core module. Importing the
# package first and the module second leaves the public one as the attribute, whatever is imported later.
assert _package is not passes

__version__ = "0.1.0"

_SUBMODULES = {
    name: f"{__name__}.{name}"
    for name in (
        *("backend", "codegen", "compile_profiling", "debug", "device", "ir", "jit", "language", "pypto_core"),
        *("runtime", "testing", "tools"),
    )
}
_DTYPES = (
    *("BOOL", "INT4", "INT8", "INT16", "INT32", "INT64", "UINT4", "UINT8", "UINT16", "UINT32", "UINT64"),
    *("FP4", "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "FP16", "FP32", "BF16", "HF4", "HF8", "INDEX"),
)
_get, _listing = lazy_names(
    __name__,
    {
        f"{__name__}.errors": "Error InternalError check internal_check internal_check_span",
        f"{__name__}.logs": "LogLevel set_log_level get_log_level log_debug log_info log_warn log_error log_fatal "
        "log_event",
        f"{__name__}.ir.dtypes": "DataType",
    },
    globals(),
)

__all__ = [
    *("codegen", "ir", "language", "passes", "compile_profiling", "runtime", "testing", "Error", "InternalError"),
    *("LogLevel", "set_log_level", "get_log_level", "log_debug", "log_info", "log_warn", "log_error", "log_fatal"),
    *("log_event", "check", "internal_check", "internal_check_span", "DataType"),
    *(f"DT_{name}" for name in _DTYPES),
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(_SUBMODULES[name])
    if name.startswith("DT_") and name[3:] in _DTYPES:
        value = getattr(_get("DataType"), name[3:])
        globals()[name] = value
        return value
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_listing(), *__all__, *_SUBMODULES})
