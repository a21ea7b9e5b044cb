"""Running artifacts from the command line: `execute_artifact`, `replay`, `debug/run.py`, and golden files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pypto import ir
from pypto.runtime import DfxOptions, TensorSpec
from pypto.runtime.debug.replay import main as replay_main
from pypto.runtime.debug.replay import rebuild_kernel_cpp_from_pto, replay
from pypto.runtime.execute_artifact import ArtifactSetupError, execute_artifact_dir, execute_batch_manifest, main
from pypto.runtime.golden import load_golden, output_names, validate_golden, write_golden

from tests.runtime.programs import AddOne, sample

GOLDEN = """
import torch

__outputs__ = ["out"]
RTOL = ATOL = 1e-5


def generate_inputs(params):
    return [("x", torch.arange(2048.0).reshape(32, 64)), ("out", torch.zeros(32, 64))]


def compute_golden(tensors, params):
    tensors["out"][:] = tensors["x"] + {step}
"""


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    ir.compile(AddOne, platform="a2a3sim", output_dir=tmp_path / "build", dump_passes=False)
    (tmp_path / "build" / "golden.py").write_text(GOLDEN.format(step=1))
    return tmp_path / "build"


def test_one_artifact(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device-id", "3", "--work-dir", str(artifact), "--platform", "a2a3sim"]) == 0
    assert capsys.readouterr().out == "PYPTO_EXEC_RESULT=PASS device=3\n"
    stored = torch.load(artifact / "data" / "actual" / "out.pt")
    assert torch.equal(stored, sample() + 1)


def test_a_wrong_result_fails(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (artifact / "golden.py").write_text(GOLDEN.format(step=2))
    arguments = ["--device-id", "0", "--work-dir", str(artifact), "--platform", "a2a3sim"]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == "PYPTO_EXEC_RESULT=FAIL\n"
    assert "Mismatched elements: 2048/2048" in captured.err
    assert main([*arguments, "--no-validate"]) == 0


def test_an_artifact_that_cannot_be_opened_is_no_failure_of_the_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--device-id", "0", "--work-dir", str(tmp_path / "absent"), "--platform", "a2a3sim"]) == 1
    assert capsys.readouterr().out == "PYPTO_EXEC_RESULT=INFRA\n"
    with pytest.raises(ArtifactSetupError, match="absent"):
        execute_artifact_dir(tmp_path / "absent", "a2a3sim", 0)


def test_a_batch_reports_each_entry_in_order(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = [{"work_dir": str(artifact), "platform": "a2a3sim"}, {"work_dir": "nowhere", "platform": "a2a3sim"}]
    manifest = tmp_path / "batch.json"
    manifest.write_text(json.dumps([*entries, entries[0]]))
    assert main(["--device-id", "1", "--batch-manifest", str(manifest)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"PYPTO_EXEC_RESULT=PASS work_dir={artifact} device=1",
        "PYPTO_EXEC_RESULT=INFRA work_dir=nowhere",
        f"PYPTO_EXEC_RESULT=PASS work_dir={artifact} device=1",
    ]
    manifest.write_text("[]")
    assert execute_batch_manifest(manifest, 0)


@pytest.mark.parametrize("text", ["", "{}", '[{"work_dir": 3}]', "[1]"])
def test_a_bad_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ValueError, match=r"m\.json"):
        execute_batch_manifest(tmp_path / "m.json", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--device-id", "0"],
        ["--device-id", "0", "--work-dir", "x"],
        ["--device-id", "0", "--work-dir", "x", "--batch-manifest", "y"],
        ["--device-id", "0", "--work-dir", "x", "--platform", "a2a3sim", "--enable-chip-swimlane", "9"],
    ],
)
def test_wrong_usage_is_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("flag", "level"), [([], 0), (["--enable-chip-swimlane"], 4), (["--enable-chip-swimlane", "2"], 2)]
)
def test_levels_survive_the_command_line(flag: list[str], level: int) -> None:
    from pypto.runtime.execute_artifact import _parser, dfx_of

    args = _parser().parse_args(["--device-id", "0", "--work-dir", "x", *flag])
    assert dfx_of(args) == DfxOptions(enable_chip_swimlane=level)


def test_replay_runs_an_edited_kernel(artifact: Path) -> None:
    kernel = next(artifact.glob("kernels/**/*.pto"))
    x, out = sample(), torch.zeros(32, 64)
    replay(artifact, x, out)
    assert torch.equal(out, x + 1)
    kernel.write_text(kernel.read_text().replace("1.00000000000000000e+00 : f32", "5.00000000000000000e+00 : f32"))
    replay(artifact, x, out)
    assert torch.equal(out, x + 5)
    with pytest.raises(AssertionError, match="does not match golden"):
        replay(artifact, validate=True)


def test_replay_checks_what_it_is_given(artifact: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 2 tensors, got 1"):
        replay(artifact, sample(), validate=True)
    (artifact / "golden.py").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no golden\.py"):
        replay(artifact, validate=True)
    with pytest.raises(FileNotFoundError, match=r"missing kernel_config\.py and orchestration/host_orch\.py"):
        replay(tmp_path)


def test_replay_takes_its_inputs_from_the_golden_file(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_main([str(artifact)]) == 0
    shown = capsys.readouterr().out
    assert "Replay finished" in shown
    assert "validation" not in shown


def test_replay_from_the_command_line(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_main([str(artifact), "--validate", "--swimlane-level", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "Golden validation: PASSED" in out
    assert out[-1] == f"Replay finished. DFX artefacts (if any) under {artifact / 'dfx_outputs'}"
    assert (artifact / "dfx_outputs" / "chip_swimlane_records.json").is_file()


def test_replay_tells_what_is_wrong_and_returns_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_main([str(tmp_path)]) == 1
    assert "has no golden.py to take inputs from" in capsys.readouterr().err


def test_kernel_cpp_of_the_vendor_cannot_be_refreshed_here(artifact: Path) -> None:
    rebuild_kernel_cpp_from_pto(artifact)
    (artifact / "kernels" / "aiv" / "k.cpp").write_text("")
    with pytest.raises(RuntimeError, match="does not have"):
        rebuild_kernel_cpp_from_pto(artifact)


def test_the_repro_script_of_an_artifact_runs_by_itself(artifact: Path) -> None:
    (artifact / "golden.py").unlink()
    script = artifact / "debug" / "run.py"
    text = script.read_text()
    assert "torch.randn([32, 64]).to(torch.float32),  # x: In fp32[32, 64]" in text
    assert "torch.zeros([32, 64], dtype=torch.float32),  # out: Out fp32[32, 64]" in text
    assert "default_platform='a2a3sim'" in text
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
    assert "Replay finished." in done.stdout


def scaled(tensors, params):  # type: ignore[no-untyped-def]
    tensors["out"][:] = tensors["x"] + 1


def test_golden_files_are_written_and_read_back(artifact: Path) -> None:
    specs = [
        TensorSpec("x", [32, 64], torch.float32, torch.randn),
        TensorSpec("out", [32, 64], torch.float32, is_output=True),
    ]
    write_golden(specs, scaled, artifact / "golden.py", rtol=1e-4)
    golden = load_golden(artifact)
    assert (golden.__outputs__, golden.RTOL) == (["out"], 1e-4)
    replay(artifact, validate=True)
    kept = torch.load(artifact / "data" / "in" / "x.pt")
    write_golden(specs, scaled, artifact / "golden.py")
    assert torch.equal(torch.load(artifact / "data" / "in" / "x.pt"), kept)


def test_golden_comparison() -> None:
    want = torch.tensor([1.0, float("nan"), 3.0])
    validate_golden({"o": torch.tensor([1.0, 77.0, 3.0])}, {"o": want}, 1e-5, 1e-5)
    with pytest.raises(AssertionError) as caught:
        validate_golden({"o": torch.tensor([1.5, 0.0, 4.0])}, {"o": want}, 1e-5, 1e-5)
    assert str(caught.value).splitlines() == [
        "Output 'o' does not match golden.",
        "Mismatched elements: 2/3",
        "rtol=1e-05, atol=1e-05",
        "First 2 mismatches:",
        "  [0] actual=1.5, expected=1.0",
        "  [2] actual=4.0, expected=3.0",
    ]
    with pytest.raises(AssertionError, match=r"shape \[1, 3\], expected \[3\]"):
        validate_golden({"o": want[None]}, {"o": want}, 1, 1)


def test_outputs_without_a_list_are_found_by_name() -> None:
    import types

    module = types.ModuleType("golden")
    assert output_names(module, ["x", "out", "output2", "y"]) == ["out", "output2"]
