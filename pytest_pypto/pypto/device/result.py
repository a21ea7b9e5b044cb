"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .findings import ERROR, Finding
from .measure.counters import Counters


@dataclass(frozen=True)
class DeviceResult:
    """Outcome of one run.

    `returned` is what the entry returns: an array (one of the arguments where it is one), a number, a tuple of them,
    or None. `findings` are in the order of their discovery; `dropped` counts those beyond the limit. `completed` is
    False when a finding stopped the run, and the arrays then hold what was computed until then. `orders` is the number
    of execution orders that were run, `capped` says that the exhaustive search hit its limit.
    """

    returned: Any = None
    findings: tuple[Finding, ...] = ()
    counters: Counters = field(default_factory=Counters)
    completed: bool = True
    dropped: int = 0
    orders: int = 1
    capped: bool = False

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that fail a test."""
        return tuple(f for f in self.findings if f.severity == ERROR)
