"""Artifacts damaged by hand are caught, and named as what they are where that can be decided."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError

from .texts import Kernel, kinds, mixed, plain, run

F = np.float32
UP_DOWN = '{"split": pl.SplitMode.UP_DOWN}'
Edit = Callable[[str], str]


def both_ways() -> tuple[Kernel, Kernel]:
    """o = (a - 1) @ b - b: the lanes send halves of a - 1, the cube answers with the product."""
    tensors = [("a", "f32", (32, 32)), ("b", "f32", (32, 32)), ("o", "f32", (32, 32))]
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(3, 4096, 2)
    cube.tile("m", 32, 32, 8192, space="mat")
    cube.load("b", "m", (0, 0), (32, 32))
    cube.pop("p", 32, 32, 1)
    cube.tile("l", 32, 32, 0, space="left")
    cube.op("tmov", ["p"], ["l"])
    cube.free(1)
    cube.tile("r", 32, 32, 0, space="right")
    cube.op("tmov", ["m"], ["r"])
    cube.tile("c", 32, 32, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.push("c", 1)
    vector = Kernel("k_aiv", tensors, lane=True)
    vector.pipe(3, 4096, 2)
    vector.line("%lane = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index")
    vector.line(f"%row = arith.muli %lane, {vector.c(16)} : index")
    vector.tile("x", 16, 32, 8192)
    vector.load("a", "x", ("row", 0), (16, 32))
    vector.tile("w", 16, 32, 12288)
    vector.load("b", "w", ("row", 0), (16, 32))
    vector.tile("y", 16, 32, 10240)
    vector.op("tsubs", ["x", (vector.c(1.0, "f32"), "f32")], ["y"])
    vector.push("y", 1)
    vector.pop("q", 16, 32, 1)
    vector.tile("z", 16, 32, 14336)
    vector.op("tsub", ["q", "w"], ["z"])
    vector.free(1)
    vector.store("z", "o", ("row", 0), (16, 32))
    return cube, vector


def inputs() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((32, 32)).astype(F), rng.standard_normal((32, 32)).astype(F), np.zeros((32, 32), F)


def artifact(folder: Path) -> Path:
    return mixed(folder, *both_ways(), ["o"], UP_DOWN)


def test_the_healthy_artifact(tmp_path: Path) -> None:
    a, b, o = inputs()
    result = run(artifact(tmp_path), a, b, o)
    assert result.findings == ()
    np.testing.assert_allclose(o, (a - 1) @ b - b, rtol=2e-5, atol=1e-5)


def replaced(old: str, new: str, count: int = 1) -> Edit:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new, count)

    return edit


def line(words: str, new: str | None = None, which: int = 0) -> Edit:
    """Replace (or drop) the which-th line that contains `words`."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        at = [i for i, x in enumerate(lines) if words in x][which]
        lines[at : at + 1] = [] if new is None else [new]
        return "\n".join(lines)

    return edit


def in_line(words: str, old: str, new: str, which: int = 0) -> Edit:
    """Replace text inside the which-th line that contains `words`."""

    def edit(text: str) -> str:
        lines = text.split("\n")
        at = [i for i, x in enumerate(lines) if words in x][which]
        assert old in lines[at]
        lines[at] = lines[at].replace(old, new, 1)
        return "\n".join(lines)

    return edit


DAMAGE: dict[str, tuple[Edit, str]] = {
    "tile moved onto a live tile": (replaced("constant 10240 : i64", "constant 13312 : i64"), "overlap"),
    "tile moved into the slots": (replaced("constant 10240 : i64", "constant 4096 : i64"), "overlap"),
    "tile moved beyond the memory": (replaced("constant 14336 : i64", "constant 188000 : i64"), "out_of_bounds"),
    "unaligned tile": (replaced("constant 14336 : i64", "constant 14337 : i64"), "out_of_bounds"),
    "wrong offset inside the tensor": (lambda text: text, "wrong offset"),
    "lane offset doubled": (replaced("%row = arith.muli %lane, ", "%row = arith.addi %lane, "), "out_of_bounds"),
    "missing push of the lanes": (line("tpush_to_aic"), "deadlock"),
    "missing push of the cube": (line("tpush_to_aiv"), "deadlock"),
    "missing free of the cube": (line("tfree_from_aiv"), "leftover"),
    "missing free of the lanes": (line("tfree_from_aic"), "leftover"),
    "double push": (in_line("tpush_to_aiv", "pto.tpush", "pto.tpush"), "double"),
    "swapped operands": (replaced("pto.tsub ins(%q, %w ", "pto.tsub ins(%w, %q "), "numbers"),
    "swapped factors": (replaced("pto.tmatmul ins(%l, %r ", "pto.tmatmul ins(%r, %l "), "error: was made as"),
    "wrong lane": (replaced("arith.muli %lane,", "arith.muli %zero,"), "zero lane"),
    "shifted slot": (in_line("pto.reserve_buffer", "base = 0", "base = 6144", 1), "overlap"),
    "slots of different sizes": (in_line("aiv_initialize_pipe", "slot_size = 4096", "slot_size = 2048"), "wrong_lane"),
    "slot too small": (replaced("slot_size = 4096", "slot_size = 1024", 9), "out_of_bounds"),
    "reserved too little": (in_line("pto.reserve_buffer", "size = 8192", "size = 4096"), "out_of_bounds"),
    "other split code": (in_line("tpop_from_aic", "split = 1", "split = 2"), "wrong_lane"),
    "unknown split code": (in_line("tpop_from_aic", "split = 1", "split = 7"), "error: split = 7"),
    "missing load": (line("pto.tload", which=1), "uninitialised"),
    "wrong element type": (in_line("%y = pto.alloc_tile", "dtype=f32", "dtype=f16"), "error: was made as"),
    "wrong memory": (replaced("loc=left", "loc=right", 99), "error: must lie in left"),
    "unknown operation": (replaced("pto.tsubs ", "pto.tsubz "), "error: unknown operation 'pto.tsubz'"),
    "missing definition": (line("%row = "), "error: %row is used here but not defined"),
    "defined twice": (in_line("%y = pto.alloc_tile", "%y =", "%x ="), "error: %x is defined twice"),
    "truncated": (lambda text: text[: len(text) // 2], "error: "),
    "parameter dropped": (in_line("func.func @k_aiv", "%a: !pto.ptr<f32>, ", ""), "error: %a is used here"),
    "other architecture in a second file": (lambda text: text, "second file"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(DAMAGE))
def test_damage_is_caught(name: str, tmp_path: Path) -> None:
    edit, wanted = DAMAGE[name]
    folder = artifact(tmp_path)
    file = folder / "kernels" / "g.pto"
    text = edit(file.read_text())
    if wanted == "double":
        push = next(x for x in text.split("\n") if "tpush_to_aiv" in x)
        text, wanted = text.replace(push, f"{push}\n{push}"), "leftover"
    elif wanted == "zero lane":
        text = text.replace("%row = ", "%zero = arith.subi %lane, %lane : index\n  %row = ")
        wanted = "numbers"
    elif wanted == "second file":
        other = file.read_text().replace("k_ai", "other_ai").replace('"a2a3"', '"a5"')
        (folder / "kernels" / "h.pto").write_text(other)
        wanted = "error: is for"
    elif wanted == "wrong offset":
        row = next(x for x in text.split("\n") if "%row = " in x)
        text = text.replace(row, row + "\n  %near = arith.subi %row, %lane : index")
        part = next(x for x in text.split("\n") if "partition_view %a_view" in x)
        text, wanted = text.replace(part, part.replace("[%row,", "[%near,")), "numbers"
    file.write_text(text)
    a, b, o = inputs()
    if wanted.startswith("error: "):
        with pytest.raises(DeviceError, match=r"kernels/[gh]\.pto") as caught:
            run(folder, a, b, o)
        assert wanted.removeprefix("error: ") in str(caught.value)
        return
    result = run(folder, a, b, o)
    if wanted == "numbers":
        assert kinds(result, "error") == []
        assert not np.allclose(o, (a - 1) @ b - b, atol=1e-3)
    else:
        assert wanted in kinds(result, "error"), [str(f) for f in result.findings]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "kernels" / "g.pto").unlink(), "launches kernel 'k_aic', which no .pto file defines"),
        (lambda f: (f / "kernels" / "g.pto").write_bytes(b"\x00\xff\xfe" * 50), "is not UTF-8 text"),
        (lambda f: (f / "orchestration" / "main.py").unlink(), "no host program"),
        (lambda f: (f / "orchestration" / "main.py").write_text("import os\n"), "the host program"),
        (lambda f: (f / "orchestration" / "main.py").write_bytes(b"\xff\xfe"), "cannot read the host program"),
        (lambda f: (f / "orchestration" / "other.py").write_text("x = 1"), "several host programs"),
        (lambda f: (f / "compiled_meta.json").write_text("{"), "damaged metadata"),
        (lambda f: (f / "compiled_meta.json").write_text("[]"), "damaged metadata"),
        (lambda f: (f / "compiled_meta.json").write_bytes(b"\xff\xfe{}"), "damaged metadata"),
        (lambda f: (f / "compiled_meta.json").write_text('{"files": ["/etc/passwd"]}'), "list of relative paths"),
        (lambda f: (f / "compiled_meta.json").write_text('{"files": ["../x"]}'), "list of relative paths"),
        (
            lambda f: (f / "compiled_meta.json").write_text('{"files": ["' + "a" * 5000 + '"]}'),
            "list of relative paths",
        ),
        (lambda f: (f / "compiled_meta.json").write_text('{"files": ["a\\u0000b"]}'), "list of relative paths"),
        (lambda f: (f / "compiled_meta.json").mkdir(), "this is no regular file"),
        (lambda f: (f / "kernels" / "h.pto").mkdir(), "this is no regular file"),
        (lambda f: os.mkfifo(f / "kernels" / "h.pto"), "this is no regular file"),
        (lambda f: (f / "kernels" / "h.pto").symlink_to(f / "nowhere"), "cannot read the file"),
        (lambda f: (f / "kernels" / "h.pto").symlink_to(f / "kernels" / "h.pto"), "cannot read the file"),
        (lambda f: (f / "orchestration" / "n.py").symlink_to(f / "nowhere"), "cannot read the file"),
    ],
)
def test_damaged_directory(damage: Callable[[Path], Any], words: str, tmp_path: Path) -> None:
    folder = artifact(tmp_path)
    damage(folder)
    with pytest.raises(DeviceError) as caught:
        run(folder, *inputs())
    assert words in str(caught.value)


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="there is no artifact directory here"):
        run(tmp_path / "nowhere", *inputs())


def test_truncated_host_program(tmp_path: Path) -> None:
    folder = artifact(tmp_path)
    file = folder / "orchestration" / "main.py"
    text = file.read_text()
    for cut in range(60, len(text) - 40, 40):
        file.write_text(text[:cut])
        try:
            result = run(folder, *inputs())
        except DeviceError:
            continue
        assert "never_written" in kinds(result, "error") or not result.completed, text[:cut][-200:]


def test_hundred_alternating_runs(tmp_path: Path) -> None:
    """Good and bad runs in one process give what they give alone."""
    good = artifact(tmp_path / "good")
    bad_folders = []
    for i, name in enumerate(["missing push of the lanes", "missing free of the cube", "tile moved onto a live tile"]):
        folder = artifact(tmp_path / f"bad{i}")
        file = folder / "kernels" / "g.pto"
        file.write_text(DAMAGE[name][0](file.read_text()))
        bad_folders.append(folder)

    def outcome(folder: Path, sanitize: bool) -> tuple[Any, ...]:
        a, b, o = inputs()
        try:
            result = run(folder, a, b, o) if sanitize else plain(folder, a, b, o)
        except DeviceError as exc:
            return (str(exc), o.tobytes())
        return ([str(f) for f in result.findings], o.tobytes(), result.counters.to_json())

    alone = {(f, s): outcome(f, s) for f in (good, *bad_folders) for s in (True, False)}
    assert len({repr(v) for v in alone.values()}) > 4
    for i in range(100):
        folder = good if i % 2 == 0 else bad_folders[(i // 2) % 3]
        sanitize = bool(i // 4 % 2)
        assert outcome(folder, sanitize) == alone[(folder, sanitize)]


def test_linked_artifacts_run(tmp_path: Path) -> None:
    """Links to whole files and directories are as good as the files."""
    folder = artifact(tmp_path / "real")
    (tmp_path / "linked").mkdir()
    for name in ("kernels", "orchestration"):
        (tmp_path / "linked" / name).symlink_to(folder / name)
    kernel = folder / "kernels" / "g.pto"
    kernel.rename(tmp_path / "elsewhere.pto")
    kernel.symlink_to(tmp_path / "elsewhere.pto")
    for place in (folder, tmp_path / "linked"):
        a, b, o = inputs()
        assert run(place, a, b, o).findings == ()
        np.testing.assert_allclose(o, (a - 1) @ b - b, rtol=2e-5, atol=1e-5)
