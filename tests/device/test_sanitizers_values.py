"""Sanitizers of values, in pairs: undefined, unwritten, modified and lost values; the healthy twin is silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_pypto.pypto.device import FindingKind
from pytest_pypto.pypto.device.checks.shadow import intervals

from .faults import c2v, line_of, named, only, two_tasks, unary, zeros
from .texts import Kernel, host, kinds, mixed, module, run, single, typ, write


def test_uninitialised_tile(tmp_path: Path) -> None:
    found = only(run(single(tmp_path, unary((16, 12)), ["o"]), zeros(16, 16), zeros(16, 16)), FindingKind.UNINITIALISED)
    assert found.site.line == line_of(tmp_path, "texp")
    assert (found.site.kernel, found.site.pto, found.site.agent, found.site.lane) == ("k", "kernels/k.pto", "aiv", 0)
    assert found.other.line == line_of(tmp_path, "tload")
    assert found.space == "vec"
    assert found.addresses[0] == (12 * 4, 16 * 4)
    assert "64 undefined element(s)" in found.message


@pytest.mark.parametrize(("row", "undefined"), [(0, 0), (2, 2), (6, 4)])
def test_a_load_of_what_no_store_has_reached(row: int, undefined: int, tmp_path: Path) -> None:
    """Rows 0 to 3 and column 3 on of the output are stored, four rows from `row` on are loaded again."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 4, 16, 0, valid=(4, 8))
    k.load("a", "t", (0, 0), (4, 8))
    k.store("t", "o", (0, 3), (4, 8))
    k.tile("u", 4, 16, 1024, valid=(4, 8))
    k.load("o", "u", (row, 3), (4, 8))
    k.store("u", "o", (0, 3), (4, 8))
    result = run(single(tmp_path, k, ["o"]), zeros(16, 16), zeros(16, 16))
    found = [f for f in result.findings if f.kind is FindingKind.UNINITIALISED and "loads" in f.message]
    assert len(found) == bool(undefined)
    for each in found:
        first = [max(row, 4), 3]
        text = f"loads {8 * undefined} element(s) of the argument 'o' that nothing has written, first {first}"
        assert each.message == text
        assert each.site.op == "tload"


@pytest.mark.parametrize(
    ("numbers", "itemsize", "spans"),
    [
        ([], 4, ()),
        ([8], 4, ((8, 12),)),
        ([8, 4, 12], 4, ((4, 16),)),
        ([0, 4, 12, 16, 24], 4, ((0, 8), (12, 20), (24, 28))),
        ([0, 2, 4, 8], 2, ((0, 6), (8, 10))),
        ([0, 8, 16, 24, 32, 40], 4, ((0, 4), (8, 12), (16, 20), (24, 28))),
    ],
)
def test_places_are_told_as_runs_of_bytes(
    numbers: list[int], itemsize: int, spans: tuple[tuple[int, int], ...]
) -> None:
    assert intervals(np.array(numbers, np.int64), itemsize) == spans


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
    (host,) = (tmp_path / "orchestration").glob("*.py")
    entry = next(n for n, line in enumerate(host.read_text().split("\n"), 1) if "def main(" in line)
    assert all((f.site.pto, f.site.line) == (f"orchestration/{host.name}", entry) for f in found)


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
