"""Shared by all tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def heavy_modules_loaded() -> None:
    """For tests that run pytest in this process: it drops what the inner run imports, so import the big things now."""
    pytest.importorskip("torch")
    pytest.importorskip("hypothesis")
    import numpy  # noqa: F401
    import pypto.debug
    import pypto.ir
    import pypto.language
    import pypto.runtime  # noqa: F401
    import xdist.plugin  # noqa: F401

    import pytest_pypto.workbench  # noqa: F401
