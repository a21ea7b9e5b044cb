"""Import name of the vendor's core module; see `pypto.ir`."""

from __future__ import annotations

from typing import Any

from .. import ir as _real


def __getattr__(name: str) -> Any:
    return getattr(_real, name)


def __dir__() -> list[str]:
    return dir(_real)
