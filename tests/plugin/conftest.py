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

    `pytester` comes first because it removes the variable.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", "-W ignore::pytest.PytestAssertRewriteWarning")
