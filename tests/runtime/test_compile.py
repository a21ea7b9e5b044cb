"""`ir.compile`: its parameters, where it writes, which setting wins, what it refuses."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypto
import pytest
from pypto import ir
from pypto.backend import BackendType
from pypto.pypto_core.passes import (
    CallbackInstrument,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
)

from tests.runtime.programs import AddOne, HostSum

PARAMETERS: list[tuple[str, Any]] = [
    ("program", inspect.Parameter.empty),
    ("output_dir", None),
    ("strategy", ir.OptimizationStrategy.Default),
    ("dump_passes", True),
    ("backend_type", BackendType.Ascend910B),
    ("skip_ptoas", False),
    ("verification_level", None),
    ("diagnostic_phase", None),
    ("disabled_diagnostics", None),
    ("memory_planner", None),
    ("enable_pypto_l0c_double_buffer", None),
    ("profiling", False),
    ("platform", None),
    ("distributed_config", None),
    ("analyze_auto_scopes_for_deps", False),
    ("emit_source_loc", None),
    ("dump_ptoas_passes", False),
    ("runtime", None),
]


def test_eighteen_parameters_only_the_program_positional() -> None:
    shown = inspect.signature(ir.compile).parameters
    assert [(p.name, p.default) for p in shown.values()] == PARAMETERS
    positional = [p.name for p in shown.values() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == ["program"]


@pytest.mark.parametrize(
    "order", ["import pypto.ir.compile; from pypto import ir", "from pypto import ir; import pypto.ir.compile"]
)
def test_the_name_is_the_function_in_either_import_order(order: str) -> None:
    code = f"from pytest_pypto import toolchain; toolchain.activate('embedded'); {order}; assert callable(ir.compile)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_positional_options_are_refused() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        ir.compile(HostSum, "there")  # type: ignore[call-arg]


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'skip_ptaos'"):
        ir.compile(HostSum, skip_ptaos=True)


@pytest.mark.parametrize("value", [None, 3, "program", object()])
def test_something_that_is_no_program(value: object) -> None:
    with pytest.raises(TypeError, match=rf"takes an ir\.Program, got {type(value).__name__}.*@pl\.program"):
        ir.compile(value)


def test_a_bad_platform_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid platform 'a3'"):
        ir.compile(HostSum, platform="a3", output_dir=tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_bad_strategy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unsupported optimization strategy 'Fast'"):
        ir.compile(HostSum, strategy="Fast", output_dir=tmp_path)


def test_the_platform_wins_over_the_backend_type(tmp_path: Path) -> None:
    compiled = ir.compile(HostSum, platform="a5", backend_type=BackendType.Ascend910B, output_dir=tmp_path)
    assert (compiled.platform, compiled.backend_type) == ("a5", BackendType.Ascend950)
    assert json.loads((tmp_path / "compiled_meta.json").read_text())["backend_type"] == "Ascend950"


def test_without_a_platform_the_backend_decides(tmp_path: Path) -> None:
    compiled = ir.compile(HostSum, backend_type=BackendType.Ascend950, output_dir=tmp_path)
    assert compiled.platform == "a5sim"
    assert pypto.backend.get_backend_type() is BackendType.Ascend950


@pytest.mark.parametrize("base", [None, "", "builds"])
def test_the_default_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str | None) -> None:
    monkeypatch.chdir(tmp_path)
    if base is None:
        monkeypatch.delenv("PYPTO_PROG_BUILD_DIR", raising=False)
    else:
        monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", base and str(tmp_path / base))
    compiled = ir.compile(HostSum)
    assert compiled.output_dir.parent == tmp_path / (base or "build_output")
    assert re.fullmatch(r"HostSum_\d{8}_\d{6}", compiled.output_dir.name)


def test_two_builds_in_one_second_get_two_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr("time.strftime", lambda _format: "20260101_000000")
    names = [ir.compile(HostSum).output_dir.name for _ in range(3)]
    stem = "HostSum_20260101_000000"
    assert names == [stem, f"{stem}_1", f"{stem}_2"]


def test_an_explicit_directory_is_used_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    assert ir.compile(HostSum, output_dir=tmp_path).output_dir == tmp_path
    assert (tmp_path / "mine.txt").read_text() == "kept"


CONFLICTS = {
    "verification_level": VerificationLevel.NONE,
    "diagnostic_phase": DiagnosticPhase.NONE,
    "memory_planner": MemoryPlanner.PYPTO,
    "runtime": RuntimeKind.TENSORMAP_AND_RINGBUFFER,
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_options_a_context_decides_are_refused_inside_it(tmp_path: Path, name: str) -> None:
    text = rf"compile\(\) was called with {name} while a PassContext is already active\. Set {name} on that"
    with PassContext([]), pytest.raises(RuntimeError, match=text):
        ir.compile(HostSum, output_dir=tmp_path, **{name: CONFLICTS[name]})


@pytest.mark.parametrize(
    "option", [{"disabled_diagnostics": DiagnosticCheckSet()}, {"enable_pypto_l0c_double_buffer": True}]
)
def test_other_options_work_inside_a_context(tmp_path: Path, option: dict[str, Any]) -> None:
    with PassContext([]):
        ir.compile(HostSum, output_dir=tmp_path, **option)


def test_instruments_of_an_outer_context_see_the_passes(tmp_path: Path) -> None:
    seen: list[str] = []
    hook = CallbackInstrument(after_pass=lambda p, _program: seen.append(p.get_name()))
    with PassContext([hook]):
        ir.compile(HostSum, output_dir=tmp_path)
    assert "ConvertToSSA" in seen


LEVELS = [(True, True), (False, False), (ir.PassDumpLevel.NONE, False), (ir.PassDumpLevel.EXPLICIT, True)]


@pytest.mark.parametrize(("value", "there"), LEVELS)
def test_dumps_are_written_when_asked(tmp_path: Path, value: object, there: bool) -> None:
    ir.compile(HostSum, output_dir=tmp_path, dump_passes=value)
    assert (tmp_path / "passes_dump" / "00_frontend.py").is_file() == there


def test_a_second_build_in_one_directory_leaves_no_dump_of_the_first(tmp_path: Path) -> None:
    ir.compile(HostSum, output_dir=tmp_path)
    dumps = tmp_path / "passes_dump"
    stale = [dumps / name for name in ("98_after_Something.py", "98_after_Something.log", "99_after_Own-Pass.py")]
    for path in stale:
        path.write_text("stale")
    mine = [dumps / name for name in ("notes.txt", "12_mine.py", "after_hours.log")]
    for path in mine:
        path.write_text("mine")
    ir.compile(AddOne, output_dir=tmp_path)
    assert not any(path.exists() for path in stale)
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert ir.CompiledProgram.from_dir(tmp_path).param_names == ["x", "out"]


def test_a_build_without_dumps_leaves_none_of_the_one_before(tmp_path: Path) -> None:
    ir.compile(HostSum, output_dir=tmp_path)
    assert (tmp_path / "passes_dump" / "00_frontend.py").is_file()
    ir.compile(AddOne, output_dir=tmp_path, dump_passes=False)
    assert not (tmp_path / "passes_dump").exists()


def test_a_failed_build_leaves_no_sidecar_of_the_one_before(tmp_path: Path) -> None:
    ir.compile(HostSum, output_dir=tmp_path)
    hook = CallbackInstrument(after_pass=lambda _pass, _program: 1 // 0)
    with PassContext([hook]), pytest.raises(ZeroDivisionError):
        ir.compile(HostSum, output_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match="its build did not finish"):
        ir.CompiledProgram.from_dir(tmp_path)


def test_profiling_writes_its_report(tmp_path: Path) -> None:
    ir.compile(AddOne, output_dir=tmp_path, profiling=True)
    data = json.loads((tmp_path / "report" / "pipeline_profile.json").read_text())
    assert [s["name"] for s in data["stages"]] == ["passes", "codegen"]
    children = [c["name"] for c in data["stages"][1]["children"]]
    assert children[-1] == "orchestration_codegen"
    assert children[0].startswith("kernel_codegen:")
    text = (tmp_path / "report" / "pipeline_profile.txt").read_text()
    assert text.startswith("PyPTO Compile Profile\n======================\nTotal: ")


def test_an_outer_profiler_keeps_the_report(tmp_path: Path) -> None:
    from pypto.compile_profiling import CompileProfiler

    with CompileProfiler() as outer:
        ir.compile(HostSum, output_dir=tmp_path, profiling=True)
    assert not (tmp_path / "report" / "pipeline_profile.json").exists()
    assert outer.to_dict()["stages"]


PLACES = [(None, None, True), (None, "0", False), (True, "0", True), (False, None, False)]


@pytest.mark.parametrize(("option", "variable", "there"), PLACES)
def test_source_places_in_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: bool | None, variable: str | None, there: bool
) -> None:
    monkeypatch.delenv("PYPTO_EMIT_PTO_LOC", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYPTO_EMIT_PTO_LOC", variable)
    ir.compile(AddOne, output_dir=tmp_path, emit_source_loc=option)
    kernel = next((tmp_path / "kernels").rglob("*.pto")).read_text()
    assert ("programs.py" in kernel) == there


def test_the_layout_of_an_artifact(tmp_path: Path) -> None:
    compiled = ir.compile(AddOne, output_dir=tmp_path, dump_passes=False, skip_ptoas=True)
    files = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert files - {".compile.lock", "report/perf_hints.log"} - {f for f in files if f.startswith("report/memory")} == {
        "kernels/aiv/main_incore_0.pto",
        "ptoas/main_incore_0.pto",
        "orchestration/main.py",
        "orchestration/main.cpp",
        "compiled_meta.json",
        "debug/run.py",
    }
    assert compiled.program is AddOne


def test_a_full_build_also_has_the_kernel_table(tmp_path: Path) -> None:
    compiled = ir.compile(AddOne, output_dir=tmp_path, skip_ptoas=False)
    assert (tmp_path / "kernel_config.py").is_file()
    assert compiled.runtime_name == "tensormap_and_ringbuffer"


def test_the_missing_assembler_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_pypto.pypto.runtime.compile._told", set())
    for number in (1, 2):
        ir.compile(HostSum, output_dir=tmp_path / str(number))
    found = [r.getMessage() for r in caplog.records if "assembler" in r.getMessage()]
    assert len(found) == 1
    assert "ptoas" in found[0]
    assert "skip_ptoas=True" in found[0]


def test_another_runtime_is_stored(tmp_path: Path) -> None:
    compiled = ir.compile(HostSum, output_dir=tmp_path, runtime=RuntimeKind.HOST_BUILD_GRAPH, skip_ptoas=True)
    assert ir.CompiledProgram.from_dir(tmp_path).runtime_name == compiled.runtime_name == "host_build_graph"


def test_the_repro_script_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_EMIT_DEBUG_RUNNER", "no")
    ir.compile(HostSum, output_dir=tmp_path)
    assert not (tmp_path / "debug").exists()


def test_two_compiles_give_the_same_bytes_in_fresh_processes(tmp_path: Path) -> None:
    code = (
        "from pytest_pypto import toolchain; toolchain.activate('embedded'); from pypto import ir; import sys; "
        "from tests.runtime.programs import AddOne; ir.compile(AddOne, output_dir=sys.argv[1])"
    )
    root = Path(__file__).resolve().parents[2]
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / seed)], check=True, timeout=120, env=env, cwd=root)
    one, two = (
        {p.relative_to(tmp_path / s): p.read_bytes() for p in (tmp_path / s).rglob("*") if p.is_file()} for s in "12"
    )
    assert one == two


def test_hints_are_appended_to_their_log(tmp_path: Path) -> None:
    for _ in range(2):
        ir.compile(AddOne, output_dir=tmp_path)
    lines = (tmp_path / "report" / "perf_hints.log").read_text().splitlines()
    assert len(lines) >= 2
    assert all(re.match(r"\[perf_hint PH\S+\] \w+: .* at .*:\d+:\d+$", line) for line in lines)
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
