"""The memories of one core."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..platforms import Platform
from .dtypes import Array

CUBE_SPACES = ("mat", "left", "right", "acc", "bias", "scaling_left", "scaling_right")


class CoreMemory:
    """Byte arrays per memory space. `grow` makes room for a handle beyond the capacity (which is a finding)."""

    __slots__ = ("fill", "kind", "platform", "spaces")

    def __init__(self, platform: Platform, kind: str, fill: int = 0) -> None:
        self.platform, self.kind, self.fill = platform, kind, fill
        names = ("vec",) if kind == "aiv" else CUBE_SPACES
        self.spaces: dict[str, Array] = {n: self._new(c) for n, c in platform.capacity.items() if n in names}

    def _new(self, size: int) -> Array:
        return np.zeros(size, np.uint8) if not self.fill else np.full(size, self.fill, np.uint8)

    def space(self, name: str) -> Array | None:
        """The bytes of a space, None when this core has no such space."""
        return self.spaces.get(name)

    def grow(self, name: str, size: int) -> Array:
        """At least `size` bytes of `name`; earlier views of the space keep pointing at the old bytes."""
        if name not in self.spaces or len(self.spaces[name]) < size:
            self.spaces[name] = self._new(size)
        return self.spaces[name]

    def reset(self) -> None:
        """Fill everything anew, so that no run sees bytes of an earlier one."""
        for data in self.spaces.values():
            data.fill(self.fill)

    def limits(self) -> Mapping[str, int]:
        """Capacity of each space in bytes."""
        return {n: self.platform.capacity[n] for n in self.spaces if n in self.platform.capacity}
