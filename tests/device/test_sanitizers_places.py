"""Sanitizers of places, in pairs: windows, handles and overlapping tiles; the healthy twin is silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, FindingKind

from .faults import SCRATCH, UP_DOWN, F, c2v, eye, line_of, only, unary, windowed, zeros
from .texts import Kernel, host, mixed, module, plain, run, single, typ, write


@pytest.mark.parametrize("row", [4, 5])
def test_window_beyond_a_tensor(row: int, tmp_path: Path) -> None:
    result = run(single(tmp_path, windowed(row), ["o"]), zeros(20, 16), zeros(16, 16))
    if row == 4:
        assert result.findings == ()
        return
    found = only(result, FindingKind.OUT_OF_BOUNDS)
    assert found.site.line == line_of(tmp_path, "tload")
    assert "[5:21, 0:16] leaves 'a', which has 20x16 elements" in found.message


def test_window_beyond_a_tensor_stops_a_plain_run(tmp_path: Path) -> None:
    folder = single(tmp_path, windowed(5), ["o"])
    with pytest.raises(DeviceError, match=rf"kernels/k\.pto:{line_of(folder, 'tload')}: the load of \[5:21"):
        plain(folder, zeros(20, 16), zeros(16, 16))


@pytest.mark.parametrize("healthy", [False, True])
def test_slice_argument_limits_the_window(healthy: bool, tmp_path: Path) -> None:
    """A kernel for 16 rows gets a window of the parent that has only 12 rows left."""
    k = unary()
    t, big = typ("f32", (16, 16)), typ("f32", (32, 16))
    start = 16 if healthy else 20
    body = f"""
    with pl.scope():
        w: {t} = pl.tensor.slice(a, [16, 16], [{start}, 0])
        o1: {t} = self.k(w, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})
    """
    folder = write(tmp_path, host(f"a: {big}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
    result = run(folder, zeros(32, 16), zeros(16, 16))
    if healthy:
        assert result.findings == ()
    else:
        assert "which has 12x16 elements here" in only(result, FindingKind.OUT_OF_BOUNDS).message


@pytest.mark.parametrize("offset", [0, -8])
def test_negative_offset_behind_a_clamp(offset: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.line(f"%m = arith.maxsi %n, {k.c(0)} : index")
    k.tile("t", 16, 16, 0)
    k.load("a", "t", ("m", 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16), offset)
    if offset == 0:
        assert result.findings == ()
    else:
        assert "a clamp hides it" in only(result, FindingKind.OUT_OF_BOUNDS).message


@pytest.mark.parametrize("address", [188416 - 1024, 188416 - 512])
def test_handle_beyond_the_memory(address: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, address)
    k.load("a", "t", (0, 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    a = np.arange(256, dtype=F).reshape(16, 16)
    out = zeros(16, 16)
    result = run(single(tmp_path, k, ["o"]), a, out)
    np.testing.assert_array_equal(out, a)  # the run goes on with room for the handle
    if address == 188416 - 1024:
        assert result.findings == ()
        return
    found = only(result, FindingKind.OUT_OF_BOUNDS)
    assert "which has 188416 on a2a3sim" in found.message
    assert found.addresses == ((address, address + 1024),)


def test_memory_of_the_other_platform_is_larger(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 188416)
    k.load("a", "t", (0, 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    assert run(single(tmp_path, k, ["o"], arch="a5"), zeros(16, 16), zeros(16, 16)).findings == ()


@pytest.mark.parametrize("row", [8, 9])
def test_window_beyond_a_tile(row: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (8, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.view("v", "t", ("n", 0), 8, 16)
    k.store("v", "o", (0, 0), (8, 16))
    folder = single(tmp_path, k, ["o"])
    for _ in range(2):  # the second run must report it again
        result = run(folder, zeros(16, 16), zeros(8, 16), row)
        if row == 8:
            assert result.findings == ()
        else:
            assert only(result, FindingKind.OUT_OF_BOUNDS).site.op == "subview"


@pytest.mark.parametrize("rows", [16, 17])
def test_valid_extents_beyond_the_tile(rows: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (32, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.valid("t", "n", 16)
    k.store("t", "o", (0, 0), (16, 16))
    folder = single(tmp_path, k, ["o"])
    for _ in range(2):
        result = run(folder, zeros(32, 16), zeros(16, 16), rows)
        found = [f for f in result.findings if f.kind is FindingKind.OUT_OF_BOUNDS]
        assert len(found) == (rows == 17)


@pytest.mark.parametrize("index", [255, 256])
def test_scalar_access_beyond_a_tensor(index: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.line("%v = pto.load_scalar %a[%n] : !pto.ptr<f32> -> f32")
    k.tile("t", 16, 16, 0)
    k.op("texpands", [("v", "f32")], ["t"])
    k.store("t", "o", (0, 0), (16, 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16), index)
    assert [f.site.op for f in result.findings] == ([] if index == 255 else ["load_scalar"])


@pytest.mark.parametrize("address", [1024, 512])
def test_live_tiles_overlap(address: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.tile("u", 16, 16, address)
    k.op("texp", ["t"], ["u"])
    k.tile("w", 16, 16, 4096)
    k.op("tadd", ["t", "u"], ["w"])
    k.store("w", "o", (0, 0), (16, 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16))
    if address == 1024:
        assert result.findings == ()
        return
    found = only(result, FindingKind.OVERLAP)
    assert found.site.line == line_of(tmp_path, "tadd")
    assert found.other.line == line_of(tmp_path, "texp")
    assert found.addresses == ((512, 1024),)
    assert "reads the buffer 0..1023 of vec" in found.message
    assert "512..1535" in found.message


def test_equal_ranges_and_reuse_are_legal(tmp_path: Path) -> None:
    """A reshape sees the same bytes, and a dead tile's bytes are used again."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16)), ("p", "f32", (8, 32))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.tile("r", 8, 32, 0)
    k.store("r", "p", (0, 0), (8, 32))
    k.tile("n", 16, 8, 512)
    k.load("a", "n", (0, 8), (16, 8))
    k.store("n", "o", (0, 0), (16, 8))
    k.tile("w", 16, 16, 0)
    k.load("a", "w", (0, 0), (16, 16))
    k.store("w", "o", (0, 0), (16, 16))
    assert run(single(tmp_path, k, ["o", "p"]), zeros(16, 16), zeros(16, 16), zeros(8, 32)).findings == ()


def test_pieces_of_one_tile_are_legal(tmp_path: Path) -> None:
    """Windows of one tile are written one by one, by a loop, and the whole is read."""
    k = Kernel("k", [("a", "f32", (16, 64)), ("o", "f32", (16, 64))])
    k.tile("t", 16, 64, 0)
    k.tile("p", 16, 16, 8192)
    k.line(f"scf.for %i = {k.c(0)} to {k.c(4)} step {k.c(1)} {{")
    k.line(f"%at = arith.muli %i, {k.c(16)} : index")
    k.load("a", "p", (0, "at"), (16, 16))
    k.view("v", "t", (0, "at"), 16, 16)
    k.op("tmov", ["p"], ["v"])
    k.line("}")
    k.store("t", "o", (0, 0), (16, 64))
    a = np.arange(1024, dtype=F).reshape(16, 64)
    out = zeros(16, 64)
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("healthy", [False, True])
def test_a_missing_piece_is_undefined(healthy: bool, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "f32", (16, 32))])
    k.tile("t", 16, 32, 0)
    k.tile("p", 16, 16, 8192)
    for col in (0, 16) if healthy else (0,):
        k.load("a", "p", (0, col), (16, 16))
        k.view(f"v{col}", "t", (0, col), 16, 16)
        k.op("tmov", ["p"], [f"v{col}"])
    k.store("t", "o", (0, 0), (16, 32))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 32), zeros(16, 32))
    if healthy:
        assert result.findings == ()
    else:
        assert "256 undefined element(s)" in only(result, FindingKind.UNINITIALISED).message


def test_tile_in_the_slots_of_a_pipe(tmp_path: Path) -> None:
    cube, vector = c2v()
    moved = f"constant {SCRATCH} "
    assert any(moved in k for k in vector.consts)
    vector.consts = {k.replace(moved, "constant 4096 "): v for k, v in vector.consts.items()}
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = next(f for f in result.findings if f.kind is FindingKind.OVERLAP)
    assert "inside the slots 0..8191 of pipe 0" in found.message


@pytest.mark.parametrize("inner", ["col_major", "row_major"])
@pytest.mark.parametrize("rows", [32, 17])
def test_transposed_alias(rows: int, inner: str, tmp_path: Path) -> None:
    """Two handles at one address: the second one is the transpose, unless its boxes are filled the other way round."""
    k = Kernel("k", [("a", "f32", (64, rows)), ("e", "f32", (64, 32)), ("o", "f32", (rows, 32))], kind="cube")
    k.tile("m", 64, rows, 0, space="mat")
    k.load("a", "m", (0, 0), (64, rows))
    k.tile("t", rows, 64, 0, space="mat", layout=("row_major", inner, 512))
    k.tile("l", rows, 64, 0, space="left")
    k.op("tmov", ["t"], ["l"])
    k.tile("me", 64, 32, 1 << 16, space="mat")
    k.load("e", "me", (0, 0), (64, 32))
    k.tile("r", 64, 32, 0, space="right")
    k.op("tmov", ["me"], ["r"])
    k.tile("c", rows, 32, 0, space="acc")
    k.op("tmatmul", ["l", "r"], ["c"])
    k.store("c", "o", (0, 0), (rows, 32))
    a, e = np.random.default_rng(0).standard_normal((64, rows)).astype(F), np.eye(64, 32, dtype=F)
    out = zeros(rows, 32)
    result = run(single(tmp_path, k, ["o"]), a, e, out)
    if inner == "col_major":
        assert result.findings == ()
        np.testing.assert_allclose(out, a.T[:, :32], rtol=1e-6)
    elif rows == 17:
        found = only(result, FindingKind.OVERLAP)
        assert "written as a tile of another form (64x17)" in found.message
        assert found.other.line == line_of(tmp_path, "tload")
