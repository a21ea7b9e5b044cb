"""Every sanitizer in pairs: the seeded fault is found with its place, the healthy twin is silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, DeviceResult, FindingKind

from .texts import Kernel, host, kinds, mixed, module, plain, run, single, typ, write

F = np.float32


def line_of(folder: Path, words: str, which: int = 0) -> int:
    """Line of the which-th line of the kernel file that contains `words`."""
    (file,) = (folder / "kernels").glob("*.pto")
    return [i for i, x in enumerate(file.read_text().splitlines(), 1) if words in x][which]


def only(result: DeviceResult, kind: FindingKind) -> Any:
    """The one finding of `kind`; there is no error of another kind."""
    found = [f for f in result.findings if f.kind is kind]
    assert len(found) == 1, [str(f) for f in result.findings]
    assert set(kinds(result, "error")) <= {kind.value}
    return found[0]


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, F)


def unary(load: tuple[int, int] = (16, 16), **tile: Any) -> Kernel:
    """o = exp(a) on one 16x16 tile, of which `load` elements are loaded."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), load)
    k.tile("u", 16, 16, 1024)
    k.op("texp", ["t"], ["u"])
    k.store("u", "o", (0, 0), (16, 16))
    return k


# ---- uninitialised


def test_uninitialised_tile(tmp_path: Path) -> None:
    found = only(run(single(tmp_path, unary((16, 12)), ["o"]), zeros(16, 16), zeros(16, 16)), FindingKind.UNINITIALISED)
    assert found.site.line == line_of(tmp_path, "texp")
    assert (found.site.kernel, found.site.pto, found.site.agent, found.site.lane) == ("k", "kernels/k.pto", "aiv", 0)
    assert found.other.line == line_of(tmp_path, "tload")
    assert found.space == "vec"
    assert found.addresses[0] == (12 * 4, 16 * 4)
    assert "64 undefined element(s)" in found.message


def test_initialised_tile_is_silent(tmp_path: Path) -> None:
    assert run(single(tmp_path, unary(), ["o"]), zeros(16, 16), zeros(16, 16)).findings == ()


def test_uninitialised_integers_never_written(tmp_path: Path) -> None:
    k = Kernel("k", [("o", "i32", (16, 16))])
    k.tile("t", 16, 16, 0, dtype="i32")
    k.tile("u", 16, 16, 2048, dtype="i32")
    k.op("tadds", ["t", (k.c(1, "i32"), "i32")], ["u"])
    k.store("u", "o", (0, 0), (16, 16))
    found = only(run(single(tmp_path, k, ["o"]), np.zeros((16, 16), np.int32)), FindingKind.UNINITIALISED)
    assert "which nothing has written" in found.message
    assert found.other is None


def copies(initialised: bool) -> Kernel:
    """Undefined elements travel through a move, a window and a transpose, and are found where they are used."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16 if initialised else 15))
    k.tile("m", 16, 16, 1024)
    k.op("tmov", ["t"], ["m"])
    k.tile("s", 16, 16, 2048)
    k.tile("x", 16, 16, 3072)
    k.op("ttrans", ["m", "s"], ["x"])
    k.tile("y", 16, 16, 4096)
    k.op("tabs", ["x"], ["y"])
    k.store("y", "o", (0, 0), (16, 16))
    return k


@pytest.mark.parametrize("healthy", [False, True])
def test_undefined_elements_travel_with_copies(healthy: bool, tmp_path: Path) -> None:
    result = run(single(tmp_path, copies(healthy), ["o"]), zeros(16, 16), zeros(16, 16))
    if healthy:
        assert result.findings == ()
        return
    found = only(result, FindingKind.UNINITIALISED)
    assert found.site.line == line_of(tmp_path, "tabs")
    assert "first [15, 0]" in found.message  # column 15 has become row 15


@pytest.mark.parametrize("healthy", [False, True])
def test_undefined_elements_travel_through_pipes(healthy: bool, tmp_path: Path) -> None:
    cube, vector = c2v(load_cols=32 if healthy else 31)
    result = run(mixed(tmp_path, cube, vector, ["o"], '{"split": pl.SplitMode.UP_DOWN}'), zeros(32, 32), zeros(32, 32))
    if healthy:
        assert result.findings == ()
    else:
        found = [f for f in result.findings if f.kind is FindingKind.UNINITIALISED]
        assert {f.site.op for f in found} == {"tmatmul"}


@pytest.mark.parametrize("healthy", [False, True])
def test_scratch_is_clobbered(healthy: bool, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16)), ("p", "f32", (16, 1))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.tile("s", 16, 16, 1024)
    k.load("a", "s", (0, 0), (16, 16))
    k.store("s", "o", (0, 0), (16, 16))
    k.tile("r", 16, 1, 2048, layout=("col_major", "none_box", 512))
    k.op("trowsum", ["t", "s"], ["r"])
    if not healthy:
        k.tile("u", 16, 16, 3072)
        k.op("tadd", ["s", "t"], ["u"])
        k.store("u", "o", (0, 0), (16, 16))
    k.store("r", "p", (0, 0), (16, 1))
    result = run(single(tmp_path, k, ["o", "p"]), zeros(16, 16), zeros(16, 16), zeros(16, 1))
    if healthy:
        assert result.findings == ()
    else:
        assert only(result, FindingKind.UNINITIALISED).site.line == line_of(tmp_path, "tadd ")


def two_tasks(second_first: bool) -> str:
    """fill(t); use(t, o) - or the other way round - with a created tensor t."""
    t = typ("f32", (16, 16))
    calls = [
        f't1: {t} = self.fill(a, t0, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})',
        f'o1: {t} = self.use({"t0" if second_first else "t1"}, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})',
    ]
    body = [f"    t0: {t} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)"]
    body += [f"    {c}" for c in (reversed(calls) if second_first else calls)]
    kernels = [named(n).declaration(["o"]) for n in ("fill", "use")]
    return host(f"a: {t}, o: pl.Out[{t}]", "with pl.scope():\n" + "\n".join(body), *kernels)


def named(name: str) -> Kernel:
    """unary() under another name."""
    k = unary()
    k.name = name
    return k


@pytest.mark.parametrize("healthy", [False, True])
def test_uninitialised_created_tensor(healthy: bool, tmp_path: Path) -> None:
    folder = write(tmp_path, two_tasks(not healthy), k=module(named("fill"), named("use")))
    result = run(folder, zeros(16, 16), zeros(16, 16))
    if healthy:
        assert result.findings == ()
        return
    found = next(f for f in result.findings if f.kind is FindingKind.UNINITIALISED)
    assert "created tensor 1" in found.message
    assert "256 element(s)" in found.message
    assert (found.site.kernel, found.site.op, found.site.task) == ("use", "tload", 0)


@pytest.mark.parametrize("healthy", [False, True])
def test_scalar_read_of_an_undefined_element(healthy: bool, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0, valid=(16, 8))
    k.load("a", "t", (0, 0), (16, 8))
    k.line(f"%v = pto.tgetval ins(%t, {k.c(16 + (7 if healthy else 8))} : {k.types['t']}, index) outs : f32")
    k.tile("u", 16, 16, 1024)
    k.op("texpands", [("v", "f32")], ["u"])
    k.store("u", "o", (0, 0), (16, 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16))
    if healthy:
        assert result.findings == ()
    else:
        assert only(result, FindingKind.UNINITIALISED).site.op == "tgetval"


# ---- out of bounds


def windowed(row: int) -> Kernel:
    k = Kernel("k", [("a", "f32", (20, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (row, 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    return k


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


# ---- overlap


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


# ---- outside valid


@pytest.mark.parametrize("rows", [8, 9])
def test_store_outside_the_valid_box(rows: int, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0, valid=(8, 16))
    k.load("a", "t", (0, 0), (8, 16))
    k.store("t", "o", (0, 0), (rows, 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16))
    errors = [f for f in result.findings if f.severity == "error"]
    if rows == 8:
        assert errors == []
        return
    assert [f.kind for f in errors] == [FindingKind.OUTSIDE_VALID]
    assert "stores 9x16 elements of a tile whose valid box is 8x16" in errors[0].message
    assert errors[0].site.line == line_of(tmp_path, "tstore")


# ---- outputs and inputs


@pytest.mark.parametrize(("rows", "wanted"), [(16, []), (8, ["advice"]), (0, ["error"])])
def test_never_written_output(rows: int, wanted: list[str], tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0, valid=("n", 16))
    k.load("a", "t", (0, 0), ("n", 16))
    k.store("t", "o", (0, 0), ("n", 16))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16), rows)
    found = [f for f in result.findings if f.kind is FindingKind.NEVER_WRITTEN]
    assert [f.severity for f in found] == wanted
    assert all("'o'" in f.message for f in found)


@pytest.mark.parametrize("outs", [["o"], ["o", "a"]])
def test_modified_input(outs: list[str], tmp_path: Path) -> None:
    """The kernel writes `a`; the host says so (advice) or not (error)."""
    k = unary()
    k.store("u", "a", (0, 0), (16, 16))
    t = typ("f32", (16, 16))
    dirs = "pl.adir.inout" if "a" in outs else "pl.adir.input"
    body = f'with pl.scope():\n    self.k(a, o, attrs={{"arg_directions": [{dirs}, pl.adir.output_existing]}})'
    folder = write(tmp_path, host(f"a: {t}, o: pl.Out[{t}]", body, k.declaration(outs)), k=module(k))
    found = [f for f in run(folder, zeros(16, 16), zeros(16, 16)).findings if f.kind is FindingKind.INPUT_MODIFIED]
    assert [f.severity for f in found] == ["advice" if "a" in outs else "error"]
    assert found[0].site.line == line_of(tmp_path, "tstore", 1)
    assert "256 element(s) of the input 'a'" in found[0].message


def test_unmodified_input_is_silent(tmp_path: Path) -> None:
    """Storing the same values changes nothing."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    k.store("t", "a", (0, 0), (16, 16))
    assert run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16)).findings == ()


# ---- dead stores


@pytest.mark.parametrize("healthy", [False, True])
def test_dead_store(healthy: bool, tmp_path: Path) -> None:
    k = unary()
    if not healthy:
        k.tile("d", 16, 16, 8192)
        k.op("tneg", ["t"], ["d"])
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16))
    if healthy:
        assert result.findings == ()
        return
    found = only(result, FindingKind.DEAD_STORE)
    assert (found.severity, found.site.line) == ("advice", line_of(tmp_path, "tneg"))
    # a value that is read in some execution is no dead store; runs do not remember each other
    assert kinds(run(tmp_path, zeros(16, 16), zeros(16, 16))) == ["dead_store"]


# ---- races inside a task, pipes


def c2v(
    load_cols: int = 32,
    pops: int = 1,
    frees: int = 1,
    split: int = 1,
    pop_split: int | None = None,
    store_row: int = 16,
) -> tuple[Kernel, Kernel]:
    """o = a @ a on the cube; the lanes store their rows, or with split 0 all rows each."""
    tensors = [("a", "f32", (32, 32)), ("o", "f32", (32, 32))]
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(1, 4096, 2)
    cube.tile("m", 32, 32, 0, space="mat")
    cube.load("a", "m", (0, 0), (32, load_cols))
    cube.tile("l", 32, 32, 0, space="left")
    cube.op("tmov", ["m"], ["l"])
    cube.tile("r", 32, 32, 0, space="right")
    cube.op("tmov", ["m"], ["r"])
    cube.tile("c", 32, 32, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.push("c", split)
    vector = Kernel("k_aiv", tensors, lane=True)
    vector.pipe(1, 4096, 2)
    vector.line("%lane = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index")
    vector.line(f"%row = arith.muli %lane, {vector.c(store_row)} : index")
    code, rows = split if pop_split is None else pop_split, 16 if split else 32
    for i in range(pops):
        vector.pop(f"p{i}", rows, 32, code)
    vector.tile("y", rows, 32, SCRATCH)
    vector.op("tadds", ["p0", (vector.c(0.0, "f32"), "f32")], ["y"])
    for _ in range(frees):
        vector.free(code)
    vector.store("y", "o", ("row", 0), (rows, 32))
    return cube, vector


SCRATCH = 16384
"""Where the lanes of `c2v` keep their result."""
UP_DOWN = '{"split": pl.SplitMode.UP_DOWN}'


def eye() -> np.ndarray[Any, Any]:
    return np.arange(1024, dtype=F).reshape(32, 32) / 1024


def test_healthy_mixed_task(tmp_path: Path) -> None:
    out = zeros(32, 32)
    result = run(mixed(tmp_path, *c2v(), ["o"], UP_DOWN), eye(), out)
    assert result.findings == ()
    np.testing.assert_allclose(out, eye() @ eye(), rtol=1e-6)
    assert result.counters.transfers == {"c2v": 1}


def test_lanes_race(tmp_path: Path) -> None:
    """Lane 1 stores eight rows too early."""
    result = run(mixed(tmp_path, *c2v(store_row=8), ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = only(result, FindingKind.RACE)
    assert {found.site.lane, found.other.lane} == {0, 1}
    assert found.site.line == found.other.line == line_of(tmp_path, "tstore")
    assert found.severity == "error"
    assert found.addresses == ((8 * 128, 16 * 128),)


def test_lanes_that_store_equal_values_are_advice(tmp_path: Path) -> None:
    cube, vector = c2v(split=0, store_row=0)
    out = zeros(32, 32)
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), out)
    np.testing.assert_allclose(out, eye() @ eye(), rtol=1e-6)
    found = only(result, FindingKind.RACE)
    assert found.severity == "advice"
    assert "equal values" in found.message


@pytest.mark.parametrize("handshake", [True, False])
def test_cube_and_lane_race_without_handshake(handshake: bool, tmp_path: Path) -> None:
    """The cube reads in global memory what lane 0 has written: in order only when a message comes between."""
    tensors = [("a", "f32", (32, 32)), ("t", "f32", (32, 32)), ("o", "f32", (32, 32))]
    vector = Kernel("k_aiv", tensors)
    vector.line("%lane = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index")
    vector.lane = True
    vector.pipe(2, 4096, 2)
    vector.line(f"%row = arith.muli %lane, {vector.c(16)} : index")
    vector.tile("x", 16, 32, 0)
    vector.load("a", "x", ("row", 0), (16, 32))
    if handshake:
        vector.store("x", "t", ("row", 0), (16, 32))
    vector.push("x", 1)
    if not handshake:
        vector.store("x", "t", ("row", 0), (16, 32))
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(2, 4096, 2)
    cube.pop("p", 32, 32, 1)
    cube.tile("m", 32, 32, 8192, space="mat")
    cube.load("t", "m", (0, 0), (32, 32))
    cube.tile("l", 32, 32, 0, space="left")
    cube.op("tmov", ["p"], ["l"])
    cube.free(1)
    cube.tile("r", 32, 32, 0, space="right")
    cube.op("tmov", ["m"], ["r"])
    cube.tile("c", 32, 32, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.store("c", "o", (0, 0), (32, 32))
    folder = mixed(tmp_path, cube, vector, ["t", "o"], UP_DOWN)
    for order in ("program", "late", "random"):
        out = zeros(32, 32)
        result = run(folder, eye(), zeros(32, 32), out, order=order)
        races = [f for f in result.findings if f.kind is FindingKind.RACE]
        if handshake:
            assert races == []
            np.testing.assert_allclose(out, eye() @ eye(), rtol=1e-6)
        else:
            assert {(f.site.agent, f.other.agent) for f in races} == {("aic", "aiv")}


# ---- races between tasks


def tasks(ordered: bool) -> str:
    """Two tasks write o: with or without an edge between them."""
    t = typ("f32", (16, 16))
    kind = "inout" if ordered else "output_existing"
    body = f"""
    with pl.scope():
        o1: {t} = self.fill(a, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})
        o2: {t} = self.use(b, o1, attrs={{"arg_directions": [pl.adir.input, pl.adir.{kind}]}})
    """
    kernels = [named(n).declaration(["o"]) for n in ("fill", "use")]
    return host(f"a: {t}, b: {t}, o: pl.Out[{t}]", body, *kernels)


@pytest.mark.parametrize("ordered", [True, False])
def test_tasks_race(ordered: bool, tmp_path: Path) -> None:
    folder = write(tmp_path, tasks(ordered), k=module(named("fill"), named("use")))
    result = run(folder, zeros(16, 16), zeros(16, 16), zeros(16, 16))
    if ordered:
        assert result.findings == ()
        return
    found = only(result, FindingKind.RACE)
    assert {(found.site.kernel, found.site.task), (found.other.kernel, found.other.task)} == {("fill", 0), ("use", 1)}
    assert "no dependency orders the two tasks" in found.message


@pytest.mark.parametrize("ordered", [True, False])
def test_exhaustive_order_finds_the_dependence(ordered: bool, tmp_path: Path) -> None:
    folder = write(tmp_path, tasks(ordered), k=module(named("fill"), named("use")))
    a, b, out = zeros(16, 16), np.ones((16, 16), F), zeros(16, 16)
    result = run(folder, a, b, out, order="exhaustive")
    np.testing.assert_allclose(out, np.exp(b), rtol=1e-6)  # the numbers of program order
    assert ("order" in kinds(result)) is not ordered
    assert result.orders == (1 if ordered else 3)
    assert not result.capped


def test_exhaustive_order_says_when_it_was_capped(tmp_path: Path) -> None:
    folder = write(tmp_path, tasks(False), k=module(named("fill"), named("use")))
    same = zeros(16, 16)
    result = run(folder, same, same.copy(), zeros(16, 16), order="exhaustive", max_orders=2)
    assert (result.orders, result.capped) == (2, True)
    assert "order" not in kinds(result)


# ---- deadlock, leftovers, lanes


def test_deadlock_names_the_wait_cycle(tmp_path: Path) -> None:
    """The lanes pop twice, the cube pushes once."""
    result = run(mixed(tmp_path, *c2v(pops=2), ["o"], UP_DOWN), eye(), zeros(32, 32))
    assert not result.completed
    found = only(result, FindingKind.DEADLOCK)
    assert "vector lane 0" in found.message
    assert "waits for message 2 of pipe 0 (c2v) from the cube core, which has ended" in found.message
    assert found.site.line == line_of(tmp_path, "tpop_from_aic", 1)
    assert len(found.extra["waits"]) == 2


def test_deadlock_of_full_slots(tmp_path: Path) -> None:
    """Nobody frees: the third push has to wait for ever."""
    cube, vector = c2v(pops=3, frees=0)
    cube.push("c", 1)
    cube.push("c", 1)
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = only(result, FindingKind.DEADLOCK)
    assert "the cube core" in found.message
    assert "waits for one of 2 slot(s) of pipe 0 (c2v), which vector lane 0 and vector lane 1 would have to free" in (
        found.message
    )


def test_deadlock_without_sanitizer_raises(tmp_path: Path) -> None:
    folder = mixed(tmp_path, *c2v(pops=2), ["o"], UP_DOWN)
    with pytest.raises(DeviceError, match="no core can run"):
        plain(folder, eye(), zeros(32, 32))


@pytest.mark.parametrize(("change", "words"), [
    ({"frees": 0}, "1 popped slot(s) of pipe 0 (c2v) are never freed"),
    ({"frees": 2}, "frees a slot of pipe 0 (c2v) that it has not popped"),
])  # fmt: skip
def test_leftover_slots(change: dict[str, int], words: str, tmp_path: Path) -> None:
    result = run(mixed(tmp_path, *c2v(**change), ["o"], UP_DOWN), eye(), zeros(32, 32))  # type: ignore[arg-type]
    assert any(words in f.message for f in result.findings if f.kind is FindingKind.LEFTOVER)


def test_leftover_message(tmp_path: Path) -> None:
    cube, vector = c2v()
    cube.push("c", 1)
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    assert "1 message(s) of pipe 0 (c2v) are never popped" in only(result, FindingKind.LEFTOVER).message


def test_split_codes_differ(tmp_path: Path) -> None:
    cube, vector = c2v(pop_split=2)
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = [f for f in result.findings if f.kind is FindingKind.WRONG_LANE]
    assert any("pops with split = 2 what was pushed with split = 1" in f.message for f in found)
    assert found[0].site.op == "tpop_from_aic"
    assert found[0].other.op == "tpush_to_aiv"


def test_lanes_make_unequal_transfers(tmp_path: Path) -> None:
    cube, vector = c2v()
    pop = next(x for x in vector.lines if "tpop" in x)
    vector.lines.insert(vector.lines.index(pop), f"  %first = arith.cmpi eq, %lane, {vector.c(0)} : index")
    again = [f"  {x.strip().replace('%p0', '%p9')}" for x in (pop, next(x for x in vector.lines if "tfree" in x))]
    vector.lines += ["  scf.if %first {", *again, "  }"]
    cube.push("c", 1)
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = [f for f in result.findings if f.kind is FindingKind.WRONG_LANE]
    assert any("the lanes make unequal numbers of transfers on pipe 0 (c2v)" in f.message for f in found)


def test_split_with_one_lane(tmp_path: Path) -> None:
    """On the platform without replay lanes nothing says that two lanes should run."""
    cube, vector = c2v()
    vector.lane = False
    vector.lines = [x.replace("arith.index_cast %__pypto_spmd_subblock_idx : i32 to index", f"arith.addi {vector.c(0)}, {vector.c(0)} : index") for x in vector.lines]  # fmt: skip
    result = run(mixed(tmp_path, cube, vector, ["o"], arch="a5"), eye(), zeros(32, 32))
    found = [f for f in result.findings if f.kind is FindingKind.WRONG_LANE]
    assert any("but one lane runs" in f.message for f in found)


def test_pipe_declarations_disagree(tmp_path: Path) -> None:
    cube, vector = c2v()
    vector.lines = [x.replace("slot_num = 2", "slot_num = 4") for x in vector.lines]
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    assert "the two sides of pipe 0 disagree: c2v with 2 slot(s)" in only(result, FindingKind.WRONG_LANE).message


def test_tile_in_the_slots_of_a_pipe(tmp_path: Path) -> None:
    cube, vector = c2v()
    moved = f"constant {SCRATCH} "
    assert any(moved in k for k in vector.consts)
    vector.consts = {k.replace(moved, "constant 4096 "): v for k, v in vector.consts.items()}
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    found = next(f for f in result.findings if f.kind is FindingKind.OVERLAP)
    assert "inside the slots 0..8191 of pipe 0" in found.message


# ---- barrier


@pytest.mark.parametrize("barrier", [True, False])
def test_barrier_orders_blocks(barrier: bool, tmp_path: Path) -> None:
    """Block b writes row band b, then reads the band of its neighbour."""
    k = Kernel("k", [("t", "f32", (64, 16)), ("o", "f32", (64, 16))], block=True)
    k.line("%b = arith.index_cast %__pypto_spmd_block_idx : i32 to index")
    k.line("%n = arith.index_cast %__pypto_spmd_block_num : i32 to index")
    k.line("%v = arith.sitofp %__pypto_spmd_block_idx : i32 to f32")
    k.line(f"%row = arith.muli %b, {k.c(16)} : index")
    k.tile("x", 16, 16, 0)
    k.op("texpands", [("v", "f32")], ["x"])
    k.store("x", "t", ("row", 0), (16, 16))
    if barrier:
        k.line("pto.syncall() mode = #pto.sync_all_mode<hard>, core_type = #pto.sync_core_type<aiv_only>")
    k.line(f"%next = arith.addi %b, {k.c(1)} : index")
    k.line("%mod = arith.remsi %next, %n : index")
    k.line(f"%from = arith.muli %mod, {k.c(16)} : index")
    k.tile("y", 16, 16, 1024)
    k.load("t", "y", ("from", 0), (16, 16))
    k.store("y", "o", ("row", 0), (16, 16))
    t = typ("f32", (64, 16))
    body = 'with pl.scope():\n    self.k(t, o, attrs={"arg_directions": [pl.adir.output_existing, pl.adir.output_existing], "core_num": 4})'
    folder = write(tmp_path, host(f"t: pl.Out[{t}], o: pl.Out[{t}]", body, k.declaration(["t", "o"])), k=module(k))
    for order in ("program", "late", "random"):
        out = zeros(64, 16)
        result = run(folder, zeros(64, 16), out, order=order)
        if barrier:
            assert result.findings == ()
            np.testing.assert_array_equal(out[:, 0], np.repeat([1, 2, 3, 0], 16))
        else:
            assert {"race"} <= set(kinds(result, "error"))
            assert any(f.site.block != f.other.block for f in result.findings if f.kind is FindingKind.RACE)


# ---- rings


@pytest.mark.parametrize("window", [8, 4])
def test_task_window(window: int, tmp_path: Path) -> None:
    t = typ("f32", (16, 16))
    calls = "\n".join(
        f'    o{i + 1}: {t} = self.k(a, o{i or ""}, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})'
        for i in range(5)
    )
    folder = write(tmp_path, host(f"a: {t}, o: pl.Out[{t}]", "with pl.scope():\n" + calls, unary().declaration(["o"])), k=module(unary()))  # fmt: skip
    result = run(folder, zeros(16, 16), zeros(16, 16), ring_task_window=window)
    if window == 8:
        assert result.findings == ()
    else:
        found = only(result, FindingKind.DEADLOCK)
        assert "the task window of ring 0 is full: the open scopes hold 4 of 4" in found.message
        assert found.site.pto == "orchestration/main.py"


@pytest.mark.parametrize("heap", [4096, 2048])
def test_ring_heap(heap: int, tmp_path: Path) -> None:
    t = typ("f32", (16, 16))
    lines = [f"    t{i}: {t} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)" for i in range(3)]
    lines.append(f'    o1: {t} = self.k(a, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})')
    text = host(f"a: {t}, o: pl.Out[{t}]", "with pl.scope():\n" + "\n".join(lines), unary().declaration(["o"]))
    folder = write(tmp_path, text, k=module(unary()))
    result = run(folder, zeros(16, 16), zeros(16, 16), ring_heap=heap)
    if heap == 4096:
        assert result.findings == ()
    else:
        assert "the heap of ring 0 is full" in only(result, FindingKind.DEADLOCK).message


# ---- choosing


def test_kinds_can_be_chosen(tmp_path: Path) -> None:
    folder = single(tmp_path, unary((16, 12)), ["o"])
    assert plain(folder, zeros(16, 16), zeros(16, 16)).findings == ()
    chosen = plain(folder, zeros(16, 16), zeros(16, 16), sanitize=frozenset({"race"}))
    assert chosen.findings == ()
    chosen = plain(folder, zeros(16, 16), zeros(16, 16), sanitize=frozenset({"uninitialised"}))
    assert kinds(chosen) == ["uninitialised"]


def test_findings_are_json(tmp_path: Path) -> None:
    import json

    result = run(single(tmp_path, unary((16, 12)), ["o"]), zeros(16, 16), zeros(16, 16))
    data = json.loads(json.dumps([f.to_json() for f in result.findings]))
    assert data[0]["kind"] == "uninitialised"
    assert data[0]["site"]["line"] == line_of(tmp_path, "texp")
    json.dumps(result.counters.to_json())


def test_source_place_is_reported(tmp_path: Path) -> None:
    folder = single(tmp_path, unary((16, 12)), ["o"])
    file = folder / "kernels" / "k.pto"
    lines = [x + ' loc("user.py":7:9)' if "texp" in x else x for x in file.read_text().splitlines()]
    file.write_text("\n".join(lines))
    assert run(folder, zeros(16, 16), zeros(16, 16)).findings[0].site.source == "user.py:7:9"


@pytest.mark.parametrize("make", [lambda: unary((16, 12)), lambda: windowed(5)])
def test_findings_repeat_in_every_run(make: Callable[[], Kernel], tmp_path: Path) -> None:
    k = make()
    folder = single(tmp_path, k, ["o"])
    shape = k.tensors[0][2]
    texts = [[str(f) for f in run(folder, zeros(*shape), zeros(16, 16)).findings] for _ in range(3)]
    assert texts[0] == texts[1] == texts[2] != []
