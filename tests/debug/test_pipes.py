"""The cross-core runtime by itself: queues, cutting, merging, waiting, messages."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE


@pytest.fixture
def space() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(_PREAMBLE, names)
    return names


def tagged(space: dict[str, Any], t: torch.Tensor, valid: tuple[int, int]) -> Any:
    return space["_with_valid"](t, valid)


def regions(t: Any) -> tuple[Any, Any]:
    return t._pypto_valid_shape, t._pypto_full_shape


def test_one_queue_per_direction(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    a, b = torch.ones(2, 2), torch.zeros(2, 2)
    rt.push_to_aiv(a, 0)
    rt.push_to_aiv(b, 0)
    assert rt.snapshot()["to_aiv"] == 2
    first = rt.pop_from_aic(0)
    assert torch.equal(first, a)
    assert first is not a
    assert torch.equal(rt.pop_from_aic(0), b)
    rt.push_to_aic(a, 0)
    assert rt.snapshot()["to_aic"] == 1
    rt.reset()
    assert rt.snapshot()["to_aic"] == 0


def test_pushed_tiles_are_copies(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    a = torch.ones(4, 4)
    rt.push_to_aiv(a, 1)
    a.fill_(9)
    assert (rt.pop_from_aic(1) == 1).all()


@pytest.mark.parametrize(("split", "axis"), [(1, 0), (2, 1)])
def test_split_transfers(space: dict[str, Any], split: int, axis: int) -> None:
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    t = torch.arange(24.0).reshape(4, 6)
    rt.push_to_aiv(t, split)
    assert rt.snapshot()["to_aiv_split"][split] == {0: 1, 1: 1}
    for k in (1, 0):
        lane(k)
        part = rt.pop_from_aic(split)
        assert torch.equal(part, t.chunk(2, axis)[k])
        rt.push_to_aic(part + k, split)
    lane(0)
    merged = rt.pop_from_aiv(split)
    assert torch.equal(merged, torch.cat([p + k for k, p in enumerate(t.chunk(2, axis))], axis))


def test_regions_cross_the_pipe(space: dict[str, Any]) -> None:
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    rt.push_to_aiv(tagged(space, torch.arange(8.0).reshape(2, 4), (2, 3)), 2)
    parts = []
    for k in (0, 1):
        lane(k)
        parts.append(rt.pop_from_aic(2))
    assert [regions(p) for p in parts] == [((2, 2), (2, 2)), ((2, 1), (2, 2))]
    for k in (0, 1):
        lane(k)
        rt.push_to_aic(parts[k], 2)
    lane(0)
    merged = rt.pop_from_aiv(2)
    assert regions(merged) == ((2, 3), (2, 4))
    assert torch.equal(merged[:, :3], torch.arange(8.0).reshape(2, 4)[:, :3])


def test_a_rebalanced_split(space: dict[str, Any]) -> None:
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    t = torch.arange(32.0).reshape(16, 2)
    rt.push_to_aiv(tagged(space, t.clone(), (13, 2)), 3, 7)
    parts = []
    for k in (0, 1):
        lane(k)
        parts.append(rt.pop_from_aic(3))
    assert torch.equal(parts[0], t[0:8])
    assert torch.equal(parts[1], t[7:15])
    assert [p._pypto_valid_shape[0] for p in parts] == [7, 6]
    with pytest.raises(ValueError, match="requires lanes one cell apart"):
        rt.push_to_aiv(tagged(space, t.clone(), (13, 2)), 3)


def test_merging_ragged_lanes_puts_the_cells_together(space: dict[str, Any]) -> None:
    """Five of eight rows and three of eight: eight rows of data without a hole."""
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    a, b = torch.ones(8, 2), torch.full((8, 2), 2.0)
    for k, part in enumerate((tagged(space, a, (5, 2)), tagged(space, b, (3, 2)))):
        lane(k)
        rt.push_to_aic(part, 1)
    lane(0)
    merged = rt.pop_from_aiv(1)
    assert merged._pypto_valid_shape == (8, 2)
    assert merged[:8, 0].tolist() == [1.0] * 5 + [2.0] * 3


@pytest.mark.parametrize("split", [3, 4])
def test_odd_splits_run_from_cube_to_vector_only(space: dict[str, Any], split: int) -> None:
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    t = torch.arange(5.0 * 7).reshape(5, 7)
    rt.push_to_aiv(t, split)
    for k in (0, 1):
        lane(k)
        assert torch.equal(rt.pop_from_aic(split), (t[:3], t[3:])[k] if split == 3 else (t[:, :4], t[:, 4:])[k])
    with pytest.raises(ValueError, match=f"Unsupported odd split mode for push_to_aic: {split}"):
        rt.push_to_aic(t, split)
    with pytest.raises(ValueError, match=f"Unsupported odd split mode for pop_from_aiv: {split}"):
        rt.pop_from_aiv(split)


def test_odd_extents_need_an_odd_mode_or_a_stride(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    with pytest.raises(ValueError, match="split mode 1 needs an even extent, got 5"):
        rt.push_to_aiv(torch.zeros(5, 2), 1)
    rt.push_to_aiv(torch.zeros(5, 2), 1, 3)
    for stride in (-1, 4):
        with pytest.raises(ValueError, match=r"lane stride must lie in 1..3"):
            rt.push_to_aiv(torch.zeros(5, 2), 1, stride)


def test_dual_dispatch(space: dict[str, Any]) -> None:
    rt, lane = space["_cross_core_rt"], space["_set_subblock_idx"]
    rt.reset(no_split_dual_aiv_dispatch=True)
    t = torch.randn(4, 4)
    rt.push_to_aiv(t, 0)
    assert rt.snapshot()["no_split_dual_aiv_dispatch"] is True
    assert rt.snapshot()["to_aiv_dual_nosplit"] == {0: 1, 1: 1}
    for k in (0, 1):
        lane(k)
        assert torch.equal(rt.pop_from_aic(0), t)
        rt.push_to_aic(t + k, 0)
    lane(0)
    assert torch.equal(rt.pop_from_aiv(0), t)
    assert rt.snapshot()["to_aiv_dual_nosplit"] == {0: 0, 1: 0}
    assert rt.snapshot()["to_aic_dual_nosplit"] == {0: 0, 1: 0}


def test_wrong_lanes_and_codes(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    with pytest.raises(ValueError, match="Unsupported split mode for push_to_aiv: 7"):
        rt.push_to_aiv(torch.zeros(2, 2), 7)
    with pytest.raises(ValueError, match="Unsupported split mode for pop_from_aiv: 5"):
        rt.pop_from_aiv(5)
    space["_set_subblock_idx"](2)
    with pytest.raises(ValueError, match=r"push_to_aic requires lane in \{0,1\}, got 2"):
        rt.push_to_aic(torch.zeros(2, 2), 1)
    with pytest.raises(ValueError, match=r"pop_from_aic requires lane in \{0,1\}, got 2"):
        rt.pop_from_aic(1)


def test_the_form_of_a_snapshot(space: dict[str, Any]) -> None:
    lanes = {0: 0, 1: 0}
    codes = dict.fromkeys((1, 2, 3, 4), lanes)
    assert space["_cross_core_rt"].snapshot() == {
        "no_split_dual_aiv_dispatch": False,
        "to_aiv": 0,
        "to_aiv_dual_nosplit": lanes,
        "to_aiv_split": codes,
        "to_aic": 0,
        "to_aic_dual_nosplit": lanes,
        "to_aic_split": codes,
    }


def test_lanes_belong_to_threads(space: dict[str, Any]) -> None:
    space["_set_subblock_idx"](1)
    seen: list[int] = []
    t = threading.Thread(target=lambda: seen.append(space["_get_subblock_idx"]()))
    t.start()
    t.join()
    assert seen == [0]
    assert space["_get_subblock_idx"]() == 1


def test_a_pop_waits_for_another_thread(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    started = threading.Event()

    def later() -> None:
        started.set()
        time.sleep(0.05)
        rt.push_to_aiv(torch.ones(1), 0)

    t = threading.Thread(target=later)
    t.start()
    started.wait()
    assert rt.pop_from_aic(0).item() == 1
    t.join()


def test_time_outs_are_read_when_the_pop_starts(space: dict[str, Any]) -> None:
    default, space["_PIPE_WAIT_TIMEOUT_SEC"] = space["_PIPE_WAIT_TIMEOUT_SEC"], 0.1
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
    start = time.perf_counter()
    message = r"tpop_from_aiv timeout \(split=1, lane=0\); pipe_state=\{'no_split_dual_aiv_dispatch': False"
    with pytest.raises(RuntimeError, match=message):
        space["_cross_core_rt"].pop_from_aiv(1)
    assert time.perf_counter() - start < default
    stop.set()
    other.join()


def test_a_pop_that_nobody_can_serve_fails_at_once() -> None:
    """With no other thread alive the answer is known; run apart, as test runners keep threads."""
    import subprocess
    import sys

    source = """
from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE
space = {}
exec(_PREAMBLE, space)
space["_PIPE_WAIT_TIMEOUT_SEC"] = 3600.0  # no clock ends the wait
try:
    space["_cross_core_rt"].pop_from_aic(0)
except RuntimeError as exc:
    print("timeout" in str(exc))
"""
    out = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True"]


def test_cancelling_wakes_a_waiting_pop(space: dict[str, Any]) -> None:
    event = threading.Event()
    space["_set_runtime_cancel_event"](event)
    assert space["_get_runtime_cancel_event"]() is event
    errors: list[str] = []

    def wait() -> None:
        try:
            space["_cross_core_rt"].pop_from_aic(0)
        except RuntimeError as exc:
            errors.append(str(exc))

    t = threading.Thread(target=wait)
    t.start()
    time.sleep(0.02)
    event.set()
    space["_cross_core_rt"].notify_all()
    t.join(2)
    assert errors == ["tpop_from_aic cancelled (split=0, lane=0)"]


def test_pipes_are_told_apart_by_their_id(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    rt.push_to_aiv(torch.zeros(1), 0, id=1)
    rt.push_to_aiv(torch.ones(1), 0)
    assert rt.snapshot()["to_aiv"] == 2
    assert rt.pop_from_aic(0).item() == 1
    assert rt.pop_from_aic(0, id=1).item() == 0
