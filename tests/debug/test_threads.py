"""Plain functions in the place of generated lanes: they run on threads, one at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE


@pytest.fixture
def space() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(_PREAMBLE, names)
    return names


def group(space: dict[str, Any], aic: Callable[..., Any], aiv: Callable[..., Any], **meta: Any) -> Callable[..., Any]:
    space |= {"g_aic": aic, "g_aiv": aiv}
    space["_GROUP_META"]["g"] = {"aic": "g_aic", "aiv": "g_aiv", **meta}
    call: Callable[..., Any] = space["_run_group_call"]
    return lambda *args: call("g", *args)


def test_lanes_of_a_split_group(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    seen: list[Any] = []

    def aic(x: torch.Tensor) -> None:
        seen.append(("aic", space["_get_subblock_idx"](), threading.current_thread().name))
        rt.push_to_aiv(x, 1)

    def aiv(x: torch.Tensor) -> Any:
        lane = space["_get_subblock_idx"]()
        seen.append(("aiv", lane, threading.current_thread().name))
        return rt.pop_from_aic(1) + lane

    x = torch.zeros(4, 2)
    result = group(space, aic, aiv, split=1)(x)
    assert torch.equal(result, torch.zeros(2, 2))
    assert sorted(seen) == [("aic", 0, "g-aic"), ("aiv", 0, "g-aiv-lane0"), ("aiv", 1, "g-aiv-lane1")]


def test_one_lane_without_split_and_two_with_dual_dispatch(space: dict[str, Any]) -> None:
    lanes: list[int] = []
    lock = space["threading"].Lock()

    def aiv() -> None:
        with lock:
            lanes.append(space["_get_subblock_idx"]())

    group(space, lambda: None, aiv)()
    assert lanes == [0]
    lanes.clear()
    group(space, lambda: None, aiv, dual_aiv_dispatch=True)()
    assert sorted(lanes) == [0, 1]


def test_the_result_is_that_of_lane_zero_and_may_be_none(space: dict[str, Any]) -> None:
    call = group(space, lambda: "cube", lambda: space["_get_subblock_idx"]() or None, split=2)
    assert call() is None
    assert group(space, lambda: "cube", lambda: "vector")() == "vector"


def test_only_one_function_runs_at_a_time(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    inside, most = [0], [0]

    def step() -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.002)
        inside[0] -= 1

    def aic() -> None:
        for _ in range(5):
            step()
            rt.push_to_aiv(torch.zeros(2, 2), 1)
            rt.pop_from_aiv(1)

    def aiv() -> None:
        for _ in range(5):
            part = rt.pop_from_aic(1)
            step()
            rt.push_to_aic(part, 1)

    group(space, aic, aiv, split=1)()
    assert most == [1]


def test_functions_may_wait_for_each_other_by_other_means(space: dict[str, Any]) -> None:
    """Who keeps the baton for long no longer holds the others up: a barrier of two lanes is passed."""
    barrier = threading.Barrier(2, timeout=5)
    group(space, lambda: None, barrier.wait, split=1)()


def test_a_mutual_wait_is_reported_at_once_and_the_next_group_works(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    space["_PIPE_WAIT_TIMEOUT_SEC"] = space["_MIXED_KERNEL_TIMEOUT_SEC"] = 3600.0  # no clock ends the wait
    stuck = group(space, lambda: rt.pop_from_aiv(0), lambda: rt.pop_from_aic(0))
    with pytest.raises(
        RuntimeError, match=r"Mixed-kernel execution timeout for g.*alive_threads=\['g-aic', 'g-aiv-lane0'\]"
    ):
        stuck()
    fine = group(space, lambda: rt.push_to_aiv(torch.ones(1), 0), lambda: rt.pop_from_aic(0))
    assert fine().item() == 1
    assert space["_get_runtime_cancel_event"]() is None


def test_a_function_that_sleeps_runs_into_the_time_limit(space: dict[str, Any]) -> None:
    space["_MIXED_KERNEL_TIMEOUT_SEC"] = 0.2
    rt = space["_cross_core_rt"]
    wake = threading.Event()
    slow = group(space, lambda: wake.wait(60), lambda: rt.pop_from_aic(0))
    with pytest.raises(RuntimeError, match=r"Mixed-kernel execution timeout for g; alive_threads="):
        slow()
    wake.set()


def test_waiting_threads_are_cancelled(space: dict[str, Any]) -> None:
    rt = space["_cross_core_rt"]
    errors: list[str] = []

    def aic() -> None:
        try:
            rt.pop_from_aiv(1)
        except RuntimeError as exc:
            errors.append(str(exc))
            raise

    def aiv() -> None:
        raise ValueError("lane broke")

    with pytest.raises(RuntimeError, match=r"Mixed-kernel execution failed in g_aiv \(lane=0\) for g\n") as caught:
        group(space, aic, aiv, split=1)()
    assert isinstance(caught.value.__cause__, ValueError)
    assert "lane broke" in str(caught.value)
    assert errors == ["tpop_from_aiv cancelled (split=1, lane=0)"]


def test_a_cube_that_fails_has_no_lane(space: dict[str, Any]) -> None:
    def aic() -> None:
        raise ValueError("no")

    with pytest.raises(RuntimeError, match=r"failed in g_aic \(lane=None\) for g"):
        group(space, aic, lambda: None)()


def test_missing_functions(space: dict[str, Any]) -> None:
    space["_GROUP_META"]["g"] = {"aic": "none_aic", "aiv": "none_aiv"}
    with pytest.raises(RuntimeError, match=r"Mixed-kernel function lookup failed.*none_aic, none_aiv"):
        space["_run_group_call"]("g")
    with pytest.raises(RuntimeError, match="Mixed-kernel function lookup failed"):
        space["_run_group_call"]("unheard_of")
    space["plain"] = lambda x: x + 1
    assert space["_run_group_call"]("plain", 1) == 2


def idle_threads(wanted: int) -> set[threading.Thread]:
    """The threads that wait for work, as soon as there are as many as wanted."""
    while True:
        found = {t for t in threading.enumerate() if t.name == "pypto-idle"}
        if len(found) >= wanted:
            return found
        time.sleep(0.001)


def test_threads_are_reused_and_do_not_keep_the_process(space: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    call = group(space, lambda: None, lambda: None, split=1)
    call()
    assert all(t.daemon for t in idle_threads(3))
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", started.append)
    for _ in range(5):
        call()
        idle_threads(3)
    assert started == []


def test_a_user_function_beside_a_generated_lane() -> None:
    from .build import program, space_of
    from .test_groups import both

    space = space_of(program(both(1)))
    original = space["cross_aiv"]
    calls: list[int] = []

    def spy(src: torch.Tensor, dst: torch.Tensor) -> Any:
        calls.append(space["_get_subblock_idx"]())
        return original(src, dst)

    space["cross_aiv"] = spy
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    assert torch.equal(space["main"](src, dst), 2 * src)
    assert calls == [0, 1]


def test_gradients_are_off_in_threads(space: dict[str, Any]) -> None:
    modes: list[bool] = []
    group(space, lambda: modes.append(torch.is_grad_enabled()), lambda: modes.append(torch.is_grad_enabled()))()
    assert modes == [False, False]
