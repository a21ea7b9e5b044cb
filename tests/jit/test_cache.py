"""What shares a compiled artifact and what does not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.language.parser.diagnostics import ParserError
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext
from pytest_pypto.pypto.runtime.compiled import CompiledProgram
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


def test_an_artifact_that_is_gone_is_made_again() -> None:
    first = kernel.compile()
    shutil.rmtree(first.output_dir)
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    kernel(a, o)
    assert torch.allclose(o, a)
    again = kernel.compile()
    next(Path(again.output_dir).rglob("*.pto")).unlink()
    assert kernel.compile() is not again
    assert kernel.cache_info() == (1, 0, 3, 1)


@pytest.mark.parametrize("order", ["compiled there", "copied there"])
def test_a_directory_that_another_kernel_took_is_not_run(order: str, tmp_path: Path) -> None:
    """Two kernels, one `save_kernels_dir`: the first one ran the code of the second."""
    config = RunConfig(save_kernels_dir=str(tmp_path / "here"))
    if order == "copied there":
        closure.compile(x(), x())
    kernel.compile(s=3.0, config=config)
    closure.compile(x(), x(), config=config)
    a, o, p = torch.randn(16, 32), torch.full((16, 32), -7.0), torch.full((16, 32), -7.0)
    kernel(a, o, 3.0)
    closure(a, p)
    assert torch.allclose(o, a * 3.0)
    assert torch.allclose(p, a * 2.0)
    assert Path(closure.compile(x(), x()).output_dir) != Path(kernel.compile(s=3.0).output_dir)


def test_a_directory_holds_what_was_put_there_last(tmp_path: Path) -> None:
    closure.compile(x(), x())
    a, config = torch.randn(16, 32), RunConfig(save_kernels_dir=str(tmp_path / "here"))
    for make, by in (
        (lambda: kernel.compile(s=3.0, config=config), 3.0),
        (lambda: closure.compile(x(), x(), config=config), 2.0),
    ):
        make()
        o = torch.full((16, 32), -7.0)
        CompiledProgram.from_dir(str(tmp_path / "here"))(a, o, *([3.0] if by == 3.0 else []))
        assert torch.allclose(o, a * by)


def test_kernels_that_the_author_edits_are_run() -> None:
    path = next((Path(kernel.compile(s=2.0).output_dir) / "kernels").rglob("*.pto"))
    path.write_text(path.read_text().replace("pto.tmuls", "pto.tadds"))
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    kernel(a, o, 2.0)
    assert torch.allclose(o, a + 2.0)


def test_counts() -> None:
    assert kernel.cache_info() == (0, 0, 0, 0)
    kernel.compile()
    kernel.compile()
    kernel.compile(s=2.0)
    assert kernel.cache_info()._asdict() == {"hits": 1, "disk_hits": 0, "misses": 2, "entries": 2}
    kernel.cache_clear()
    assert kernel.cache_info() == (0, 0, 0, 0)


def test_a_context_with_the_defaults_is_no_context() -> None:
    first = kernel.compile()
    with PassContext([]):
        assert kernel.compile() is first


def test_what_fails_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "SCALE", "text")
    with pytest.raises(ParserError):
        closure.compile(x(), x())
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    closure.compile(x(), x())
    assert closure.cache_info() == (0, 0, 1, 1)


def test_threads() -> None:
    """Both architectures and several values at once: each thread gets its own numbers, a program is compiled once."""

    def work(number: int) -> Any:
        platform, by = ("a2a3sim", "a5sim")[number % 2], float(number // 4 + 2)
        a, o = torch.full((16, 32), float(number + 1)), torch.full((16, 32), -7.0)
        config = RunConfig(platform=platform)
        kernel(a, o, by, config=config)
        assert kernel.compile(a, o, by, config=config).platform == platform
        assert kernel.lower(a, o, by, config=config).name == "_jit_kernel"
        return torch.equal(o, a * by)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
    assert kernel.cache_info()[1:] == (0, 8, 8)


def test_lower_keeps_nothing(tmp_path: Path) -> None:
    made = kernel.lower(s=1.0)
    assert isinstance(made, Program)
    assert made.name == "_jit_kernel"
    assert not (tmp_path / "build").exists()
    assert kernel.lower(s=1.0) is not made
