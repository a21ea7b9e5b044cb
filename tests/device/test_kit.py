"""The reference's artifacts run on both platforms and agree with golden, in every order, and no sanitizer objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.device import DeviceResult, DeviceSettings, run_artifact

from ..kit import needs_kit
from .kit_artifacts import PLATFORMS, arrays, artifact, assert_agrees, cases, clones, programs, tensors

RACES = {"hand_scopes", "loops", "task_arr"}
"""Programs that race on purpose, or store equal values twice without an order."""
ADVICE = {"never_written", "input_modified", "race"}

pytestmark = needs_kit


def check(name: str, folder: Path, **settings: Any) -> list[DeviceResult]:
    """Run all seeds and compare with golden."""
    made = DeviceSettings.strict(**settings)
    results = []
    for start, wanted in cases(name):
        got = clones(start)
        result = run_artifact(folder, arrays(got), made)
        if "__return__" in wanted:
            got["__return__"] = tensors(result.returned)
        assert_agrees(name, got, wanted)
        results.append(result)
    return results


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", programs())
def test_agrees_with_golden(name: str, platform: str, tmp_path: Path) -> None:
    for result in check(name, artifact(name, platform, tmp_path)):
        errors = {f.kind.value for f in result.errors}
        assert errors == ({"race"} if name in RACES else set()), [str(f) for f in result.errors]
        assert {f.kind.value for f in result.findings if f.severity == "advice"} <= ADVICE


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", [n for n in programs() if n != "hand_scopes"])
def test_every_order_agrees(name: str, platform: str, tmp_path: Path) -> None:
    folder = artifact(name, platform, tmp_path)
    check(name, folder, order="late")
    for seed in range(20 if name in BUSY else 3):
        check(name, folder, order="random", seed=seed)


BUSY = {
    "scope3",
    "bi_none",
    "bi_up_down",
    "ex_both_none",
    "spmd_mixed",
    "round_trip",
    "task_arr",
    "phase_fence",
    "multi",
}


def test_missing_edge_shows_as_a_wrong_number(tmp_path: Path) -> None:
    """`hand_scopes` leaves an ordering edge out on purpose."""
    folder = artifact("hand_scopes", "a2a3sim", tmp_path)
    with pytest.raises(AssertionError):
        check("hand_scopes", folder, order="late")
    for result in check("hand_scopes", folder, order="exhaustive"):
        assert any(f.kind.value == "order" and "'o' differs first at" in f.message for f in result.findings)


@pytest.mark.parametrize("name", ["bi_up_down", "scope3", "spmd_mixed", "loops"])
def test_exhaustive_order(name: str, tmp_path: Path) -> None:
    for result in check(name, artifact(name, "a2a3sim", tmp_path), order="exhaustive"):
        assert not any(f.kind.value == "order" for f in result.findings)
        assert result.orders == (3 if name in RACES else 1)


@pytest.mark.parametrize("name", ["scope3", "bi_left_right"])
def test_counters_repeat(name: str, tmp_path: Path) -> None:
    folder = artifact(name, "a2a3sim", tmp_path)
    first, second = (check(name, folder)[0].counters.to_json() for _ in range(2))
    assert first == second
    plain = []
    for start, _ in cases(name):
        plain.append(run_artifact(folder, arrays(clones(start)), DeviceSettings()).counters.to_json())
    assert plain[0] == first


def test_counters_of_a_known_program(tmp_path: Path) -> None:
    """bi_left_right: three rounds of a 32x64 by 64x64 product in halves."""
    counters = check("bi_left_right", artifact("bi_left_right", "a2a3sim", tmp_path))[0].counters
    assert counters.tasks == 1
    assert counters.cube_products == 3 * 32 * 64 * 64
    assert counters.transfers == {"c2v": 3, "v2c": 6}
    assert counters.operations["tmatmul"] == 3
    assert counters.operations["tsub"] == 6  # both lanes
    assert counters.operations["tload"] == 3 + 2 * (1 + 3)
    assert counters.bytes_written["gm"] == 32 * 192 * 4
    assert counters.bytes_read["gm"] == 4 * (3 * 64 * 64 + 32 * 64 + 32 * 192)
    assert counters.peak_bytes["vec"] == 24576 + 32 * 32 * 4
    assert counters.vector_elements == 6 * 2 * 32 * 32
