"""Pass manager, pipelines, dumps, contexts, instruments, profiles, reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import printer
from pytest_pypto.pypto.ir.structural import structural_equal
from pytest_pypto.pypto.language.parser import loads, parse
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext, RuntimeKind, VerificationLevel
from pytest_pypto.pypto.passes.convert_to_ssa import ConvertToSSA
from pytest_pypto.pypto.passes.diagnostic_types import DiagnosticPhase
from pytest_pypto.pypto.passes.dumps import PassDumpLevel
from pytest_pypto.pypto.passes.instruments import CallbackInstrument, ReportInstrument
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager, PassPipeline
from pytest_pypto.pypto.passes.profiling import CompileProfiler
from pytest_pypto.pypto.passes.simplify import Simplify
from tests.passes_back.support import PLATFORMS

TEXT = """import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.exp(pl.add(x, 1.0)), [0, 0])
        return o
"""


@pytest.fixture(autouse=True)
def architecture() -> Iterator[None]:
    with selected_backend(PLATFORMS["a2a3sim"]):
        yield


def manager(**options: Any) -> PassManager:
    return PassManager.get_strategy(OptimizationStrategy.Default, **options)


# order ----------------------------------------------------------------------------------------------------------


def test_the_order_depends_on_the_planner() -> None:
    default = manager().get_pass_names()
    assert default[:4] == ["InlineFunctions", "UnrollLoops", "CtrlFlowTransform", "ConvertToSSA"]
    assert default.count("Simplify") == 2
    assert "MemoryReuse" in default
    with PassContext(memory_planner=MemoryPlanner.PTOAS):
        ptoas = manager().get_pass_names()
    assert set(default) - set(ptoas) == {"MemoryReuse", "AllocateMemoryAddr"}
    assert set(ptoas) - set(default) == {"LowerPipelineToSlots"}


def test_dependency_analysis_is_an_option() -> None:
    with_it = manager(analyze_auto_scopes_for_deps=True).get_pass_names()
    assert [n for n in with_it if n not in manager().get_pass_names()] == ["AutoDeriveTaskDependencies"]


def test_a_manager_belongs_to_its_planner() -> None:
    made = manager()
    with (
        PassContext(memory_planner=MemoryPlanner.DSA_RP),
        pytest.raises(RuntimeError, match="planner PYPTO, but DSA_RP"),
    ):
        made.run_passes(parse(TEXT))


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown strategy 'Fast'"):
        PassManager("Fast")  # type: ignore[arg-type]


def test_pipelines_of_ones_own() -> None:
    pipeline = PassPipeline()
    pipeline.add_pass(ConvertToSSA())
    pipeline.add_pass(Simplify())
    assert pipeline.get_pass_names() == ["ConvertToSSA", "Simplify"]
    program = parse(TEXT)
    made = pipeline.run(program)
    assert structural_equal(made, Simplify()(ConvertToSSA()(program)))
    assert structural_equal(program, parse(TEXT)), "the input is not modified"


# dumps ----------------------------------------------------------------------------------------------------------


def test_dumps_are_numbered_in_the_order_of_execution(tmp_path: Path) -> None:
    made = manager()
    result = made.run_passes(parse(TEXT), True, str(tmp_path))
    wanted = ["00_frontend.py", *(f"{i:02d}_after_{n}.py" for i, n in enumerate(made.get_pass_names(), 1))]
    assert sorted(p.name for p in tmp_path.glob("*.py")) == sorted(wanted)
    last = max(tmp_path.glob("*.py"))
    assert structural_equal(loads(str(last)), result)
    assert structural_equal(loads(str(tmp_path / "00_frontend.py")), parse(TEXT))


def test_explicit_dumps_spell_out_every_layout(tmp_path: Path) -> None:
    texts = {}
    for level in (PassDumpLevel.CONCISE, PassDumpLevel.EXPLICIT):
        manager().run_passes(parse(TEXT), level, str(tmp_path / level.name))
        texts[level] = max((tmp_path / level.name).glob("*.py")).read_text()
    assert "blayout" not in texts[PassDumpLevel.CONCISE]
    assert "blayout" in texts[PassDumpLevel.EXPLICIT]
    assert structural_equal(parse(texts[PassDumpLevel.CONCISE]), parse(texts[PassDumpLevel.EXPLICIT]))


def test_no_dumps_without_a_level(tmp_path: Path) -> None:
    manager().run_passes(parse(TEXT), PassDumpLevel.NONE, str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((True, None), ValueError, "dump_ir needs output_dir"),
        (("yes", "x"), TypeError, "must be a bool or a PassDumpLevel"),
    ],
)
def test_dump_arguments(arguments: tuple[Any, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        manager().run_passes(parse(TEXT), *arguments)


def test_a_function_that_did_not_change_is_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    class Counted(printer._Function):
        def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
            seen.append(func)
            super().__init__(func, *args, **kwargs)

    monkeypatch.setattr(printer, "_Function", Counted)
    manager().run_passes(parse(TEXT), True, str(tmp_path))
    assert seen
    assert len(seen) == len({id(f) for f in seen})


# contexts -------------------------------------------------------------------------------------------------------


def test_contexts_nest() -> None:
    assert PassContext.current() is None
    with PassContext(verification_level=VerificationLevel.NONE) as outer:
        with PassContext(memory_planner=MemoryPlanner.DSA_RP) as inner:
            assert PassContext.current() is inner
            assert inner.get_memory_planner() is MemoryPlanner.DSA_RP
        assert PassContext.current() is outer
        assert outer.get_verification_level() is VerificationLevel.NONE
    assert PassContext.current() is None


def test_contexts_belong_to_a_thread() -> None:
    found: list[object] = []
    with PassContext():
        thread = threading.Thread(target=lambda: found.append(PassContext.current()))
        thread.start()
        thread.join()
    assert found == [None]


def test_contexts_are_left_in_order() -> None:
    outer, inner = PassContext(), PassContext()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(RuntimeError, match="left out of order"):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


def test_defaults_of_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    context = PassContext()
    assert context.get_verification_level() is VerificationLevel.BASIC
    assert context.get_diagnostic_phase() is DiagnosticPhase.PRE_PIPELINE
    assert context.get_memory_planner() is MemoryPlanner.PYPTO
    assert context.get_runtime() is RuntimeKind.TENSORMAP_AND_RINGBUFFER
    assert context.get_enable_pypto_l0c_double_buffer() is False
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", "roundtrip")
    assert PassContext().get_verification_level() is VerificationLevel.ROUNDTRIP
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", "all")
    with pytest.raises(ValueError, match="PYPTO_VERIFY_LEVEL='all' is no level; use none, basic or roundtrip"):
        PassContext()


# instruments ----------------------------------------------------------------------------------------------------


def test_callbacks_see_every_pass_and_also_single_passes() -> None:
    seen: list[str] = []
    hooks = CallbackInstrument(
        before_pass=lambda p, _: seen.append(f"before {p.get_name()}"),
        after_pass=lambda p, _: seen.append(f"after {p.get_name()}"),
    )
    with PassContext([hooks]):
        manager().run_passes(parse(TEXT))
        names = [x for n in manager().get_pass_names() for x in (f"before {n}", f"after {n}")]
        assert seen == names
        seen.clear()
        ConvertToSSA()(parse(TEXT))
    assert seen == ["before ConvertToSSA", "after ConvertToSSA"]
    seen.clear()
    ConvertToSSA()(parse(TEXT))
    assert seen == []


def test_memory_reports(tmp_path: Path) -> None:
    with PassContext([ReportInstrument(str(tmp_path))]):
        manager().run_passes(parse(TEXT))
    (report,) = tmp_path.iterdir()
    assert report.name == "memory_after_AllocateMemoryAddr.txt"
    lines = report.read_text().split("\n")
    assert lines[0] == "function main_incore_0 (AIV)"
    assert lines[1] == "  Vec: 16384 bytes of 188416 (8.7 %), 1 range(s)"
    assert "x" in lines[2]


# profiles -------------------------------------------------------------------------------------------------------


def test_profiles_are_a_tree(tmp_path: Path) -> None:
    with CompileProfiler() as profiler:
        manager().run_passes(parse(TEXT))
    (stage,) = profiler.stages
    assert stage.name == "passes"
    assert [c.name for c in stage.children] == manager().get_pass_names()
    assert 0 < sum(c.seconds for c in stage.children) <= stage.seconds
    profiler.write_report(tmp_path)
    data = json.loads((tmp_path / "pipeline_profile.json").read_text())
    assert data["stages"][0]["children"][3]["name"] == "ConvertToSSA"
    assert data["total_seconds"] == round(profiler.total_seconds, 6)
    text = (tmp_path / "pipeline_profile.txt").read_text()
    assert "ConvertToSSA" in text
    assert "%" in text
    assert CompileProfiler.current() is None
