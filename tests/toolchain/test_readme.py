"""What README says of the environment is what the package reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest_pypto

ROOT = Path(pytest_pypto.__file__).resolve().parents[1]
RESULT_MARKER = "PYPTO_EXEC_RESULT"  # starts a line of output
VARIABLE = re.compile(r"\b(?:PYTEST_)?PYPTO_[A-Z_]*[A-Z]\b")


def test_every_environment_variable_is_described() -> None:
    """Names are written as whole strings where they are read."""
    sources = [p.read_text(encoding="utf-8") for p in (ROOT / "pytest_pypto").rglob("*.py")]
    read = {name for text in sources for name in re.findall(rf'"({VARIABLE.pattern})"', text)} - {RESULT_MARKER}
    rows = [line for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `P")]
    described = {name for row in rows for name in VARIABLE.findall(row.split("|")[1])}
    assert described == read
