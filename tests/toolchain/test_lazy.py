"""Names that are imported on first use: a missing library feature is told as such, not as a missing name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_pypto.pypto.lazy import import_module, lazy_names


@pytest.fixture
def old_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that needs something its library does not have."""
    (tmp_path / "needs_more.py").write_text("import math\nVALUE = math.no_such_function\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "needs_more"


def test_the_reason_survives(old_library: str) -> None:
    get, _ = lazy_names("here", {old_library: "VALUE"}, {})
    with pytest.raises(ImportError, match="needs_more cannot be imported: module 'math' has no attribute 'no_such_"):
        get("VALUE")
    assert old_library not in sys.modules


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        import_module("no_such_module")
    get, listing = lazy_names("here", {"math": "pi:PI"}, {})
    assert (get("PI"), listing()) == (3.141592653589793, ["PI"])
    with pytest.raises(AttributeError, match="module 'here' has no attribute 'tau'"):
        get("tau")
