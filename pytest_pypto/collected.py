"""A look at collected tests: markers that would be silently without effect are errors, misfits among variants go.

pytest asks plugins to parametrise functions only. Markers on methods of `unittest.TestCase`, in a `pytest.param`, or
added by a `conftest.py` come to light here, when a collector has made its tests.
"""

from __future__ import annotations

import pytest

from pytest_pypto import nearest
from pytest_pypto.markers import AXES, axis_values, wrong_marker
from pytest_pypto.selection import ALONE, FIXTURE, Unavailable, Variant, variant_of

AXIS_FIXTURES = frozenset(axis.marker for axis in AXES)
DIRECT = (
    "{name} is parametrised directly, which changes the value but not what is compiled and checked; "
    "write @pytest.mark.{name}(...)"
)
NOT_OFFERED = (
    "{name}({value!r}) marks a parameter, but no variant of the test was made for it (the test asks for no fixture of "
    "pytest-pypto, or the parameter comes from a hook); write the marker on the test"
)
ONE_ONLY = (
    "{name} lists {count} values, but this test can run only once (a method of unittest.TestCase cannot be "
    "parametrised): give one value, or write a class without TestCase"
)
TOO_LATE = (
    "{name} was added to the test after its variants were made, so it has no effect; write the marker in the test file"
)


def look_at(collector: pytest.Collector, report: pytest.CollectReport, unavailable: Unavailable) -> None:
    """Check the tests that a collector made; drop what does not fit, or fail the collector.

    Args:
        collector: a module, a class, ...
        report: of its collection; changed in place.
        unavailable: platform id -> why it cannot run here, None when it can.
    """
    inherited = any(m.name.startswith("pypto_") for node in collector.listchain() for m in node.own_markers)
    mine = [node for node in report.result if isinstance(node, pytest.Item) and (inherited or _is_ours(node))]
    if not mine:
        return
    gone = {id(item) for item in mine if _misfit(item)}
    report.result = [node for node in report.result if id(node) not in gone]
    problems = dict.fromkeys(f"{_plain_id(item)}: {text}" for item in mine if (text := complaint(item)))
    if problems:
        _fail(collector, report, "\n".join(problems))
        return
    for item in mine:
        _alone(item, unavailable)


def _is_ours(item: pytest.Item) -> bool:
    """Whether there is anything to look at; quick for tests that are not ours."""
    if any(m.name.startswith("pypto_") for m in item.own_markers):
        return True
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return False
    variant = callspec.params.get(FIXTURE)
    return bool(_parameters(item) & AXIS_FIXTURES) or (variant is not None and variant.offered != variant.base)


def _parameters(item: pytest.Item) -> set[str]:
    """Names of everything a test is parametrised with."""
    callspec = getattr(item, "callspec", None)
    return set() if callspec is None else {*callspec.params, *getattr(callspec, "funcargs", ())}


def _plain_id(item: pytest.Item) -> str:
    """Node id without the parameters."""
    name = getattr(item, "originalname", None)
    return item.nodeid if name is None or item.parent is None else f"{item.parent.nodeid}::{name}"


def _misfit(item: pytest.Item) -> bool:
    """Whether a variant has a value that the test, or its parameter, does not ask for."""
    variant = variant_of(item)
    if variant is None or not variant.offered or wrong_marker(item):
        return False
    inner = nearest.param_marks(item)
    for axis, value, base in zip(AXES, variant.values, variant.base, strict=True):
        asked = [axis_values(axis, mark) for mark in inner if mark.name == axis.marker]
        if not all(value in names for names in asked or [base]):
            return True
    return False


def complaint(item: pytest.Item) -> str:
    """What is wrong with a test's markers and parameters; "" for nothing."""
    text = wrong_marker(item)
    direct = sorted(_parameters(item) & AXIS_FIXTURES)
    if text or direct:
        return text or DIRECT.format(name=direct[0])
    variant = variant_of(item)
    for place, axis in enumerate(AXES):
        mark = nearest.closest(item, axis.marker)
        names = axis_values(axis, mark) if mark else ()
        if variant is None and len(names) > 1:
            return ONE_ONLY.format(name=axis.marker, count=len(names))
        inner = any(mark is m for m in nearest.param_marks(item))
        if inner and (variant is None or not set(names) <= set(variant.offered[place])):
            return NOT_OFFERED.format(name=axis.marker, value=names[0])
    return ""


def _alone(item: pytest.Item, unavailable: Unavailable) -> None:
    """Give a test that cannot be parametrised the one variant that its markers name."""
    if variant_of(item) is not None:
        return
    marks = [nearest.closest(item, axis.marker) for axis in AXES]
    if not any(marks):
        return
    platform, split, direction = (axis_values(a, mark)[0] if mark else "" for a, mark in zip(AXES, marks, strict=True))
    variant = Variant(platform, split, direction)
    item.stash[ALONE] = variant
    reason = unavailable(variant.platform) if variant.platform else None
    if reason:
        item.add_marker(pytest.mark.skip(reason=reason))


def late_marker(item: pytest.Item) -> str:
    """What is wrong with a marker that was added after collection; "" for nothing. Quick for tests of others."""
    if not any(m.name.startswith("pypto_") for m in item.own_markers):
        return ""
    text = wrong_marker(item)
    if text:
        return text
    variant = variant_of(item)
    for place, axis in enumerate(AXES):
        mark = nearest.closest(item, axis.marker)
        if mark and (variant is None or variant.values[place] not in axis_values(axis, mark)):
            return TOO_LATE.format(name=axis.marker)
    return ""


def _fail(collector: pytest.Collector, report: pytest.CollectReport, text: str) -> None:
    def complain() -> None:
        pytest.fail(text, pytrace=False)

    call = pytest.CallInfo.from_call(complain, "collect")
    assert call.excinfo is not None
    report.outcome, report.result = "failed", []
    report.longrepr = collector.repr_failure(call.excinfo)
    report.call = call  # type: ignore[attr-defined]  # as pytest itself does
