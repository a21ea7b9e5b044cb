"""Patterns of mismatches in words; each mask has one right description."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pytest_pypto.check import locate  # noqa: E402
from pytest_pypto.check.locate import Layout  # noqa: E402


def mask(rows: int, columns: int, *where: object) -> torch.Tensor:
    bad = torch.zeros(rows, columns, dtype=torch.bool)
    if where:
        bad[where] = True
    return bad


PLAIN = Layout()
TILED = Layout((16, 32), "NONE")
UP, LEFT = Layout((32, 64), "UP_DOWN"), Layout((32, 64), "LEFT_RIGHT")

CASES = [
    (mask(4, 4), PLAIN, ""),
    (mask(4, 4, slice(None)), PLAIN, "all 16 elements"),
    (mask(8, 8, 3, 5), PLAIN, "one element, row 3 column 5"),
    (mask(8, 8, 3), PLAIN, "all 8 fill row 3"),
    (mask(8, 8, slice(2, 6)), PLAIN, "all 32 fill rows 2-5"),
    (mask(8, 8, slice(None), slice(6, 8)), PLAIN, "all 16 fill columns 6-7"),
    (mask(16, 8, slice(1, 16, 4)), PLAIN, "all 32 fill rows every 4th from 1 to 13"),
    (mask(64, 64, slice(16, 32)), UP, "all 1024 lie in rows 16-31 = lane 1 of the UP_DOWN split"),
    (mask(64, 64, slice(0, 16)), UP, "all 1024 lie in rows 0-15 = lane 0 of the UP_DOWN split"),
    (mask(32, 128, slice(None), slice(32, 64)), LEFT, "all 1024 lie in columns 32-63 = lane 1 of the LEFT_RIGHT split"),
    (mask(64, 64, slice(16, 32), slice(32, 64)), TILED, "all 512 lie in rows 16-31"),
    (mask(32, 64, slice(16, 32), slice(33, 60)), TILED, "all 432 lie in tile (1, 1) of 16x32"),
    (mask(32, 64, slice(1, 31), slice(32, 64)), TILED, "all 960 lie in the last column of tiles"),
    (mask(8, 8, slice(2, 6), slice(1, 7)), PLAIN, "24 elements fill rows 2-5, columns 1-6"),
]


@pytest.mark.parametrize(("bad", "layout", "text"), CASES, ids=[text or "nothing" for _, _, text in CASES])
def test_patterns(bad: torch.Tensor, layout: Layout, text: str) -> None:
    assert locate.pattern(bad, layout) == text


def test_scattered_elements_are_given_by_their_box() -> None:
    bad = torch.eye(8, dtype=torch.bool)
    assert locate.pattern(bad, PLAIN) == "8 elements (12 % of them) lie in rows 0-7, columns 0-7"


@pytest.mark.parametrize("shape", [(), (5,), (0,), (2, 3, 4)], ids=str)
def test_any_rank(shape: tuple[int, ...]) -> None:
    full = torch.ones(shape, dtype=torch.bool)
    assert locate.pattern(full, PLAIN) == (f"all {full.numel()} elements" if full.numel() else "")
    assert bool(locate.heat(full)) == bool(full.numel())


def test_heat_is_the_share_of_each_cell() -> None:
    bad = torch.zeros(32, 64, dtype=torch.bool)
    bad[0:2, 0:2] = True
    bad[31, 63] = True
    heat = locate.heat(bad)
    assert (len(heat), len(heat[0])) == (16, 32)
    assert heat[0] == "9" + "0" * 31
    assert heat[15] == "0" * 31 + "2"
    assert sum(line.count("0") for line in heat) == 16 * 32 - 2


@pytest.mark.parametrize(
    ("index", "layout", "text"),
    [
        ((5,), Layout((1, 4)), "tile (0, 1) element (0, 1)"),
        ((3, 20, 7), Layout((16, 4), "LEFT_RIGHT"), "tile (1, 1) element (4, 3) lane 1"),
        ((17, 0), Layout((35, 4), "UP_DOWN"), "tile (0, 0) element (17, 0) lane 0"),
        ((18, 0), Layout((35, 4), "UP_DOWN"), "tile (0, 0) element (18, 0) lane 1"),
        ((1, 2), PLAIN, ""),
        ((), UP, ""),
    ],
)
def test_place(index: tuple[int, ...], layout: Layout, text: str) -> None:
    """An odd extent gives lane 0 the larger half."""
    assert locate.place(index, layout) == text
