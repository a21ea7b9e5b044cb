"""Artifacts damaged on disk: one clear error each, nothing in them is ever executed."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from pypto import ir

from pytest_pypto.pypto.device import DeviceError
from tests.runtime.programs import AddOne, sample


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    ir.compile(AddOne, platform="a2a3sim", output_dir=folder, dump_passes=False)
    return folder


@pytest.fixture
def artifact(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "copy"))


def run(artifact: Path) -> None:
    ir.CompiledProgram.from_dir(artifact)(sample(), torch.zeros(32, 64))


def test_a_copied_artifact_runs(artifact: Path) -> None:
    run(artifact)


def test_a_missing_kernel_is_named(artifact: Path) -> None:
    for kernel in (*artifact.glob("kernels/**/*.pto"), *artifact.glob("ptoas/*.pto")):
        kernel.unlink()
    with pytest.raises(Exception, match="main_incore_0"):
        run(artifact)


@pytest.mark.parametrize("junk", [b"", b"\x00\x01\x02\xff" * 64, b"module {", b"import os\n"])
def test_kernels_of_junk_are_refused_with_their_file(artifact: Path, junk: bytes) -> None:
    kernel = next(artifact.glob("kernels/**/*.pto"))
    kernel.write_bytes(junk)
    with pytest.raises(Exception, match=kernel.name):
        run(artifact)


def test_a_truncated_kernel_is_refused(artifact: Path) -> None:
    kernel = next(artifact.glob("kernels/**/*.pto"))
    text = kernel.read_text()
    kernel.write_text(text[: len(text) // 2])
    with pytest.raises(Exception, match=kernel.name):
        run(artifact)


def test_code_beside_a_host_program_is_passed_over(artifact: Path, tmp_path: Path) -> None:
    host = artifact / "orchestration" / "main.py"
    target = tmp_path / "touched"
    host.write_text(f"open({str(target)!r}, 'w')\n" + host.read_text())
    run(artifact)
    assert not target.exists()


def test_code_in_a_host_program_is_refused_and_never_executed(artifact: Path, tmp_path: Path) -> None:
    host = artifact / "orchestration" / "main.py"
    target = tmp_path / "touched"
    lines = host.read_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "return" in line)
    lines.insert(at, lines[at][: len(lines[at]) - len(lines[at].lstrip())] + f"open({str(target)!r}, 'w')")
    host.write_text("\n".join(lines) + "\n")
    with pytest.raises(Exception, match=r"main\.py"):
        run(artifact)
    assert not target.exists()


def test_an_artifact_without_host_program_says_so(artifact: Path) -> None:
    shutil.rmtree(artifact / "orchestration")
    with pytest.raises(FileNotFoundError, match=r"Cannot execute PyPTO artifact .*orchestration/<entry>\.py"):
        ir.CompiledProgram.from_dir(artifact).load()


def test_the_artifact_lists_what_is_executed(artifact: Path) -> None:
    listed = json.loads((artifact / "compiled_meta.json").read_text())["files"]
    assert listed == ["kernels/aiv/main_incore_0.pto", "orchestration/main.py"]


@pytest.mark.parametrize("gone", ["kernels", "kernels/aiv/main_incore_0.pto", "orchestration", "orchestration/main.py"])
def test_nothing_else_runs_in_place_of_a_missing_file(tmp_path: Path, gone: str) -> None:
    """Neither the second copy of the kernels nor a dump stands in for a file of the artifact."""
    compiled = ir.compile(AddOne, platform="a2a3sim", output_dir=tmp_path, dump_passes=True)
    compiled(sample(), torch.zeros(32, 64))
    target = tmp_path / gone
    target.rename(tmp_path / "aside")
    missing = "kernels/aiv/main_incore_0.pto" if gone.startswith("kernels") else "orchestration/main.py"
    with pytest.raises(DeviceError, match=f"incomplete, missing: {missing}; recompile via ir.compile"):
        compiled(sample(), torch.zeros(32, 64))
    with pytest.raises(FileNotFoundError, match=f"Cannot execute PyPTO artifact .* missing: {missing}; recompile"):
        compiled.load()
    (tmp_path / "aside").rename(target)
    compiled.load()
    run(tmp_path)


def test_the_second_copy_of_the_kernels_is_not_needed(artifact: Path) -> None:
    shutil.rmtree(artifact / "ptoas")
    run(artifact)


def test_an_edited_kernel_is_what_runs(artifact: Path) -> None:
    kernel = artifact / "kernels" / "aiv" / "main_incore_0.pto"
    text = kernel.read_text()
    edited = re.sub(r"(arith\.constant )1(\.0*e\+00 : f32)", r"\g<1>2\2", text)
    assert edited != text
    kernel.write_text(edited)
    x, y = sample(), torch.zeros(32, 64)
    ir.CompiledProgram.from_dir(artifact)(x, y)
    torch.testing.assert_close(y, x + 2)


def test_an_artifact_without_a_list_runs_as_before(artifact: Path) -> None:
    """As artifacts of other compilers do, whose kernels may be in `ptoas/` alone."""
    meta = artifact / "compiled_meta.json"
    data = json.loads(meta.read_text())
    del data["files"]
    meta.write_text(json.dumps(data))
    shutil.rmtree(artifact / "kernels")
    run(artifact)


@pytest.mark.parametrize("files", ["kernels", {"a": 1}, [1]])
def test_a_damaged_list_is_refused(artifact: Path, files: object) -> None:
    meta = artifact / "compiled_meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "files": files}))
    with pytest.raises(DeviceError, match="files must be a list of relative paths"):
        run(artifact)


def test_damage_is_seen_although_the_artifact_ran_before(artifact: Path) -> None:
    compiled = ir.CompiledProgram.from_dir(artifact)
    compiled(sample(), torch.zeros(32, 64))
    next(artifact.glob("kernels/**/*.pto")).write_text("junk")
    with pytest.raises(Exception, match="main_incore_0"):
        compiled(sample(), torch.zeros(32, 64))
