"""Which windows of a buffer meet and which hold which, against sets of element numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_pypto.pypto.device.checks.boxes import elements, meeting_pairs, meets
from pytest_pypto.pypto.device.host.graph import covers, overlap
from pytest_pypto.pypto.device.machine.gm import GlobalBuffer, GmArg

SIZE = 320
BUFFER = GlobalBuffer(np.zeros(SIZE, np.float32), "x", "inout", (SIZE,))
STRIDES = [(1,), (2,), (12, 1), (12, 2), (1, 12), (10, 3), (60, 12, 1), (60, 1, 12), (12, 1, 1), (0, 1)]


@st.composite
def windows(draw: st.DrawFn, strides: tuple[int, ...] | None = None) -> GmArg:
    """A window that stays inside the buffer; its rows may run on into the next ones."""
    strides = draw(st.sampled_from(STRIDES)) if strides is None else strides
    shape = tuple(draw(st.integers(1, 5)) for _ in strides)
    last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    return GmArg(BUFFER, draw(st.integers(0, SIZE - 1 - last)), shape, strides)


def numbers(w: GmArg) -> set[int]:
    """Element numbers of a window, counted one by one."""
    return {w.offset + sum(i * s for i, s in zip(spot, w.strides, strict=True)) for spot in np.ndindex(w.shape)}


@given(windows(), windows())
def test_two_windows(a: GmArg, b: GmArg) -> None:
    assert set(elements(a).tolist()) == numbers(a)
    assert meets(a, b) == bool(numbers(a) & numbers(b))
    assert overlap(a, b) or not numbers(a) & numbers(b)
    assert not covers(a, b) or numbers(b) <= numbers(a)


@given(st.sampled_from(STRIDES).flatmap(lambda s: st.tuples(windows(s), windows(s))))
def test_two_windows_of_one_kind(pair: tuple[GmArg, GmArg]) -> None:
    a, b = pair
    assert meets(a, b) == bool(numbers(a) & numbers(b))
    if a.is_box and b.is_box:
        assert overlap(a, b) == meets(a, b)
        assert covers(a, b) == (numbers(b) <= numbers(a))


@given(st.lists(windows(), min_size=9, max_size=14), st.lists(windows(), min_size=9, max_size=14))
def test_many_windows_at_once(a: list[GmArg], b: list[GmArg]) -> None:
    expected = {(i, j) for i, x in enumerate(a) for j, y in enumerate(b) if numbers(x) & numbers(y)}
    assert sorted(meeting_pairs(a, b)) == sorted(expected)


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ((0, (2, 6)), (6, (2, 6)), False),
        ((0, (2, 7)), (6, (2, 6)), True),
        ((0, (2, 12)), (24, (2, 12)), False),
        ((0, (3, 12)), (24, (2, 12)), True),
        ((6, (2, 8)), (12, (1, 2)), True),
    ],
    ids=["beside", "one column", "below", "one row", "a row that runs on"],
)
def test_neighbours(first: tuple[int, tuple[int, int]], second: tuple[int, tuple[int, int]], meet: bool) -> None:
    a, b = (GmArg(BUFFER, offset, shape, (12, 1)) for offset, shape in (first, second))
    assert meets(a, b) == meets(b, a) == meet
    assert list(meeting_pairs([a] * 9, [b] * 9)) == ([(i, j) for i in range(9) for j in range(9)] if meet else [])


def test_elements_of_different_sizes_meet_by_their_bytes() -> None:
    halves = GlobalBuffer(BUFFER.flat.view(np.float16), "x", "inout", (2 * SIZE,), base=BUFFER)
    singles = GmArg(BUFFER, 3, (2,), (1,))
    for offset in range(4, 12):
        window = GmArg(halves, offset, (1,), (1,))
        assert overlap(singles, window) == overlap(window, singles) == (6 <= offset < 10)
        assert meets(singles.in_bytes(), window.in_bytes()) == (6 <= offset < 10)
