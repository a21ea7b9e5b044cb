"""Import name of the vendor's core module; see `pypto.codegen`."""

from __future__ import annotations

from typing import Any

from .. import codegen as _real


def __getattr__(name: str) -> Any:
    return getattr(_real, name)


def __dir__() -> list[str]:
    return dir(_real)
