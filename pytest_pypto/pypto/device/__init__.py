"""The simulated device: a numpy machine that executes an artifact directory (`.pto` kernels and the host program).

    result = run_artifact(Path("build"), [a, b, out], DeviceSettings.strict())

Arrays are changed in place; `result.findings` says what the sanitizers saw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import import_module

if TYPE_CHECKING:
    from .artifact import clear_cache as clear_cache
    from .findings import DeviceError as DeviceError
    from .findings import Finding as Finding
    from .findings import FindingKind as FindingKind
    from .measure.counters import Counters as Counters
    from .result import DeviceResult as DeviceResult
    from .run import run_artifact as run_artifact
    from .settings import DeviceSettings as DeviceSettings
    from .settings import DfxSettings as DfxSettings

_WHERE = {
    "run_artifact": "run",
    "clear_cache": "artifact",
    "DeviceSettings": "settings",
    "DfxSettings": "settings",
    "DeviceResult": "result",
    "Finding": "findings",
    "FindingKind": "findings",
    "DeviceError": "findings",
    "Counters": "measure.counters",
}

__all__ = [
    "Counters",
    "DeviceError",
    "DeviceResult",
    "DeviceSettings",
    "DfxSettings",
    "Finding",
    "FindingKind",
    "clear_cache",
    "run_artifact",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
