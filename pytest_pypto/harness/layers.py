"""The layers that work on the IR: round trip, oracle, passes, memory."""

from __future__ import annotations

import difflib
import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_pypto.harness.case import Accumulation, Case, compare_run
from pytest_pypto.harness.errors import CannotRun, CaseError
from pytest_pypto.harness.oracle import Run, Script, script_of
from pytest_pypto.harness.stages import Stage, distinct, named
from pytest_pypto.harness.verdict import Finding, LayerResult

if TYPE_CHECKING:
    from pytest_pypto.check.compare import TensorDiff

SHOWN_DIFF = 40
SHOWN_FINDINGS = 8
_PARSED: OrderedDict[str, tuple[Any, str]] = OrderedDict()
_KEEP_PARSED = 128


def roundtrip(stages: tuple[Stage, ...], *, same_text: bool = True) -> LayerResult:
    """Print, load and compare every distinct stage.

    Args:
        stages: see `stages_of`.
        same_text: also require that the loaded program prints the same text (names and addresses are not part of
            structural equality).
    """
    todo = distinct(stages)
    findings = [f for f in (_one_roundtrip(stage, same_text) for stage in todo) if f is not None]
    scope = f"{len(stages)} stages, {len(todo)} distinct"
    if not findings:
        return LayerResult("roundtrip", "passed", scope=scope)
    more = f"; {len(findings) - 1} more stages" if len(findings) > 1 else ""
    reason = f"{findings[0].where} does not survive its text form{more}"
    return LayerResult(
        "roundtrip", "failed", reason, scope, findings=tuple(findings[:SHOWN_FINDINGS]), first_bad=findings[0].where
    )


def _one_roundtrip(stage: Stage, same_text: bool) -> Finding | None:
    from pypto import ir

    text = ir.python_print(stage.program)
    try:
        again, reprinted = _parsed(text)
    except Exception as exc:  # whatever the loader of any PyPTO raises is the finding
        return Finding("not loadable", f"{type(exc).__name__}: {exc}", stage.name)
    if not ir.structural_equal(stage.program, again):
        return Finding("not equal", _difference(stage.program, again), stage.name)
    if same_text and reprinted != text:
        return Finding("prints differently", _first_line(text, reprinted), stage.name)
    return None


def _parsed(text: str) -> tuple[Any, str]:
    import pypto.language as pl
    from pypto import ir

    found = _PARSED.get(text)
    if found is None:
        program = pl.parse(text)
        found = _PARSED[text] = (program, ir.python_print(program))
        if len(_PARSED) > _KEEP_PARSED:
            _PARSED.popitem(last=False)
    return found


def _difference(a: Any, b: Any) -> str:
    from pypto import ir

    try:
        ir.assert_structural_equal(a, b)
    except (ValueError, AssertionError) as exc:
        return str(exc)
    return "the loaded program differs from the printed one"


def _first_line(text: str, reprinted: str) -> str:
    lines = zip(text.splitlines(), reprinted.splitlines(), strict=False)
    for number, (a, b) in enumerate(lines, 1):
        if a != b:
            return f"line {number}: printed {a.strip()!r}, after loading {b.strip()!r}"
    return "one text is longer than the other"


# ---------------------------------------------------------------------------------------------------------------
# Numbers


@dataclass(frozen=True)
class Attempt:
    """One stage run through the oracle: comparisons, or why there are none."""

    stage: Stage
    diffs: tuple[TensorDiff, ...] = ()
    run: Run | None = None
    script: Script | None = None
    error: str = ""
    unsupported: str = ""

    @property
    def good(self) -> bool:
        """It ran and everything agrees."""
        return not self.error and not self.unsupported and all(d.passed for d in self.diffs)


Judge = Callable[[Run], "tuple[TensorDiff, ...]"]


def attempt(case: Case, stage: Stage, judge: Judge, known: dict[str, Attempt]) -> Attempt:
    """Generate, run and compare one stage; a text that ran before is not run again."""
    try:
        script = script_of(stage.program)
    except Exception as exc:  # whatever the generator of any PyPTO raises is the result of this stage
        text = f"{type(exc).__name__}: {exc}"
        unsupported = isinstance(exc, ValueError) and "nsupported op" in text
        return Attempt(stage, unsupported=text) if unsupported else Attempt(stage, error=f"no code: {text}")
    before = known.get(script.text)
    if before is not None:
        return Attempt(stage, before.diffs, before.run, script, before.error)
    known[script.text] = done = _run(case, stage, script, judge)
    return done


def _run(case: Case, stage: Stage, script: Script, judge: Judge) -> Attempt:
    try:
        run = script.run(case.inputs)
    except Exception as exc:  # generated code may raise anything; it is the result of this stage
        return Attempt(stage, script=script, error=f"{type(exc).__name__}: {exc}{_place(exc, script)}")
    return Attempt(stage, judge(run), run, script)


def _place(exc: Exception, script: Script) -> str:
    """The last line of generated code in a traceback."""
    frames = [f for f in traceback.extract_tb(exc.__traceback__) if f.filename == script.filename]
    return f" (in {frames[-1].name}, generated line {frames[-1].lineno}: {frames[-1].line})" if frames else ""


def oracle(case: Case, stages: tuple[Stage, ...], facts: Accumulation) -> LayerResult:
    """The front-end program against golden."""
    done = attempt(case, stages[0], lambda run: compare_run(case, run, facts), {})
    if done.unsupported:
        raise CannotRun(f"the oracle does not know an operator of this program ({done.unsupported})")
    if done.error:
        return LayerResult("oracle", "failed", f"the program does not run: {done.error}", stages[0].name)
    if done.good:
        return LayerResult("oracle", "passed", scope=stages[0].name, diffs=done.diffs)
    return LayerResult("oracle", "failed", "the program and the golden disagree", stages[0].name, done.diffs)


def passes(case: Case, stages: tuple[Stage, ...], facts: Accumulation) -> LayerResult:
    """Every stage after a pass against golden, with the test's own tolerance.

    When the front-end program disagrees already, the stages are compared with its numbers instead, so that the result
    still says which pass, if any, changed them.
    """
    known: dict[str, Attempt] = {}
    judge: Judge = lambda run: compare_run(case, run, facts)  # noqa: E731
    first = attempt(case, stages[0], judge, known)
    if first.unsupported:
        raise CannotRun(f"the oracle does not know an operator of this program ({first.unsupported})")
    if first.run is None:
        reason = f"the front-end program does not run (see oracle), so there is nothing to compare with: {first.error}"
        return LayerResult("passes", "failed", reason, stages[0].name, first_bad=stages[0].name)
    wrong_start = not first.good
    if wrong_start:
        judge, known = _as_front_end(case, first.run, facts), {}
    tried = [attempt(case, stage, judge, known) for stage in distinct(stages)[1:]]
    scope = _scope(stages, tried, known)
    bad = next((i for i, a in enumerate(tried) if not a.good and not a.unsupported), None)
    if bad is None:
        return _no_bad_pass(first, wrong_start, tried, scope)
    return _bad_pass(case, facts, [first, *tried], bad + 1, scope)


def _scope(stages: tuple[Stage, ...], tried: list[Attempt], known: dict[str, Attempt]) -> str:
    skipped = [a for a in tried if a.unsupported]
    text = f"{len(stages) - 1} passes, {len(known)} distinct scripts"
    if not skipped:
        return text
    return f"{text}; {len(skipped)} stages not run ({skipped[0].stage.name}: {skipped[0].unsupported})"


def _no_bad_pass(first: Attempt, wrong_start: bool, tried: list[Attempt], scope: str) -> LayerResult:
    if wrong_start:
        reason = "the front-end program already disagrees with golden (see oracle); no pass changes its numbers"
        return LayerResult("passes", "failed", reason, scope, first.diffs, first_bad=first.stage.name)
    ran = [a for a in tried if not a.unsupported]
    if tried and not ran:
        raise CannotRun(f"the oracle cannot run any stage ({tried[0].unsupported})")
    return LayerResult("passes", "passed", scope=scope, diffs=_tightest(first, ran))


def _tightest(first: Attempt, ran: list[Attempt]) -> tuple[TensorDiff, ...]:
    """Of all stages, the comparisons that came closest to their tolerance."""
    return max((a.diffs for a in (first, *ran)), key=lambda diffs: max((d.headroom for d in diffs), default=0.0))


def _bad_pass(case: Case, facts: Accumulation, tried: list[Attempt], bad: int, scope: str) -> LayerResult:
    from pytest_pypto.harness.trace import first_difference

    good = next(a for a in reversed(tried[:bad]) if not a.unsupported)
    here = tried[bad]
    reason = f"{here.stage.name} is the first whose numbers leave the tolerance"
    if here.error:
        reason = f"{here.stage.name} is the first that does not run: {here.error}"
    return LayerResult(
        "passes",
        "failed",
        reason,
        scope,
        here.diffs,
        first_bad=here.stage.name,
        last_good=good.stage.name,
        ir_diff=ir_diff(good.stage, here.stage),
        first_value=first_difference(case, good, here, facts),
    )


def _as_front_end(case: Case, run: Run, facts: Accumulation) -> Judge:
    """Compare with the front-end program's numbers instead of golden, its NaN and changed inputs included."""
    import dataclasses

    from pytest_pypto.harness.inputs import Inputs

    golden = case.expectation()
    expected = {name: run.tensors[name] for name in golden.expected if name in run.tensors}
    stand_in = dataclasses.replace(
        golden, expected=expected, returned=run.returned if golden.returned is not None else None
    )
    after = Inputs({**case.inputs, **run.tensors}, case.signature, case.inputs.seed)
    shifted = dataclasses.replace(case, golden=stand_in, inputs=after, equal_nan=True)
    return lambda other: compare_run(shifted, other, facts)


def ir_diff(before: Stage, after: Stage) -> tuple[str, ...]:
    """Unified diff of the two program texts, shortened."""
    from pypto import ir

    old, new = (ir.python_print(s.program).splitlines() for s in (before, after))
    lines = list(difflib.unified_diff(old, new, before.name, after.name, lineterm="", n=1))
    if len(lines) <= SHOWN_DIFF:
        return tuple(lines)
    return (*lines[:SHOWN_DIFF], f"... {len(lines) - SHOWN_DIFF} more lines")


# ---------------------------------------------------------------------------------------------------------------
# Memory


def memory(stages: tuple[Stage, ...], platform: str) -> LayerResult:
    """Addresses, lifetimes and capacities of the allocated program, and once more of the last stage.

    Raises:
        CannotRun: no stage has addresses.
    """
    from pytest_pypto.harness.memory import check_program

    allocated = named(stages, "AllocateMemoryAddr")
    if allocated is None:
        raise CannotRun("no pass AllocateMemoryAddr ran (planner PTOAS leaves addresses to the assembler)")
    todo = [allocated] + ([stages[-1]] if stages[-1].program is not allocated.program else [])
    findings: list[Finding] = []
    buffers = 0
    for stage in todo:
        report = check_program(stage.program, platform, stage.name)
        findings += report.findings
        buffers = max(buffers, report.buffers)
    scope = f"{buffers} buffers, {', '.join(s.name for s in todo)}"
    if findings:
        reason = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}, first: {findings[0].message}"
        return LayerResult("memory", "failed", reason, scope, findings=tuple(findings[:SHOWN_FINDINGS]))
    return LayerResult("memory", "passed", scope=scope)


__all__ = ["Attempt", "CaseError", "memory", "oracle", "passes", "roundtrip"]
