"""The scheduler of mixed groups: one cube core and one or two vector lanes, of which exactly one runs at a time.

Generated lanes are generators: they yield a request where they may have to wait, and the scheduler resumes them when
it can be met. Plain functions that a user put in their place run on pooled threads that hand a baton on.
"""

from __future__ import annotations

import functools
import random
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from queue import Empty, SimpleQueue
from typing import Any

import torch

from .pipes import _PIPE_WAIT_TIMEOUT_SEC, _block, _Pipes, _snapshot_of, _timeout_text, _Wait
from .state import _core, _set_runtime_cancel_event

_MIXED_KERNEL_TIMEOUT_SEC = 30.0
"""How long a group may run while plain functions take part in it."""
_SCHEDULE_SEED: int | None = None
"""None: the first core that can run runs, cube before lane 0 before lane 1. A number: a reproducible random order."""
_LEFTOVER = "warn"
"""What tiles left in the pipes at the end of a group mean: "warn", "error" or "ignore"."""
_BATON_GRACE_SEC = 0.05
"""A plain function that keeps the baton longer than this no longer holds the others up."""
_SOURCE_OF: Callable[[str, int], str] | None = None
"""Set by runners: where a line of the script (file name of its code, number) comes from, for reports."""
_GROUP_META: dict[str, dict[str, Any]] = {}
_schedules = 0


def _lane(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a kernel schedulable: `.lane(*args)` is its generator; a direct call runs it to the end."""
    if not function.__code__.co_flags & 0x20:
        function.inline = True  # type: ignore[attr-defined]
        return function

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        return _drive(function(*args))

    call.lane = function  # type: ignore[attr-defined]
    return call


def _drive(steps: Generator[Any, Any, Any]) -> Any:
    """Run a kernel's generator to the end on this thread; its pops wait for other threads."""
    value = None
    while True:
        before, _core.stepping = _core.stepping, True
        try:
            request = steps.send(value)
        except StopIteration as stop:
            return stop.value
        finally:
            _core.stepping = before
        value = _answer(request)


def _answer(request: Any) -> Any:
    if not isinstance(request, _Wait):
        return None
    return request.take() if request.ready() else _block(request)


class _Barrier:
    """All cores of the kind `core_type` (mix, aic_only, aiv_only) of all blocks wait for each other."""

    __slots__ = ("core_type",)

    def __init__(self, core_type: str = "mix") -> None:
        self.core_type = core_type

    def covers(self, is_cube: bool) -> bool:
        """True when the barrier waits for a core of this kind."""
        return self.core_type == "mix" or (self.core_type == "aic_only") == is_cube

    def text(self) -> str:
        """`syncall (mix)`."""
        return f"syncall ({self.core_type})"


class _Core:
    """One core of a group: its generator, or the thread that runs its plain function."""

    def __init__(self, run: _GroupRun, role: str, function: str, lane: int | None, body: Any) -> None:
        self.run, self.role, self.function, self.lane = run, role, function, lane
        self.waiting: Any = None
        self.done = False
        self.value: Any = None
        self.steps: Any = None
        self.thread: Any = None
        self.running = False
        if not _is_generated(body):
            self.thread = _ThreadLane(self, body)
        else:
            self.steps = _inline(body, run.args) if getattr(body, "inline", False) else body.lane(*run.args)

    @property
    def name(self) -> str:
        """`<group>-aic` or `<group>-aiv-lane<n>`; also the name of the thread of a plain function."""
        return f"{self.run.group}-{self.role}" + ("" if self.lane is None else f"-lane{self.lane}")

    def can_run(self) -> bool:
        """True when the core has something to do now."""
        if self.done or self.running:
            return False
        return self.waiting is None or (isinstance(self.waiting, _Wait) and self.waiting.ready())

    def step(self) -> None:
        """Run until the core has to wait or is finished."""
        if self.thread is not None:
            self.thread.step()
            return
        value, self.waiting = (None if self.waiting is None else self.waiting.take()), None
        run = self.run
        _core.pipes, _core.subblock, _core.stepping, _core.thread_lane = run.pipes, self.lane or 0, True, None
        try:
            while True:
                request = self.steps.send(value)
                value = None
                if request is not None:
                    if not isinstance(request, _Wait) or not request.ready():
                        self.waiting = request
                        return
                    value = request.take()
                if run.rng is not None and value is None and run.rng.random() < 0.5:
                    return
        except StopIteration as stop:
            self.done, self.value = True, stop.value
        except Exception as exc:  # whatever a core raises ends its group
            self.done = True
            run.fail(self, exc)

    def where(self) -> str:
        """What the core waits for, and where in the script."""
        what = "runs" if self.waiting is None else f"waits in {self.waiting.text()}"
        frame = _deepest(self.steps) if self.steps is not None else None
        if frame is None:
            return f"{self.name}: {self.function} {what}"
        line = frame.f_lineno
        source = "" if _SOURCE_OF is None else f", {_SOURCE_OF(frame.f_code.co_filename, line)}"
        return f"{self.name}: {frame.f_code.co_name} {what} at script line {line}{source}"


def _is_generated(body: Any) -> bool:
    """True for kernels that the generator wrote; others run on threads."""
    return getattr(body, "lane", None) is not None or getattr(body, "inline", False)


def _inline(body: Callable[..., Any], args: tuple[Any, ...]) -> Generator[Any, Any, Any]:
    """A kernel that never waits, as a generator."""
    return body(*args)
    yield


def _deepest(steps: Any) -> Any:
    """The innermost suspended frame of a generator."""
    while getattr(steps, "gi_yieldfrom", None) is not None and hasattr(steps.gi_yieldfrom, "gi_frame"):
        steps = steps.gi_yieldfrom
    return steps.gi_frame


class _GroupRun:
    """One call of a group: its cores and their pipes."""

    def __init__(self, group: str, meta: dict[str, Any], args: tuple[Any, ...]) -> None:
        global _schedules
        self.group, self.meta, self.args = group, meta, args
        split, dual = int(meta.get("split", 0)), bool(meta.get("dual_aiv_dispatch", False))
        logical = bool(meta.get("logical_vector_core", False))
        lanes = 2 if (split in (1, 2, 3, 4) or dual) and not logical else 1
        bodies = {role: globals().get(meta[role]) for role in ("aic", "aiv")}
        missing = [meta[role] for role, body in bodies.items() if not callable(body)]
        if missing:
            raise RuntimeError(f"Mixed-kernel function lookup failed for {group}: no function {', '.join(missing)}")
        self.threads = any(not _is_generated(body) for body in bodies.values())
        two_ends = dual and not logical and (split == 0 or bool(meta.get("mixed_split")))
        self.pipes = _Pipes(two_ends, logical, self.threads)
        self.rng = None if _SCHEDULE_SEED is None else random.Random(_SCHEDULE_SEED * 1000003 + _schedules)
        _schedules += 1
        self.failure: Any = None
        self.outer: tuple[Any, ...] = ()
        self.block = (_core.block, _core.blocks)
        self.inbox: Any = SimpleQueue() if self.threads else None
        self.cancel: Any = threading.Event() if self.threads else None
        self.start = time.monotonic()
        self.cores = [_Core(self, "aic", meta["aic"], None, bodies["aic"])]
        self.cores += [_Core(self, "aiv", meta["aiv"], lane, bodies["aiv"]) for lane in range(lanes)]

    def fail(self, core: _Core, exc: BaseException) -> None:
        """Remember the first failure."""
        if self.failure is None:
            self.failure = (core, exc)

    def steps(self) -> Generator[Any, Any, Any]:
        """Run all cores to the end; yields a barrier when all that go on wait for other blocks."""
        self.outer = (_core.pipes, _core.subblock, _core.stepping, _core.thread_lane, _core.cancel)
        try:
            while not all(core.done for core in self.cores):
                _core.cancel = self.cancel
                ready = [core for core in self.cores if core.can_run()]
                if ready:
                    (ready[0] if self.rng is None else self.rng.choice(ready)).step()
                elif any(core.running for core in self.cores):
                    self.receive(None)
                else:
                    yield from self.pass_barrier()
                if self.failure is not None:
                    raise self.failed()
            self.check_left()
        finally:
            self.stop()
            self.leave()
        return self.cores[0 if self.meta.get("result") == "aic" else 1].value

    def leave(self) -> None:
        """Make this thread again what it was before the group."""
        _core.pipes, _core.subblock, _core.stepping, _core.thread_lane, _core.cancel = self.outer

    def pass_barrier(self) -> Generator[Any, Any, None]:
        """Let the cores that wait at one barrier go on once all of its kind are there."""
        here = [core for core in self.cores if isinstance(core.waiting, _Barrier)]
        for barrier in {core.waiting.core_type: core.waiting for core in here}.values():
            members = [core for core in self.cores if barrier.covers(core.lane is None)]
            if all(isinstance(c.waiting, _Barrier) and c.waiting.core_type == barrier.core_type for c in members):
                self.leave()
                yield barrier
                for core in members:
                    core.waiting = None
                return
        seconds = time.monotonic() - self.start
        raise RuntimeError(self.report(f" (deadlock detected after {seconds:.2f} s)"))

    def receive(self, grace: float | None) -> None:
        """Wait until a thread hands its baton back, at most `grace` seconds or until the group's time is up."""
        left = self.start + _MIXED_KERNEL_TIMEOUT_SEC - time.monotonic()
        try:
            core = self.inbox.get(timeout=max(0.0, left if grace is None else min(grace, left)))
        except Empty:
            if grace is not None and left > grace:
                return
            raise RuntimeError(self.report("")) from None
        core.running = False

    def report(self, note: str) -> str:
        """The text of a time-out: who is left, what each waits for, what the pipes hold."""
        alive = [core for core in self.cores if not core.done]
        text = f"Mixed-kernel execution timeout for {self.group}{note}; alive_threads={[core.name for core in alive]}; "
        rows = [core.where() for core in alive] + self.pipes.left()
        return text + f"pipe_state={_snapshot_of(self.pipes)}" + "".join(f"\n  {row}" for row in rows)

    def failed(self) -> BaseException:
        """The error that reports the first failure, chained to it."""
        core, exc = self.failure
        trace = "".join(traceback.format_exception(type(exc), exc, exc.__traceback__))
        error = RuntimeError(
            f"Mixed-kernel execution failed in {core.function} (lane={core.lane}) for {self.group}\n{trace}"
        )
        error.__cause__ = exc
        return error

    def check_left(self) -> None:
        """Report tiles that nobody popped."""
        left = self.pipes.left() if _LEFTOVER != "ignore" else []
        if not left:
            return
        text = f"group {self.group} ended with tiles in its pipes: {'; '.join(left)}"
        if _LEFTOVER == "error":
            raise RuntimeError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

    def stop(self) -> None:
        """Cancel what still runs and let the threads go."""
        if self.cancel is not None:
            self.cancel.set()
        for core in self.cores:
            if core.steps is not None:
                core.steps.close()
            elif core.thread is not None:
                core.thread.stop()
        _set_runtime_cancel_event(None)


class _ThreadLane:
    """The baton of a plain function: its thread runs only while the scheduler lets it."""

    def __init__(self, core: _Core, body: Callable[..., Any]) -> None:
        self.core, self.body = core, body
        self.turn = threading.Semaphore(0)
        self.finished = threading.Event()
        self.worker: Any = None

    def step(self) -> None:
        """Give the thread the baton and wait until it comes back."""
        core = self.core
        core.waiting, core.running = None, True
        if self.worker is None:
            _set_runtime_cancel_event(core.run.cancel)
            self.worker = _worker(core.name, self.work)
        else:
            self.turn.release()
        core.run.receive(_BATON_GRACE_SEC)

    def work(self) -> None:
        """The thread's side: run the function as the lane it stands for."""
        core = self.core
        _core.pipes, _core.subblock, _core.thread_lane = core.run.pipes, core.lane or 0, self
        _core.cancel, _core.stepping = core.run.cancel, False
        _core.block, _core.blocks = core.run.block
        try:
            with torch.no_grad():
                core.value = self.body(*core.run.args)
        except BaseException as exc:  # nothing else would carry it from this thread to the caller
            if not core.run.cancel.is_set():
                core.run.fail(core, exc)
        finally:
            core.done = True
            _core.pipes, _core.subblock, _core.thread_lane, _core.cancel = None, 0, None, None
            self.finished.set()
            core.run.inbox.put(core)

    def hand_over(self, wait: _Wait) -> Any:
        """Wait for `wait` on behalf of the thread: hand the baton back until it can be taken."""
        core, pipes = self.core, wait.pipes
        with pipes.condition:
            if wait.ready():
                return wait.take()
            core.waiting = wait
        core.run.inbox.put(core)
        deadline = time.monotonic() + _PIPE_WAIT_TIMEOUT_SEC
        while not self.turn.acquire(timeout=0.05):
            if time.monotonic() > deadline:
                raise RuntimeError(_timeout_text(wait))
        if core.run.cancel.is_set():
            raise RuntimeError(f"{wait.op} cancelled (split={wait.split}, lane={wait.lane})")
        with pipes.condition:
            return wait.take()

    def stop(self) -> None:
        """Wake the thread so that it leaves, and give it a moment."""
        if self.worker is not None and not self.finished.is_set():
            self.turn.release()
            self.finished.wait(0.2)


_idle_workers: list[Any] = []


def _worker(name: str, job: Callable[[], None]) -> threading.Thread:
    """Run `job` on an idle daemon thread of the pool, or on a new one."""
    if _idle_workers:
        thread, jobs = _idle_workers.pop()
    else:
        jobs = SimpleQueue()
        thread = threading.Thread(target=_work_off, args=(jobs,), daemon=True)
        thread.start()
    thread.name, thread._pypto_idle = name, False
    jobs.put(job)
    return thread  # type: ignore[no-any-return]


def _work_off(jobs: SimpleQueue[Callable[[], None]]) -> None:
    me: Any = threading.current_thread()
    while True:
        jobs.get()()
        me.name, me._pypto_idle = "pypto-idle", True
        _idle_workers.append((me, jobs))


def _run_mixed_kernels(group_name: str, meta: dict[str, Any], *args: Any) -> Any:
    """Run the cores of a group to the end; the result is what vector lane 0 returned.

    Raises:
        RuntimeError: a core failed, nothing can run any more, or the time is up.
    """
    return _drive(_GroupRun(group_name, meta, args).steps())


def _run_group_call(name: str, *args: Any) -> Any:
    """Call a group: under the scheduler when it is one of a cube and a vector kernel, else as a plain function."""
    return _drive(_group_lane(name, *args))


def _group_lane(name: str, *args: Any) -> Generator[Any, Any, Any]:
    """A group call as a generator, for callers that are scheduled themselves."""
    meta = _GROUP_META.get(name)
    if meta is not None:
        return (yield from _GroupRun(name, meta, args).steps())
    function = globals().get(name)
    if not callable(function):
        raise RuntimeError(f"Mixed-kernel function lookup failed: no function {name}")
    if getattr(function, "lane", None) is not None:
        return (yield from function.lane(*args))
    return function(*args)
