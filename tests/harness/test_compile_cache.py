"""Compiling through the store: one artifact per content, and the same bytes in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from pytest_pypto.harness.cache import CompileCache, changed_config, compile_key
from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.stages import program_of, stages_of
from pytest_pypto.harness.store import Store
from tests.harness import programs

OPTIONS = {"platform": "a2a3sim", "skip_ptoas": True}


def test_in_memory_and_on_disk(tmp_path: Path) -> None:
    cache = CompileCache(Store(tmp_path))
    first = cache.compile(programs.vector_add(), OPTIONS)
    assert cache.compile(programs.vector_add(), OPTIONS) is first
    other = CompileCache(Store(tmp_path)).compile(programs.vector_add(), OPTIONS)
    assert other is not first
    assert str(other) == str(first)
    assert program_of(other) is not None
    assert other.program is not None
    assert [s.name for s in stages_of(other, "a2a3sim")] == [s.name for s in stages_of(first, "a2a3sim")]


def test_what_makes_another_artifact() -> None:
    base = compile_key(programs.vector_add(), OPTIONS)
    assert compile_key(programs.vector_add(), {**OPTIONS, "output_dir": "elsewhere", "memory_planner": None}) == base
    others = [
        compile_key(programs.vector_add(64), OPTIONS),
        compile_key(programs.vector_add(), {**OPTIONS, "platform": "a5sim"}),
        compile_key(programs.vector_add(), {**OPTIONS, "dump_passes": True}),
    ]
    assert len({base, *others}) == 4


def test_an_own_directory_is_not_shared(tmp_path: Path) -> None:
    cache = CompileCache(Store(tmp_path / "store"))
    made = cache.compile(programs.vector_add(), {**OPTIONS, "output_dir": str(tmp_path / "mine")})
    assert Path(str(made)) == (tmp_path / "mine").resolve()
    assert not (tmp_path / "store").exists()


def test_a_damaged_record_is_made_again(tmp_path: Path) -> None:
    first = CompileCache(Store(tmp_path)).compile(programs.vector_add(), OPTIONS)
    (Path(str(first)) / "compiled_meta.json").write_text("{")
    again = CompileCache(Store(tmp_path)).compile(programs.vector_add(), OPTIONS)
    assert again.param_names == ["a", "b", "out"]


def test_changed_config() -> None:
    from pypto.runtime import RunConfig

    config = RunConfig(platform="a5sim")
    assert changed_config(config, {}) is config
    assert changed_config(config, {"platform": "a2a3sim"}).platform == "a2a3sim"
    assert config.platform == "a5sim"
    with pytest.raises(CaseError, match=r"RunConfig has no field 'rtoll'; its fields are .*rtol"):
        changed_config(config, {"rtoll": 1})


SCRIPT = """
import sys
from pytest_pypto import toolchain
toolchain.activate()
from pypto import ir
from tests.harness import programs
ir.compile(programs.mixed(), platform="a2a3sim", output_dir=sys.argv[1], dump_passes=True, skip_ptoas=True)
"""


def test_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    """Dumps, kernels and host program of two fresh processes."""
    trees = []
    for seed in ("0", "12345"):
        out = tmp_path / seed
        env = {"PYTHONHASHSEED": seed, "PATH": "", "OMP_NUM_THREADS": "1"}
        root = Path(__file__).resolve().parents[2]
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(out)], capture_output=True, text=True, cwd=root, env=env, timeout=120
        )
        assert done.returncode == 0, done.stderr
        files = sorted(p for p in out.rglob("*") if p.is_file() and "debug" not in p.parts and "report" not in p.parts)
        trees.append({str(p.relative_to(out)): p.read_bytes() for p in files})
    assert trees[0].keys() == trees[1].keys()
    assert [name for name in trees[0] if trees[0][name] != trees[1][name]] == []
