"""The harness on an installed PyPTO: a copy of the embedded one under its real name, outside the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_pypto.toolchain import EMBEDDED_DIR
from tests.plugin.kernels import MIXED

pytest.importorskip("torch")

TEST = (
    MIXED
    + """
import sys
from pytest_pypto import with_split


@pytest.mark.pypto_split("NONE", "LEFT_RIGHT")
@pytest.mark.pypto_direction("C2V")
def test_mixed(pypto_split, pypto_compile, pypto_inputs, pypto_check):
    assert "pytest_pypto.pypto" not in sys.modules
    compiled = pypto_compile(with_split(program(), pypto_split))
    assert type(compiled).__module__.startswith("pypto.")
    verdict = pypto_check(compiled, pypto_inputs(compiled), reference)
    assert [(layer.layer, layer.status) for layer in verdict.layers] == [
        ("roundtrip", "passed"), ("oracle", "passed"), ("passes", "passed"), ("memory", "passed"), ("device", "passed")]
    assert "pytest_pypto.pypto" not in sys.modules


def test_no_runtime(pypto_compile, pypto_inputs, pypto_check, monkeypatch):
    '''Without a native runtime the device layer says so, and the others still count.'''
    compiled = pypto_compile(with_split(program(), "NONE"))
    def dispatch(*args, config=None):
        raise ModuleNotFoundError("No module named 'simpler_setup'", name="simpler_setup")
    monkeypatch.setattr(type(compiled), "__call__", dispatch)
    verdict = pypto_check(compiled, pypto_inputs(compiled), reference)
    layer = verdict.layer("device")
    reason = "the installed PyPTO has no runtime (package simpler); --pypto-toolchain=embedded brings a simulator"
    assert (layer.status, layer.reason) == ("not run", reason)


@pytest.mark.pypto_platform("a2a3")
def test_hardware(pypto_compile):
    raise AssertionError("must be skipped")
"""
)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(EMBEDDED_DIR, root / "pypto", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (root / "pypto").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "pytest_pypto.pypto" in text:
            path.write_text(text.replace("pytest_pypto.pypto", "pypto"), encoding="utf-8")
    return root


def test_every_layer(installation: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {installation}\n", encoding="utf-8")
    flags = ["--pypto-platform=a2a3sim,a2a3", "-p", "no:cacheprovider", "-rs"]
    command = [sys.executable, "-m", "pytest", "--rootdir", str(tmp_path), *flags, "test_it.py"]
    env = {"PYTHONPATH": str(installation), "PATH": "", "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300)
    assert "pypto: installed PyPTO" in done.stdout, done.stdout + done.stderr
    assert "3 passed, 4 skipped" in done.stdout, done.stdout + done.stderr
    assert "platform a2a3 needs the runtime of the installed PyPTO (package simpler)" in done.stdout
