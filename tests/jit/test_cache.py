"""What shares a compiled artifact and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

N = pl.dynamic("N")
SCALE = 2.0


@pl.jit
def kernel(a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]], s: pl.Scalar[pl.FP32] = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, s)
    return o


@pl.jit
def dynamic(a: pl.Tensor[[N, 32], pl.FP32], o: pl.Out[pl.Tensor[[N, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.assemble(o, pl.slice(a, [8, 32], [0, 0]), [0, 0])
    return o


@pl.jit.inline
def scaled(a: pl.Tensor):
    r = pl.mul(a, SCALE)
    return r


@pl.jit
def closure(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = scaled(a)
        o[:] = t
    return o


def x(rows: int = 16) -> Any:
    return torch.zeros(rows, 32)


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for function in (kernel, dynamic, closure):
        function.cache_clear()


def test_one_artifact_for_equal_calls() -> None:
    first = kernel.compile(x(), x(), 2.0)
    assert kernel.compile(x(), x(), 2.0) is first
    assert kernel.compile(x(), x(), s=2) is first
    assert kernel.compile(s=2.0) is first, "both modes share entries"
    assert kernel.compile(x(), x(), 2.0, config=RunConfig()) is first, "no config is the default config"
    assert (first.platform, first.param_names) == ("a2a3sim", ["a", "o", "s"])


def test_dynamic_extents_share() -> None:
    assert dynamic.compile(x(8), x(8)) is dynamic.compile(x(16), x(16))


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(platform="a5sim"),
        RunConfig(platform="a2a3"),
        RunConfig(memory_planner=MemoryPlanner.PTOAS),
        RunConfig(analyze_auto_scopes_for_deps=True),
    ],
    ids=["architecture", "mode", "planner", "dependencies"],
)
def test_settings_that_change_what_is_compiled(config: Any) -> None:
    assert kernel.compile(config=config) is not kernel.compile()
    assert kernel.compile(config=config) is kernel.compile(config=config)


def test_the_planner_of_a_context_counts() -> None:
    outside = kernel.compile()
    with PassContext([], memory_planner=MemoryPlanner.PTOAS):
        assert kernel.compile() is not outside


@pytest.mark.parametrize("other", [(2.0,), (x(), x(), 3.0)])
def test_values_and_shapes_make_other_entries(other: tuple[Any, ...]) -> None:
    first = kernel.compile(x(), x(), 1.0)
    second = kernel.compile(s=other[0]) if len(other) == 1 else kernel.compile(*other)
    assert second is not first


def test_constants_of_the_closure_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = closure.compile(x(), x())
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    second = closure.compile(x(), x())
    assert second is not first
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert closure.compile(x(), x()) is first


def test_reports_asked_for_later_are_added_to_the_artifact() -> None:
    first = kernel.compile()
    home = Path(first.output_dir)
    assert not (home / "passes_dump").exists()
    assert kernel.compile(config=RunConfig(dump_passes=True, compile_profiling=True)) is first
    assert list((home / "passes_dump").glob("00_frontend.py"))
    assert (home / "report" / "pipeline_profile.json").is_file()


def test_another_directory_gets_a_copy(tmp_path: Path) -> None:
    first = kernel.compile()
    target = tmp_path / "kept"
    kernel.compile(config=RunConfig(save_kernels_dir=str(target)))
    names = {p.relative_to(first.output_dir) for p in Path(first.output_dir).rglob("*.pto")}
    assert names
    assert {p.relative_to(target) for p in target.rglob("*.pto")} == names


def test_lower_keeps_nothing(tmp_path: Path) -> None:
    made = kernel.lower(s=1.0)
    assert isinstance(made, Program)
    assert made.name == "_jit_kernel"
    assert not (tmp_path / "build").exists()
    assert kernel.lower(s=1.0) is not made
