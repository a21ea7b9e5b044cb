"""Compiled specialisations on disk: shared by processes, never trusted, never changed."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.jit import keys
from pytest_pypto.pypto.jit.store import INDEX_NAME, VARIABLE
from pytest_pypto.pypto.passes.context import MemoryPlanner, PassContext
from pytest_pypto.pypto.passes.instruments import CallbackInstrument
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

BY = 2.0
LAYOUT, DTYPE, MODE = pl.ND, pl.FP16, pl.SplitMode.NONE


@pl.jit.inline
def inner(a: pl.Tensor):
    r = pl.mul(a, BY)
    return r


@pl.jit.inline
def outer(a: pl.Tensor):
    r = inner(a)
    return r


@pl.jit
def kernel(a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]], s: pl.Scalar[pl.FP32] = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(outer(a), s)
    return o


@pl.jit
def laid_out(a: pl.Tensor[[32, 32], pl.FP16, LAYOUT], b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(MODE)]):
        o[:] = pl.cast(pl.add(pl.matmul(a, b, out_dtype=pl.FP32), 1.0), DTYPE)
    return o


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.delenv(VARIABLE, raising=False)
    yield
    kernel.cache_clear()
    laid_out.cache_clear()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


def counts(function: Any = kernel) -> tuple[int, int, int]:
    """(found in memory, found on disk, compiled)."""
    return function.cache_info()[:3]


def run() -> None:
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    kernel(a, o)
    assert torch.allclose(o, a * BY)


def entries(store: Path) -> list[Path]:
    return sorted(p for p in store.iterdir() if p.is_dir())


def test_off_unless_asked_for(tmp_path: Path) -> None:
    run()
    kernel.cache_clear()
    run()
    assert counts() == (0, 0, 1)
    assert {p.name for p in tmp_path.iterdir()} == {"build"}


def test_an_entry_is_found_again(store: Path) -> None:
    run()
    run()
    assert counts() == (1, 0, 1)
    first = {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()}
    kernel.cache_clear()
    run()
    assert counts() == (0, 1, 0)
    assert {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()} == first


def test_an_artifact_from_the_disk_is_like_a_fresh_one(store: Path, tmp_path: Path) -> None:
    fresh = kernel.compile()
    kernel.cache_clear()
    again = kernel.compile()
    assert again.output_dir != fresh.output_dir
    assert again.output_dir.parent == fresh.output_dir.parent
    assert (again.platform, again.backend_type, again.params) == (fresh.platform, fresh.backend_type, fresh.params)
    files = [
        {p.relative_to(c.output_dir): p.read_bytes() for p in c.output_dir.rglob("*") if p.is_file()}
        for c in (fresh, again)
    ]
    assert files[0] == files[1]
    kernel.cache_clear()
    config = RunConfig(save_kernels_dir=str(tmp_path / "here"), dump_passes=True)
    assert kernel.compile(config=config).output_dir == tmp_path / "here"
    assert (tmp_path / "here" / "passes_dump" / "00_frontend.py").is_file()
    assert counts() == (0, 1, 0)


SCRIPT = """
import sys
import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.jit import keys
keys.compiler_id = lambda: "one compiler, though somebody may edit it meanwhile"
BY = float(sys.argv[1])

@pl.jit
def kernel(a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, BY)
    return o

print(*kernel.cache_info()[:3], end=" ")
kernel.compile()
print(*kernel.cache_info()[:3], "torch" in sys.modules)
"""


def test_processes_share_entries_and_need_no_torch_to_make_them(store: Path, tmp_path: Path) -> None:
    script = tmp_path / "warm_up.py"
    script.write_text(SCRIPT)

    def start(by: float) -> subprocess.Popen[str]:
        command = [sys.executable, str(script), str(by)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONHASHSEED": "7"})

    both = [start(2.0), start(2.0)]
    said = sorted(p.communicate()[0].strip() for p in both)
    assert said == ["0 0 0 0 0 1 False", "0 0 0 0 1 0 False"], "one compiles, the other waits for it"
    assert start(2.0).communicate()[0].strip() == "0 0 0 0 1 0 False"
    assert start(3.0).communicate()[0].strip() == "0 0 0 0 0 1 False"
    assert len(entries(store)) == 2


def _change(name: str, change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda entry: change(next(entry.rglob(name)))


def _index(**fields: Any) -> Callable[[Path], object]:
    def change(entry: Path) -> None:
        path = entry / INDEX_NAME
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return change


def _swap(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("a file")


def _move_away(entry: Path) -> None:
    entry.rename(entry.parent / ".elsewhere")
    entry.symlink_to(entry.parent / ".elsewhere")


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "kernel cut short": _change("*.pto", lambda p: p.write_bytes(p.read_bytes()[:40])),
    "kernel changed": _change("*.pto", lambda p: p.write_text(p.read_text().replace("muls", "adds"))),
    "kernel empty": _change("*.pto", lambda p: p.write_bytes(b"")),
    "kernel missing": _change("*.pto", Path.unlink),
    "kernel a link": _change("*.pto", _link),
    "host program changed": _change("kernel.py", lambda p: p.write_text("import os\nos.abort()\n")),
    "metadata binary": _change("compiled_meta.json", lambda p: p.write_bytes(b"\xff\x00")),
    "a file more": lambda entry: (entry / "orchestration" / "other.py").write_text("raise SystemExit(3)"),
    "index missing": _change(INDEX_NAME, Path.unlink),
    "index no JSON": _change(INDEX_NAME, lambda p: p.write_text("{")),
    "index deep": _change(INDEX_NAME, lambda p: p.write_text("[" * 100_000)),
    "index a list": _change(INDEX_NAME, lambda p: p.write_text("[]")),
    "index of another entry": _index(key="0" * 40),
    "index of another format": _index(format=2),
    "index without files": _index(files={}),
    "index names a file outside": _index(files={"../../outside": "0"}),
    "index with wrong types": _index(files=7),
    "entry a file": _swap,
    "entry a link": _move_away,
    "entry empty": lambda entry: [shutil.rmtree(entry), entry.mkdir()],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_built_again(damage: str, store: Path, caplog: pytest.LogCaptureFixture) -> None:
    kernel.compile()
    (entry,) = entries(store)
    DAMAGE[damage](entry)
    kernel.cache_clear()
    with caplog.at_level(logging.WARNING, logger="pypto.jit"):
        run()
    assert counts() == (0, 0, 1)
    assert damage in ("entry a file", "entry a link") or "is damaged" in caplog.text
    kernel.cache_clear()
    run()
    assert counts() == (0, 1, 0)


def test_a_store_that_cannot_be_used_is_said_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, logger="pypto.jit"):
        run()
    assert f"{VARIABLE}={tmp_path / 'file'} cannot be used" in caplog.text


def test_a_disk_that_is_full_is_said(store: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    rename = os.replace

    def full(source: Any, target: Any) -> None:
        if Path(target).parent == store:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "replace", full)
    with caplog.at_level(logging.WARNING, logger="pypto.jit"):
        run()
    assert "cannot be written ([Errno 28] No space left on device)" in caplog.text
    assert entries(store) == []


def test_remains_of_a_killed_process_are_removed(store: Path) -> None:
    old, new = store / ".new-old", store / ".new-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    kernel.compile()
    assert not old.exists()
    assert new.exists()


def compiled(config: Any = None, **globals_: Any) -> None:
    """Compile `kernel` and `laid_out` with other values of the module's names."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in globals_.items():
            patch.setitem(globals(), name, value)
        kernel.compile(config=config)
        a = torch.zeros(32, 32, dtype=torch.float16)
        o = a.bfloat16() if DTYPE is pl.BF16 else a
        laid_out.compile(a, a, o, config=config)


CHANGES: dict[str, dict[str, Any]] = {
    "constant of a nested helper": {"BY": 4.0},
    "element type": {"DTYPE": pl.BF16},
    "split": {"MODE": pl.SplitMode.UP_DOWN},
    "architecture": {"config": RunConfig(platform="a5sim")},
    "mode": {"config": RunConfig(platform="a2a3")},
    "planner": {"config": RunConfig(memory_planner=MemoryPlanner.PTOAS)},
    "dependencies": {"config": RunConfig(analyze_auto_scopes_for_deps=True)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_program_changes_the_key(name: str, store: Path) -> None:
    """Of the two kernels, those that the change concerns are compiled again."""
    change = CHANGES[name]
    compiled()
    before = len(entries(store))
    kernel.cache_clear()
    laid_out.cache_clear()
    compiled(**change)
    changed = 1 if "config" not in change else 2
    assert len(entries(store)) == before + changed
    assert sum(counts(f)[2] for f in (kernel, laid_out)) == changed
    assert sum(counts(f)[1] for f in (kernel, laid_out)) == 2 - changed


def test_a_layout_of_the_closure_is_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    a = torch.zeros(32, 32, dtype=torch.float16)
    found = []
    for layout in (pl.ND, pl.NZ, pl.ND):
        monkeypatch.setitem(globals(), "LAYOUT", layout)
        found.append(keys.disk_key(keys.memory_key(laid_out.specialize(a, a, a), {})))
    assert found[0] == found[2] != found[1]


def test_arguments_places_and_surroundings_are_in_the_key(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Callable[[], Any]] = [
        kernel.compile,
        lambda: kernel.compile(s=3.0),
        lambda: kernel.compile(s=pl.RUNTIME),
        lambda: kernel.compile(torch.zeros(8, 32), torch.zeros(8, 32)),
        lambda: kernel.compile(torch.zeros(16, 32).half(), torch.zeros(16, 32).half()),
    ]
    for number, call in enumerate(calls, 1):
        call()
        assert len(entries(store)) == number
    for variable, value in (("PYPTO_EMIT_PTO_LOC", "0"), ("PYPTO_VERIFY_LEVEL", "roundtrip")):
        kernel.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, value)
            kernel.compile()
        assert counts()[2] == 1, variable
    kernel.cache_clear()
    monkeypatch.setattr(keys, "compiler_id", lambda: "another compiler")
    kernel.compile()
    assert counts()[2] == 1


def test_settings_of_reports_and_runs_are_not_in_the_key(store: Path, tmp_path: Path) -> None:
    kernel.compile()
    for field in ({"dump_passes": True}, {"compile_profiling": True}, {"device_id": 3}, {"save_kernels_dir": "x"}):
        kernel.cache_clear()
        values = {k: str(tmp_path / v) if k == "save_kernels_dir" else v for k, v in field.items()}
        kernel.compile(config=RunConfig(**values))
        assert counts() == (0, 1, 0), field


def test_instruments_see_the_passes(store: Path) -> None:
    kernel.compile()
    kernel.cache_clear()
    seen: list[str] = []
    with PassContext([CallbackInstrument(after_pass=lambda p, _: seen.append(p.get_name()))]):
        kernel.compile()
    assert seen
    assert counts() == (0, 0, 1)
