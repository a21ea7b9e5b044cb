"""Warnings and performance hints: what is reported, when, and how it is switched off."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.context import PassContext, VerificationLevel
from pytest_pypto.pypto.passes.diagnostic_types import (
    Diagnostic,
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    DiagnosticSeverity,
)
from pytest_pypto.pypto.passes.diagnostics import DiagnosticCheckRegistry
from pytest_pypto.pypto.passes.instruments import DiagnosticInstrument
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager
from tests.passes_back.support import PLATFORMS
from tests.passes_back.whole import program

UNUSED = program(
    "x: [16, 64] FP32\no: [16, 64] FP32 Out",
    "left = pl.exp(x)\n_kept = pl.neg(x)\no = pl.assemble(o, pl.add(x, 1.0), [0, 0])",
)
NARROW = program(
    "x: [64, 8] FP32\no: [64, 8] FP32 Out",
    "o = pl.assemble(o, pl.add(x, 1.0), [0, 0])",
)


@pytest.fixture(autouse=True)
def architecture() -> Iterator[None]:
    with selected_backend(PLATFORMS["a2a3sim"]):
        yield


def run(text: str, context: PassContext) -> list[Diagnostic]:
    with context:
        manager = PassManager.get_strategy(OptimizationStrategy.Default)
        manager.run_passes(parse(text, filename="my.py"))
    return manager.diagnostics


def warnings_of(found: list[Diagnostic]) -> list[Diagnostic]:
    return [d for d in found if d.severity is DiagnosticSeverity.Warning]


def test_a_variable_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="pypto.passes"):
        (warning,) = warnings_of(run(UNUSED, PassContext()))
    assert warning.rule_name == "UnusedVariableCheck"
    assert "'left' is assigned and never read" in warning.message
    assert str(warning.span).startswith("my.py:")
    assert "[UnusedVariableCheck] (pre_pipeline) variable 'left'" in caplog.text
    assert not warnings_of(run(NARROW, PassContext()))


@pytest.mark.parametrize(
    ("context", "count"),
    [
        (PassContext(diagnostic_phase=DiagnosticPhase.NONE), 0),
        (PassContext(verification_level=VerificationLevel.NONE), 0),
        (PassContext(disabled_diagnostics=DiagnosticCheckSet([DiagnosticCheck.UnusedVariable])), 0),
        (PassContext(diagnostic_phase=DiagnosticPhase.PRE_PIPELINE), 1),
    ],
    ids=["phase", "level", "check", "on"],
)
def test_switches(context: PassContext, count: int) -> None:
    assert len(warnings_of(run(UNUSED, context))) == count


def test_the_phase_decides_which_program_is_looked_at() -> None:
    after = run(UNUSED, PassContext(diagnostic_phase=DiagnosticPhase.POST_PASS))
    assert len(warnings_of(after)) > 1, "once for every pass"
    names = {d.message.split("'")[1].split("__")[0] for d in warnings_of(after)}
    assert "left" in names


def test_the_environment_chooses_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_WARNING_LEVEL", "none")
    assert PassContext().get_diagnostic_phase() is DiagnosticPhase.NONE
    monkeypatch.setenv("PYPTO_WARNING_LEVEL", "post_pipeline")
    assert PassContext().get_diagnostic_phase() is DiagnosticPhase.POST_PIPELINE


@pytest.mark.parametrize(("platform", "limit"), [("a2a3sim", 512), ("a5sim", 128)])
def test_short_rows_are_slow(platform: str, limit: int) -> None:
    with selected_backend(PLATFORMS[platform]):
        hints = [d for d in run(NARROW, PassContext()) if d.hint_code == "PH001"]
    assert len(hints) == 2
    assert "tile.load moves 2048B as 64 rows of 32B" in hints[0].message
    assert f"below {limit}B is slow" in hints[0].message
    assert "widen the tile's last axis" in hints[0].message
    assert all(h.severity is DiagnosticSeverity.PerfHint for h in hints)


def test_a_factor_that_stays_whole_is_a_hint() -> None:
    text = program(
        "x: [16, 40] FP32\nw: [40, 16] FP32\no: [16, 16] FP32 Out", "o = pl.assemble(o, pl.matmul(x, w), [0, 0])"
    )
    (hint,) = [d for d in run(text, PassContext()) if d.hint_code == "PH-AT-007"]
    assert "K=40 is not a multiple of 16" in hint.message


def test_the_instrument_collects_after_every_pass() -> None:
    instrument = DiagnosticInstrument(DiagnosticCheckSet([DiagnosticCheck.UnusedVariable]))
    with PassContext([instrument], diagnostic_phase=DiagnosticPhase.NONE):
        PassManager.get_strategy(OptimizationStrategy.Default).run_passes(parse(UNUSED))
    assert {d.rule_name for d in instrument.diagnostics} == {"UnusedVariableCheck"}


def test_the_registry() -> None:
    every = DiagnosticCheckRegistry.get_all_checks()
    hints, warns = DiagnosticCheckRegistry.get_perf_hint_checks(), DiagnosticCheckRegistry.get_warning_checks()
    assert set(hints) | set(warns) == set(every)
    assert not set(hints) & set(warns)
    found = DiagnosticCheckRegistry.run_checks(every, DiagnosticPhase.PRE_PIPELINE, parse(UNUSED))
    assert [d.rule_name for d in found] == ["UnusedVariableCheck"]
    assert DiagnosticCheckRegistry.run_checks(every, DiagnosticPhase.NONE, parse(UNUSED)) == []


LANES = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    o = pl.assemble(o, pl.add(x, 1.0), [0, 0])"
BLOCKS = "for i in pl.spmd(2):\n    o = pl.assemble(o, pl.add(x, 1.0), [0, 0])"
TURNS = "for i in pl.range(2):\n    o = pl.assemble(o, pl.add(x, 1.0), [0, 0])"
PAIR = "a, b = pl.add(x, 1.0), pl.add(x, 2.0)\no = pl.assemble(o, a, [0, 0])"


@pytest.mark.parametrize(("body", "plain"), [(LANES, False), (BLOCKS, True), (TURNS, False), (PAIR, False)])
def test_names_that_the_syntax_asks_for_may_be_unused(body: str, plain: bool) -> None:
    text = program("x: [16, 64] FP32\no: [16, 64] FP32 Out", body, plain=plain)
    check = DiagnosticCheckSet([DiagnosticCheck.UnusedVariable])
    assert not DiagnosticCheckRegistry.run_checks(check, DiagnosticPhase.PRE_PIPELINE, parse(text))
    seen = text.replace("o = pl.assemble", "left = pl.tile.get_block_idx()\n            o = pl.assemble")
    if not plain and "for" not in body:
        found = DiagnosticCheckRegistry.run_checks(check, DiagnosticPhase.PRE_PIPELINE, parse(seen))
        assert [d.message for d in found] == ["variable 'left' is assigned and never read"]
