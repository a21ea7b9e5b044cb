"""The pytest plugin: hooks and fixtures."""

from __future__ import annotations

import pytest

from pytest_pypto import toolchain


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    toolchain.activate("auto")


def pytest_unconfigure(config: pytest.Config) -> None:
    toolchain.deactivate()
