"""What a benchmark measured: times per round, and the spans of each dispatch as a tree."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

ROOT = "chip.run"
DEVICE = f"{ROOT}.runner_run.device_wall"
METRICS = ("device", "host", "effective", "union")


@dataclass(frozen=True)
class TraceSpan:
    """One timed interval; `ts` and `dur` are nanoseconds, `depth` counts from the root."""

    pid: int
    tid: int
    inv: int
    hid: int
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """True for spans of the device's clock."""
        return self.name.startswith(DEVICE)

    @property
    def dur_us(self) -> float:
        """Duration in microseconds."""
        return self.dur / 1e3


@dataclass(frozen=True)
class TraceInvocation:
    """The spans of one dispatch, in order of their start."""

    pid: int
    inv: int
    hid: int
    spans: tuple[TraceSpan, ...]

    @property
    def root(self) -> TraceSpan:
        """The span around everything."""
        return min(self.spans, key=lambda s: (s.depth, s.ts))

    def by_name(self) -> dict[str, TraceSpan]:
        """Spans by name; the first one of a name."""
        found: dict[str, TraceSpan] = {}
        for span in self.spans:
            found.setdefault(span.name, span)
        return found

    @property
    def task(self) -> Any:
        """The `task` attribute of the root, or None."""
        return self.root.attrs.get("task")

    @property
    def task_name(self) -> str:
        """The `task_name` attribute of the root, or its name."""
        return str(self.root.attrs.get("task_name", self.root.name))

    @property
    def device_wall_us(self) -> float:
        """Device time; 0 on a simulator, which has no device clock."""
        span = self.by_name().get(DEVICE)
        return span.dur_us if span is not None else 0.0

    @property
    def host_wall_us(self) -> float:
        """Time of the whole dispatch on the host's clock."""
        return self.root.dur_us

    @property
    def effective_us(self) -> float:
        """Device time where there is one, else host time."""
        return self.device_wall_us or self.host_wall_us

    def format_tree(self, *, us: bool = True) -> str:
        """The spans as an indented tree."""
        lines = []
        for span in sorted(self.spans, key=lambda s: (s.ts, s.depth)):
            amount = f"{span.dur_us:.1f}us" if us else f"{span.dur}ns"
            lines.append(f"{'  ' * span.depth}{span.name} {amount}")
        return "\n".join(lines)


@dataclass
class BenchmarkStats:
    """Times of `rounds` dispatches; warm-up rounds are not among them."""

    device_wall_us: list[float]
    host_wall_us: list[float]
    rounds: int
    warmup: int
    invocations: list[TraceInvocation] = field(default_factory=list)
    rounds_dispatches: list[dict[int, list[TraceInvocation]]] = field(default_factory=list)
    fallback_flattened: bool = False
    unstable_dispatch_slots: list[int] = field(default_factory=list)

    @property
    def samples(self) -> list[float]:
        """The device times."""
        return self.device_wall_us

    @property
    def all_zero_device(self) -> bool:
        """True when the device has no clock: use `host_wall_us`."""
        return not any(self.device_wall_us)

    @property
    def device_us_min(self) -> float:
        """Smallest device time; 0 without samples."""
        return min(self.device_wall_us, default=0.0)

    @property
    def device_us_max(self) -> float:
        """Largest device time; 0 without samples."""
        return max(self.device_wall_us, default=0.0)

    @property
    def device_us_mean(self) -> float:
        """Mean device time; 0 without samples."""
        return statistics.fmean(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_median(self) -> float:
        """Median device time; 0 without samples."""
        return statistics.median(self.device_wall_us) if self.device_wall_us else 0.0

    @property
    def device_us_stdev(self) -> float:
        """Standard deviation of the device times; 0 for fewer than two."""
        return statistics.stdev(self.device_wall_us) if len(self.device_wall_us) > 1 else 0.0

    device_wall_us_min = device_us_min
    device_wall_us_max = device_us_max
    device_wall_us_mean = device_us_mean
    device_wall_us_median = device_us_median
    device_wall_us_stdev = device_us_stdev

    def per_round(self, metric: str = "device") -> list[float]:
        """One number per round: device, host, effective (device, else host) or union (host) microseconds.

        Raises:
            ValueError: another metric.
        """
        self._check(metric, METRICS)
        if metric == "device":
            return list(self.device_wall_us)
        if metric == "effective":
            return [d or h for d, h in zip(self.device_wall_us, self.host_wall_us, strict=True)]
        return list(self.host_wall_us)

    def per_rank(self, metric: str = "device") -> dict[int, list[float]]:
        """Numbers per process id and round; one chip is one process.

        Raises:
            ValueError: another metric.
        """
        self._check(metric, METRICS[:3])
        pid = self.invocations[0].pid if self.invocations else 0
        return {pid: self.per_round(metric)}

    def per_dispatch(self, metric: str = "device") -> list[float]:
        """One number per dispatch, in order.

        Raises:
            ValueError: another metric.
        """
        self._check(metric, METRICS[:3])
        name = {"device": "device_wall_us", "host": "host_wall_us", "effective": "effective_us"}[metric]
        return [getattr(i, name) for i in self.invocations]

    @staticmethod
    def _check(metric: str, known: Sequence[str]) -> None:
        if metric not in known:
            raise ValueError(f"metric must be one of {list(known)}, got {metric!r}")

    def dispatch_groups(self) -> list[list[TraceInvocation]]:
        """The dispatches of each round."""
        return [[i] for i in self.invocations]

    def dispatch_tasks(self) -> list[str]:
        """Names of the dispatched tasks, each once."""
        return list(dict.fromkeys(i.task_name for i in self.invocations))

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """The spans of one dispatch (the last one by default)."""
        if not self.invocations:
            return "(no dispatches)"
        return self.invocations[-1 if launch is None else launch].format_tree(us=us)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: TextIO | None = None) -> None:
        """Write `format_tree` to a stream."""
        (file or sys.stdout).write(self.format_tree(launch, us=us) + "\n")

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> dict[str, float]:
        """Mean microseconds per span name."""
        sums: dict[str, list[float]] = {}
        for invocation in self.invocations:
            for span in invocation.spans:
                sums.setdefault(span.name, []).append(span.dur_us)
        return {name: statistics.fmean(values) for name, values in sums.items()}

    def format_mean_tree(
        self, *, us: bool = True, spread: str = "stdev", pid: int | None = None, slot: int | None = None
    ) -> str:
        """Mean spans as a tree, with their spread (stdev, minmax, both or none).

        Raises:
            ValueError: another spread.
        """
        self._check_spread(spread)
        means = self.mean_invocation(pid=pid, slot=slot)
        depth = {s.name: s.depth for i in self.invocations for s in i.spans}
        lines = []
        for name, mean in means.items():
            values = [s.dur_us for i in self.invocations for s in i.spans if s.name == name]
            lines.append(f"{'  ' * depth[name]}{name} {mean:.1f}us{_spread(values, spread)}")
        return "\n".join(lines) if lines else "(no dispatches)"

    @staticmethod
    def _check_spread(spread: str) -> None:
        known = ("stdev", "minmax", "both", "none")
        if spread not in known:
            raise ValueError(f"spread must be one of {', '.join(known)}, got {spread!r}")

    def print_mean_tree(self, *, file: TextIO | None = None, **options: Any) -> None:
        """Write `format_mean_tree` to a stream."""
        (file or sys.stdout).write(self.format_mean_tree(**options) + "\n")

    def __str__(self) -> str:
        head = f"BenchmarkStats(rounds={self.rounds}, warmup={self.warmup})"
        if not self.device_wall_us:
            return f"{head}: no samples)"
        if self.all_zero_device:
            return f"{head}: the simulator has no device clock; use host_wall_us"
        parts = " ".join(
            f"{k}={getattr(self, f'device_us_{k}'):.1f}" for k in ("min", "median", "mean", "max", "stdev")
        )
        return f"{head}: device_wall_us {parts}"


def _spread(values: Sequence[float], spread: str) -> str:
    deviation = f" ±{statistics.stdev(values) if len(values) > 1 else 0.0:.1f}"
    extremes = f" [{min(values):.1f}, {max(values):.1f}]"
    return {"stdev": deviation, "minmax": extremes, "both": deviation + extremes, "none": ""}[spread]
