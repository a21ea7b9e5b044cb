"""Transfers between the cube core and the lanes: split codes, ragged valid extents, replay lanes, slots, reshapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from .texts import Kernel, dirs, group, host, kinds, mixed, module, run, typ, write

F = np.float32
Array = np.ndarray[Any, Any]
ATTRS = {0: "", 1: '{"split": pl.SplitMode.UP_DOWN}', 2: '{"split": pl.SplitMode.LEFT_RIGHT}'}
LANE = "%lane = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index"


def cube_side(tensors: Any, shape: tuple[int, int], mask: int, slots: int, slot: int = 16384) -> Kernel:
    """A cube kernel whose tile `c` holds a @ eye, with `shape` rows and columns."""
    rows, cols = shape
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(mask, slot, slots)
    cube.tile("m", rows, cols, 1 << 16, space="mat")
    cube.load("a", "m", (0, 0), (rows, cols))
    cube.tile("me", cols, cols, 1 << 17, space="mat")
    cube.load("e", "me", (0, 0), (cols, cols))
    cube.tile("l", rows, cols, 0, space="left")
    cube.op("tmov", ["m"], ["l"])
    cube.tile("r", cols, cols, 0, space="right")
    cube.op("tmov", ["me"], ["r"])
    cube.tile("c", rows, cols, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    return cube


def lane_halves(tensors: Any, shape: tuple[int, int], split: int, rounds: int = 1) -> Kernel:
    """Each lane adds 1 to its part of every message and stores it at its place of round i."""
    rows, cols = shape
    h, w = (rows // 2, cols) if split == 1 else (rows, cols // 2) if split == 2 else (rows, cols)
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(1, 16384, 2)
    v.line(LANE)
    v.line(f"%row = arith.muli %lane, {v.c(h if split == 1 else 0)} : index")
    v.line(f"%col = arith.muli %lane, {v.c(w if split == 2 else 0)} : index")
    for i in range(rounds):
        v.pop(f"p{i}", h, w, split)
        v.tile(f"y{i}", h, w, 1 << 16)
        v.op("tadds", [f"p{i}", (v.c(1.0, "f32"), "f32")], [f"y{i}"])
        v.free(split)
        v.line(f"%at{i} = arith.addi %row, {v.c(i * rows)} : index")
        v.store(f"y{i}", "o", (f"at{i}", "col"), (h, w))
    return v


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("split", [0, 1, 2])
@pytest.mark.parametrize("rounds", [1, 5])
def test_every_part_arrives(rounds: int, split: int, arch: str, tmp_path: Path) -> None:
    tensors = [("a", "f32", (16, 32)), ("e", "f32", (32, 32)), ("o", "f32", (16 * rounds, 32))]
    cube = cube_side(tensors, (16, 32), 1, 2)
    for _ in range(rounds):
        cube.push("c", split)
    folder = mixed(tmp_path, cube, lane_halves(tensors, (16, 32), split, rounds), ["o"], ATTRS[split], arch)
    a = np.arange(512, dtype=F).reshape(16, 32)
    for order in ("program", "late", "random"):
        o = np.full((16 * rounds, 32), -7, F)
        result = run(folder, a, np.eye(32, dtype=F), o, order=order, seed=rounds)
        assert kinds(result, "error") == []
        np.testing.assert_array_equal(o, np.tile(a + 1, (rounds, 1)))
        assert max(result.counters.pipe_peak.values()) <= 2


def ragged(valid: int, split: int) -> tuple[Kernel, Kernel]:
    """A 16x32 tile with `valid` valid rows; the lanes pop and store what they get."""
    tensors = [("a", "f32", (16, 32)), ("e", "f32", (32, 32)), ("o", "f32", (16, 32))]
    cube = cube_side(tensors, (16, 32), 1, 2)
    cube.valid("c", valid, 32)
    cube.push("c", split)
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(1, 16384, 2)
    v.line(LANE)
    v.line(f"%row = arith.muli %lane, {v.c(8)} : index")
    v.line(f"%rest = arith.subi {v.c(valid)}, %row : index")
    v.line(f"%low = arith.maxsi %rest, {v.c(0)} : index")
    v.line(f"%rows = arith.minsi %low, {v.c(8)} : index")
    v.pop("p", 8, 32, split, valid=("rows", 32))
    v.tile("y", 8, 32, 1 << 16, valid=("rows", 32))
    v.op("tmuls", ["p", (v.c(2.0, "f32"), "f32")], ["y"])
    v.free(split)
    v.store("y", "o", ("row", 0), ("rows", 32))
    return cube, v


@pytest.mark.parametrize("valid", [5, 8, 10, 16])
def test_ragged_rows_are_cut_per_lane(valid: int, tmp_path: Path) -> None:
    """5 rows give 5 and 0, 10 give 8 and 2: the box is divided, not the valid extent."""
    a, o = np.arange(512, dtype=F).reshape(16, 32), np.full((16, 32), -7, F)
    result = run(mixed(tmp_path, *ragged(valid, 1), ["o"], ATTRS[1]), a, np.eye(32, dtype=F), o)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(o[:valid], 2 * a[:valid])
    assert (o[valid:] == -7).all()


def test_odd_rows(tmp_path: Path) -> None:
    """17 rows with code 3: lane 0 gets nine, lane 1 eight."""
    tensors = [("a", "f32", (17, 32)), ("e", "f32", (32, 32)), ("o", "f32", (17, 32))]
    cube = cube_side(tensors, (17, 32), 1, 2)
    cube.push("c", 3)
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(1, 16384, 2)
    v.line(LANE)
    v.line(f"%row = arith.muli %lane, {v.c(9)} : index")
    v.line(f"%rows = arith.subi {v.c(9)}, %lane : index")
    v.pop("p", 9, 32, 3, valid=("rows", 32))
    v.store("p", "o", ("row", 0), ("rows", 32))
    v.free(3)
    a, o = np.arange(544, dtype=F).reshape(17, 32), np.full((17, 32), -7, F)
    result = run(mixed(tmp_path, cube, v, ["o"], ATTRS[1]), a, np.eye(32, dtype=F), o)
    assert result.findings == ()
    np.testing.assert_array_equal(o, a)


def test_rebalanced_lanes(tmp_path: Path) -> None:
    """A lane stride says where lane 1's part starts."""
    cube, v = ragged(10, 1)
    v.lines = [x.replace("{split = 1} ->", "{split = 1, lane_stride = 5} ->") for x in v.lines]
    row = next(i for i, x in enumerate(v.lines) if "%row = " in x)
    v.lines[row] = f"  %row = arith.muli %lane, {v.c(5)} : index"
    rows = next(i for i, x in enumerate(v.lines) if "%rows = " in x)
    v.lines[rows] = f"  %rows = arith.minsi %low, {v.c(5)} : index"
    a, o = np.arange(512, dtype=F).reshape(16, 32), np.full((16, 32), -7, F)
    result = run(mixed(tmp_path, cube, v, ["o"], ATTRS[1]), a, np.eye(32, dtype=F), o)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(o[:10], 2 * a[:10])
    assert (o[10:] == -7).all()


def v2c(split: int, second_lane: str) -> tuple[Kernel, Kernel]:
    """o = (a + 1) @ e; without a split the second lane pushes an empty tile, a full tile of zeros, or the same."""
    tensors = [("a", "f32", (32, 32)), ("e", "f32", (32, 32)), ("o", "f32", (32, 32))]
    h, w = {0: (32, 32), 1: (16, 32), 2: (32, 16)}[split]
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(2, 4096, 2)
    v.line(LANE)
    v.line(f"%row = arith.muli %lane, {v.c(16 if split == 1 else 0)} : index")
    v.line(f"%col = arith.muli %lane, {v.c(16 if split == 2 else 0)} : index")
    v.tile("x", h, w, 0)
    v.tile("y", h, w, 4096)
    if split or second_lane == "same":
        v.load("a", "x", ("row", "col"), (h, w))
        v.op("tadds", ["x", (v.c(1.0, "f32"), "f32")], ["y"])
        v.push("y", split)
    else:
        v.line(f"%first = arith.cmpi eq, %lane, {v.c(0)} : index")
        v.line("scf.if %first {")
        v.load("a", "x", (0, 0), (h, w))
        v.op("tadds", ["x", (v.c(1.0, "f32"), "f32")], ["y"])
        v.push("y", split)
        v.line("} else {")
        valid = (0, 0) if second_lane == "empty" else (h, w)
        v.tile("z", h, w, 8192, valid=valid)
        v.op("texpands", [(v.c(0.0, "f32"), "f32")], ["z"])
        v.push("z", split)
        v.line("}")
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(2, 4096, 2)
    cube.tile("me", 32, 32, 1 << 17, space="mat")
    cube.load("e", "me", (0, 0), (32, 32))
    cube.pop("p", 32, 32, split)
    cube.tile("l", 32, 32, 0, space="left")
    cube.op("tmov", ["p"], ["l"])
    cube.free(split)
    cube.tile("r", 32, 32, 0, space="right")
    cube.op("tmov", ["me"], ["r"])
    cube.tile("c", 32, 32, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.store("c", "o", (0, 0), (32, 32))
    return cube, v


@pytest.mark.parametrize(("split", "second"), [(1, ""), (2, ""), (0, "empty"), (0, "zeros"), (0, "same")])
def test_lanes_are_joined(split: int, second: str, tmp_path: Path) -> None:
    """Without a split the cube takes lane 0's message, whatever lane 1 sends."""
    a = np.arange(1024, dtype=F).reshape(32, 32) / 64
    o = np.zeros((32, 32), F)
    result = run(mixed(tmp_path, *v2c(split, second), ["o"], ATTRS[split]), a, np.eye(32, dtype=F), o)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(o, a + 1)


def test_split_modes_agree_bit_for_bit(tmp_path: Path) -> None:
    a = np.random.default_rng(0).standard_normal((32, 32)).astype(F)
    e = np.random.default_rng(1).standard_normal((32, 32)).astype(F)
    found = []
    for split, second in ((0, "empty"), (1, ""), (2, "")):
        o = np.zeros((32, 32), F)
        run(mixed(tmp_path / str(split), *v2c(split, second), ["o"], ATTRS[split]), a, e, o)
        found.append(o)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_popped_tile_is_reshaped(tmp_path: Path) -> None:
    """A view of a popped tile reads the slot, not some address of its own."""
    tensors = [("a", "f32", (16, 16)), ("e", "f32", (16, 16)), ("o", "f32", (256, 1))]
    cube = cube_side(tensors, (16, 16), 1, 2)
    cube.push("c", 0)
    cube.push("c", 0)
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(1, 16384, 2)
    v.line(LANE)
    v.line(f"%first = arith.cmpi eq, %lane, {v.c(0)} : index")
    for i in range(2):
        v.pop(f"p{i}", 16, 16, 0)
        v.types[f"q{i}"] = (
            v.types[f"p{i}"]
            .replace("rows=16, cols=16", "rows=256, cols=1")
            .replace("blayout=row_major", "blayout=col_major")
        )
        v.line(f"%q{i} = pto.treshape %p{i} : {v.types[f'p{i}']} -> {v.types[f'q{i}']}")
        v.line("scf.if %first {")
        v.store(f"q{i}", "o", (0, 0), (256, 1))
        v.line("}")
        v.free(0)
    a, o = np.arange(256, dtype=F).reshape(16, 16), np.zeros((256, 1), F)
    result = run(mixed(tmp_path, cube, v, ["o"]), a, np.eye(16, dtype=F), o)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(o[:, 0], a.reshape(-1))


def test_a_failed_group_does_not_poison_the_next(tmp_path: Path) -> None:
    good = mixed(tmp_path / "good", *v2c(1, ""), ["o"], ATTRS[1])
    cube, v = v2c(1, "")
    v.lines = [x for x in v.lines if "tpush" not in x]
    bad = mixed(tmp_path / "bad", cube, v, ["o"], ATTRS[1])
    a = np.ones((32, 32), F)
    assert kinds(run(bad, a, np.eye(32, dtype=F), np.zeros((32, 32), F)), "error") == ["deadlock"]
    o = np.zeros((32, 32), F)
    assert run(good, a, np.eye(32, dtype=F), o).findings == ()
    np.testing.assert_array_equal(o, a + 1)


def test_members_with_different_arguments(tmp_path: Path) -> None:
    """The vector kernel takes one tensor less; both lanes run."""
    cube, v = v2c(1, "")
    v.tensors = v.tensors[:1]
    v.lines = [x for x in v.lines if "%e_view" not in x and "%o_view" not in x]
    t = typ("f32", (32, 32))
    ways = dirs("input", "input", "output_existing")
    both = group("g", cube, cube, ["o"]).replace(
        f"self.k_aic(a, e, o, {ways})\n        return",
        f"self.k_aiv(a, {dirs('input')})\n        return",
    )
    assert "self.k_aiv(a," in both
    body = f"with pl.scope():\n    self.g(a, e, o, {ways})"
    text = host(f"a: {t}, e: {t}, o: pl.Out[{t}]", body, cube.declaration(["o"]), v.declaration([]), both)
    a, o = np.arange(1024, dtype=F).reshape(32, 32), np.zeros((32, 32), F)
    assert run(write(tmp_path, text, g=module(cube, v)), a, np.eye(32, dtype=F), o).findings == ()
    np.testing.assert_array_equal(o, a + 1)


def test_vector_task_runs_both_lanes(tmp_path: Path) -> None:
    """A kernel without a cube part that asks for its lane: every other band must not stay empty."""
    k = Kernel("k", [("a", "f32", (64, 16)), ("o", "f32", (64, 16))], lane=True)
    k.line(LANE)
    k.line(f"%row = arith.muli %lane, {k.c(32)} : index")
    k.tile("t", 32, 16, 0)
    k.load("a", "t", ("row", 0), (32, 16))
    k.op("texp", ["t"], ["t"])
    k.store("t", "o", ("row", 0), (32, 16))
    t = typ("f32", (64, 16))
    body = 'with pl.scope():\n    self.k(a, o, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})'
    a, o = np.random.default_rng(0).standard_normal((64, 16)).astype(F), np.zeros((64, 16), F)
    folder = write(tmp_path, host(f"a: {t}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
    assert run(folder, a, o).findings == ()
    np.testing.assert_allclose(o, np.exp(a), rtol=1e-6)


def test_tiles_of_different_sizes_in_both_directions(tmp_path: Path) -> None:
    """One pipe pair: small tiles to the lanes, large ones back."""
    tensors = [("a", "f32", (32, 32)), ("e", "f32", (32, 32)), ("o", "f32", (32, 32))]
    v = Kernel("k_aiv", tensors, lane=True)
    v.pipe(3, 4096, 2)
    v.line(LANE)
    v.line(f"%row = arith.muli %lane, {v.c(16)} : index")
    v.pop("s", 8, 16, 1)
    v.tile("x", 16, 32, 1 << 16)
    v.load("a", "x", ("row", 0), (16, 32))
    v.op("tadds", ["x", (v.c(1.0, "f32"), "f32")], ["x"])
    v.free(1)
    v.push("x", 1)
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(3, 4096, 2)
    cube.tile("m", 16, 16, 1 << 16, space="mat")
    cube.load("e", "m", (0, 0), (16, 16))
    cube.tile("l", 16, 16, 0, space="left")
    cube.op("tmov", ["m"], ["l"])
    cube.tile("r", 16, 16, 0, space="right")
    cube.op("tmov", ["m"], ["r"])
    cube.tile("c", 16, 16, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.push("c", 1)
    cube.pop("p", 32, 32, 1)
    cube.tile("l2", 32, 32, 8192, space="left")
    cube.op("tmov", ["p"], ["l2"])
    cube.free(1)
    cube.tile("me", 32, 32, 1 << 17, space="mat")
    cube.load("e", "me", (0, 0), (32, 32))
    cube.tile("r2", 32, 32, 8192, space="right")
    cube.op("tmov", ["me"], ["r2"])
    cube.tile("cc", 32, 32, 8192, space="acc")
    cube.op("tmatmul", ["l2", "r2"], ["cc"])
    cube.store("cc", "o", (0, 0), (32, 32))
    a, o = np.arange(1024, dtype=F).reshape(32, 32), np.zeros((32, 32), F)
    result = run(mixed(tmp_path, cube, v, ["o"], ATTRS[1]), a, np.eye(32, dtype=F), o)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(o, a + 1)
