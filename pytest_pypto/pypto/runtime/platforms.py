"""Platform names: an architecture and an execution mode packed into one string."""

from __future__ import annotations

from enum import Enum, auto

from ..backend import BackendType
from ..backend.handler import handler_for

SIM_SUFFIX = "sim"


class ExecutionMode(Enum):
    """Where an artifact runs: on hardware or on a simulator."""

    ONBOARD = auto()
    SIM = auto()


def platform_name(arch: BackendType, mode: ExecutionMode) -> str:
    """`a2a3`, `a2a3sim`, `a5` or `a5sim`."""
    return handler_for(arch).arch + (SIM_SUFFIX if mode is ExecutionMode.SIM else "")


def platform_names() -> list[str]:
    """All platform names."""
    return [platform_name(arch, mode) for arch in BackendType for mode in ExecutionMode]


def parse_platform(name: object) -> tuple[BackendType, ExecutionMode]:
    """Architecture and mode of a platform name.

    Raises:
        ValueError: no such platform; the text lists the valid ones.
    """
    for arch in BackendType:
        for mode in ExecutionMode:
            if name == platform_name(arch, mode):
                return arch, mode
    expected = ", ".join(repr(n) for n in platform_names())
    raise ValueError(f"Invalid platform {name!r}. Expected {expected}.")


def simulator_of(name: str) -> str:
    """The simulator platform of the same architecture."""
    return platform_name(parse_platform(name)[0], ExecutionMode.SIM)


def check_platform(label: str, artifact_backend: BackendType, artifact_platform: str, platform: str) -> None:
    """A dispatch may change the suffix of the platform, not the architecture, and needs a simulator here.

    Raises:
        ValueError: the artifact was compiled for the other architecture.
        RuntimeError: the platform is hardware.
    """
    arch, mode = parse_platform(platform)
    if arch is not artifact_backend:
        raise ValueError(
            f"{label} was compiled for {artifact_backend.name} (platform '{artifact_platform}') and cannot run on "
            f"platform '{platform}' ({arch.name}); compile with platform='{platform}', or pass a RunConfig with "
            f"platform='{simulator_of(artifact_platform)}' (a RunConfig without platform means 'a2a3sim')"
        )
    if mode is ExecutionMode.ONBOARD:
        raise RuntimeError(
            f"platform '{platform}' is hardware, which the embedded toolchain cannot drive; "
            f"dispatch on '{simulator_of(platform)}', the simulator of the same architecture"
        )
