"""Every spelling of `ir.MemRef`."""

from __future__ import annotations

from typing import Any

import pytest
from pypto import DataType, ir

SPAN = ir.Span.unknown()
BASE = ir.Var("buffer", ir.PtrType.get(), SPAN)
FOUR = ir.ConstInt(4, DataType.INDEX, SPAN)

FORMS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((BASE, 0, 64), {}, 'pl.MemRef("buffer", pl.const(0, pl.INT64), 64)'),
    ((BASE, FOUR, 64, SPAN), {}, 'pl.MemRef("buffer", 4, 64)'),
    (("x", 0, 64), {"span": SPAN}, 'pl.MemRef("x", pl.const(0, pl.INT64), 64)'),
    (("scratch",), {}, 'pl.MemRef("scratch")'),
    (("ring",), {"slots": 2}, 'pl.MemRef("ring", slots=2)'),
    (("ring", SPAN, 2), {}, 'pl.MemRef("ring", slots=2)'),
    ((ir.MemorySpace.Vec, FOUR, 64, 7), {}, 'pl.MemRef("mem_vec_7", 4, 64)'),
    ((ir.MemorySpace.Mat, FOUR, 64, 7, SPAN), {}, 'pl.MemRef("mem_mat_7", 4, 64)'),
    ((32, 64, 7, SPAN), {}, 'pl.MemRef("mem_ddr_7", pl.const(32, pl.INT64), 64)'),
]


@pytest.mark.parametrize(("args", "kwargs", "text"), FORMS, ids=[text for _, _, text in FORMS])
def test_form(args: tuple[Any, ...], kwargs: dict[str, Any], text: str) -> None:
    made = ir.MemRef(*args, **kwargs)
    assert str(made) == text
    assert made.is_pinned_ is ("pl.const" not in text and ", 4, " not in text)


def test_a_declaration_may_be_without_a_name() -> None:
    made = ir.MemRef()
    assert (made.name_hint, made.is_pinned_, made.slot_count_) == ("", True, 1)


@pytest.mark.parametrize("args", [("x", "y", 3), ("x", 0, "3"), (3.5,), (ir.MemorySpace.Vec, 0, 64)])
def test_other_arguments_are_refused(args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"unsupported MemRef arguments .*write MemRef\(base, byte_offset, size\)"):
        ir.MemRef(*args)
