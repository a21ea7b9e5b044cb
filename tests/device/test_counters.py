"""Counters against numbers worked out by hand; the same in every order, with and without sanitizers, run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device.measure.counters import Counters

from .faults import UP_DOWN, c2v, eye, unary
from .test_gathers import rows_kernel, scatter_kernel
from .texts import Kernel, mixed, plain, run, single

F = np.float32


def counted(folder: Path, *args: Any, orders: tuple[str, ...] = ("program",)) -> Counters:
    """The counters, which do not depend on how the program is run."""
    found = []
    for order in (*orders, *orders):
        for execute in (run, plain):
            fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            found.append(execute(folder, *fresh, order=order).counters)
    assert len({str(c.to_json()) for c in found}) == 1
    return found[0]


def test_load_compute_store(tmp_path: Path) -> None:
    """1024 bytes arrive, are read and written by one operation, and leave."""
    c = counted(single(tmp_path, unary(), ["o"]), np.ones((16, 16), F), np.zeros((16, 16), F))
    assert c.operations == {"tload": 1, "texp": 1, "tstore": 1}
    assert c.bytes_read == {"gm": 1024, "vec": 2 * 1024}
    assert c.bytes_written == {"gm": 1024, "vec": 2 * 1024}
    assert c.peak_bytes == {"vec": 2048}
    assert (c.tasks, c.blocks, c.vector_elements, c.cube_products) == (1, 1, 256, 0)


@pytest.mark.parametrize("rows", [0, 5, 16])
def test_sizes_that_come_at_run_time(rows: int, tmp_path: Path) -> None:
    """Rows of 64 bytes: in and out once each."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0, valid=("n", 16))
    k.load("a", "t", (0, 0), ("n", 16))
    k.store("t", "o", (0, 0), ("n", 16))
    c = counted(single(tmp_path, k, ["o"]), np.ones((16, 16), F), np.zeros((16, 16), F), rows)
    wanted = {"gm": 64 * rows, "vec": 64 * rows}
    assert (c.bytes_read, c.bytes_written) == (wanted, wanted)
    assert c.operations == {"tload": 1, "tstore": 1}


def test_cube_and_lanes(tmp_path: Path) -> None:
    """o = a @ a of 32x32: one push of 4096 bytes, of which each lane pops its half."""
    folder = mixed(tmp_path, *c2v(), ["o"], UP_DOWN)
    c = counted(folder, eye(), np.zeros((32, 32), F), orders=("program", "late", "random"))
    assert c.operations["tpush_to_aiv"] == 1
    assert c.operations["tpop_from_aic"] == c.operations["tstore"] == c.operations["tadds"] == 2
    assert c.transfers == {"c2v": 1}
    assert c.cube_products == 32**3
    assert c.vector_elements == 2 * 16 * 32
    assert c.bytes_read == {"gm": 4096, "mat": 2 * 4096, "left": 4096, "right": 4096, "acc": 4096, "vec": 2 * 4096}
    assert c.bytes_written == {"mat": 4096, "left": 4096, "right": 4096, "acc": 4096, "vec": 2 * 4096, "gm": 4096}
    assert c.pipe_peak == {"g:0:c2v": 1}


def test_gather_and_scatter_count_what_they_move(tmp_path: Path) -> None:
    """Eight rows of 128 bytes by an index of 32 bytes; 32 elements of 4 bytes by as many indices."""
    index = np.arange(8, dtype=np.int32)[None]
    c = counted(single(tmp_path / "g", rows_kernel(), ["o"]), np.ones((64, 32), F), index, np.zeros((8, 32), F))
    assert c.bytes_read == {"gm": 32 + 1024, "vec": 1024}
    assert c.bytes_written == {"vec": 32 + 1024, "gm": 1024}
    args = np.ones((4, 8), F), np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros((16, 32), F)
    c = counted(single(tmp_path / "s", scatter_kernel(), [], inouts=["o"]), *args)
    assert c.bytes_read == {"gm": 2 * 128, "vec": 2 * 128}
    assert c.bytes_written == {"vec": 2 * 128, "gm": 128}


def test_loops_and_branches_count_what_runs(tmp_path: Path) -> None:
    """Ten rounds, of which the even ones add."""
    k = unary()
    k.lines.pop()
    part = k.lines.pop()
    k.line(f"scf.for %i = {k.c(0)} to {k.c(10)} step {k.c(1)} {{")
    k.line(f"%r = arith.remsi %i, {k.c(2)} : index")
    k.line(f"%even = arith.cmpi eq, %r, {k.c(0)} : index")
    k.line("scf.if %even {")
    k.op("tadd", ["u", "t"], ["u"])
    k.line("}")
    k.line("}")
    k.lines.append(part)
    k.line(f"pto.tstore ins(%u : {k.types['u']}) outs({part.split(' = ')[0].strip()} : {part.split(' -> ')[1]})")
    c = counted(single(tmp_path, k, ["o"]), np.ones((16, 16), F), np.zeros((16, 16), F))
    assert c.operations["tadd"] == 5
    assert c.vector_elements == 256 * 6
