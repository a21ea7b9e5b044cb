"""Shared by all tests."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil

import pytest

with contextlib.suppress(ImportError):  # some environments test without it
    from hypothesis import settings

    # The same examples in every run, however slow the machine; `--hypothesis-profile=default` looks for new ones.
    settings.register_profile("tests", deadline=None, derandomize=True)
    settings.load_profile("tests")


@pytest.fixture(scope="session")
def heavy_modules_loaded() -> None:
    """For tests that run pytest in this process.

    An inner run drops from `sys.modules` what it imported; modules that stay would then hold objects of modules that
    are imported anew. So everything is imported before.
    """
    for name in ("torch", "hypothesis.core", "hypothesis.internal.observability", "numpy", "xdist.plugin"):
        pytest.importorskip(name)
    import pytest_pypto

    for module in pkgutil.walk_packages(pytest_pypto.__path__, "pytest_pypto."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # a module that cannot be imported has a test of its own
                importlib.import_module(module.name)
