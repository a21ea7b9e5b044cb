"""Artifacts damaged on disk: one clear error each, nothing in them is ever executed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from pypto import ir

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


def test_damage_is_seen_although_the_artifact_ran_before(artifact: Path) -> None:
    compiled = ir.CompiledProgram.from_dir(artifact)
    compiled(sample(), torch.zeros(32, 64))
    next(artifact.glob("kernels/**/*.pto")).write_text("junk")
    with pytest.raises(Exception, match="main_incore_0"):
        compiled(sample(), torch.zeros(32, 64))
