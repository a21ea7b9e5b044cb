"""Running pytest inside the tests of the plugin, with the same test under every way of distribution."""

from __future__ import annotations

import pytest

WAYS = [[], ["-n0"], ["-n2"]]


@pytest.fixture(params=WAYS, ids=lambda way: " ".join(way) or "plain")
def way(request: pytest.FixtureRequest) -> list[str]:
    """No xdist, xdist without workers, two workers."""
    found: list[str] = request.param
    return found


@pytest.fixture(autouse=True)
def _loaded(heavy_modules_loaded: None, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inner runs happen in this process, where the plugin is already imported: no warning that counts.

    `pytester` comes first because it removes the variable. What the outer environment says about continuous
    integration, colours and width changes pytest's lines, so an inner run does not see it.
    """
    for name in ("CI", "BUILD_NUMBER", "NO_COLOR", "FORCE_COLOR", "PY_COLORS", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-W ignore::pytest.PytestAssertRewriteWarning")
