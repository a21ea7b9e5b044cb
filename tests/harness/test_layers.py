"""The layers on stages with a fault written into one of them: found with the fault, silent without it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import pypto.language as pl  # noqa: E402
from pypto import ir  # noqa: E402

from pytest_pypto.check.tolerance import Source  # noqa: E402
from pytest_pypto.harness import layers  # noqa: E402
from pytest_pypto.harness.case import Case, make_case  # noqa: E402
from pytest_pypto.harness.errors import CannotRun  # noqa: E402
from pytest_pypto.harness.facts import facts_of  # noqa: E402
from pytest_pypto.harness.golden import compute_golden  # noqa: E402
from pytest_pypto.harness.inputs import make_inputs  # noqa: E402
from pytest_pypto.harness.stages import Stage, distinct, rerun  # noqa: E402
from tests.harness import programs  # noqa: E402

Reference = Callable[[dict[str, Any]], Any]


def made(program: Any, reference: Reference, **options: Any) -> tuple[Case, tuple[Stage, ...]]:
    inputs = make_inputs(program, seed=1)
    return make_case(program, inputs, compute_golden(reference, inputs), "a2a3sim", **options), rerun(
        program, "a2a3sim", {}
    )


def broken(stages: tuple[Stage, ...], name: str, old: str, new: str) -> tuple[Stage, ...]:
    """The stages with a text replaced in the one after a pass, and in all that follow."""
    at = next(i for i, s in enumerate(stages) if s.pass_name == name)
    changed = []
    for i, stage in enumerate(stages):
        if i < at:
            changed.append(stage)
            continue
        text, count = re.subn(old, new, ir.python_print(stage.program))
        assert count or i > at, f"{old!r} is not in {stage.name}"
        changed.append(Stage(stage.name, pl.parse(text)) if count else stage)
    return tuple(changed)


@pytest.fixture(scope="module")
def add() -> tuple[Case, tuple[Stage, ...]]:
    return made(programs.vector_add(), programs.add_reference)


@pytest.fixture(scope="module")
def mixed() -> tuple[Case, tuple[Stage, ...]]:
    return made(programs.mixed(), programs.mixed_reference)


def run(layer: str, found: tuple[Case, tuple[Stage, ...]], stages: tuple[Stage, ...] | None = None):
    case, own = found
    return getattr(layers, layer)(case, stages or own, facts_of(own[0].program, "UP_DOWN"))


@pytest.mark.parametrize("program", ["add", "mixed"])
def test_sound_programs_pass(program: str, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(program)
    for layer in ("oracle", "passes"):
        result = run(layer, found)
        assert (result.status, result.reason) == ("passed", "")
        assert result.diffs
    assert layers.roundtrip(found[1]).status == "passed"


def test_a_wrong_golden_fails_the_oracle_and_blames_no_pass() -> None:
    def reference(t):
        t["out"][:] = t["a"] + t["b"]
        t["out"][5, 7] += 1

    case, stages = made(programs.vector_add(), reference)
    oracle = run("oracle", (case, stages))
    assert oracle.status == "failed"
    assert [(d.name, d.mismatched, d.worst.index) for d in oracle.diffs] == [("out", 1, (5, 7))]
    passes = run("passes", (case, stages))
    assert passes.status == "failed"
    assert "no pass changes its numbers" in passes.reason


def test_the_first_bad_pass_is_named_with_the_value_it_changed(mixed: tuple[Case, tuple[Stage, ...]]) -> None:
    stages = broken(mixed[1], "InferTileMemorySpace", r"pl\.tile\.add\(", "pl.tile.sub(")
    result = run("passes", mixed, stages)
    assert result.status == "failed"
    assert result.first_bad.endswith("_after_InferTileMemorySpace")
    assert result.last_good < result.first_bad
    assert result.first_value is not None
    assert result.first_value.diff is not None
    assert any("pl.tile.sub" in line for line in result.ir_diff)
    assert run("oracle", mixed, stages).status == "passed"


def test_the_tests_own_tolerance_decides() -> None:
    """A factor of 1.03 in one pass is seen at 1e-4 and is not at 5e-2."""
    for rtol, status in ((1e-4, "failed"), (5e-2, "passed")):
        sources = {"": [Source("marker", rtol, rtol)]}
        case, stages = made(programs.two_outputs(), programs.two_references, sources=sources)
        changed = broken(stages, "ConvertTensorToTileOps", r"pl\.tile\.muls\((\w+), 2\.0\)", r"pl.tile.muls(\1, 2.06)")
        result = run("passes", (case, stages), changed)
        assert result.status == status
        assert (result.first_bad == "") == (status == "passed")


def test_all_outputs_are_reported() -> None:
    def reference(t):
        t["twice"][:] = t["x"] * 3
        t["more"][:] = t["x"] + 2

    result = run("oracle", made(programs.two_outputs(), reference))
    assert [d.name for d in result.diffs if not d.passed] == ["twice", "more"]


def test_a_stage_that_does_not_run(add: tuple[Case, tuple[Stage, ...]]) -> None:
    wrong = programs.vector_add(16, 64)
    stages = (*add[1][:3], Stage("03_after_CtrlFlowTransform", wrong), *add[1][4:])
    result = run("passes", add, stages)
    assert result.status == "failed"
    assert result.first_bad == "03_after_CtrlFlowTransform"
    assert "does not run" in result.reason or "numbers leave" in result.reason


def test_a_changed_input_is_a_mismatch(add: tuple[Case, tuple[Stage, ...]]) -> None:
    from pytest_pypto.harness.case import compare_run
    from pytest_pypto.harness.oracle import Run

    case = add[0]
    tensors = {**case.inputs.clones(), "out": case.golden.expected["out"].clone()}
    assert all(d.passed for d in compare_run(case, Run(tensors), facts_of(None)))
    tensors["a"][0, 0] += 1
    bad = [d for d in compare_run(case, Run(tensors), facts_of(None)) if not d.passed]
    assert [(d.name, d.tolerance.rtol_source) for d in bad] == [("a", "inputs must not change")]


# ---------------------------------------------------------------------------------------------------------------
# Round trip


class Lossy:
    """A printer that loses something."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new, self.real = old, new, ir.python_print

    def __call__(self, program: Any, *args: Any, **kwargs: Any) -> str:
        return self.real(program, *args, **kwargs).replace(self.old, self.new)


def test_a_printer_that_loses_a_value_is_found(
    add: tuple[Case, tuple[Stage, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers._PARSED.clear()
    monkeypatch.setattr(ir, "python_print", Lossy("pl.tile.add(", "pl.tile.sub("))
    result = layers.roundtrip(add[1])
    assert result.status == "failed"
    assert result.findings[0].kind == "not equal"
    assert result.first_bad.endswith("ConvertTensorToTileOps")
    layers._PARSED.clear()


def test_a_text_that_does_not_load_is_found(
    add: tuple[Case, tuple[Stage, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    layers._PARSED.clear()
    monkeypatch.setattr(ir, "python_print", Lossy("pl.tile.add(", "pl.tile.added("))
    result = layers.roundtrip(add[1])
    assert result.findings[0].kind == "not loadable"
    layers._PARSED.clear()


def test_only_changed_stages_are_looked_at(add: tuple[Case, tuple[Stage, ...]]) -> None:
    stages = add[1]
    assert 1 < len(distinct(stages)) < len(stages)
    assert layers.roundtrip(stages).scope == f"{len(stages)} stages, {len(distinct(stages))} distinct"


# ---------------------------------------------------------------------------------------------------------------
# What cannot run


def test_memory_without_addresses_says_why(add: tuple[Case, tuple[Stage, ...]]) -> None:
    with pytest.raises(CannotRun, match="no pass AllocateMemoryAddr ran"):
        layers.memory(add[1][:5], "a2a3sim")


def test_an_operator_the_oracle_does_not_know(
    add: tuple[Case, tuple[Stage, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(program: Any, *, check_shapes: bool = True):
        raise ValueError("Unsupported op 'tile.magic'")

    monkeypatch.setattr(layers, "script_of", refuses)
    with pytest.raises(CannotRun, match=r"Unsupported op 'tile\.magic'"):
        run("oracle", add)
    with pytest.raises(CannotRun, match=r"Unsupported op 'tile\.magic'"):
        run("passes", add)


def test_an_operator_unknown_in_some_stages_only(
    add: tuple[Case, tuple[Stage, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = layers.script_of
    skipped = distinct(add[1])[-1].program

    def refuses(program: Any, *, check_shapes: bool = True):
        if program is skipped:
            raise ValueError("Unsupported op 'tile.magic'")
        return real(program)

    monkeypatch.setattr(layers, "script_of", refuses)
    result = run("passes", add)
    assert result.status == "passed"
    assert "1 stages not run" in result.scope
    assert "tile.magic" in result.scope


# ---------------------------------------------------------------------------------------------------------------
# A front-end program that disagrees already


def test_nan_of_the_front_end_blames_no_pass() -> None:
    def reference(t):
        t["out"][:] = 0

    case, stages = made(programs.vector_add(), reference)
    case.inputs["a"][3, 4] = float("nan")
    result = run("passes", (case, stages))
    assert result.status == "failed"
    assert "the front-end program already disagrees with golden" in result.reason
    changed = broken(stages, "ConvertTensorToTileOps", r"pl\.tile\.add\(", "pl.tile.sub(")
    assert run("passes", (case, stages), changed).first_bad.endswith("_after_ConvertTensorToTileOps")


def test_a_program_that_writes_an_input_blames_no_pass() -> None:
    @pl.program
    class WritesInput:
        @pl.function
        def main(self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.assemble(x, pl.add(x, 1.0), [0, 0])
                out = pl.assemble(out, pl.mul(x, 2.0), [0, 0])
            return out

    def reference(t):
        t["out"][:] = (t["x"] + 1) * 2

    found = made(WritesInput, reference)
    oracle, passes = run("oracle", found), run("passes", found)
    if oracle.status == "failed":  # the input that was written
        assert [d.name for d in oracle.diffs if not d.passed] == ["x"]
        assert "the front-end program already disagrees with golden" in passes.reason
    assert passes.first_bad in ("", "00_frontend")


def test_a_front_end_program_that_does_not_run_blames_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self, inputs):
        raise RuntimeError("no luck")

    found = made(programs.vector_add(), programs.add_reference)
    monkeypatch.setattr("pytest_pypto.harness.oracle.Script.run", fails)
    result = run("passes", found)
    assert result.reason.startswith("the front-end program does not run (see oracle)")
    assert result.first_bad == "00_frontend"
