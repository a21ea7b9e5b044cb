"""Facts of a check as properties of the test's report: for JUnit, and for the totals, also across workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_pypto.harness.verdict import Verdict


def record(item: pytest.Item, verdict: Verdict) -> None:
    """Note a verdict; small enough to cross from a worker."""
    note = item.user_properties.append
    note(("pypto.platform", verdict.platform))
    note(("pypto.split", verdict.split))
    if verdict.direction:
        note(("pypto.direction", verdict.direction))
    note(("pypto.seed", str(verdict.seed)))
    note(("pypto.toolchain", verdict.toolchain))
    note(("pypto.layers", " ".join(f"{r.layer}={r.status.replace(' ', '-')}" for r in verdict.layers)))
    note(("pypto.headroom", f"{verdict.headroom():.3g}"))
    advice = [f.kind for r in verdict.layers for f in r.findings if f.severity == "advice"]
    if advice:
        note(("pypto.advice", " ".join(advice)))
    if verdict.not_compared and verdict.passed:
        note(("pypto.not_compared", ", ".join(verdict.not_compared)))
    missing = [f"{r.layer}: {r.reason}" for r in verdict.layers if r.status == "not run"]
    if missing:
        note(("pypto.not_run", "; ".join(missing)))
    if not verdict.passed:
        note(("pypto.verdict", verdict.to_json()))


def record_noted(item: pytest.Item) -> None:
    """Note the checks that a test made without a fixture (`assert_oracle` and so on)."""
    claims = sys.modules.get("pytest_pypto.harness.claims")
    for verdict in claims.take_noted() if claims is not None else ():
        record(item, verdict)


def forget(item: pytest.Item) -> None:
    """Before a test runs, perhaps once more: what an earlier run noted was counted then."""
    if item.user_properties:
        item.user_properties[:] = [pair for pair in item.user_properties if not pair[0].startswith("pypto.")]
