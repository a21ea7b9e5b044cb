"""`compiled_meta.json` and `kernel_config.py`: reading them back, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.codegen.metadata import meta_text
from pytest_pypto.pypto.ir import CompiledProgram
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import ParamDirection
from pytest_pypto.pypto.ir.param_info import ParamInfo
from pytest_pypto.pypto.runtime.manifest import read_manifest, runtime_config

PARAMS = [
    ParamInfo("a", ParamDirection.In, (4, -1), DataType.BF16),
    ParamInfo("k", ParamDirection.In, None, DataType.INT32),
    ParamInfo("out", ParamDirection.Out, (4, 8), DataType.FP32),
    ParamInfo("c", ParamDirection.InOut, (4, 8), DataType.FP16),
]


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    (tmp_path / "compiled_meta.json").write_text(meta_text(PARAMS, 1, "a5sim", "Ascend950"))
    return tmp_path


def test_what_is_written_is_read(artifact: Path) -> None:
    compiled = CompiledProgram.from_dir(artifact)
    assert compiled.params == tuple(PARAMS)
    assert compiled.param_names == ["a", "k", "out", "c"]
    assert compiled.output_indices == [2]
    assert compiled.output_indices is not compiled.output_indices
    assert compiled.has_return
    assert (compiled.platform, compiled.backend_type) == ("a5sim", BackendType.Ascend950)
    assert compiled.program is None
    assert compiled.orchestration_names == []


def test_arguments_override_what_is_stored(artifact: Path) -> None:
    compiled = CompiledProgram.from_dir(artifact, platform="a5")
    assert compiled.platform == "a5"
    assert (
        CompiledProgram.from_dir(artifact, backend_type=BackendType.Ascend910B).backend_type is BackendType.Ascend910B
    )


def test_a_handle_is_a_path(artifact: Path) -> None:
    import os

    one, two = CompiledProgram.from_dir(artifact), CompiledProgram.from_dir(str(artifact))
    assert one == two == str(artifact.resolve())
    assert hash(one) == hash(two)
    assert os.fspath(one) == str(one) == str(artifact.resolve())
    assert repr(one) == f"CompiledProgram({artifact.resolve()})"
    assert one != object()


def test_nothing_on_disk_changes(artifact: Path) -> None:
    before = {p: p.read_bytes() for p in artifact.rglob("*")}
    CompiledProgram.from_dir(artifact)
    assert {p: p.read_bytes() for p in artifact.rglob("*")} == before


def _change(artifact: Path, change: Any) -> None:
    path = artifact / "compiled_meta.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


BREAKS: dict[str, Any] = {
    "params must be a list": lambda d: d.update(params={}),
    "params[1] must be an object": lambda d: d["params"].__setitem__(1, 3),
    "params[0] lacks 'dtype'": lambda d: d["params"][0].pop("dtype"),
    "params[0].name must be text": lambda d: d["params"][0].update(name=3),
    "params[0].direction 'Sideways' is unknown; known: In, Out, InOut": lambda d: d["params"][0].update(
        direction="Sideways"
    ),
    "params[0].dtype 'fp33' is unknown": lambda d: d["params"][0].update(dtype="fp33"),
    "params[0].shape must be null or a list of ints": lambda d: d["params"][0].update(shape="4x4"),
    "params[2].shape must be": lambda d: d["params"][2].update(shape=[4, True]),
    "num_return_types must be a number from 0, got -1": lambda d: d.update(num_return_types=-1),
    "num_return_types must be a number from 0, got True": lambda d: d.update(num_return_types=True),
    "platform must be text": lambda d: d.update(platform=5),
    "Invalid platform 'a9'": lambda d: d.update(platform="a9"),
    "backend_type 'Ascend1' is unknown; known: Ascend910B, Ascend950": lambda d: d.update(backend_type="Ascend1"),
}


@pytest.mark.parametrize("detail", BREAKS)
def test_each_malformed_field_has_its_error(artifact: Path, detail: str) -> None:
    import re

    _change(artifact, BREAKS[detail])
    with pytest.raises(ValueError, match=r"Invalid compiled_meta\.json in .*recompile via ir\.compile\(\)") as caught:
        CompiledProgram.from_dir(artifact)
    assert re.search(re.escape(detail), str(caught.value))


@pytest.mark.parametrize("schema", [2, None, "1", True])
def test_another_schema_is_its_own_error(artifact: Path, schema: object) -> None:
    _change(artifact, lambda d: d.update(schema=schema))
    with pytest.raises(ValueError, match=r"Incompatible compiled_meta\.json schema"):
        CompiledProgram.from_dir(artifact)


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff\xfe\x00", b"null", b"[" * 100_000])
def test_binary_junk_and_truncated_text_are_refused(artifact: Path, raw: bytes) -> None:
    (artifact / "compiled_meta.json").write_bytes(raw)
    with pytest.raises(ValueError, match=r"compiled_meta\.json"):
        CompiledProgram.from_dir(artifact)


def test_absent_optional_keys_have_defaults(artifact: Path) -> None:
    _change(artifact, lambda d: [d.pop(k) for k in ("num_return_types", "backend_type", "platform")])
    compiled = CompiledProgram.from_dir(artifact)
    assert (compiled.has_return, compiled.backend_type, compiled.platform) == (False, BackendType.Ascend910B, "a2a3sim")


def test_unknown_keys_are_ignored(artifact: Path) -> None:
    _change(artifact, lambda d: d.update(more={"x": 1}))
    assert CompiledProgram.from_dir(artifact).param_names == ["a", "k", "out", "c"]


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ([], "it is no artifact"),
        (["distributed_meta.json"], "DistributedCompiledProgram.from_dir"),
        (["next_levels/one/compiled_meta.json"], "open one of next_levels/: one"),
    ],
)
def test_a_directory_without_sidecar_says_what_it_is(tmp_path: Path, files: list[str], text: str) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    with pytest.raises(FileNotFoundError) as caught:
        CompiledProgram.from_dir(tmp_path)
    assert text in str(caught.value)


def test_a_path_that_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no directory"):
        CompiledProgram.from_dir(tmp_path / "absent")


HOSTILE = "RUNTIME_CONFIG = {'runtime': 'x'}\nimport os\nos.system('touch {target}')\n"


def test_a_manifest_is_parsed_never_executed(tmp_path: Path) -> None:
    target = tmp_path / "touched"
    (tmp_path / "kernel_config.py").write_text(HOSTILE.replace("{target}", str(target)))
    with pytest.raises(ValueError, match="line 2 is not an assignment of a literal"):
        read_manifest(tmp_path)
    assert not target.exists()


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("RUNTIME_CONFIG = open('x')", "line 1 assigns something that is no literal"),
        ("RUNTIME_CONFIG = (", "kernel_config.py is damaged"),
        ("RUNTIME_CONFIG = " + "[" * 500, "kernel_config.py is damaged"),
    ],
)
def test_damaged_manifests(tmp_path: Path, text: str, detail: str) -> None:
    (tmp_path / "kernel_config.py").write_text(text)
    with pytest.raises(ValueError, match=detail):
        read_manifest(tmp_path)


def test_runtime_settings_come_from_the_manifest(tmp_path: Path) -> None:
    assert runtime_config(tmp_path) == {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}
    (tmp_path / "kernel_config.py").write_text(
        '"""Doc."""\nRUNTIME_CONFIG = {"runtime": "host_build_graph"}\nEXTRA = 1\n'
    )
    assert runtime_config(tmp_path) == {"runtime": "host_build_graph", "aicpu_thread_num": 0}
