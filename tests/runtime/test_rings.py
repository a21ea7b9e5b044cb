"""Which ring size a dispatch uses: configuration, environment, default."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.runtime.rings import RULES, effective_ring, ring_of_environment

HEAP = next(r for r in RULES if r.field == "ring_heap")
WINDOW = next(r for r in RULES if r.field == "ring_task_window")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for rule in RULES:
        monkeypatch.delenv(rule.variable, raising=False)


def test_the_default_applies_without_anything_else() -> None:
    assert effective_ring(HEAP, None, 4096) == 4096


def test_the_environment_beats_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO2_RING_HEAP", "2048")
    assert effective_ring(HEAP, None, 4096) == 2048


def test_the_configuration_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO2_RING_HEAP", "2048")
    assert effective_ring(HEAP, 8192, 4096) == 8192


def test_a_zero_keeps_what_the_layer_below_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO2_RING_HEAP", "2048")
    assert effective_ring(HEAP, [0, 8192, 0, 0], 4096) == (2048, 8192, 2048, 2048)


def test_the_environment_takes_four_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO2_RING_TASK_WINDOW", "4, 8,16,32")
    assert effective_ring(WINDOW, None, 64) == (4, 8, 16, 32)


def test_the_environment_heap_need_not_be_a_power_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO2_RING_HEAP", "3000")
    assert ring_of_environment(HEAP) == 3000


@pytest.mark.parametrize("text", ["many", "3", "4,8", "4,8,16,3"])
def test_a_bad_variable_is_named(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PTO2_RING_TASK_WINDOW", text)
    with pytest.raises(ValueError, match="PTO2_RING_TASK_WINDOW"):
        effective_ring(WINDOW, None, 64)
