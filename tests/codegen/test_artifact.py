"""The artifact directory as code generation writes it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from pytest_pypto.pypto.codegen import CodegenError, CodegenOptions, PartialCodegenError, artifact_files, write_artifact
from pytest_pypto.pypto.codegen.artifact import write_text
from pytest_pypto.pypto.codegen.metadata import kernel_ids
from pytest_pypto.pypto.codegen.units import entry_function, kernel_units
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.language.parser.modules import loads
from tests.codegen.kernels import TENSOR, program
from tests.codegen.kit_units import finished_program
from tests.kit import KIT, needs_kit

HOST = """
    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def {name}(self, x: {x}, o: pl.Out[{o}]):
        {calls}
"""
KERNEL = """
    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)
    def {name}(x: {x}, o: pl.Out[{o}]):
        {body}
"""


def _program(*kernels: tuple[str, str], hosts: tuple[str, ...] = ("main",)) -> Program:
    shapes = {"x": TENSOR.format(name="mem_ddr_0"), "o": TENSOR.format(name="mem_ddr_1")}
    text = "".join(KERNEL.format(name=n, body=b, **shapes) for n, b in kernels)
    calls = "\n        ".join(f"self.{n}(x, o)" for n, _ in kernels)
    return program(text + "".join(HOST.format(name=h, calls=calls, **shapes) for h in hosts))


COPY = (
    "t: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_2, pl.const(0, pl.INT64), 2048), pl.Mem.Vec] = "
    "pl.tile.load(x, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)\n"
    "        s: pl.Tensor[[16, 32], pl.FP32] = pl.tile.store(t, [0, 0], o)"
)
COPY = "mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2048)\n        " + COPY
JUMP = "for i in pl.range(4):\n            break"


@needs_kit
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("vadd", {"kernels/aiv/entry_incore_0.pto", "ptoas/entry_incore_0.pto"}),
        ("bi_up_down", {"kernels/entry_incore_0.pto", "ptoas/entry_incore_0.pto"}),
        ("scope3", {f"{d}.pto" for n in ("down", "gate_up", "o_proj") for d in (f"kernels/{n}", f"ptoas/{n}")}
         | {"kernels/aiv/rms.pto", "ptoas/rms.pto"}),
    ],
)  # fmt: skip
def test_files_of_an_artifact(name: str, files: set[str]) -> None:
    made = finished_program(name, "a2a3sim")
    entry = entry_function(made).name
    found = artifact_files(made, platform="a2a3sim")
    assert set(found) == files | {"compiled_meta.json", f"orchestration/{entry}.py", f"orchestration/{entry}.cpp"}
    assert found["compiled_meta.json"].endswith("}\n")


@needs_kit
def test_the_sidecar_is_the_reference_s() -> None:
    different = []
    for meta in sorted(KIT.glob("*/*/artifact/compiled_meta.json")):
        folder, platform = meta.parents[2], meta.parents[1].name
        if folder.name == "whiles":
            continue
        source = loads(str(folder / platform / "passes" / "00_frontend.py"))
        files = artifact_files(finished_program(folder.name, platform), platform=platform, source=source)
        ours = json.loads(files["compiled_meta.json"])
        executed = [
            f for f in files if f.startswith("kernels/") or (f.startswith("orchestration/") and f.endswith(".py"))
        ]
        assert ours.pop("files") == sorted(executed)
        if ours != json.loads(meta.read_text(encoding="utf-8")):
            different.append(f"{folder.name}/{platform}")
    assert different == []


@needs_kit
def test_the_same_program_gives_the_same_bytes(tmp_path: Path) -> None:
    for number in (1, 2):
        write_artifact(finished_program("fused_linear", "a5sim"), tmp_path / str(number), platform="a5sim")
    first, second = ({p.relative_to(tmp_path / n): p.read_bytes() for p in _files(tmp_path / n)} for n in "12")
    assert first == second


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file())


def test_several_orchestrations_become_complete_sub_builds() -> None:
    made = _program(("k", COPY), hosts=("one", "two"))
    files = artifact_files(made, platform="a2a3sim")
    tops = {"/".join(f.split("/")[:2]) for f in files}
    assert tops == {"next_levels/one", "next_levels/two"}
    for name in ("one", "two"):
        part = {f.removeprefix(f"next_levels/{name}/") for f in files if f.startswith(f"next_levels/{name}/")}
        assert {"compiled_meta.json", "kernels/aiv/k.pto", f"orchestration/{name}.py"} <= part


def test_kernel_config_is_data_and_lists_kernels_by_first_use() -> None:
    made = _program(("b", COPY), ("a", COPY))
    files = artifact_files(made, platform="a2a3sim", options=CodegenOptions(compile_only=False))
    tree = ast.parse(files["kernel_config.py"])
    tables = {n.targets[0].id: ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign)}  # type: ignore[attr-defined]
    assert tables["RUNTIME_CONFIG"] == {"runtime": "tensormap_and_ringbuffer", "aicpu_thread_num": 0}
    assert [(k["func_id"], k["name"], k["core_type"], k["source"], k["signature"]) for k in tables["KERNELS"]] == [
        (0, "b", "aiv", "kernels/aiv/b.pto", ["IN", "OUT"]),
        (1, "a", "aiv", "kernels/aiv/a.pto", ["IN", "OUT"]),
    ]
    assert tables["ORCHESTRATION"]["signature"] == ["IN", "OUT"]


@needs_kit
def test_a_group_numbers_its_cube_kernel_first() -> None:
    made = finished_program("scope3", "a2a3sim")
    ids = kernel_ids(made, entry_function(made))
    assert ids["o_proj_aic"] == 0
    assert ids["o_proj_aiv"] == 1
    assert sorted(ids.values()) == list(range(len(ids)))


def test_a_kernel_that_cannot_be_written_stops_the_artifact() -> None:
    with pytest.raises(CodegenError, match="kernel 'bad': BreakStmt"):
        artifact_files(_program(("bad", JUMP)), platform="a2a3sim")


def test_the_other_kernels_are_kept_when_one_cannot_be_written() -> None:
    with pytest.raises(PartialCodegenError, match="1 of the kernels of 'P' cannot be written") as caught:
        artifact_files(_program(("bad", JUMP), ("good", COPY)), platform="a2a3sim")
    assert "kernels/aiv/good.pto" in caught.value.files
    assert "kernels/aiv/bad.pto" not in caught.value.files
    assert "compiled_meta.json" not in caught.value.files


@needs_kit
def test_a_distributed_program_is_refused_by_its_construct() -> None:
    with pytest.raises(CodegenError, match=r"function 'chip' uses .*distributed.*installed PyPTO"):
        artifact_files(finished_program("dist", "a2a3sim"), platform="a2a3sim")


def test_an_unknown_platform_lists_the_known_ones(tmp_path: Path) -> None:
    expected = "Invalid platform 'a3sim'. Expected 'a2a3', 'a2a3sim', 'a5', 'a5sim'."
    with pytest.raises(ValueError, match=re.escape(expected)):
        write_artifact(_program(("k", COPY)), tmp_path / "x", platform="a3sim")
    assert not (tmp_path / "x").exists()


def test_several_possible_entries_are_named() -> None:
    made = program(
        "@pl.function\ndef one(self, n: pl.Scalar[pl.INDEX]):\n    pass\n"
        "@pl.function\ndef two(self, n: pl.Scalar[pl.INDEX]):\n    pass"
    )
    with pytest.raises(CodegenError, match=r"no Orchestration function .*candidates: one, two"):
        entry_function(made)


def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")
    write_text(target, "new")
    assert target.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_kernels_in_no_group_are_units_of_their_own() -> None:
    units = kernel_units(_program(("k", COPY), ("j", COPY)))
    assert [(u.name, u.path, u.is_group) for u in units] == [("j", "aiv/j.pto", False), ("k", "aiv/k.pto", False)]


def test_operations_carry_the_place_they_come_from() -> None:
    made = _program(("k", COPY))
    with_places = artifact_files(made, platform="a2a3sim")["kernels/aiv/k.pto"]
    without = artifact_files(made, platform="a2a3sim", options=CodegenOptions(emit_source_loc=False))
    assert re.sub(r' loc\("<string>":\d+:\d+\)', "", with_places) == without["kernels/aiv/k.pto"]
    for line in with_places.splitlines():
        operation = not re.search(r"arith\.constant|func\.func|return|^module|^ *\}", line)
        assert ("loc(" in line) == operation, line
