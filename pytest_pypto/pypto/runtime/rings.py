"""Ring sizes: limits of the task queues and heaps of a dispatch, one value or one per scope depth."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

RINGS = 4
INT32_MAX = 2**31 - 1
RingValue: TypeAlias = "int | list[int] | tuple[int, ...] | None"


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True, slots=True)
class RingRule:
    """What one ring setting accepts. `lenient` is the rule of the environment variable."""

    field: str
    text: str
    holds: Callable[[int], bool]
    variable: str
    lenient: Callable[[int], bool]


RULES: tuple[RingRule, ...] = (
    RingRule(
        "ring_task_window",
        "be a power of 2 >= 4",
        lambda v: _power_of_two(v) and v >= 4,
        "PTO2_RING_TASK_WINDOW",
        lambda v: _power_of_two(v) and v >= 4,
    ),
    RingRule(
        "ring_heap",
        "be a power of 2 >= 1024 (bytes per ring)",
        lambda v: _power_of_two(v) and v >= 1024,
        "PTO2_RING_HEAP",
        lambda v: v >= 1024,
    ),
    RingRule(
        "ring_dep_pool",
        "be in [4, INT32_MAX]",
        lambda v: 4 <= v <= INT32_MAX,
        "PTO2_RING_DEP_POOL",
        lambda v: 4 <= v <= INT32_MAX,
    ),
)


def checked_ring(rule: RingRule, value: RingValue) -> int | list[int] | None:
    """A ring setting as it is stored: None, one number, or a list of four (0 keeps a ring's default).

    Raises:
        ValueError: wrong type, size or value.
    """
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return _checked_list(rule, value)
    if isinstance(value, bool) or not isinstance(value, int) or not rule.holds(value):
        raise ValueError(f"{rule.field} must {rule.text}, got {value!r}")
    return value


def _checked_list(rule: RingRule, values: list[int] | tuple[int, ...]) -> list[int]:
    if len(values) != RINGS:
        raise ValueError(f"{rule.field} must have exactly {RINGS} entries, one per ring, got {len(values)}: {values!r}")
    for value in values:
        number = isinstance(value, int) and not isinstance(value, bool)
        if not number or (value != 0 and not rule.holds(value)):
            raise ValueError(f"{rule.field} entries must {rule.text} (or 0 to keep default), got {value!r}")
    return list(values)


def ring_of_environment(rule: RingRule) -> int | list[int] | None:
    """The setting of the environment variable: one number, or four with commas.

    Raises:
        ValueError: the variable holds something else.
    """
    text = os.environ.get(rule.variable, "").strip()
    if not text:
        return None
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, RINGS) or not all(rule.lenient(v) for v in values):
        raise ValueError(f"{rule.variable}={text!r} must {rule.text}: one number, or {RINGS} separated by commas")
    return values[0] if len(values) == 1 else values


def effective_ring(rule: RingRule, value: RingValue, default: int) -> int | tuple[int, int, int, int]:
    """What a dispatch uses: the configuration, else the environment, else the default; ring by ring for lists."""
    environment = ring_of_environment(rule)
    if value is None and not isinstance(environment, list):
        return default if environment is None else environment
    per_ring = [default] * RINGS
    for source in (environment, value):
        if isinstance(source, int):
            per_ring = [source] * RINGS
        elif source is not None:
            per_ring = [new or old for new, old in zip(source, per_ring, strict=True)]
    first, second, third, fourth = per_ring
    return first if len(set(per_ring)) == 1 else (first, second, third, fourth)
