"""The architectures that can be compiled for."""

from __future__ import annotations

from enum import Enum


class BackendType(Enum):
    """Processor family. `Ascend910B` is `a2a3`, `Ascend950` is `a5`."""

    Ascend910B = 0
    Ascend950 = 1
