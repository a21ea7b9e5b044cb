"""Running a case: the layers in order, each timed, each honest about what it did."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from pytest_pypto import toolchain
from pytest_pypto.check.tolerance import Source, checked
from pytest_pypto.harness import device as device_layer
from pytest_pypto.harness import layers as ir_layers
from pytest_pypto.harness.arguments import need_compiled, need_golden, need_inputs
from pytest_pypto.harness.case import Accumulation, Case, checked_layers, make_case, not_compared
from pytest_pypto.harness.claims import Claim, current, note
from pytest_pypto.harness.errors import CannotRun, CaseError, CheckFailed
from pytest_pypto.harness.facts import facts_of
from pytest_pypto.harness.golden import Golden, compute_golden
from pytest_pypto.harness.golden import Source as GoldenSource
from pytest_pypto.harness.inputs import ready_inputs
from pytest_pypto.harness.stages import Stage, program_of, stages_of
from pytest_pypto.harness.verdict import LAYERS, LayerResult, Verdict

NUMBERS = frozenset(("oracle", "passes", "device"))
"""The layers that need a golden."""

Reference = Golden | GoldenSource


class _Session:
    """One case on its way through the layers; the stages are made once."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._stages: tuple[Stage, ...] | Exception | None = None
        self._facts: Accumulation | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        if self._stages is None:
            try:
                self._stages = stages_of(self.case.compiled, self.case.platform)
            except CannotRun as exc:
                self._stages = exc
        if isinstance(self._stages, Exception):
            raise self._stages
        return self._stages

    @property
    def facts(self) -> Accumulation:
        if self._facts is None:
            program = program_of(self.case.compiled)
            if program is None:
                try:
                    program = self.stages[0].program
                except CannotRun:
                    program = None
            self._facts = facts_of(program, self.case.split)
        return self._facts

    def layer(self, name: str) -> LayerResult:
        """Run one layer."""
        if name == "roundtrip":
            known = toolchain.current()
            return ir_layers.roundtrip(self.stages, same_text=known is None or known.kind == "embedded")
        if name == "memory":
            return ir_layers.memory(self.stages, self.case.platform)
        if name == "device":
            return device_layer.device(self.case, self.facts)
        return getattr(ir_layers, name)(self.case, self.stages, self.facts)  # type: ignore[no-any-return]

    def claims(self) -> tuple[LayerResult, ...]:
        """Failed results where the lowered program is not what the test claims of it."""
        claim = claim_of(self.case)
        try:
            return claim.results(self.stages[-1].program) if claim else ()
        except CannotRun:
            return ()


def claim_of(case: Case) -> Claim:
    """What the case claims, or the running test."""
    outer = current()
    outer.checks += 1
    return Claim((case.split if case.split_claimed else "") or outer.split, case.direction or outer.direction)


def run_case(case: Case) -> Verdict:
    """Run every layer of a case.

    Raises:
        CaseError: the test itself is wrong.
    """
    session = _Session(case)
    results = list(session.claims())
    for name in LAYERS:
        if name in case.layers:
            results.append(_timed(session, name))
    known = toolchain.current()
    return Verdict(
        case.name,
        case.platform,
        tuple(results),
        case.split,
        case.direction,
        case.inputs.seed,
        known.describe() if known is not None else "",
        not_compared(case),
    )


def _timed(session: _Session, name: str) -> LayerResult:
    start = time.perf_counter()
    try:
        result = session.layer(name)
    except CannotRun as exc:
        result = LayerResult(name, "not run", str(exc))
    return dataclasses.replace(result, seconds=time.perf_counter() - start)


def check(
    compiled: Any,
    inputs: Mapping[str, Any],
    golden: Reference,
    *,
    platform: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    tolerances: Mapping[str, tuple[float, float]] | None = None,
    **options: Any,
) -> Verdict:
    """Check a compiled program in every way: round trip, oracle, every pass, memory, device.

    Args:
        compiled: a `CompiledProgram`.
        inputs: arguments by parameter name; never changed.
        golden: a function on a dict of clones, a dict of expected tensors, or what `pypto_golden` made of either.
        platform: platform id; the artifact's own by default.
        rtol, atol: tolerance of all outputs; the policy decides what is not given.
        tolerances: (rtol, atol) of single outputs.
        options: further fields of `Case`: layers, split, direction, config, equal_nan, comparator, sanitize, name.

    Returns:
        The verdict, when nothing failed.

    Raises:
        CheckFailed: something failed; the message is the report.
        CaseError: the test itself is wrong.
        CannotRun: not one of the layers could run.
    """
    __tracebackhide__ = True
    case = prepare(compiled, inputs, golden, platform, rtol, atol, tolerances, **options)
    return demanded(note(run_case(case)))


def demanded(verdict: Verdict) -> Verdict:
    """The verdict of a check that passed.

    Raises:
        CheckFailed: something failed.
        CannotRun: nothing ran, so nothing was checked.
    """
    __tracebackhide__ = True
    from pytest_pypto.report.text import render

    if not verdict.passed:
        raise CheckFailed(render(verdict), verdict)
    if verdict.layers and all(layer.status == "not run" for layer in verdict.layers):
        raise CannotRun("; ".join(f"{layer.layer} did not run: {layer.reason}" for layer in verdict.layers))
    return verdict


def prepare(
    compiled: Any,
    inputs: Mapping[str, Any],
    golden: Reference | None,
    platform: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    tolerances: Mapping[str, tuple[float, float]] | None = None,
    **options: Any,
) -> Case:
    """The case that `check` runs. `what=` is the function that messages about arguments name.

    Raises:
        ArgumentError: an argument is not the kind of thing that is expected in its place.
    """
    __tracebackhide__ = True
    what = options.pop("what", "check")
    need_compiled(what, compiled)
    need_inputs(what, inputs)
    if golden is not None or NUMBERS & set(checked_layers(options.get("layers", LAYERS))):
        need_golden(what, golden)
    inputs = ready_inputs(compiled, inputs)
    ready = golden if golden is None or isinstance(golden, Golden) else compute_golden(golden, inputs)
    sources = argument_sources(rtol, atol, tolerances)
    for name, more in dict(options.pop("sources", {})).items():
        sources[name] = [*sources.get(name, ()), *more]
    return make_case(compiled, inputs, ready, platform or platform_of(compiled), sources=sources, **options)


def argument_sources(
    rtol: float | None, atol: float | None, tolerances: Mapping[str, tuple[float, float]] | None
) -> dict[str, list[Source]]:
    """Tolerances given as arguments.

    Raises:
        CaseError: a number is no tolerance.
    """
    try:
        numbers = [None if v is None else checked(k, v) for k, v in (("rtol", rtol), ("atol", atol))]
        sources = {"": [Source("argument", *numbers)]}
        for name, (r, a) in (tolerances or {}).items():
            sources[name] = [Source("argument", checked("rtol", r), checked("atol", a))]
    except (ValueError, TypeError) as exc:
        raise CaseError(str(exc)) from None
    return sources


def platform_of(compiled: Any) -> str:
    """Platform a compiled program was made for."""
    return str(getattr(compiled, "platform", "a2a3sim"))


def _only(
    layer: str, compiled: Any, inputs: Mapping[str, Any], golden: Reference, options: dict[str, Any]
) -> LayerResult:
    __tracebackhide__ = True
    found = check(compiled, inputs, golden, layers=(layer,), what=f"assert_{layer}", **options).layer(layer)
    assert found is not None
    return found


def assert_oracle(compiled: Any, inputs: Mapping[str, Any], golden: Reference, **options: Any) -> LayerResult:
    """The front-end program agrees with golden; arguments and errors as for `check`."""
    __tracebackhide__ = True
    return _only("oracle", compiled, inputs, golden, options)


def assert_passes(compiled: Any, inputs: Mapping[str, Any], golden: Reference, **options: Any) -> LayerResult:
    """The program agrees with golden after every pass; arguments and errors as for `check`."""
    __tracebackhide__ = True
    return _only("passes", compiled, inputs, golden, options)


def assert_device(compiled: Any, inputs: Mapping[str, Any], golden: Reference, **options: Any) -> LayerResult:
    """The artifact on the device agrees with golden, and no sanitizer objects; arguments and errors as for `check`."""
    __tracebackhide__ = True
    return _only("device", compiled, inputs, golden, options)


def assert_roundtrip(compiled: Any, *, platform: str | None = None) -> LayerResult:
    """Every stage survives print and load.

    Raises:
        CheckFailed: one does not.
        CannotRun: there are no stages to look at.
    """
    __tracebackhide__ = True
    return _without_numbers("roundtrip", compiled, platform)


def assert_memory(compiled: Any, *, platform: str | None = None) -> LayerResult:
    """No two live buffers share bytes, views stay inside, capacities hold.

    Raises:
        CheckFailed: otherwise.
        CannotRun: no stage has addresses.
    """
    __tracebackhide__ = True
    return _without_numbers("memory", compiled, platform)


def _without_numbers(layer: str, compiled: Any, platform: str | None) -> LayerResult:
    __tracebackhide__ = True
    need_compiled(f"assert_{layer}", compiled)
    where = platform or platform_of(compiled)
    start = time.perf_counter()
    try:
        stages = stages_of(compiled, where)
        result = ir_layers.roundtrip(stages) if layer == "roundtrip" else ir_layers.memory(stages, where)
        claimed = _claimed(stages)
    except CannotRun as exc:
        result, claimed = LayerResult(layer, "not run", str(exc)), ()
    result = dataclasses.replace(result, seconds=time.perf_counter() - start)
    demanded(note(Verdict(getattr(program_of(compiled), "name", ""), where, (*claimed, result))))
    return result


def _claimed(stages: tuple[Stage, ...]) -> tuple[LayerResult, ...]:
    claim = current()
    claim.checks += 1
    return claim.results(stages[-1].program) if claim else ()
