"""A test that claims a direction must have tiles that cross that way."""

from __future__ import annotations

import pypto.language as pl
import pytest

from pytest_pypto.harness.direction import Direction, direction_finding, transfers
from tests.kit import dump_files, needs_kit

COUNTS = [
    ("ex_v2c_up_down", "a2a3sim", {"V2C": 1}),
    ("ex_c2v_up_down", "a2a3sim", {"C2V": 1}),
    ("ex_both_left_right", "a2a3sim", {"V2C": 1, "C2V": 1}),
    ("vadd", "a2a3sim", {}),
]


def last_dump(name: str, platform: str):
    return pl.loads(str([p for p in dump_files() if p.parts[-4:-2] == (name, platform)][-1]))


@needs_kit
@pytest.mark.parametrize(("name", "platform", "counts"), COUNTS)
def test_pushes_are_counted(name: str, platform: str, counts: dict[str, int]) -> None:
    assert dict(transfers(last_dump(name, platform))) == counts


@needs_kit
@pytest.mark.parametrize(
    ("name", "claim", "missing"),
    [
        ("ex_v2c_up_down", "V2C", None),
        ("ex_v2c_up_down", "C2V", "no cube-to-vector transfer (it has 1 vector-to-cube)"),
        ("ex_c2v_up_down", "BIDIR", "no vector-to-cube transfer (it has 1 cube-to-vector)"),
        ("ex_both_left_right", "BIDIR", None),
        ("vadd", "V2C", "no vector-to-cube transfer (it has none at all)"),
        ("vadd", "", None),
    ],
)
def test_claims(name: str, claim: str, missing: str | None) -> None:
    found = direction_finding(last_dump(name, "a2a3sim"), claim)
    if missing is None:
        assert found is None
    else:
        assert found is not None
        assert f"the test claims {claim}, but the lowered program has {missing}" in found.message


def test_members_are_their_names() -> None:
    assert [str(d) for d in Direction] == ["V2C", "C2V", "BIDIR"]
    assert Direction.BIDIR.needs == ("V2C", "C2V")
