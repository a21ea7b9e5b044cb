"""One broken word, number or line in a kernel or a host program: one clear error with file and line.

Every row is a text that once ended in an inner error of Python or numpy, in a hang, or in an error without a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, DeviceSettings, run_artifact

from .faults import UP_DOWN, c2v, eye, unary
from .texts import Kernel, host, kinds, mixed, module, run, single, typ, write

F = np.float32
BIG = "9" * 5000


def scalar_kernel() -> Kernel:
    """A loop with a carry, casts, a local array and scalar accesses."""
    k = Kernel("k", [("a", "i32", (1, 8)), ("o", "i32", (1, 8))])
    k.c(0)
    k.c(1)
    k.c(8)
    k.line("%arr = pto.declare_local_array -> !pto.local_array<4xi32>")
    k.line(f"%x = pto.load_scalar %a[{k.c(1)}] : !pto.ptr<i32> -> i32")
    k.line(f"pto.local_array_set %arr[{k.c(1)}], %x : !pto.local_array<4xi32>, i32")
    k.line(f"%y = pto.local_array_get %arr[{k.c(1)}] : !pto.local_array<4xi32> -> i32")
    k.line(f"%s = scf.for %i = {k.c(0)} to {k.c(8)} step {k.c(1)} iter_args(%c = %y) -> (i32) {{")
    k.line("%j = arith.index_cast %i : index to i32")
    k.line("%n = arith.addi %c, %j : i32")
    k.line("scf.yield %n : i32")
    k.line("}")
    k.line(f"pto.store_scalar %s, %o[{k.c(0)}] : !pto.ptr<i32>, i32")
    return k


def scalars(folder: Path) -> tuple[Path, list[Any]]:
    return single(folder, scalar_kernel(), ["o"]), [np.ones((1, 8), np.int32), np.zeros((1, 8), np.int32)]


def tiles(folder: Path) -> tuple[Path, list[Any]]:
    return single(folder, unary(), ["o"]), [np.ones((16, 16), F), np.zeros((16, 16), F)]


def pipes(folder: Path) -> tuple[Path, list[Any]]:
    return mixed(folder, *c2v(), ["o"], UP_DOWN), [eye(), np.zeros((32, 32), F)]


def damage(folder: Path, old: str, new: str) -> None:
    """Replace the first match of the pattern `old` in the kernel file."""
    (file,) = (folder / "kernels").glob("*.pto")
    text, found = re.subn(old, lambda m: m.expand(new), file.read_text(), count=1)
    assert found, old
    file.write_text(text)


def refusal(folder: Path, args: list[Any], **settings: Any) -> DeviceError:
    """The error of a run, the same with and without sanitizers."""
    errors = []
    for made in (DeviceSettings.strict(**settings), DeviceSettings(**settings)):
        with pytest.raises(DeviceError) as caught:
            run_artifact(folder, args, made)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    return errors[0]


ROWS: list[tuple[Callable[[Path], tuple[Path, list[Any]]], str, str, str]] = [
    # numbers that no type holds, or that are none
    (scalars, "constant 1 : index", "constant true : index", "expected a number, found 'true'"),
    (scalars, "constant 1 : index", f"constant {BIG} : index", "5000 characters, more than 400"),
    (scalars, "constant 1 : index", "constant 9223372036854775808 : index", "does not fit type index"),
    (scalars, "constant 1 : index", "constant 0x : index", "expected ':', found 'x'"),
    (tiles, "constant 1024 : i64", "constant 1 : i64", "no multiple of 4"),
    (tiles, "constant 1024 : i64", "constant 99999999999999 : i64", "the tile takes bytes 99999999999999"),
    (pipes, "size = 8192", "size = nan", "attribute 'size' must be a whole number of 32 bits, got 'nan'"),
    (pipes, "slot_num = 2", "slot_num = true", "attribute 'slot_num' must be a whole number"),
    (pipes, "slot_num = 2", "slot_num = 99999999999", "attribute 'slot_num' must be a whole number"),
    (pipes, "base = 0", "base = 0.5", "attribute 'base' must be a whole number"),
    (tiles, "rows=16", f"rows={BIG}", "which is no number of at most nine digits"),
    (tiles, "rows=16", "rows=²", "which is no number of at most nine digits"),
    (scalars, "local_array<4xi32>", "local_array<0xi32>", "a local array has 1..65536 elements, got 0"),
    (scalars, "local_array<4xi32>", "local_array<99999999999xi32>", "a local array has 1..65536 elements"),
    (tiles, "tensor_view<16x16xf32>", f"tensor_view<{BIG}x16xf32>", "unknown element type '99999"),
    # types that do not belong there
    (scalars, "constant 1 : index", "constant 1.0 : f32", "must be a whole number, it has type f32"),
    (scalars, "constant 1 : index", "constant true : i1", "must be a whole number, it has type i1"),
    (tiles, "constant 16 : index", "constant 16.0 : f8e8m0", "must be a whole number, it has type f8e8m0"),
    (tiles, r"constant 16 : index", "constant 0x10 : f8e5m2", "does not have; write a decimal number"),
    (scalars, "index_cast %i : index to i32", "bitcast %i : index to i32", "two types of the same width, not index"),
    (scalars, "index_cast %i : index to i32", "extsi %i : index to i32", "cast index to i32 with arith.index_cast"),
    (scalars, "index_cast %i : index to i32", "sitofp %i : index to i32", "gives a floating number, not i32"),
    (scalars, "arith.addi %c, %j : i32", "arith.addi %c, %j : index", "%c is used as index, but has type i32"),
    (scalars, "arith.addi %c, %j : i32", "arith.addf %c, %j : i32", "works on floating operands, not on i32"),
    (scalars, "scf.yield %n : i32", "scf.yield %i : index", "%i is used as i32, but has type index"),
    (scalars, "iter_args(.*) -> .i32.", r"iter_args\1 -> (f32)", "%y is used as f32, but has type i32"),
    (scalars, "%a: !pto.ptr<i32>", "%a: !pto.ptr<f32>", "%a points at f32, the view is of i32"),
    (scalars, "!pto.ptr<i32> -> i32", "!pto.ptr<f32> -> i32", "used as !pto.ptr<f32>, but has type !pto.ptr<i32>"),
    (scalars, "!pto.ptr<i32> -> i32", "!pto.ptr<i32> -> f32", "an element of !pto.ptr<i32> is no f32"),
    (tiles, "dtype=f32", "dtype=ui4", "no storage for element type ui4"),
    (tiles, "%a: !pto.ptr<f32>", "%a: !pto.ptr<i4>", "no storage for element type i4"),
    # operands that are missing
    (scalars, r"%o\[%c\d+\]", "%o[]", "expected 1 value(s) between [ and ], found 0"),
    (scalars, r"%a\[(%c\d+)\]", r"%a[\1, \1]", "expected 1 value(s) between [ and ], found 2"),
    # the frame
    (tiles, '"a2a3"', '"a2{a3"', "unknown target architecture 'a2{a3'"),
    (tiles, "%t = ", "%١ = ", "unexpected character"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "old", "new", "words"), ROWS, ids=[f"{i}" for i in range(len(ROWS))])
def test_broken_kernel(
    make: Callable[[Path], tuple[Path, list[Any]]], old: str, new: str, words: str, tmp_path: Path
) -> None:
    folder, args = make(tmp_path)
    before = [a.copy() for a in args]
    damage(folder, old, new)
    if words.startswith("no multiple"):
        assert "out_of_bounds" in kinds(run(folder, *args), "error")
        return
    error = refusal(folder, args)
    assert words in str(error)
    assert len(str(error)) < 1000
    assert error.file is not None
    assert error.file.startswith("kernels/")
    assert error.line is not None
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("text", ["007", "0x07", "0X7"])
def test_spellings_of_one_number(text: str, tmp_path: Path) -> None:
    folder, args = scalars(tmp_path)
    damage(folder, "constant 8 : index", f"constant {text} : index")
    assert run(folder, *args).completed
    assert args[1][0, 0] == 1 + sum(range(7))


def test_the_upper_half_of_a_signless_type_is_negative(tmp_path: Path) -> None:
    folder, args = scalars(tmp_path)
    damage(folder, r"%j = arith.index_cast %i : index to i32", "%j = arith.constant 0xFFFFFFFF : i32")
    run(folder, *args)
    assert args[1][0, 0] == 1 - 8


@pytest.mark.parametrize("high", [10**6, 2**63 - 1])
def test_endless_counting_loop(high: int, tmp_path: Path) -> None:
    folder, args = scalars(tmp_path)
    damage(folder, "constant 8 : index", f"constant {high} : index")
    error = refusal(folder, args, while_limit=1000)
    assert "has made 1000 rounds and does not end; raise while_limit" in str(error)
    assert error.line is not None


def test_products_of_an_index_keep_64_bits(tmp_path: Path) -> None:
    """Without that a loop that squares its carry takes all memory."""
    k = Kernel("k", [("o", "i32", (1, 8))])
    low, high, one, three = (k.c(n) for n in (0, 100, 1, 3))
    k.line(f"%s = scf.for %i = {low} to {high} step {one} iter_args(%c = {three}) -> (index) {{")
    k.line("%n = arith.muli %c, %c : index")
    k.line("scf.yield %n : index")
    k.line("}")
    k.line("%t = arith.trunci %m : i64 to i32")
    k.lines.insert(-1, "  %m = arith.index_cast %s : index to i64")
    k.line(f"pto.store_scalar %t, %o[{k.c(0)}] : !pto.ptr<i32>, i32")
    out = np.zeros((1, 8), np.int32)
    run(single(tmp_path, k, ["o"]), out)
    wanted = pow(3, 2**100, 2**32)
    assert out[0, 0] == wanted - (2**32 if wanted >= 2**31 else 0)


def test_scatter_without_index_or_pattern(tmp_path: Path) -> None:
    k = unary()
    k.op("tscatter", ["t"], ["u"])
    error = refusal(single(tmp_path, k, ["o"]), [np.ones((16, 16), F), np.zeros((16, 16), F)])
    assert "operand 1 of tscatter must be a tile" in str(error)


# ---- the host program

T = typ("f32", (16, 16))
CALL = f'o1: {T} = self.k(a, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})'
BLOCKS = '"arg_directions": [pl.adir.input, pl.adir.output_existing], "core_num": 9999999999'
CREATE = f"t0: {T} = pl.tensor.create([99999999999999, 99999999999999], dtype=pl.FP32, layout=pl.TensorLayout.ND)"
HOSTS = {
    "endless loop": (f"for i in pl.range(99999999999):\n    {CALL}", "has made 1000 rounds and does not end"),
    "blocks without number": (CALL.replace(CALL[CALL.index('"arg') : -2], BLOCKS), "core_num must be 1..65536"),
    "blocks without end": (
        CALL.replace(CALL[CALL.index('"arg') : -2], BLOCKS.replace("9999999999", "1e400")),
        "got inf",
    ),
    "unknown name": (CALL.replace("(a, o", "(b, o"), "Undefined variable 'b'"),
    "no Python": (CALL.replace("(a, o", "(a, o,,"), "SyntaxError"),
}


@pytest.mark.parametrize("name", list(HOSTS))
def test_broken_host_program(name: str, tmp_path: Path) -> None:
    body, words = HOSTS[name]
    text = host(f"a: {T}, o: pl.Out[{T}]", body, unary().declaration(["o"]))
    folder = write(tmp_path, text, k=module(unary()))
    error = refusal(folder, [np.ones((16, 16), F), np.zeros((16, 16), F)], while_limit=1000)
    assert words in str(error)
    assert error.file == "orchestration/main.py"
    assert error.line is not None
    near = text.splitlines()[error.line - 1 : error.line + 1]
    assert any("pl.range" in x or "self.k(" in x for x in near), (error.line, near)


def test_tensor_beyond_all_memory(tmp_path: Path) -> None:
    text = host(f"a: {T}, o: pl.Out[{T}]", f"{CREATE}\n{CALL}", unary().declaration(["o"]))
    folder = write(tmp_path, text, k=module(unary()))
    result = run(folder, np.ones((16, 16), F), np.zeros((16, 16), F))
    assert not result.completed
    assert "the heap of ring 0 is full" in result.errors[-1].message


def test_kernel_that_no_file_defines_names_the_launch(tmp_path: Path) -> None:
    folder, args = tiles(tmp_path)
    damage(folder, "func.func @k", "func.func @other")
    error = refusal(folder, args)
    assert "launches kernel 'k', which no .pto file defines; defined are other" in str(error)
    assert error.file == "orchestration/main.py"
    assert error.line is not None


def test_wrong_arguments_name_the_entry(tmp_path: Path) -> None:
    folder, args = tiles(tmp_path)
    error = refusal(folder, [args[0][:8], args[1]])
    assert error.file == "orchestration/main.py"
    assert "def main" in (folder / error.file).read_text().splitlines()[(error.line or 0) - 1]


def test_metadata_names_its_line(tmp_path: Path) -> None:
    folder, args = tiles(tmp_path)
    (folder / "compiled_meta.json").write_text('{\n "schema": 1,,\n}\n')
    error = refusal(folder, args)
    assert (error.file, error.line) == ("compiled_meta.json", 2)
    (folder / "compiled_meta.json").write_text("[" * 100_000)
    assert "damaged metadata" in str(refusal(folder, args))
