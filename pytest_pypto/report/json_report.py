"""Verdicts of a session as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_pypto.harness.verdict import Verdict


def render(verdicts: Sequence[Verdict], *, complete: bool = True) -> str:
    """JSON text; `complete` is False for a session that was cut short, so that nobody takes it for all results."""
    data = {"schema": 1, "complete": complete, "verdicts": [v.to_dict() for v in verdicts]}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
