"""The first inner value that a pass changed: both scripts run under a tracer, and their variables are compared.

Only after a failure. Values are matched by variable name and by how often the name was assigned before.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from pytest_pypto.harness.signature import plain_name
from pytest_pypto.harness.verdict import FirstValue

if TYPE_CHECKING:
    from pytest_pypto.harness.case import Accumulation, Case
    from pytest_pypto.harness.layers import Attempt
    from pytest_pypto.harness.oracle import Script

LIMIT = 20_000


@dataclass(frozen=True)
class Seen:
    """One value that a variable took."""

    name: str
    count: int
    where: str
    value: Any


class Tracer:
    """Records tensors assigned in the functions of one script.

    Args:
        script: the generated code.
        functions: names of the functions that stand for IR functions; helpers are left out.
    """

    def __init__(self, script: Script, functions: set[str]) -> None:
        self.filename, self.functions = script.filename, functions
        self.seen: list[Seen] = []
        self._last: dict[tuple[int, str], tuple[int, int]] = {}
        self._counts: Counter[str] = Counter()

    def enter(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        """Global trace function."""
        code = frame.f_code
        return self.step if code.co_filename == self.filename and code.co_name in self.functions else None

    def step(self, frame: FrameType, event: str, _arg: Any) -> Any:
        """Local trace function: note what the previous line assigned."""
        if event in ("line", "return") and len(self.seen) < LIMIT:
            for name, value in frame.f_locals.items():
                self._note(frame, name, value)
        return self.step

    def _note(self, frame: FrameType, name: str, value: Any) -> None:
        version = getattr(value, "_version", None)
        if version is None or not hasattr(value, "dtype"):
            return
        key, state = (id(frame), name), (id(value), version)
        if self._last.get(key) == state:
            return
        self._last[key] = state
        plain = plain_name(name)
        where = f"{frame.f_code.co_name}, generated line {frame.f_lineno}"
        self.seen.append(Seen(plain, self._counts[plain], where, value.detach().clone()))
        self._counts[plain] += 1


def trace(case: Case, done: Attempt) -> list[Seen]:
    """Run a script under the tracer; an exception ends the record, nothing more."""
    script = done.script
    if script is None:
        return []
    tracer = Tracer(script, {f.name for f in done.stage.program.functions.values()})
    before = sys.gettrace()
    sys.settrace(tracer.enter)
    try:
        script.run(case.inputs)
    except Exception:  # generated code may raise anything; what it computed until then counts
        return tracer.seen
    finally:
        sys.settrace(before)
    return tracer.seen


def first_difference(case: Case, good: Attempt, bad: Attempt, facts: Accumulation) -> FirstValue | None:
    """The first value of the bad stage that the good stage has too, with other numbers."""
    reference = {(seen.name, seen.count): seen for seen in trace(case, good)}
    for diff, seen in _compared(case, reference, trace(case, bad), facts):
        if not diff.passed:
            return FirstValue(seen.name, seen.where, good.stage.name, bad.stage.name, diff)
    return None


def _compared(
    case: Case, reference: dict[tuple[str, int], Seen], values: list[Seen], facts: Accumulation
) -> Iterator[tuple[Any, Seen]]:
    from pytest_pypto.check.compare import compare
    from pytest_pypto.harness.case import tolerance_of

    plain = dataclasses.replace(case, sources={"": case.sources.get("", ())})
    for seen in values:
        twin = reference.get((seen.name, seen.count))
        if twin is None or twin.value.shape != seen.value.shape or twin.value.dtype != seen.value.dtype:
            continue
        tolerance = tolerance_of(plain, facts, seen.name, twin.value)
        yield compare(seen.name, seen.value, twin.value, tolerance, equal_nan=True), seen
