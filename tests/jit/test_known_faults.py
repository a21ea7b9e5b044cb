"""Faults reported against real specialisation; each test fails when the fault is made again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.jit.keys import disk_key, memory_key
from pytest_pypto.pypto.passes.context import MemoryPlanner
from pytest_pypto.pypto.passes.diagnostic_types import DiagnosticCheckSet, DiagnosticPhase
from pytest_pypto.pypto.passes.manager import OptimizationStrategy
from pytest_pypto.pypto.runtime.config import HARNESS_FIELDS, RunConfig
from pytest_pypto.pypto.runtime.distributed import DistributedConfig
from pytest_pypto.pypto.runtime.platforms import ExecutionMode

torch = pytest.importorskip("torch")

compiler = import_module("pytest_pypto.pypto.runtime.compile")
LAYOUT = pl.ND
CHECKS, DEVICES = DiagnosticCheckSet(), DistributedConfig()


@pl.jit
def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, 2.0)
    return o


@pl.jit
def laid_out(a: pl.Tensor[[64, 64], pl.FP32, LAYOUT], o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.add(a, a)
    return o


def x(*shape: int) -> Any:
    return torch.zeros(*(shape or (16, 32)))


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    kernel.cache_clear()
    laid_out.cache_clear()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Keywords of every compilation, none of which takes place."""
    seen: list[dict[str, Any]] = []

    def compile_program(program: Any, **options: Any) -> Any:
        seen.append(options)
        return SimpleNamespace(output_dir=str(options.get("output_dir") or "/nowhere"))

    monkeypatch.setattr(compiler, "compile_program", compile_program)
    return seen


COMPILED: dict[str, tuple[Any, str, Any]] = {
    "arch": (BackendType.Ascend950, "platform", "a5sim"),
    "execution_mode": (ExecutionMode.ONBOARD, "platform", "a2a3"),
    "strategy": (OptimizationStrategy.Default, "strategy", OptimizationStrategy.Default),
    "dump_passes": (True, "dump_passes", True),
    "save_kernels_dir": ("there", "output_dir", "there"),
    "compile_profiling": (True, "profiling", True),
    "diagnostic_phase": (DiagnosticPhase.NONE, "diagnostic_phase", DiagnosticPhase.NONE),
    "disabled_diagnostics": (CHECKS, "disabled_diagnostics", CHECKS),
    "analyze_auto_scopes_for_deps": (True, "analyze_auto_scopes_for_deps", True),
    "memory_planner": (MemoryPlanner.PTOAS, "memory_planner", MemoryPlanner.PTOAS),
    "dump_ptoas_passes": (True, "dump_ptoas_passes", True),
    "distributed_config": (DEVICES, "distributed_config", DEVICES),
}
"""Each field that compilation reads: a value, the compiler's keyword for it, and what arrives there."""

DISPATCHED = (
    *("device_id", "enable_chip_swimlane", "enable_dump_args", "enable_pmu", "enable_dep_gen", "enable_scope_stats"),
    *("aicpu_thread_num", "ring_task_window", "ring_heap", "ring_dep_pool"),
)


def test_every_field_is_known_here() -> None:
    names = {f.name for f in fields(RunConfig)}
    assert names == {*COMPILED, *DISPATCHED, *HARNESS_FIELDS}


@pytest.mark.parametrize("field", sorted(COMPILED))
def test_every_compile_setting_reaches_the_compiler(field: str, compiled: list[dict[str, Any]]) -> None:
    """pypto#1441: two settings were forwarded and the others dropped."""
    value, keyword, wanted = COMPILED[field]
    kernel.compile(x(), x(), config=RunConfig(**{field: value}))
    assert compiled[0][keyword] == wanted


REPORTS = ("dump_passes", "save_kernels_dir", "compile_profiling", "dump_ptoas_passes")
"""Fields that say what else is written, or where."""
OTHERS: dict[str, Any] = {
    **dict.fromkeys(("device_id", "enable_dump_args", "enable_pmu"), 1),
    **dict.fromkeys(("enable_dep_gen", "enable_scope_stats", "save_kernels", "codegen_only"), True),
    "enable_chip_swimlane": 2,
    "aicpu_thread_num": 4,
    "ring_task_window": 64,
    "ring_heap": 4096,
    "ring_dep_pool": 64,
    "rtol": 0.1,
    "atol": 0.1,
    "golden_data_dir": "there",
}
"""A value for each field that compilation does not read."""


def test_every_other_field_has_a_value_here() -> None:
    assert {*OTHERS} == {*DISPATCHED, *HARNESS_FIELDS}


@pytest.mark.parametrize("field", sorted({*COMPILED, *OTHERS} - {"strategy"}))
def test_every_field_is_in_the_key_exactly_when_it_changes_what_is_compiled(field: str, tmp_path: Path) -> None:
    """pypto#1441, pypto#2816: a field that was forgotten, one that forced a compilation. (There is one strategy.)"""
    value = COMPILED[field][0] if field in COMPILED else OTHERS[field]
    value = str(tmp_path / value) if field in ("save_kernels_dir", "golden_data_dir") else value
    program = kernel.specialize(x(), x())
    plain, other = (RunConfig(**fields).compile_kwargs() for fields in ({}, {field: value}))
    same = memory_key(program, plain) == memory_key(program, other)
    on_disk = disk_key(memory_key(program, plain)) == disk_key(memory_key(program, other))
    assert same == on_disk == (field not in COMPILED or field in REPORTS)


def test_dispatch_settings_reach_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """pypto#1441."""
    seen: list[Any] = []

    class Artifact:
        output_dir = "/nowhere"

        def __call__(self, *args: Any, config: Any = None) -> None:
            seen.append((args, config))

    monkeypatch.setattr(compiler, "compile_program", lambda program, **options: Artifact())
    config, a, o = RunConfig(device_id=3, ring_heap=4096), x(), x()
    kernel(a, o=o, config=config)
    assert seen[0][1] is config
    assert seen[0][0][0] is a
    assert seen[0][0][1] is o


@pytest.mark.parametrize("field", ["device_id", "ring_heap", "rtol"])
def test_settings_of_the_run_do_not_compile_again(field: str, compiled: list[dict[str, Any]]) -> None:
    """pypto#2816: a setting that changes nothing in the artifact forced a compilation."""
    kernel.compile(x(), x())
    kernel.compile(x(), x(), config=RunConfig(**{field: 4096}))
    assert len(compiled) == 1


def test_the_strategy_is_part_of_the_key(compiled: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """pypto#1441: a comparison of two pass lists ran the first artifact twice."""
    kernel.compile(x(), x())
    config = RunConfig()
    monkeypatch.setattr(config, "strategy", "another")
    kernel.compile(x(), x(), config=config)
    assert [c["strategy"] for c in compiled] == [OptimizationStrategy.Default, "another"]


def test_a_layout_of_the_closure_is_part_of_the_key(
    compiled: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """pypto#2258: the layout was dropped, and not in the key."""
    texts = []
    for layout in (pl.ND, pl.NZ, pl.ND):
        monkeypatch.setitem(globals(), "LAYOUT", layout)
        texts.append(python_print(laid_out.specialize(x(64, 64), x(64, 64))))
        laid_out.compile(x(64, 64), x(64, 64))
    assert ["layout=pl.TensorLayout.NZ" in t for t in texts] == [False, True, False]
    assert len(compiled) == 2


@pl.jit.inline
def shifted(starts: pl.Array[2, pl.INT32], a: pl.Tensor, o: pl.Out[pl.Tensor]):
    first = starts[1]
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.assemble(o, pl.slice(a, [8, 32], [first, 0]), [0, 0])
    return o


@pl.jit
def by_array(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    starts = pl.array.create(2, pl.INT32)
    starts[1] = 8
    o = shifted(starts, a, o)
    return o


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_array_parameters_of_helpers_keep_their_type(platform: str) -> None:
    """pypto#1741: the annotation of an array was lost when the source was made anew."""
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    by_array(a, o, config=RunConfig(platform=platform))
    assert torch.allclose(o[:8], a[8:])
    assert (o[8:] == -7).all()
    by_array.cache_clear()


def _made(operation: str) -> Any:
    if operation == "add":

        @pl.jit
        def same_name(a: pl.Tensor, o: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.add(a, a)
            return o

    else:

        @pl.jit
        def same_name(a: pl.Tensor, o: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.mul(a, a)
            return o

    return same_name


def test_kernels_of_one_name_do_not_share_artifacts() -> None:
    """simpler#105 and others: the second kernel ran the first one's code."""
    texts = []
    for operation in ("add", "mul"):
        home = Path(_made(operation).compile(x(), x()).output_dir)
        texts.append("".join(p.read_text() for p in sorted(home.rglob("*.pto"))))
    assert "pto.tadd" in texts[0]
    assert "pto.tmul" in texts[1]


def test_two_artifacts_of_one_kernel_have_two_directories() -> None:
    """simpler#593: names with a resolution of seconds clashed."""
    one, two = kernel.compile(x(), x()), kernel.compile(x(32, 32), x(32, 32))
    assert one.output_dir != two.output_dir
