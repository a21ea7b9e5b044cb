"""`with_split`: one source for every split mode, places kept, and what it refuses."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir

from pytest_pypto.harness.errors import CaseError
from pytest_pypto.harness.split import replace_split, spans_of, with_split
from tests.harness import programs

MODES = ["NONE", "UP_DOWN", "LEFT_RIGHT"]


@pytest.mark.parametrize("before", MODES)
@pytest.mark.parametrize("after", MODES)
def test_it_gives_the_program_written_with_that_mode(before: str, after: str) -> None:
    found = with_split(programs.mixed(pl.SplitMode[before]), pl.SplitMode[after])
    assert ir.python_print(found) == ir.python_print(programs.mixed(pl.SplitMode[after]))
    assert ir.structural_equal(found, programs.mixed(pl.SplitMode[after]))


def test_a_name_does_as_well() -> None:
    assert "SplitMode.LEFT_RIGHT" in ir.python_print(with_split(programs.mixed(), "LEFT_RIGHT"))


def test_places_keep_pointing_into_the_users_file() -> None:
    program = programs.mixed()
    found = with_split(program, "LEFT_RIGHT")
    before, after = ([(s.filename, s.begin_line) for s in spans_of(p)] for p in (program, found))
    assert after == before
    assert all(file == programs.__file__ for file, _ in before)


def test_the_program_itself_is_not_changed() -> None:
    program = programs.mixed()
    text = ir.python_print(program)
    with_split(program, "NONE")
    assert ir.python_print(program) == text


TEXTS = [
    (
        "with pl.at(level=pl.Level.CORE_GROUP):",
        "UP_DOWN",
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[{0}]):",
    ),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, name_hint='k'):",
        "UP_DOWN",
        "with pl.at(level=pl.Level.CORE_GROUP, name_hint='k', optimizations=[{0}]):",
    ),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)]) as tid:",
        "UP_DOWN",
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[{0}]) as tid:",
    ),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, "
        "optimizations=[pl.cross_core_slot(slot_num=4, x=1), pl.split(pl.SplitMode.LEFT_RIGHT)]):",
        "NONE",
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=4, x=1)]):",
    ),
    (
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=4)], name_hint='k'):",
        "UP_DOWN",
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=4), {0}], name_hint='k'):",
    ),
]


@pytest.mark.parametrize(("line", "mode", "changed"), TEXTS)
def test_the_line(line: str, mode: str, changed: str) -> None:
    """Other options of the scope stay as they are, in their order."""
    text = f"def f():\n    {line}\n        pass\n"
    want = changed.format(f"pl.split(pl.SplitMode.{mode})")
    assert replace_split(text, mode) == f"def f():\n    {want}\n        pass\n"


def test_scopes_with_lane_regions_are_left_alone() -> None:
    plain = "with pl.at(level=pl.Level.CORE_GROUP):"
    text = f"    {plain}\n        for i in pl.split_aiv(2):\n            pass\n    {plain}\n        pass\n"
    found = replace_split(text, "UP_DOWN")
    assert found is not None
    assert found.splitlines()[0].strip() == plain
    assert "UP_DOWN" in found.splitlines()[3]


def test_no_scope_to_change() -> None:
    @pl.program
    class Host:
        @pl.function
        def main(self, x: pl.Tensor[[4, 4], pl.FP32]) -> pl.Tensor[[4, 4], pl.FP32]:
            return x

    with pytest.raises(CaseError, match=r"program 'Host' has no CORE_GROUP scope .* write `with pl.at\("):
        with_split(Host, "UP_DOWN")


@pytest.mark.parametrize("mode", ["UPDOWN", None, 7])
def test_no_such_mode(mode: object) -> None:
    with pytest.raises(CaseError, match=r"no split mode is called .*; the modes are NONE, UP_DOWN, LEFT_RIGHT"):
        with_split(programs.mixed(), mode)
