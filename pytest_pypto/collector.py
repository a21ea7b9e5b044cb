"""Totals of a run, from the properties of test reports, so that they are right with and without xdist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

LAYERS = ("roundtrip", "oracle", "passes", "memory", "device")
SHOWN_REASONS = 3
SHOWN_TESTS = 3


@dataclass
class Totals:
    """Counts over the checks of a run.

    Attributes:
        checks: number of checks.
        platforms: checks by platform.
        layers: for each layer, how often it `passed`, `failed` or was `not-run`.
        reasons: why layers did not run.
        advice: findings that do not fail a test, by kind.
        advised: tests with such findings, in order.
        not_compared: outputs that a golden did not cover, each with its test.
        tightest: greatest used share of a tolerance among passed checks, and the test.
        deselected: variants left out, by platform.
    """

    checks: int = 0
    platforms: Counter[str] = field(default_factory=Counter)
    layers: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    advice: Counter[str] = field(default_factory=Counter)
    advised: dict[str, None] = field(default_factory=dict)
    not_compared: dict[str, None] = field(default_factory=dict)
    tightest: tuple[float, str] = (0.0, "")
    deselected: Counter[str] = field(default_factory=Counter)

    def add_report(self, nodeid: str, properties: Iterable[tuple[str, Any]]) -> None:
        """Count the checks of one test."""
        for name, value in properties:
            text = str(value)
            if name == "pypto.platform":
                self.platforms[text] += 1
            elif name == "pypto.layers":
                self.checks += 1
                self._add_layers(text)
            elif name == "pypto.not_run":
                self.reasons.update(text.split("; "))
            elif name == "pypto.advice":
                self.advice.update(text.split())
                self.advised[nodeid] = None
            elif name == "pypto.not_compared":
                self.not_compared[f"{text} in {nodeid}"] = None
            elif name == "pypto.headroom":
                self.tightest = max(self.tightest, (float(text), nodeid))

    def _add_layers(self, text: str) -> None:
        for word in text.split():
            layer, _, status = word.partition("=")
            self.layers.setdefault(layer, Counter())[status] += 1

    def add_worker(self, output: Mapping[str, Any]) -> None:
        """What an xdist worker sent when it ended. Every worker collects everything: the counts are not added up."""
        for platform, count in dict(output.get("deselected", {})).items():
            self.deselected[platform] = max(self.deselected[platform], count)

    def lines(self) -> list[str]:
        """A few lines for the terminal; none when nothing was checked."""
        if not self.checks:
            return []
        where = ", ".join(f"{count} on {platform}" for platform, count in sorted(self.platforms.items()))
        rows = [f"{self.checks} check{'s'[: self.checks != 1]} ({where})", self._layer_line()]
        rows += [f"not run: {reason} ({count}x)" for reason, count in self.reasons.most_common(SHOWN_REASONS)]
        if len(self.reasons) > SHOWN_REASONS:
            rows.append(f"not run: {len(self.reasons) - SHOWN_REASONS} more reasons")
        if self.advice:
            kinds = ", ".join(f"{kind} {count}x" for kind, count in sorted(self.advice.items()))
            rows.append(f"advice: {kinds} in {_first(self.advised)} (the texts are in what --pypto-keep=all keeps)")
        if self.not_compared:
            rows.append(f"not compared: {_first(self.not_compared)} ({len(self.not_compared)}x; no golden covers them)")
        if self.tightest[0] > 0:
            rows.append(f"closest to its tolerance: {100 * self.tightest[0]:.3g} % of it used by {self.tightest[1]}")
        return rows

    def _layer_line(self) -> str:
        order = [*LAYERS, *sorted(set(self.layers) - set(LAYERS))]
        parts = []
        for layer in order:
            counts = self.layers.get(layer)
            if counts:
                words = [f"{n} {status.replace('-', ' ')}" for status, n in sorted(counts.items(), reverse=True)]
                parts.append(f"{layer} {' '.join(words)}")
        return "layers: " + ", ".join(parts)


def _first(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - SHOWN_TESTS} more" if len(listed) > SHOWN_TESTS else ""
    return ", ".join(listed[:SHOWN_TESTS]) + more


class ReportCollector:
    """Feeds test reports into the totals; registered where reports arrive, not in workers."""

    def __init__(self, totals: Totals) -> None:
        self.totals = totals

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown" and report.user_properties:
            self.totals.add_report(report.nodeid, report.user_properties)
