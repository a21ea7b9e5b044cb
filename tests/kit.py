"""What tests need and may not find: the compatibility kit beside a checkout, types that only newer torch has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

KIT = Path(__file__).resolve().parents[2] / "shared" / "compat"
SPEC = KIT.parent / "spec"

needs_kit = pytest.mark.skipif(
    not KIT.is_dir(), reason="the compatibility kit is not beside this checkout (../shared/compat)"
)
needs_spec = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the specification is not beside this checkout (../shared/spec)"
)


def shown(error: BaseException) -> str:
    """What a traceback shows of an error: its text and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def torch_type(name: str) -> Any:
    """`torch.<name>`; the test is skipped where this torch has no such type."""
    import torch

    if not hasattr(torch, name):
        pytest.skip(f"torch {torch.__version__} has no {name}")
    return getattr(torch, name)


def dump_files(only: str = "") -> list[Path]:
    """Every pass dump of the kit whose program name contains `only`; empty without the kit."""
    return sorted(p for p in KIT.glob("*/*/passes/*.py") if only in p.parents[2].name)
