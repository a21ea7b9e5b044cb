"""The memory map: from a dump to boxes and to a page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.tools import memory_map

TILE = "pl.Tile[[{shape}], pl.FP32, pl.MemRef({base}, pl.const({offset}, pl.INT64), {size}), pl.Mem.Vec]"
HEAD = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def k(a: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
"""


def tile(base: str, offset: int, rows: int = 8) -> str:
    return TILE.format(shape=f"{rows}, 64", base=base, offset=offset, size=rows * 256)


def load(name: str, base: str, offset: int) -> str:
    return f"{name}: {tile(base, offset)} = pl.tile.load(a, [0, 0], [8, 64], [8, 64], target_memory=pl.Mem.Vec)"


def write(folder: Path, *body: str, name: str = "35_after_AllocateMemoryAddr.py") -> Path:
    bases = dict.fromkeys(re.findall(r"MemRef\((\w+)", "\n".join(body)))
    allocs = [f"{base}: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2048)" for base in bases]
    file = folder / name
    file.write_text(HEAD + "".join(f"        {line}\n" for line in (*allocs, *body)))
    return file


def boxes(dump: Path) -> dict[str, dict[str, Any]]:
    data, _ = memory_map.read_map(dump, "Ascend910B")
    return {box["name"]: box for function in data["functions"] for box in function["boxes"]}


def test_two_buffers(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        load("y", "m1", 2048),
        f"z: {tile('m1', 2048)} = pl.tile.add(x, y)",
        "pl.tile.store(z, [0, 0], o)",
    )
    data, source = memory_map.read_map(dump, "Ascend910B")
    assert data["backend"] == {"name": "Ascend910B", "arch": "a2a3", "detected": False}
    assert data["functions"][0]["spaces"] == [
        {"space": "Vec", "hwm": 4096, "limit": 188416, "tiles": 3, "bases": 2},
    ]
    found = boxes(dump)
    assert source[found["x"]["first"] - 1].strip().startswith("x:")
    assert source[found["x"]["last"] - 1].strip().startswith("z:")
    assert found["y"]["aliases"] == ["z"]
    assert source[found["y"]["last"] - 1].strip().startswith("pl.tile.store")
    assert not any(box["conflict"] for box in found.values())


def test_conflict_is_marked(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        load("y", "m1", 1024),
        f"z: {tile('m2', 8192)} = pl.tile.add(x, y)",
        "pl.tile.store(z, [0, 0], o)",
    )
    found = boxes(dump)
    assert found["x"]["conflicts_with"] == ["y"]
    assert found["y"]["conflict"]
    assert not found["z"]["conflict"]


def test_the_last_use_may_be_the_next_definition(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        f"y: {tile('m1', 0)} = pl.tile.adds(x, 1.0)",
        "pl.tile.store(y, [0, 0], o)",
    )
    assert not any(box["conflict"] for box in boxes(dump).values())


def test_a_use_in_a_loop_lasts_to_its_end(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        "for i in pl.range(3):",
        f"    y: {tile('m1', 4096)} = pl.tile.adds(x, 1.0)",
        f"    z: {tile('m2', 0)} = pl.tile.muls(y, 2.0)",
        "    pl.tile.store(z, [0, 0], o)",
    )
    found = boxes(dump)
    assert found["x"]["last"] == found["z"]["last"]
    assert found["x"]["conflicts_with"] == ["z"], "the next turn reads x again"


def test_views_and_reused_bytes(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        f"v: {TILE.format(shape='4, 64', base='m0', offset=1024, size=1024)} = pl.tile.slice(x, [4, 64], [4, 0])",
        f"w: {TILE.format(shape='4, 64', base='m1', offset=2048, size=1024)} = pl.tile.adds(v, 1.0)",
        "pl.tile.store(w, [0, 0], o)",
        load("later", "m0", 0),
        "pl.tile.store(later, [0, 0], o)",
    )
    found = boxes(dump)
    assert found["v"]["view"]
    assert not found["x"]["view"]
    assert "later" in found, "lifetimes that do not touch stay apart"


def test_ring_buffers_are_shown(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        "ring: pl.Scalar[pl.INT32] = pl.system.reserve_buffer(name='ring', size=4096, base=0)",
        load("x", "m0", 0),
        "pl.tile.store(x, [0, 0], o)",
    )
    found = boxes(dump)
    assert found["ring"]["ring"]
    assert found["x"]["conflicts_with"] == ["ring"]


def test_no_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        load("y", "m1", 0),
        f"z: {tile('m2', 0)} = pl.tile.add(x, y)",
        "pl.tile.store(z, [0, 0], o)",
        name="32_after_InitMemRef.py",
    )
    assert memory_map.main([str(dump)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: the 3 buffers of k in Vec all start at 0")
    assert "AllocateMemoryAddr" in error


def test_buffers_that_share_all_bytes_in_turn_have_addresses(tmp_path: Path) -> None:
    dump = write(
        tmp_path,
        load("x", "m0", 0),
        "pl.tile.store(x, [0, 0], o)",
        load("y", "m1", 0),
        "pl.tile.store(y, [0, 0], o)",
    )
    assert set(boxes(dump)) == {"x", "y"}


def test_no_tiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = write(tmp_path, "pass", name="00_frontend.py")
    assert memory_map.main([str(dump)]) == 1
    assert "no tiles" in capsys.readouterr().err


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: list[str] = []
        self.links: list[str] = []
        self.data = ""
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        found = dict(attrs)
        self.classes += (found.get("class") or "").split()
        self.links += [v for k, v in attrs if k in {"src", "href"} and v]
        self._in_data = found.get("id") == "data"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def test_page_is_well_formed_and_self_contained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dumps = tmp_path / "build" / "passes_dump"
    dumps.mkdir(parents=True)
    (tmp_path / "build" / "compiled_meta.json").write_text(json.dumps({"backend_type": "Ascend950"}))
    dump = write(
        dumps,
        load("x", "m0", 0),
        load("y", "m1", 1024),
        f"z: {tile('m2', 8192)} = pl.tile.add(x, y)",
        "pl.tile.store(z, [0, 0], o)",
    )
    out = tmp_path / "map.html"
    assert memory_map.main([str(tmp_path / "build"), "-o", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    page = _Page()
    page.feed(out.read_text())
    assert not page.open
    assert not page.links
    assert page.classes.count("box") == 3
    assert page.classes.count("clash") == 2
    data = json.loads(page.data)
    assert data["backend"] == {"name": "Ascend950", "arch": "a5", "detected": True}
    assert data["dump"] == str(dump)
    assert data["pass_name"] == "AllocateMemoryAddr"


def test_which_dump(tmp_path: Path) -> None:
    for name in ("00_frontend.py", "35_after_AllocateMemoryAddr.py", "36_after_FoldNoOpReshape.py"):
        write(tmp_path, load("x", "m0", 0), name=name)
    assert memory_map.find_dump(tmp_path, "AllocateMemoryAddr").name == "35_after_AllocateMemoryAddr.py"
    assert memory_map.find_dump(tmp_path, "FoldNoOpReshape").name == "36_after_FoldNoOpReshape.py"


@pytest.mark.parametrize(
    ("make", "args", "expected"),
    [
        (False, [], "does not exist"),
        (True, [], "no dumps; compile with dump_passes=True"),
    ],
)
def test_nothing_to_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: bool, args: list[str], expected: str
) -> None:
    folder = tmp_path / "x"
    if make:
        folder.mkdir()
    assert memory_map.main([str(folder), *args]) == 1
    assert expected in capsys.readouterr().err


def test_pass_that_did_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, load("x", "m0", 0), name="33_after_MaterializeSemanticAliases.py")
    assert memory_map.main([str(tmp_path)]) == 1
    assert "PTOAS leaves addresses to the assembler" in capsys.readouterr().err


def test_backends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels = tmp_path / "ptoas"
    kernels.mkdir()
    (kernels / "k.pto").write_text('module attributes {pto.target_arch = "a5"} {\n')
    dump = write(tmp_path, load("x", "m0", 0))
    found, _ = memory_map.read_map(dump)
    assert found["backend"]["name"] == "Ascend950"
    found, _ = memory_map.read_map(dump, "a2a3")
    assert found["functions"][0]["spaces"][0]["limit"] == 188416
    assert memory_map.main([str(dump), "-b", "Ascend310"]) == 1
    assert "choose Ascend910B or Ascend950" in capsys.readouterr().err


def test_unknown_backend_means_no_limits(tmp_path: Path) -> None:
    dump = write(tmp_path, load("x", "m0", 0))
    found, _ = memory_map.read_map(dump)
    assert found["backend"] is None
    assert found["functions"][0]["spaces"][0]["limit"] is None
