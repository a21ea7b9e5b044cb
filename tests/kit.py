"""Where the compatibility kit lies beside a checkout, for the tests that compare with it."""

from __future__ import annotations

from pathlib import Path

import pytest

KIT = Path(__file__).resolve().parents[2] / "shared" / "compat"
SPEC = KIT.parent / "spec"

needs_kit = pytest.mark.skipif(
    not KIT.is_dir(), reason="the compatibility kit is not beside this checkout (../shared/compat)"
)
needs_spec = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the specification is not beside this checkout (../shared/spec)"
)


def dump_files(only: str = "") -> list[Path]:
    """Every pass dump of the kit whose program name contains `only`; empty without the kit."""
    return sorted(p for p in KIT.glob("*/*/passes/*.py") if only in p.parents[2].name)
