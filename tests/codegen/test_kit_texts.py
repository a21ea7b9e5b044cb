"""Kernels of the kit's final programs: our `.pto` text is the reference's, letter by letter."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.language.parser.diagnostics import UndefinedVariableError
from tests.codegen.kit_units import our_text, their_text, units_on
from tests.kit import needs_kit

pytestmark = needs_kit

BROKEN_DUMPS = {"whiles"}
"""The reference's own dump names variables that nothing defines; it cannot be loaded."""

FLOORED = {"misc"}
"""`%` on a value that may be negative: the reference truncates (a known defect), we round down."""


def _cases(platform: str) -> list[object]:
    names = BROKEN_DUMPS | FLOORED
    return [pytest.param(p, f, id=f"{p}-{f}") for p, f in units_on(platform) if p not in names]


@pytest.mark.parametrize(("program", "file"), _cases("a2a3sim"))
def test_same_text_910b(program: str, file: str) -> None:
    assert our_text(program, "a2a3sim", file) == their_text(program, "a2a3sim", file)


@pytest.mark.parametrize(("program", "file"), _cases("a5sim"))
def test_same_text_950(program: str, file: str) -> None:
    assert our_text(program, "a5sim", file) == their_text(program, "a5sim", file)


def test_floor_semantics_is_the_only_difference_of_misc() -> None:
    ours = our_text("misc", "a2a3sim", "aiv/k.pto").splitlines()
    theirs = their_text("misc", "a2a3sim", "aiv/k.pto").splitlines()
    gone = [line.strip().split(" = ", 1)[1] for line in theirs if line not in ours and "arith." in line]
    assert gone == ["arith.remsi %1, %c2_index : index", "arith.muli %2, %c32_index : index", _CLAMP]
    assert "  %2 = arith.floordivsi %1, %c2_index : index" in ours


_CLAMP = "arith.maxsi %3, %c0_index : index"


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_broken_dumps_are_refused_by_the_loader(platform: str) -> None:
    with pytest.raises(UndefinedVariableError, match="__FREE_VAR"):
        our_text("whiles", platform, "aiv/natural.pto")
