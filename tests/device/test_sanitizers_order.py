"""Sanitizers of order, in pairs: races of lanes, cores, blocks and tasks; the healthy twin is silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pytest_pypto.pypto.device import FindingKind

from .faults import UP_DOWN, F, c2v, eye, line_of, named, only, tasks, zeros
from .texts import Kernel, host, kinds, mixed, module, run, typ, write


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
    dirs = "pl.adir.output_existing, pl.adir.output_existing"
    body = f'with pl.scope():\n    self.k(t, o, attrs={{"arg_directions": [{dirs}], "core_num": 4}})'
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
