"""Sanitizers of waiting, in pairs: deadlocks, leftovers, lanes and rings; the healthy twin is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_pypto.pypto.device import DeviceError, FindingKind

from .faults import UP_DOWN, c2v, eye, line_of, only, unary, zeros
from .texts import host, mixed, module, plain, run, typ, write


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
    own = "arith.index_cast %__pypto_spmd_subblock_idx : i32 to index"
    vector.lines = [x.replace(own, f"arith.addi {vector.c(0)}, {vector.c(0)} : index") for x in vector.lines]
    result = run(mixed(tmp_path, cube, vector, ["o"], arch="a5"), eye(), zeros(32, 32))
    found = [f for f in result.findings if f.kind is FindingKind.WRONG_LANE]
    assert any("but one lane runs" in f.message for f in found)


def test_pipe_declarations_disagree(tmp_path: Path) -> None:
    cube, vector = c2v()
    vector.lines = [x.replace("slot_num = 2", "slot_num = 4") for x in vector.lines]
    result = run(mixed(tmp_path, cube, vector, ["o"], UP_DOWN), eye(), zeros(32, 32))
    assert "the two sides of pipe 0 disagree: c2v with 2 slot(s)" in only(result, FindingKind.WRONG_LANE).message


@pytest.mark.parametrize("window", [8, 4])
def test_task_window(window: int, tmp_path: Path) -> None:
    t = typ("f32", (16, 16))
    calls = "\n".join(
        f'    o{i + 1}: {t} = self.k(a, o{i or ""}, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})'
        for i in range(5)
    )
    text = host(f"a: {t}, o: pl.Out[{t}]", "with pl.scope():\n" + calls, unary().declaration(["o"]))
    folder = write(tmp_path, text, k=module(unary()))
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
