"""Logging, result records, specifications, distributed refusals, import layers."""

from __future__ import annotations

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pypto
import pytest
import torch
from pypto import ir
from pypto.runtime import DistributedWorker, RunConfig, ScalarSpec, TensorSpec, configure_log, log_level
from pypto.runtime.runner import RunResult

import pytest_pypto.pypto.runtime as runtime
from pytest_pypto.pypto import logs
from pytest_pypto.pypto.runtime.logs import configure_from_environment

ROOT = Path(runtime.__file__).parent.parent


@pytest.fixture(autouse=True)
def levels() -> object:
    """Give the loggers their levels back: one test's level must not reach another's assertion."""
    loggers = [logging.getLogger(n) for n in ("pypto", "pypto.runtime")]
    before = [lg.level for lg in loggers]
    yield
    for lg, level in zip(loggers, before, strict=True):
        lg.setLevel(level)


@pytest.mark.parametrize(
    ("level", "number"), [("debug", 10), ("INFO", 20), ("timing", 25), ("Warn", 30), ("error", 40), (17, 17)]
)
def test_log_levels(level: str | int, number: int) -> None:
    configure_log(level)
    assert log_level() == number


def test_the_level_null_silences_everything() -> None:
    configure_log("null")
    assert log_level() > logging.CRITICAL


@pytest.mark.parametrize("level", ["loud", "", None, True])
def test_unknown_log_levels(level: object) -> None:
    with pytest.raises(ValueError, match="use a number or one of debug, info, timing, warn, error, null"):
        configure_log(level)  # type: ignore[arg-type]


@pytest.mark.parametrize(("level", "name"), [(10, "DEBUG"), (25, "WARN"), (40, "ERROR"), (50, "NONE")])
def test_the_compiler_s_log_can_follow(level: int, name: str) -> None:
    configure_log(level, sync_pypto=True)
    assert pypto.get_log_level() is pypto.LogLevel[name]


def test_the_environment_sets_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_RUNTIME_LOG", "error")
    configure_from_environment()
    assert log_level() == logging.ERROR


@pytest.mark.parametrize(("text", "name"), [("none", "NONE"), ("Debug", "DEBUG"), ("3", "ERROR"), ("", "WARN")])
def test_the_environment_sets_the_compiler_s_level(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pypto.set_log_level(pypto.LogLevel.WARN)
    monkeypatch.setenv("PYPTO_LOG_LEVEL", text)
    logs.configure_from_environment()
    assert pypto.get_log_level() is pypto.LogLevel[name]


def test_an_unknown_level_in_the_environment_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYPTO_LOG_LEVEL", "loud")
    logs.configure_from_environment()
    assert "PYPTO_LOG_LEVEL='loud' is no level; use one of debug, info, warn" in caplog.text


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (RunResult(True), "PASS"),
        (RunResult(True, "add"), "PASS: add"),
        (RunResult(False, "add", "off by one"), "FAIL: add - off by one"),
        (RunResult(False, error="off by one"), "FAIL: off by one"),
        (RunResult(False), "FAIL"),
        (RunResult(True, "add", execution_time=1.234), "PASS: add (1.23s)"),
    ],
)
def test_results_as_text(result: RunResult, text: str) -> None:
    assert str(result) == text


@pytest.mark.parametrize(
    ("init", "expected"),
    [(None, [0.0, 0.0]), (3, [3.0, 3.0]), (torch.tensor([1, 2]), [1.0, 2.0]), (torch.ones, [1.0, 1.0])],
)
def test_tensor_specifications(init: object, expected: list[float]) -> None:
    made = TensorSpec("t", [2], torch.float16, init).create_tensor()  # type: ignore[arg-type]
    assert made.dtype is torch.float16
    assert made.tolist() == expected


def test_specifications_refuse_other_things() -> None:
    assert TensorSpec("t", [2], torch.float32, lambda: torch.tensor([5, 6])).create_tensor().tolist() == [5.0, 6.0]
    with pytest.raises(TypeError, match="init_value of 't'"):
        TensorSpec("t", [2], torch.float32, "zeros").create_tensor()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ctype must be one of int64, int32"):
        ScalarSpec("s", 1, "int8")
    assert ScalarSpec("s", 3, "int32").to_ctypes().value == 3


BAD_CONFIGS = [
    ({"device_ids": []}, "must not be empty"),
    ({"device_ids": [-1]}, "must be non-negative device indices"),
    ({"device_ids": [1, 1]}, "must be distinct"),
    ({"num_sub_workers": -1}, "num_sub_workers must be non-negative"),
    ({"aicpu_thread_num": 1}, "aicpu_thread_num must be 0 .* or at least 2"),
]


@pytest.mark.parametrize(("values", "text"), BAD_CONFIGS)
def test_distributed_configurations(values: dict[str, object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        ir.DistributedConfig(**values)


def test_distributed_artifacts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no distributed artifact"):
        ir.DistributedCompiledProgram.from_dir(tmp_path)
    (tmp_path / "distributed_meta.json").write_text("{}")
    with pytest.raises(NotImplementedError, match=r"several chips.*installed PyPTO"):
        ir.DistributedCompiledProgram.from_dir(tmp_path)
    with pytest.raises(ValueError, match="requires at least one compiled program"):
        DistributedWorker([])
    with pytest.raises(NotImplementedError, match="DistributedWorker drives several chips"):
        DistributedWorker(object())


def test_the_ir_imports_without_runtime_or_torch() -> None:
    code = (
        "import sys; import pytest_pypto.pypto.ir as ir; ir.compile; ir.Program; ir.python_print; "
        "bad = [m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy') or '.pypto.runtime' in m]; "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_neither_needs_the_native_runtime() -> None:
    code = (
        "import sys; sys.modules['simpler'] = sys.modules['simpler_setup'] = None; "
        "import pytest_pypto.pypto.ir; from pytest_pypto.pypto.runtime import RunConfig, ChipWorker; RunConfig()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_compile_needs_no_torch_until_it_dispatches(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['numpy'] = None; "
        "from pytest_pypto.pypto.ir.dtypes import DataType; import pytest_pypto.pypto.runtime.compile"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_parameter_records_are_a_leaf() -> None:
    tree = ast.parse((ROOT / "ir" / "param_info.py").read_text())
    found = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.level > 1]
    assert found == []


def test_internal_names_are_not_exported() -> None:
    assert "RunOptions" not in runtime.__all__
    assert not [n for n in runtime.__all__ if n.startswith("_")]
    for name in runtime.__all__:
        getattr(runtime, name)


def test_a_bare_run_options_is_refused_as_a_config(tmp_path: Path) -> None:
    from pypto.runtime.runner import RunOptions

    from tests.runtime.programs import HostSum

    compiled = ir.compile(HostSum, output_dir=tmp_path)
    with pytest.raises(AttributeError, match="dfx_options"):
        compiled(1, 2, config=RunOptions())
    with pytest.raises(TypeError, match="config takes a RunConfig, got int"):
        compiled(1, 2, config=3)
    assert RunConfig().dfx_options()
