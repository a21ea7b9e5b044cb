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

from pytest_pypto import nearest
from pytest_pypto.markers import AXES, Axis, MarkerError, axis_values
from pytest_pypto.options import Settings
from pytest_pypto.toolchain import Toolchain

FIXTURE = "_pypto_variant"
"""Hidden fixture that carries a test's variant."""

PLATFORM_FIXTURE = "pypto_platform"
"""A test that reaches this fixture, itself or through another one, runs on every chosen platform."""

OTHER_PLATFORM = "platform {platform} is not in --pypto-platform={chosen}"


PLAIN = "plain"
"""Id of a variant without a value on any axis; it stands beside marked ones."""

Values = tuple[tuple[str, ...], ...]
"""Names for each of the axes."""


@dataclass(frozen=True)
class Variant:
    """One point of the three axes; a value is "" on an axis that the test does not vary.

    Attributes:
        platform, split, direction: names.
        base: what the test itself says, for each axis.
        offered: what its variants were made with, for each axis: `base`, and what single parameters are marked with.
    """

    platform: str = ""
    split: str = ""
    direction: str = ""
    base: Values = field(default=(), compare=False, repr=False)
    offered: Values = field(default=(), compare=False, repr=False)

    @property
    def values(self) -> tuple[str, str, str]:
        """In the order of the axes."""
        return (self.platform, self.split, self.direction)

    @property
    def id(self) -> str:
        """Names joined by dashes, in the order platform, split, direction."""
        return "-".join(part for part in self.values if part) or PLAIN


Unavailable = Callable[[str], "str | None"]


def parametrize(metafunc: pytest.Metafunc, settings: Settings, unavailable: Unavailable) -> None:
    """Parametrise a test that carries one of our markers or uses one of our fixtures.

    A marker in a `pytest.param` is about that parameter only: variants are made for all values, and what does not fit
    together is dropped when the test is collected (`collected`). That is also where wrong markers are complained of.

    Args:
        metafunc: the test.
        settings: of the session.
        unavailable: platform id -> why it cannot run here, None when it can.
    """
    wanted = PLATFORM_FIXTURE in metafunc.fixturenames
    marks = [nearest.closest(metafunc.definition, axis.marker) for axis in AXES]
    if not (wanted or any(marks) or FIXTURE in metafunc.fixturenames):
        return
    try:
        base = [axis_values(axis, mark) if mark else ("",) for axis, mark in zip(AXES, marks, strict=True)]
        if wanted and not marks[0]:
            base[0] = settings.platforms
        offered = [_offered(metafunc, axis, names) for axis, names in zip(AXES, base, strict=True)]
    except MarkerError:
        return  # said when the test is collected
    if not any(map(any, offered)):
        return
    if FIXTURE not in metafunc.fixturenames:
        metafunc.fixturenames.append(FIXTURE)
    variants = [Variant(p, s, d, tuple(base), tuple(offered)) for p, s, d in product(*offered)]
    metafunc.parametrize(FIXTURE, [_param(variant, unavailable) for variant in variants], indirect=True)


def _offered(metafunc: pytest.Metafunc, axis: Axis, base: tuple[str, ...]) -> tuple[str, ...]:
    more = [axis_values(axis, mark) for mark in _inner_marks(metafunc) if mark.name == axis.marker]
    return tuple(dict.fromkeys((*base, *(name for names in more for name in names))))


def _inner_marks(metafunc: pytest.Metafunc) -> Iterator[pytest.Mark]:
    """Marks in the `pytest.param`s of a test and of its fixtures; values that can be read only once are left alone."""
    marked = metafunc.definition.iter_markers("parametrize")
    lists = [mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues") for mark in marked]
    fixtures = getattr(metafunc, "_arg2fixturedefs", {})
    lists += [each.params for defs in fixtures.values() for each in defs if each.params]
    for values in lists:
        for value in values if isinstance(values, (list, tuple)) else ():
            if isinstance(value, PARAMETER):
                yield from nearest.plain_marks(list(value.marks))


PARAMETER = type(pytest.param())
"""What `pytest.param` makes."""


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


ALONE = pytest.StashKey[Variant]()
"""The variant of a test that cannot be parametrised (a method of `unittest.TestCase`)."""


def variant_of(item: pytest.Item) -> Variant | None:
    """The variant of a test, None for a test that is not ours."""
    callspec = getattr(item, "callspec", None)
    found: Variant | None = callspec.params.get(FIXTURE) if callspec is not None else None
    return found or item.stash.get(ALONE, None)


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
