"""The device layer: the compiled artifact against golden, with the sanitizers of the simulated device.

On the embedded PyPTO the device executes what is on disk. What a sanitizer finds comes back as an exception or as the
handle's findings; either is turned into plain `Finding`s here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from pytest_pypto import toolchain
from pytest_pypto.harness.case import Accumulation, Case, compare_run
from pytest_pypto.harness.errors import CannotRun, CaseError
from pytest_pypto.harness.oracle import Run, tensors_of
from pytest_pypto.harness.verdict import Finding, LayerResult, Status

SWITCH = "PYPTO_SANITIZE"


@contextmanager
def sanitizers(on: bool) -> Iterator[None]:
    """Switch the simulated device's sanitizers for the runs inside."""
    before = os.environ.get(SWITCH)
    os.environ[SWITCH] = "1" if on else "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = before


def further_settings(case: Case) -> AbstractContextManager[Any]:
    """The case's own settings of the device, for the runs inside.

    Raises:
        CaseError: this PyPTO has no such settings.
    """
    if not case.device:
        return nullcontext()
    from pypto import runtime

    apply = getattr(runtime, "device_settings", None)
    if apply is None:
        raise CaseError("this PyPTO's device has no settings; leave device= out, or use --pypto-toolchain=embedded")
    made: AbstractContextManager[Any] = apply(**case.device)
    return made


def run_device(case: Case) -> tuple[Run, tuple[Finding, ...]]:
    """Dispatch the compiled program once on clones of the inputs.

    Raises:
        CannotRun: this machine has nothing to dispatch on.
        Exception: whatever the dispatch raises.
    """
    arguments = case.inputs.clones()
    options = {} if case.config is None else {"config": case.config}
    with sanitizers(case.sanitize), further_settings(case):
        try:
            returned = case.compiled(*arguments.values(), **options)
        except (ModuleNotFoundError, FileNotFoundError) as exc:
            missing = _missing_part(exc)
            if missing is None:
                raise
            text = f"the installed PyPTO has no {missing}; --pypto-toolchain=embedded brings a simulator"
            raise CannotRun(text) from exc
    return Run(tensors_of(arguments), returned), findings_of(case.compiled)


def _missing_part(error: Exception) -> str | None:
    """What an installed PyPTO lacks for a dispatch, None when the error means something else."""
    known = toolchain.current()
    if known is None or known.kind == "embedded":
        return None
    if isinstance(error, ModuleNotFoundError):
        return "runtime (package simpler)" if (error.name or "").startswith("simpler") else None
    return "assembler (ptoas), so there are no binaries" if "kernel_config.py" in str(error) else None


def findings_of(source: Any) -> tuple[Finding, ...]:
    """Findings of the last dispatch, as plain data; empty when the implementation reports none."""
    found = getattr(source, "findings", None) or ()
    return tuple(_finding(item) for item in found)


def _finding(item: Any) -> Finding:
    other = getattr(item, "other", None)
    message = str(getattr(item, "message", item)) + (f"\nthe other party: {other}" if other is not None else "")
    kind, where = str(getattr(item, "kind", type(item).__name__)), str(getattr(item, "site", ""))
    return Finding(kind, message, where, "advice" if getattr(item, "severity", "error") == "advice" else "error")


def device(case: Case, facts: Accumulation) -> LayerResult:
    """The artifact on the device, against golden."""
    try:
        run, findings = run_device(case)
    except (CannotRun, CaseError):
        raise
    except Exception as exc:  # whatever a dispatch on any PyPTO raises is the result of this layer
        found = findings_of(exc)
        reason = f"the dispatch failed: {type(exc).__name__}: {exc}"
        return LayerResult("device", "failed", reason, case.platform, findings=found)
    diffs = compare_run(case, run, facts)
    errors = [f for f in findings if f.severity == "error"]
    stopped = not getattr(getattr(case.compiled, "last_result", None), "completed", True)
    reason = ""
    if errors:
        reason = f"{errors[0].kind}: {errors[0].message.splitlines()[0]}"
    elif stopped:
        reason = "the run stopped before its end"
    elif not all(d.passed for d in diffs):
        reason = "the device and the golden disagree"
    status: Status = "failed" if reason else "passed"
    counters = counters_of(case.compiled)
    return LayerResult("device", status, reason, case.platform, diffs, findings, counters=counters)


def counters_of(compiled: Any) -> dict[str, Any]:
    """Exact counts of the last dispatch, empty when the implementation has none."""
    counters: Any = getattr(getattr(compiled, "last_result", None), "counters", None)
    return dict(counters.to_json()) if hasattr(counters, "to_json") else {}
