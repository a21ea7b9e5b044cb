"""The two architectures as the machine sees them. An own table, so that it can contradict a wrong compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .findings import DeviceError


@dataclass(frozen=True)
class Platform:
    """Capacities in bytes per memory space of one core, and how mixed tasks are launched."""

    name: str
    arch: str
    capacity: Mapping[str, int]
    clusters: int
    replay_lanes: bool
    """A mixed task without a split still runs both vector lanes (the second one on empty tiles)."""
    clock_hz: int
    """Ticks per second of the cost clock."""


_A2A3 = {"vec": 188416, "mat": 524288, "left": 65536, "right": 65536, "acc": 131072, "bias": 1024}
_A5 = {"vec": 245760, "mat": 524288, "left": 65536, "right": 65536, "acc": 262144, "bias": 4096}
_A5 |= {"scaling_left": 4096, "scaling_right": 4096}

PLATFORMS: Mapping[str, Platform] = {
    "a2a3": Platform("a2a3sim", "a2a3", _A2A3, clusters=24, replay_lanes=True, clock_hz=50_000_000),
    "a5": Platform("a5sim", "a5", _A5, clusters=36, replay_lanes=False, clock_hz=1_000_000_000),
}


def platform_of(arch: str, file: str | None = None, line: int | None = None) -> Platform:
    """The platform with target architecture `arch` ("a2a3", "a5"; a platform name works too).

    Raises:
        DeviceError: no such architecture.
    """
    found = PLATFORMS.get(arch.removesuffix("sim"))
    if found is None:
        raise DeviceError(
            f"unknown target architecture {arch!r}; the simulated device has {', '.join(PLATFORMS)}",
            file=file,
            line=line,
        )
    return found
