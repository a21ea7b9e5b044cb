"""`benchmark`: the time of repeated dispatches."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any

from .bench_stats import DEVICE, ROOT, BenchmarkStats, TraceInvocation, TraceSpan
from .compiled import CompiledProgram
from .config import RunConfig
from .distributed import DistributedCompiledProgram, refuse
from .logs import TIMING, logger


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Dispatch `warmup + rounds` times and time the last `rounds`.

    The simulator has no device clock: `device_wall_us` is all zeros and `host_wall_us` is what to read. Host times are
    those of the Python simulator; they say nothing about hardware.

    Raises:
        ValueError: bad counts, `config` together with `platform` or `device_id`, or `persistent` on one chip.
    """
    _check(rounds, warmup, platform, device_id, config)
    if isinstance(compiled, DistributedCompiledProgram):
        if platform is not None or device_id is not None:
            raise ValueError("platform and device_id do not apply to an L3 artifact; its distributed_config decides")
        refuse("benchmark() of a distributed artifact")
    if persistent or reset_persistent_windows is not None:
        raise ValueError("persistent windows exist only for distributed (L3) artifacts")
    chosen = config
    if chosen is None:
        chosen = RunConfig(platform=platform if platform is not None else compiled.platform)
        chosen = dataclasses.replace(chosen, device_id=device_id or 0)
    with _timing_level():
        invocations = [_one(compiled, args, chosen, number) for number in range(warmup + rounds)][warmup:]
    return BenchmarkStats(
        device_wall_us=[i.device_wall_us for i in invocations],
        host_wall_us=[i.host_wall_us for i in invocations],
        rounds=rounds,
        warmup=warmup,
        invocations=invocations,
        rounds_dispatches=[{i.pid: [i]} for i in invocations],
    )


def _check(rounds: int, warmup: int, platform: str | None, device_id: int | None, config: RunConfig | None) -> None:
    if rounds <= 0:
        raise ValueError(f"rounds must be positive, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("pass config=, or platform= and device_id=, not both")


@contextmanager
def _timing_level() -> Iterator[None]:
    before = logger.level
    logger.setLevel(TIMING)
    try:
        yield
    finally:
        logger.setLevel(before)


def _one(compiled: CompiledProgram, args: Sequence[Any], config: RunConfig, number: int) -> TraceInvocation:
    start = perf_counter_ns()
    compiled(*args, config=config)
    wall = perf_counter_ns() - start
    who: dict[str, Any] = {"pid": os.getpid(), "tid": threading.get_ident(), "inv": number, "hid": 0}
    label = {"task": number, "task_name": os.path.basename(os.fspath(compiled))}
    spans = (
        TraceSpan(**who, depth=0, name=ROOT, ts=start, dur=wall, attrs=label),
        TraceSpan(**who, depth=1, name=f"{ROOT}.runner_run", ts=start, dur=wall),
        TraceSpan(**who, depth=2, name=DEVICE, ts=start, dur=0),
    )
    return TraceInvocation(os.getpid(), number, 0, spans)
