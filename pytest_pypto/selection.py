"""Which variants of a test run: parametrisation over platform, split and direction, and what is left out and why."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.markers import AXES, MarkerError, axis_values, tolerance_of, unknown_marker
from pytest_pypto.options import Settings
from pytest_pypto.toolchain import Toolchain

FIXTURE = "_pypto_variant"
"""Hidden fixture that carries a test's variant."""

PLATFORM_FIXTURE = "pypto_platform"
"""A test that reaches this fixture, itself or through another one, runs on every chosen platform."""

OTHER_PLATFORM = "platform {platform} is not in --pypto-platform={chosen}"


@dataclass(frozen=True)
class Variant:
    """One point of the three axes; a value is "" on an axis that the test does not vary."""

    platform: str = ""
    split: str = ""
    direction: str = ""

    @property
    def id(self) -> str:
        """Names joined by dashes, in the order platform, split, direction."""
        return "-".join(part for part in (self.platform, self.split, self.direction) if part)


Unavailable = Callable[[str], "str | None"]


def parametrize(metafunc: pytest.Metafunc, settings: Settings, unavailable: Unavailable) -> None:
    """Parametrise a test that carries one of our markers or uses one of our fixtures.

    Args:
        metafunc: the test.
        settings: of the session.
        unavailable: platform id -> why it cannot run here, None when it can.
    """
    misspelt = unknown_marker(metafunc.definition)
    if misspelt:
        pytest.fail(f"{metafunc.definition.nodeid}: {misspelt}", pytrace=False)
    wanted = PLATFORM_FIXTURE in metafunc.fixturenames
    marks = [metafunc.definition.get_closest_marker(axis.marker) for axis in AXES]
    if not wanted and not any(marks):
        return
    values, problem = _read(metafunc.definition, marks)
    if problem:
        pytest.fail(f"{metafunc.definition.nodeid}: {problem}", pytrace=False)
    if not values[0] and wanted:
        values[0] = settings.platforms
    if FIXTURE not in metafunc.fixturenames:
        metafunc.fixturenames.append(FIXTURE)
    params = [_param(variant, unavailable) for variant in _variants(*values)]
    metafunc.parametrize(FIXTURE, params, indirect=True)


def _read(item: pytest.Item, marks: list[pytest.Mark | None]) -> tuple[list[tuple[str, ...]], str]:
    """Values of the three axes, and what is wrong with the markers."""
    try:
        tolerance_of(item)
        return [axis_values(axis, mark) if mark else () for axis, mark in zip(AXES, marks, strict=True)], ""
    except MarkerError as exc:
        return [], str(exc)


def _variants(*values: tuple[str, ...]) -> Iterator[Variant]:
    for platform, split, direction in product(*(v or ("",) for v in values)):
        yield Variant(platform, split, direction)


def _param(variant: Variant, unavailable: Unavailable) -> Any:
    reason = unavailable(variant.platform) if variant.platform else None
    marks = [pytest.mark.skip(reason=reason)] if reason else []
    return pytest.param(variant, id=variant.id, marks=marks)


@dataclass
class Deselected:
    """Variants left out because the command line chose other platforms."""

    counts: Counter[str] = field(default_factory=Counter)

    def take_from(self, config: pytest.Config, items: list[pytest.Item], settings: Settings) -> None:
        """Remove the variants of platforms that were not chosen."""
        kept: list[pytest.Item] = []
        gone: list[pytest.Item] = []
        for item in items:
            variant = variant_of(item)
            left_out = variant is not None and variant.platform and variant.platform not in settings.platforms
            (gone if left_out else kept).append(item)
            if left_out and variant is not None:
                self.counts[variant.platform] += 1
        if gone:
            config.hook.pytest_deselected(items=gone)
            items[:] = kept

    def line(self, settings: Settings) -> str:
        """One line about them, "" for none."""
        if not self.counts:
            return ""
        parts = ", ".join(f"{count} on {platform}" for platform, count in sorted(self.counts.items()))
        chosen = ",".join(settings.platforms)
        total = sum(self.counts.values())
        return f"pypto: {total} variant{'s'[: total != 1]} deselected ({parts}; --pypto-platform={chosen})"


def variant_of(item: pytest.Item) -> Variant | None:
    """The variant of a test, None for a test that is not ours."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get(FIXTURE) if callspec is not None else None


def unavailable_platform(platform: str, toolchain: Toolchain | None) -> str | None:
    """Why a platform cannot run here, with the alternative; None when it can."""
    if platform.endswith("sim"):
        return None
    alternative = f"run it on the simulator with --pypto-platform={platform}sim"
    if toolchain is None or toolchain.kind == "embedded":
        return f"platform {platform} is Ascend hardware and the embedded PyPTO has only simulators; {alternative}"
    if importlib.util.find_spec("simpler_setup") is None:
        return f"platform {platform} needs the runtime of the installed PyPTO (package simpler); {alternative}"
    if not any(Path("/dev").glob("davinci[0-9]*")):
        return f"platform {platform} needs an Ascend device and there is none; {alternative}"
    return None
