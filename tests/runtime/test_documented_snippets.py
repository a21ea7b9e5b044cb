"""The code of the public documentation, run as it stands; hardware platforms are replaced by the simulator's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.backend import BackendType
from pypto.ir import CompiledProgram, DistributedCompiledProgram, DistributedConfig
from pypto.runtime import CompileOptions, ExecutionMode, RunConfig

from tests.runtime.programs import AddOne, sample


@pl.jit
def add(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):  # type: ignore[no-untyped-def]
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(a, b)
    return out


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_quick_start_compile_and_keep_the_artifact(platform: str) -> None:
    cfg = RunConfig(platform=platform)
    torch.manual_seed(0)
    a = torch.randn(128, 128, dtype=torch.float32)
    b = torch.randn(128, 128, dtype=torch.float32)
    out = torch.zeros(128, 128, dtype=torch.float32)
    compiled = add.compile(a, b, out, config=cfg)
    assert compiled.output_dir.is_dir()
    assert compiled.platform == cfg.platform
    assert compiled.param_names == ["a", "b", "out"]


def test_compile_options_are_no_arguments_of_a_kernel() -> None:
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'skip_ptoas'"):
        add.compile(skip_ptoas=True)


def test_one_config_drives_both_phases() -> None:
    config = RunConfig(platform="a2a3sim")
    compiled = ir.compile(AddOne, **config.compile_kwargs())
    x, out = sample(), torch.zeros(32, 64)
    compiled(x, out, config=config)
    assert torch.equal(out, x + 1)


def test_the_platform_is_two_decisions() -> None:
    assert RunConfig(arch=BackendType.Ascend950, execution_mode=ExecutionMode.ONBOARD).platform == "a5"
    assert RunConfig(platform="a5").arch is BackendType.Ascend950


def test_the_compile_view_stands_alone() -> None:
    compiled = ir.compile(AddOne, **CompileOptions(platform="a2a3").as_compile_kwargs())
    assert compiled.platform == "a2a3"
    assert not (compiled.output_dir / "passes_dump").exists()


def test_an_artifact_is_dispatched_from_its_directory() -> None:
    config = RunConfig(platform="a2a3sim", ring_heap=4096 * 256)
    directory = ir.compile(AddOne, **config.compile_kwargs()).output_dir
    x, out = sample(), torch.zeros(32, 64)
    changed = dataclasses.replace(config, platform="a2a3sim", device_id=0)
    ir.CompiledProgram.from_dir(directory)(x, out, config=changed)
    assert torch.equal(out, x + 1)


def test_artifact_names_come_from_pypto_ir() -> None:
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram as same

    assert DistributedCompiledProgram is same
    assert CompiledProgram is ir.CompiledProgram
    assert DistributedConfig().device_ids == [0]


def test_dumps_come_with_compile_and_not_with_lower() -> None:
    a = b = torch.randn(32, 32)
    out = torch.zeros(32, 32)
    lowered = add.lower(a, b, out)
    assert isinstance(lowered, ir.Program)
    assert not list(Path().iterdir())
    compiled = add.compile(a, b, out, config=RunConfig(dump_passes=ir.PassDumpLevel.EXPLICIT))
    assert (compiled.output_dir / "passes_dump" / "00_frontend.py").is_file()
