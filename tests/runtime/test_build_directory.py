"""Two programs compiled into one directory: the second is what the directory holds; what the user keeps there stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest
from pypto import ir

torch = pytest.importorskip("torch")


def adding(entry: str, step: float) -> Any:
    text = f"""# pypto.program: Add{entry}
import pypto.language as pl

@pl.program
class Add{entry}:
    @pl.function
    def {entry}(
        self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add(x, {step}), [0, 0])
        return o
"""
    return pl.parse(text)


def run(compiled: Any) -> float:
    x, o = torch.zeros(16, 64), torch.full((16, 64), -7.0)
    compiled(x, o)
    assert bool((o == o[0, 0]).all())
    return float(o[0, 0])


def files(directory: Path) -> set[str]:
    return {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}


@pytest.mark.parametrize("dumps", [True, False])
def test_the_second_program_takes_the_place_of_the_first(tmp_path: Path, dumps: bool) -> None:
    ir.compile(adding("first", 1.0), output_dir=tmp_path, platform="a2a3sim", dump_passes=True)
    second = ir.compile(adding("second", 2.0), output_dir=tmp_path, platform="a5sim", dump_passes=dumps)
    assert run(second) == 2.0
    assert run(ir.CompiledProgram.from_dir(tmp_path)) == 2.0
    assert not [name for name in files(tmp_path) if "first" in name]
    fresh = ir.compile(adding("second", 2.0), output_dir=tmp_path / "fresh", platform="a5sim", dump_passes=dumps)
    there = {name for name in files(tmp_path) if not name.startswith("fresh/") and not name.endswith("perf_hints.log")}
    assert there == files(Path(fresh.output_dir))


def test_files_of_the_user_stay(tmp_path: Path) -> None:
    own = {
        "orchestration/mine.py": "print('mine')\n",
        "kernels/aiv/mine.pto": "mine",
        "passes_dump/notes.txt": "mine",
        "report/mine.log": "mine",
    }
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    ir.compile(adding("first", 1.0), output_dir=tmp_path, platform="a2a3sim")
    ir.compile(adding("second", 2.0), output_dir=tmp_path, platform="a2a3sim")
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in own} == own


@pytest.mark.parametrize(
    "meta", ["", "[]", '{"files": 3}', '{"files": ["../outside.pto", "kernels/../../outside.pto", 5, null]}', "\udcff"]
)
def test_damaged_metadata_of_the_first_remove_nothing_else(tmp_path: Path, meta: str) -> None:
    outside = tmp_path / "outside.pto"
    outside.write_text("mine", encoding="utf-8")
    build = tmp_path / "build"
    ir.compile(adding("first", 1.0), output_dir=build, platform="a2a3sim")
    (build / "compiled_meta.json").write_bytes(meta.encode("utf-8", "surrogateescape"))
    assert run(ir.compile(adding("second", 2.0), output_dir=build, platform="a2a3sim")) == 2.0
    assert outside.read_text(encoding="utf-8") == "mine"


def test_a_source_file_whose_name_is_no_utf8(tmp_path: Path) -> None:
    text = str(adding("main", 1.0))
    program = pl.parse(text, "caf\udce9.py")
    compiled = ir.compile(program, output_dir=tmp_path, platform="a2a3sim", emit_source_loc=True, dump_passes=True)
    assert run(compiled) == 1.0
    kernels = [p.read_text(encoding="utf-8") for p in tmp_path.rglob("kernels/**/*.pto")]
    assert any("caf\\udce9.py" in kernel for kernel in kernels)
    assert "caf\\udce9.py" in (tmp_path / "report" / "perf_hints.log").read_text(encoding="utf-8")
