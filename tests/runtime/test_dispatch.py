"""Calls of a compiled program: results, configs, workers, device tensors, diagnostics."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from pypto import ir
from pypto.runtime import ChipWorker, DfxOptions, RunConfig, benchmark, device_settings, execute_compiled

from tests.runtime.programs import AddOne, HostSum, Scale, sample

SIM = RunConfig(platform="a2a3sim")


@pytest.fixture(scope="module")
def add_one(tmp_path_factory: pytest.TempPathFactory) -> ir.CompiledProgram:
    return ir.compile(AddOne, platform="a2a3sim", output_dir=tmp_path_factory.mktemp("add"), dump_passes=False)


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory) -> ir.CompiledProgram:
    return ir.compile(Scale, platform="a2a3sim", output_dir=tmp_path_factory.mktemp("scale"), dump_passes=True)


def test_results_go_into_the_arguments(add_one: ir.CompiledProgram) -> None:
    x, out = sample(), torch.zeros(32, 64)
    assert add_one(x, out) is None
    assert torch.equal(out, x + 1)


def test_return_style_gives_a_new_tensor(add_one: ir.CompiledProgram) -> None:
    x = sample()
    out = add_one(x, config=SIM)
    assert torch.equal(out, x + 1)


def test_scalars_and_carried_tensors(scale: ir.CompiledProgram) -> None:
    x, total, out = sample(), torch.ones(32, 64), torch.zeros(32, 64)
    scale(x, 0.5, total, out)
    assert torch.equal(out, x * 0.5)
    assert torch.equal(total, x + 1)
    assert scale.output_indices == [3]


def test_a_value_that_is_no_parameter_is_returned(tmp_path: Path) -> None:
    compiled = ir.compile(HostSum, output_dir=tmp_path)
    assert compiled(2, 40) == 42


def test_without_a_config_the_artifact_s_platform_counts(tmp_path: Path) -> None:
    compiled = ir.compile(AddOne, platform="a5sim", output_dir=tmp_path)
    x, out = sample(), torch.zeros(32, 64)
    compiled(x, out)
    assert torch.equal(out, x + 1)
    with pytest.raises(ValueError, match=r"compiled for Ascend950 .*cannot run on platform 'a2a3sim'.*means 'a2a3sim'"):
        compiled(x, out, config=RunConfig(ring_heap=4096))


def test_hardware_compiles_and_dispatch_names_the_simulator(tmp_path: Path) -> None:
    compiled = ir.compile(AddOne, platform="a2a3", output_dir=tmp_path)
    x, out = sample(), torch.zeros(32, 64)
    with pytest.raises(RuntimeError, match=r"'a2a3' is hardware.*dispatch on 'a2a3sim'"):
        compiled(x, out)
    compiled(x, out, config=SIM)
    assert torch.equal(out, x + 1)


def test_keyword_tensors_are_refused(add_one: ir.CompiledProgram) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        add_one(x=sample(), out=torch.zeros(32, 64))


def test_a_worker_keeps_tensors_between_runs(add_one: ir.CompiledProgram) -> None:
    with ChipWorker(SIM) as worker:
        weights = worker.alloc_tensor((32, 64), torch.float32, init=sample())
        result = worker.alloc_tensor((32, 64), torch.float32)
        worker.run(add_one, weights, result)
        worker.run(add_one, result, weights)
        assert torch.equal(worker.read_tensor(weights), sample() + 2)
        worker.free_tensor(weights)
        with pytest.raises(ValueError, match="not a live allocation"):
            worker.run(add_one, weights, result)


def test_return_style_through_a_registration(add_one: ir.CompiledProgram) -> None:
    with ChipWorker(SIM) as worker, worker.register(add_one) as handle:
        assert torch.equal(handle(sample()), sample() + 1)
        assert torch.equal(add_one(sample()), sample() + 1)


def test_deprecated_dispatch_warns_once_and_runs(add_one: ir.CompiledProgram) -> None:
    x, out = sample(), torch.zeros(32, 64)
    with pytest.warns(DeprecationWarning, match=r"execute_compiled is deprecated.*from_dir") as caught:
        execute_compiled(add_one.output_dir, [x, out], platform="a2a3sim", device_id=0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert torch.equal(out, x + 1)
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="only supports level=2"):  # noqa: PT030
        execute_compiled(add_one.output_dir, [x, out], platform="a2a3sim", device_id=0, level=3)


def test_benchmark_times_the_host(add_one: ir.CompiledProgram) -> None:
    stats = benchmark(add_one, [sample(), torch.zeros(32, 64)], rounds=3, warmup=1)
    assert len(stats.host_wall_us) == len(stats.device_wall_us) == stats.rounds == 3
    assert stats.all_zero_device
    assert min(stats.host_wall_us) > 0
    assert stats.per_round("effective") == stats.host_wall_us
    assert "use host_wall_us" in str(stats)
    assert stats.format_tree().startswith("chip.run ")
    with pytest.raises(ValueError, match=r"metric must be one of \['device'"):
        stats.per_round("wall")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rounds": 0}, "rounds must be positive"),
        ({"warmup": -1}, "warmup must not be negative"),
        ({"config": SIM, "platform": "a2a3sim"}, "not both"),
        ({"persistent": True}, "only for distributed"),
    ],
)
def test_benchmark_arguments(add_one: ir.CompiledProgram, options: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        benchmark(add_one, [sample(), torch.zeros(32, 64)], **options)


def test_diagnostics_go_below_the_artifact(tmp_path: Path) -> None:
    compiled = ir.compile(AddOne, platform="a2a3sim", output_dir=tmp_path)
    config = RunConfig(platform="a2a3sim", enable_chip_swimlane=2, enable_dep_gen=True)
    compiled(sample(), torch.zeros(32, 64), config=config)
    folder = tmp_path / "dfx_outputs"
    assert json.loads((folder / "chip_swimlane_records.json").read_text())["chip_swimlane_level"] == 2
    assert json.loads((folder / "deps.json").read_text())["tasks"]


def test_no_diagnostics_no_files(add_one: ir.CompiledProgram) -> None:
    add_one(sample())
    assert not (add_one.output_dir / "dfx_outputs").exists()
    assert not DfxOptions().any()


def test_sanitizers_are_off_unless_asked(add_one: ir.CompiledProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYPTO_SANITIZE", raising=False)
    poisoned = torch.full((32, 64), float("nan"))
    add_one(poisoned)
    assert add_one.findings == ()
    monkeypatch.setenv("PYPTO_SANITIZE", "1")
    add_one(sample())
    assert [f for f in add_one.findings if f.severity == "error"] == []


def test_settings_of_the_device_can_be_chosen(add_one: ir.CompiledProgram) -> None:
    with device_settings(order="random", seed=5):
        assert torch.equal(add_one(sample()), sample() + 1)
    with device_settings(order="backwards"), pytest.raises(ValueError, match="unknown order 'backwards'"):
        add_one(sample())


def test_a_config_is_not_changed_by_a_dispatch(add_one: ir.CompiledProgram) -> None:
    before = dataclasses.replace(SIM)
    add_one(sample(), config=SIM)
    assert before == SIM


def test_every_pass_agrees_with_golden(scale: ir.CompiledProgram) -> None:
    x, total, out = sample(), torch.ones(32, 64), torch.zeros(32, 64)
    tensors = {"x": x, "s": 0.5, "total": total, "out": out}
    scale.validate_ir(tensors, {"out": x * 0.5, "total": x + 1})
    with pytest.raises(AssertionError, match="tensor mismatch for key 'out'"):
        scale.validate_ir(tensors, {"out": x * 0.75})


def test_validation_needs_dumps(add_one: ir.CompiledProgram) -> None:
    with pytest.raises(FileNotFoundError, match=r"No passes_dump/ under .*dump_passes=True"):
        add_one.validate_ir({}, {})
