"""The program after every pass, kept in memory.

Three sources, in this order: what was captured while the harness compiled; a rerun of the passes on the program that
the compiled handle still holds; the files in `passes_dump/` of its artifact.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_pypto.harness.errors import CannotRun

CONTEXT_KEYS = ("verification_level", "diagnostic_phase", "memory_planner", "runtime")
"""Compile options that an active pass context must carry instead of the call."""


@dataclass(frozen=True)
class Stage:
    """A program as one pass left it.

    Attributes:
        name: as the dump file would be called, e.g. `00_frontend`, `04_after_ConvertToSSA`.
        program: an `ir.Program`.
        changed: False when the pass returned the program it got.
    """

    name: str
    program: Any
    changed: bool = True

    @property
    def pass_name(self) -> str:
        """`ConvertToSSA`; "" for the front end."""
        return self.name.partition("_after_")[2]


class Recorder:
    """Collects stages through an instrument of the pass context."""

    def __init__(self, program: Any = None) -> None:
        self.stages: list[Stage] = [] if program is None else [Stage("00_frontend", program)]

    def before(self, _pass: Any, program: Any) -> None:
        """Called before a pass: the first call sees the front-end program."""
        if not self.stages:
            self.stages.append(Stage("00_frontend", program))

    def after(self, pass_: Any, program: Any) -> None:
        """Called after a pass."""
        name = f"{len(self.stages):02d}_after_{pass_.get_name()}"
        self.stages.append(Stage(name, program, program is not self.stages[-1].program))


@contextmanager
def recording(
    options: Mapping[str, Any] | None = None, program: Any = None
) -> Iterator[tuple[Recorder, dict[str, Any]]]:
    """Record every pass that runs inside.

    Yields the recorder and the compile options that are left to pass on: a call that meets an active context must not
    repeat what the context carries.

    Args:
        options: keyword arguments meant for `ir.compile`.
        program: the front-end program, when known.
    """
    from pypto.pypto_core import passes
    from pypto.pypto_core.passes import CallbackInstrument, PassContext

    recorder = Recorder(program)
    rest = dict(options or {})
    outer = PassContext.current()
    if outer is not None:
        carried = {
            k: getattr(outer, f"get_{k}")()
            for k in (*CONTEXT_KEYS, "disabled_diagnostics")
            if hasattr(outer, f"get_{k}")
        }
        instruments = list(outer.get_instruments())
    else:
        carried = {key: rest.pop(key) for key in CONTEXT_KEYS if rest.get(key) is not None}
        if "verification_level" not in carried and hasattr(passes, "get_default_verification_level"):
            carried["verification_level"] = passes.get_default_verification_level()
        instruments = []
    hook = CallbackInstrument(before_pass=recorder.before, after_pass=recorder.after, name="pytest-pypto")
    with PassContext([*instruments, hook], **carried):
        yield recorder, rest


@contextmanager
def backend_for(platform: str) -> Iterator[None]:
    """Select the architecture of a platform, and put back what was selected."""
    from pypto import backend
    from pypto.runtime import RunConfig

    before = backend.get_backend_type() if backend.is_backend_configured() else None
    backend.reset_for_testing()
    backend.set_backend_type(RunConfig(platform=platform).backend_type)
    try:
        yield
    finally:
        backend.reset_for_testing()
        if before is not None:
            backend.set_backend_type(before)


@dataclass
class _Entry:
    program: Any
    options: dict[str, Any]
    stages: tuple[Stage, ...] | None


_KNOWN: dict[int, tuple[weakref.ref[Any], _Entry]] = {}
"""What is known about handles, by identity (handles compare by directory); an entry goes with its handle."""


def remember(compiled: Any, program: Any, options: Mapping[str, Any], stages: tuple[Stage, ...] | None = None) -> None:
    """Note the program, the compile options and the stages of a compiled handle."""
    key = id(compiled)
    gone = weakref.ref(compiled, lambda _ref: _KNOWN.pop(key, None))
    _KNOWN[key] = (gone, _Entry(program, dict(options), stages))


def _entry(compiled: Any) -> _Entry | None:
    found = _KNOWN.get(id(compiled))
    return found[1] if found is not None else None


def program_of(compiled: Any) -> Any:
    """The front-end program behind a handle, or None."""
    if hasattr(compiled, "functions"):
        return compiled
    entry = _entry(compiled)
    program = getattr(compiled, "program", None)
    return program if program is not None else (entry.program if entry else None)


def stages_of(compiled: Any, platform: str) -> tuple[Stage, ...]:
    """Every stage of a compiled program, the front end first.

    Args:
        compiled: a `CompiledProgram`.
        platform: decides the architecture when the passes have to run again.

    Raises:
        CannotRun: no stages were captured, the program is gone, and the artifact has no dumps.
    """
    entry = _entry(compiled)
    if entry is not None and entry.stages is not None:
        return entry.stages
    program = program_of(compiled)
    if program is not None:
        stages = rerun(program, platform, entry.options if entry else {})
    else:
        stages = from_dumps(Path(os.fspath(compiled)) / "passes_dump")
    remember(compiled, program, entry.options if entry else {}, stages)
    return stages


def rerun(program: Any, platform: str, options: Mapping[str, Any]) -> tuple[Stage, ...]:
    """Run the passes once more, without code generation."""
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager

    strategy = options.get("strategy", OptimizationStrategy.Default)
    deps = {k: options[k] for k in ("analyze_auto_scopes_for_deps",) if options.get(k)}
    with backend_for(platform), recording(options, program) as (recorder, _rest):
        PassManager.get_strategy(strategy, **deps).run_passes(program)
    return tuple(recorder.stages)


def from_dumps(folder: Path) -> tuple[Stage, ...]:
    """Load the dumps of an artifact; equal texts share one program.

    Raises:
        CannotRun: there are none.
    """
    import pypto.language as pl

    files = sorted(folder.glob("[0-9][0-9]_*.py"))
    if not files:
        raise CannotRun(
            f"the passes left nothing to look at: the handle has no program and {folder} has no dumps; "
            "compile through pypto_compile, or with dump_passes=True"
        )
    stages: list[Stage] = []
    last = ""
    for path in files:
        text = path.read_text(encoding="utf-8")
        same = bool(stages) and text == last
        stages.append(Stage(path.stem, stages[-1].program if same else pl.loads(str(path)), not same))
        last = text
    return tuple(stages)


def distinct(stages: tuple[Stage, ...]) -> list[Stage]:
    """The stages whose pass returned another program."""
    return [stage for stage in stages if stage.changed]


def named(stages: tuple[Stage, ...], pass_name: str) -> Stage | None:
    """The last stage after a pass of that name, or None."""
    return next((stage for stage in reversed(stages) if stage.pass_name == pass_name), None)
