"""Trace events of a profile: one process per core, one lane per thread of work, arrows between dependent tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .metrics import busy
from .reading import Profile, TaskRow

CONTROL = 1_000_000
"""Process number of the control processor, above every core."""


@dataclass(frozen=True)
class Span:
    """A bar: from `start` to `end` in ticks."""

    name: str
    start: int
    end: int
    args: Mapping[str, Any] = field(default_factory=dict)


def lanes(spans: Iterable[Span]) -> list[list[Span]]:
    """Spans in as few lanes as needed so that none overlaps another of its lane.

    The order is by start; each span goes to the first lane that is free.
    """
    out: list[list[Span]] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        free = next((lane for lane in out if lane[-1].end <= span.start), None)
        if free is None:
            out.append([span])
        else:
            free.append(span)
    return out


def trace_events(profile: Profile, keep_scalar: bool) -> dict[str, Any]:
    """The profile in trace-event form, for a trace viewer; times in microseconds.

    Args:
        profile: what was measured.
        keep_scalar: whether tasks carry the busy time of the scalar unit too.
    """
    scale = 1e6 / profile.clock_hz
    events: list[dict[str, Any]] = []
    for core in sorted({row.core for row in profile.tasks}):
        rows = [row for row in profile.tasks if row.core == core]
        spans = [_task_span(row, keep_scalar) for row in rows]
        events += _process(core, f"{profile.core_types[core]} {core}", {"TASK": spans}, scale)
    events += _process(CONTROL, "control processor", _control(profile), scale)
    events += _arrows(profile, events)
    other = {"clock_freq_hz": profile.clock_hz} | ({"clock": profile.clock} if profile.clock else {})
    return {"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}


def _task_span(row: TaskRow, keep_scalar: bool) -> Span:
    args: dict[str, Any] = {"task_id": row.task}
    if row.dispatch is not None:
        args |= {"dispatch_tick": row.dispatch, "finish_tick": row.finish}
    counts = busy(row, keep_scalar)
    return Span(row.kernel, row.start, row.end, args | ({"busy_ticks": counts} if counts else {}))


def _control(profile: Profile) -> dict[str, list[Span]]:
    """Phases of the control processor. Turns of the scheduler that handled no task are dropped."""
    out: dict[str, list[Span]] = {}
    for number, thread in enumerate(profile.scheduler):
        phases = [p for p in thread if p.get("tasks_processed", 1)]
        out[f"SCHEDULER {number}"] = [_phase(str(p["kind"]), p) for p in phases]
    for number, thread in enumerate(profile.orchestrator):
        out[f"ORCHESTRATOR {number}"] = [_phase(f"submit {p['submit_idx']}", p) for p in thread]
    return {lane: spans for lane, spans in out.items() if spans}


def _phase(name: str, phase: Mapping[str, Any]) -> Span:
    args = {k: v for k, v in phase.items() if k not in ("kind", "start_cycles", "end_cycles")}
    return Span(name, int(phase["start_cycles"]), int(phase["end_cycles"]), args)


def _process(pid: int, name: str, groups: Mapping[str, Sequence[Span]], scale: float) -> Iterator[dict[str, Any]]:
    """Names and bars of one process; a group whose spans overlap gets lanes `NAME#1`, `NAME#2`, ..."""
    if not groups:
        return
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
    tid = 0
    for group, spans in groups.items():
        split = lanes(spans)
        for number, lane in enumerate(split, 1):
            label = group if len(split) == 1 else f"{group}#{number}"
            yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": label}}
            for span in lane:
                yield _bar(span, pid, tid, scale)
            tid += 1


def _bar(span: Span, pid: int, tid: int, scale: float) -> dict[str, Any]:
    times = {"ts": round(span.start * scale, 6), "dur": round((span.end - span.start) * scale, 6)}
    return {"ph": "X", "name": span.name, "pid": pid, "tid": tid, **times, "args": dict(span.args)}


def _arrows(profile: Profile, events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """An arrow for each dependency, from the last end of one task to the first start of the other."""
    bars: dict[int, list[Mapping[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X" and event["pid"] != CONTROL:
            bars.setdefault(event["args"]["task_id"], []).append(event)
    out: list[dict[str, Any]] = []
    for number, (pred, succ) in enumerate(edge for edge in profile.edges if edge[0] in bars and edge[1] in bars):
        last = max(bars[pred], key=lambda e: float(e["ts"] + e["dur"]))
        first = min(bars[succ], key=lambda e: float(e["ts"]))
        common = {"name": "dependency", "cat": "dependency", "id": number}
        out.append(
            {"ph": "s", **common, "pid": last["pid"], "tid": last["tid"], "ts": round(last["ts"] + last["dur"], 6)}
        )
        out.append({"ph": "f", "bp": "e", **common, "pid": first["pid"], "tid": first["tid"], "ts": first["ts"]})
    return out
