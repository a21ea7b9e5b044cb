"""Tasks, arrays and properties of the device."""

from __future__ import annotations

from typing import Any

_TRACE: Any = None
"""Called as `_TRACE(function, name, value)` after each assignment of a script that was generated with a trace."""
_CLUSTER_COUNT = 24
"""Core groups (one cube and two vector cores) of the device that host programs ask for."""
_task_ids = 0


def _new_task_id() -> int:
    """The id of a task that has just run: a number above 0."""
    global _task_ids
    _task_ids += 1
    return _task_ids


def _array_set(array: list[Any], index: Any, value: Any) -> list[Any]:
    """A copy of a small array with one element replaced."""
    at = int(index)
    if not 0 <= at < len(array):
        raise IndexError(f"array index {at} lies outside 0..{len(array) - 1}")
    return [*array[:at], value, *array[at + 1 :]]


def _array_get(array: list[Any], index: Any) -> Any:
    """One element of a small array."""
    at = int(index)
    if not 0 <= at < len(array):
        raise IndexError(f"array index {at} lies outside 0..{len(array) - 1}")
    return array[at]
