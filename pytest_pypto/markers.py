"""Markers: from what a test author wrote to checked, typed values. Every complaint about a marker is worded here.

Nothing heavy is imported: enum members are recognised by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_pypto import nearest
from pytest_pypto.options import PLATFORMS, sanitizers

SPLITS = ("NONE", "UP_DOWN", "LEFT_RIGHT")
DIRECTIONS = ("V2C", "C2V", "BIDIR")

DOCS = (
    "pypto_platform(*ids): run the test once on each of these platforms (a2a3sim, a5sim, a2a3, a5), as far as "
    "--pypto-platform selects them.",
    "pypto_split(*modes): run the test once with each of these split modes (NONE, UP_DOWN, LEFT_RIGHT); the lowered "
    "program must really be split that way.",
    "pypto_direction(*ways): run the test once for each of these directions (V2C, C2V, BIDIR); the lowered program "
    "must really cross that way.",
    "pypto_tolerance(rtol=..., atol=..., output=...): tolerance of all outputs, or of one.",
    "pypto_sanitize(*kinds): what the simulated device looks for in this test: 'all', 'none', or some sanitizers.",
)
"""What `pytest --markers` shows."""


@dataclass(frozen=True)
class Axis:
    """A marker that parametrises: its name, its values in order, and what one is called."""

    marker: str
    known: tuple[str, ...]
    noun: str


AXES = (
    Axis("pypto_platform", PLATFORMS, "platform"),
    Axis("pypto_split", SPLITS, "split mode"),
    Axis("pypto_direction", DIRECTIONS, "direction"),
)
"""In the order of the parts of a test id."""


class MarkerError(Exception):
    """A marker is used in a wrong way."""


def axis_values(axis: Axis, mark: pytest.Mark) -> tuple[str, ...]:
    """Names that a marker lists, in the order written.

    Raises:
        MarkerError: no value, an unknown or repeated value, or a keyword.
    """
    if mark.kwargs:
        keyword = next(iter(mark.kwargs))
        raise MarkerError(
            f"{axis.marker} takes no keyword {keyword!r}: list the values, e.g. @pytest.mark.{axis.marker}"
            f"({axis.known[0]!r}, {axis.known[1]!r})"
        )
    if not mark.args:
        raise MarkerError(f"{axis.marker} needs at least one {axis.noun}: choose from {', '.join(axis.known)}")
    names = [_name(axis, value) for value in _flat(mark.args)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MarkerError(f"{axis.marker} lists {twice!r} twice")
    return tuple(names)


def _flat(args: Sequence[Any]) -> list[Any]:
    """The values, also when they were given as one list."""
    if len(args) == 1 and isinstance(args[0], (list, tuple)):
        return list(args[0])
    return list(args)


def _name(axis: Axis, value: Any) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if not isinstance(name, str) or name not in axis.known:
        raise MarkerError(f"{axis.marker}: unknown {axis.noun} {value!r}: choose from {', '.join(axis.known)}")
    return name


MARKERS = (*(axis.marker for axis in AXES), "pypto_tolerance", "pypto_sanitize")
"""Every marker of ours."""


def unknown_marker(item: pytest.Item) -> str:
    """What is wrong with the names of a test's markers: one that starts like ours and is none of them. "" for nothing.

    A misspelt marker would be silently without effect otherwise.
    """
    wrong = next((mark.name for mark in nearest.ours(item) if mark.name not in MARKERS), None)
    return "" if wrong is None else f"no marker is called {wrong!r}; the markers are {', '.join(MARKERS)}"


def wrong_marker(item: pytest.Item) -> str:
    """What is wrong with the markers of a test: names, values, or one marker twice in one place. "" for nothing."""
    misspelt = unknown_marker(item)
    if misspelt:
        return misspelt
    try:
        for axis in AXES:
            for mark in nearest.every(item, axis.marker):
                axis_values(axis, mark)
        tolerance_of(item)
        sanitizers_of(item)
        _refuse_twice(item)
    except MarkerError as exc:
        return str(exc)
    return ""


def _refuse_twice(item: pytest.Item) -> None:
    """Of two markers in one place one would be silently without effect."""
    for level in nearest.levels(item):
        names = [mark.name for mark in level if mark.name in MARKERS and mark.name != "pypto_tolerance"]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise MarkerError(f"{twice} is given twice in one place: list the values in one marker")


def sanitizers_of(item: pytest.Item) -> frozenset[str] | None:
    """What the closest `pypto_sanitize` marker of a test asks for; None without one.

    Raises:
        MarkerError: a keyword, or values that are no list of sanitizers.
    """
    mark = nearest.closest(item, "pypto_sanitize")
    if mark is None:
        return None
    if mark.kwargs:
        keyword = next(iter(mark.kwargs))
        raise MarkerError(f"pypto_sanitize takes no keyword {keyword!r}: list the kinds, e.g. pypto_sanitize('race')")
    try:
        return sanitizers([str(name) for name in _flat(mark.args)])
    except ValueError as exc:
        raise MarkerError(f"pypto_sanitize: {exc}") from None


@dataclass(frozen=True)
class MarkedTolerance:
    """What the tolerance markers of a test say; None where they say nothing. Keys are outputs, "" stands for all."""

    rtol: dict[str, float] = field(default_factory=dict)
    atol: dict[str, float] = field(default_factory=dict)


TOLERANCE_KEYWORDS = ("rtol", "atol", "output")


def tolerance_of(item: pytest.Item) -> MarkedTolerance:
    """Read every `pypto_tolerance` marker of a test; the closest to the test wins.

    Raises:
        MarkerError: a positional value, an unknown keyword, or a number that is no tolerance.
    """
    found = MarkedTolerance()
    for mark in nearest.every(item, "pypto_tolerance"):
        output = _check_tolerance(mark)
        for key, table in (("rtol", found.rtol), ("atol", found.atol)):
            if key in mark.kwargs:
                table.setdefault(output, _number(key, mark.kwargs[key]))
    return found


def _check_tolerance(mark: pytest.Mark) -> str:
    accepted = ", ".join(f"{k}=" for k in TOLERANCE_KEYWORDS)
    if mark.args:
        raise MarkerError(f"pypto_tolerance takes keywords only ({accepted}), got {mark.args[0]!r}")
    unknown = [key for key in mark.kwargs if key not in TOLERANCE_KEYWORDS]
    if unknown:
        raise MarkerError(f"pypto_tolerance takes no keyword {unknown[0]!r}: use {accepted}")
    if not {"rtol", "atol"} & mark.kwargs.keys():
        raise MarkerError("pypto_tolerance needs rtol= or atol=")
    output = mark.kwargs.get("output", "")
    if not isinstance(output, str):
        raise MarkerError(f"pypto_tolerance: output={output!r} is no name of an output")
    return output


def _number(key: str, value: Any) -> float:
    from pytest_pypto.check.tolerance import checked

    try:
        return checked(key, value)
    except ValueError as exc:
        raise MarkerError(f"pypto_tolerance: {exc}") from None
