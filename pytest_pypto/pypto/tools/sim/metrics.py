"""Sums over the counters of a profile: by core and by kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .reading import Profile, TaskRow

_KEYS = ("thread_id", "core_id", "task_id", "func_id", "core_type", "event_type")
_CACHE = "icache"
_SCALAR = "scalar"


def counts_of(row: TaskRow) -> dict[str, int]:
    """The counters of a task, without what names it."""
    return {name: int(value) for name, value in row.counters.items() if name not in _KEYS}


def busy(row: TaskRow, keep_scalar: bool) -> dict[str, int]:
    """Counters that a reader of a trace needs: no cache misses, and the scalar unit on request."""
    return {name: n for name, n in counts_of(row).items() if _kept(name, keep_scalar)}


def _kept(name: str, keep_scalar: bool) -> bool:
    return not name.startswith(_CACHE) and (keep_scalar or not name.startswith(_SCALAR))


def metrics(profile: Profile, keep_scalar: bool, raw: bool) -> dict[str, Any]:
    """Tables of a profile, times in ticks.

    Args:
        profile: what was measured.
        keep_scalar: whether to keep the scalar unit's counter.
        raw: one row for each task on a core with every counter, instead of sums by kernel and kind of core.

    Returns:
        `cores` (core, core_type, tasks, busy_ticks, first_tick, last_tick), `instructions` (the rows described by
        `raw`) and `column_types` for the columns of `instructions`.
    """
    rows = [_raw(row, profile) for row in profile.tasks] if raw else _sums(profile, keep_scalar)
    columns = dict.fromkeys(name for row in rows for name in row)
    types = {name: "str" if isinstance(next(r[name] for r in rows if name in r), str) else "int" for name in columns}
    return {"cores": [_core(core, profile) for core in _cores(profile)], "instructions": rows, "column_types": types}


def _cores(profile: Profile) -> list[int]:
    return sorted({row.core for row in profile.tasks})


def _core(core: int, profile: Profile) -> dict[str, Any]:
    rows = [row for row in profile.tasks if row.core == core]
    return {
        "core": core,
        "core_type": profile.core_types[core],
        "tasks": len(rows),
        "busy_ticks": sum(row.end - row.start for row in rows),
        "first_tick": min(row.start for row in rows),
        "last_tick": max(row.end for row in rows),
    }


def _raw(row: TaskRow, profile: Profile) -> dict[str, Any]:
    place = {"kernel": row.kernel, "core_type": profile.core_types[row.core], "core": row.core, "task": str(row.task)}
    return place | {"start_tick": row.start, "end_tick": row.end} | counts_of(row)


def _sums(profile: Profile, keep_scalar: bool) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[TaskRow]] = {}
    for row in profile.tasks:
        groups.setdefault((row.kernel, profile.core_types[row.core]), []).append(row)
    return [_sum(kernel, kind, rows, keep_scalar) for (kernel, kind), rows in sorted(groups.items())]


def _sum(kernel: str, kind: str, rows: list[TaskRow], keep_scalar: bool) -> dict[str, Any]:
    ticks = [row.end - row.start for row in rows]
    head = {"kernel": kernel, "core_type": kind, "runs": len(rows), "ticks": sum(ticks), "max_ticks": max(ticks)}
    return head | _added(busy(row, keep_scalar) for row in rows)


def _added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for part in parts:
        for name, n in part.items():
            out[name] = out.get(name, 0) + n
    return out
