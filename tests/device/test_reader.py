"""The reader takes the whole kit, and refuses everything else with the place."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from pytest_pypto.pypto.device import DeviceError
from pytest_pypto.pypto.device.text.known import all_names
from pytest_pypto.pypto.device.text.reader import read_file, read_module
from pytest_pypto.pypto.device.text.types import TileT, parse_type

from ..kit import KIT, needs_kit
from .faults import UP_DOWN, c2v, eye, zeros
from .texts import Kernel, mixed, module, run, tile_type


def kit_files() -> list[Path]:
    return sorted(KIT.rglob("*.pto"))


@needs_kit
def test_every_kernel_of_the_kit_is_read() -> None:
    files = kit_files()
    assert len(files) > 300
    for file in files:
        found = read_file(file)
        assert found.arch in ("a2a3", "a5")
        assert all(f.body.ops[-1].name == "return" for f in found.funcs.values())


def small() -> str:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.op("tadds", ["t", (k.c(1.0, "f32"), "f32")], ["t"])
    k.store("t", "o", (0, 0), (16, 16))
    return module(k)


def test_small_module_is_read() -> None:
    found = read_module(small())
    func = found.funcs["k"]
    assert (func.kind, [n for n, _ in func.params]) == ("vector", ["a", "o"])
    tadds = next(op for op in func.body.ops if op.name == "pto.tadds")
    assert (tadds.ins[0], tadds.outs) == ("t", ["t"])


def test_location_is_kept() -> None:
    text = small().replace("outs(%t : ", "outs(%t : ", 1)
    line = next(x for x in text.splitlines() if "tadds" in x)
    found = read_module(text.replace(line, f'{line} loc("kernel.py":12:5)'))
    assert next(op.loc for op in found.funcs["k"].body.ops if op.name == "pto.tadds") == "kernel.py:12:5"


def test_unknown_operation_names_place_neighbours_and_list() -> None:
    text = small().replace("pto.tadds", "pto.taddz")
    with pytest.raises(DeviceError) as caught:
        read_module(text, "k.pto")
    line = next(i for i, x in enumerate(text.splitlines(), 1) if "taddz" in x)
    message = str(caught.value)
    assert message.startswith(f"k.pto:{line}: unknown operation 'pto.taddz'; did you mean pto.tadd")
    assert all(name in message for name in ("pto.tload", "scf.for", "arith.addi"))
    assert (caught.value.file, caught.value.line) == ("k.pto", line)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("module attributes", "modul attributes", "expected 'module'"),
        ('"a2a3"', '""', "pto.target_arch"),
        ("kernel_kind<vector>", "kernel_kind<scalar>", "known are vector, cube"),
        ("func.func @k", "func.func k", "a function name (@name)"),
        ("rows=16", "rows=x", "rows='x'"),
        ("rows=16", "rows=0", "expected 1.."),
        ("loc=vec", "loc=ub", "known are vec, mat"),
        ("dtype=f32", "dtype=f31", "unknown element type 'f31'"),
        (", pad=0", "", "lacks pad"),
        ("blayout=row_major", "blayout=rows", "known are row_major, col_major"),
        ("valid_row = ", "valid_rows = ", "expected 'valid_row'"),
        ("arith.constant 1.0 : f32", "arith.constant 1.0 : index", "is no value of type index"),
        ("outs(%t : ", "outs(%t, %t : ", "2 operand(s) but 1 type(s)"),
        ("pto.tadds ins(%t, ", "pto.tadds ins(", "1 operand(s) but 2 type(s)"),
        ("{layout = #pto.layout<nd>}", "{layout = #pto.layout<nz>}", "tensor layout 'nz' is not supported"),
        ("offsets = [", "offset = [", "expected 'offsets'"),
        ("!pto.partition_tensor_view<16x16xf32>", "!pto.partition_tensor_view<16xf32>", "the rank of the view (2)"),
        ("  return\n  }\n", "  return\n", "it is truncated"),
        ("%t = pto.alloc_tile", "t = pto.alloc_tile", "unknown operation 't'"),
        ("!pto.ptr<f32>", "!pto.ptr<f32", "is not closed with '>'"),
        ("%a: !pto.ptr<f32>", "%a: !pto.tensor_view<?xf32>", "kernels take pointers and scalars"),
    ],
)  # fmt: skip
def test_broken_text_is_refused(old: str, new: str, words: str) -> None:
    text = small()
    assert old in text
    with pytest.raises(DeviceError, match=r"^k\.pto:\d+: ") as caught:
        read_module(text.replace(old, new, 1), "k.pto")
    assert words in str(caught.value)


def test_every_truncation_is_an_error_of_the_reader() -> None:
    text = small()
    for cut in range(0, len(text) - 3, 7):
        with pytest.raises(DeviceError):
            read_module(text[:cut], "k.pto")


def test_binary_and_empty_files(tmp_path: Path) -> None:
    for name, raw, words in [
        ("junk", b"\x7fELF\x80\x00\xff", "is not UTF-8 text"),
        ("nul", b"module\0", "NUL bytes"),
        ("empty", b"", "holds no module"),
        ("blank", b"  \n\n", "holds no module"),
    ]:
        file = tmp_path / f"{name}.pto"
        file.write_bytes(raw)
        with pytest.raises(DeviceError, match=words):
            read_file(file)
    with pytest.raises(DeviceError, match="cannot read the kernel"):
        read_file(tmp_path / "missing.pto")


def test_hostile_nesting_is_bounded() -> None:
    depth = 500
    head = small().split("  %t = ")[0]
    text = head + "  %b = arith.constant true : i1\n" + "scf.if %b {\n" * depth + "}\n" * depth + "  return\n  }\n}\n"
    with pytest.raises(DeviceError, match="nested deeper than 100"):
        read_module(text)


def test_long_line_is_bounded() -> None:
    with pytest.raises(DeviceError, match="longer than 65536"):
        read_module("module " + "a " * 40000)


def test_same_function_twice() -> None:
    text = small()
    body = text.split("\n", 1)[1].rsplit("}\n", 1)[0]
    with pytest.raises(DeviceError, match="@k is defined twice"):
        read_module(text.rsplit("}\n", 1)[0] + body + "}\n")


def test_type_texts_round_trip() -> None:
    for text in (tile_type("acc", "f32", 16, 32), tile_type("vec", "bf16", 3, 5, pad=2), "!pto.ptr<i8>", "index"):
        assert str(parse_type(text)) == text
    found = parse_type(tile_type("right", "bf16", 32, 16))
    assert isinstance(found, TileT)
    assert (found.box, found.boxed, found.nbytes) == ((16, 16), True, 1024)


def test_names_are_sorted_and_unique() -> None:
    names = all_names()
    assert names == sorted(set(names))


TOKEN = re.compile(r"[%@!#\w.]+|\S")
JUNK = ["", "-1", "0", "99999999999", "%c0", "{", "}", "(", ")", "f32", "%undefined", '"', "1.5e400", "<>", "index"]


def mutated(text: str, rng: random.Random) -> str:
    """One token deleted or replaced, or one line moved."""
    lines = text.split("\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    tokens = list(TOKEN.finditer(lines[i]))
    if not tokens or rng.random() < 0.2:
        lines[i], lines[j] = lines[j], lines[i]
        return "\n".join(lines)
    at = rng.choice(tokens)
    new = rng.choice([*JUNK, *TOKEN.findall(lines[j])])
    lines[i] = lines[i][: at.start()] + new + lines[i][at.end() :]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(10))
def test_mutated_kernels_are_refused_with_their_place_or_run(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    cube, vector = c2v()
    folder = mixed(tmp_path, cube, vector, ["o"], UP_DOWN)
    file = folder / "kernels" / "g.pto"
    text = file.read_text()
    refused = []
    for _ in range(15):
        file.write_text(mutated(text, rng))
        try:
            run(folder, eye(), zeros(32, 32), while_limit=100)
        except DeviceError as exc:
            refused.append(str(exc))
    assert all(re.search(r"^(kernels/g\.pto|orchestration/main\.py)|kernel|pipe", text) for text in refused)


def test_pipe_is_initialised_before_it_is_used(tmp_path: Path) -> None:
    cube, vector = c2v()
    init = next(i for i, x in enumerate(vector.lines) if "initialize_pipe" in x)
    pop = next(i for i, x in enumerate(vector.lines) if "tpop" in x)
    vector.lines[init], vector.lines[pop] = vector.lines[pop], vector.lines[init]
    with pytest.raises(DeviceError, match="pipe 0 is initialised further down only"):
        run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))


def test_attribute_without_a_value() -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.store("t", "o", (0, 0), (16, 16), attrs=" {atomicType = #pto<>}")
    with pytest.raises(DeviceError, match="expected the value of an attribute"):
        read_module(module(k))
