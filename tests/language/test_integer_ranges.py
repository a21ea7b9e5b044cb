"""Integers that the type of their place does not have are refused there; the others arrive as they are."""

from __future__ import annotations

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import ParserError

from pytest_pypto.pypto.ir.dtypes import DataType, fitting, integer_range

TYPES = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
PLACES = {
    "constant": "s = pl.const({}, pl.{})",
    "annotation": "s: pl.Scalar[pl.{1}] = {0}",
    "operand": "y = pl.add(x, {})",
    "filling": "y = pl.full([4], pl.{1}, {0})",
    "tile": "y = pl.tile.full([1, 32], pl.{1}, {0})",
    "cell": "x = pl.write(x, [0], {})",
    "item": "a = pl.array.create(2, pl.{1})\n    a[0] = {0}",
}


def source(line: str, dtype: str) -> str:
    head = "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
    return f"{head}def f(x: pl.Tensor[[4], pl.{dtype}]):\n    {line}\n    return x\n"


def values(node: object) -> list[int]:
    found: list[int] = []

    class Seen(ir.IRVisitor):
        def visit_const_int(self, op: ir.ConstInt) -> None:
            found.append(op.value)

    Seen().visit_function(node)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", TYPES)
def test_limits_are_taken_and_what_lies_beyond_is_refused(dtype: str, place: str) -> None:
    info = np.iinfo(dtype.lower())
    for inside in (int(info.min), int(info.max)):
        made = pl.parse(source(PLACES[place].format(inside, dtype), dtype))
        assert inside in values(made)
    for outside in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises(ParserError) as caught:
            pl.parse(source(PLACES[place].format(outside, dtype), dtype))
        said = f"{caught.value} {caught.value.hint}"
        assert f"{info.min} .. {info.max}" in said or "64 bits" in said
        assert caught.value.span is not None
        assert caught.value.span["line"] in (4, 5)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("300, pl.INT8", "300 is no value of type INT8, which has -128 .. 127", "write a value of that range"),
        ("-1, pl.UINT8", "-1 is no value of type UINT8, which has 0 .. 255", "255 has the same bits"),
        ("4294967295, pl.INT32", "4294967295 is no value of type INT32", "-1 has the same bits"),
        ("8, pl.INT4", "8 is no value of type INT4, which has -8 .. 7", "-8 has the same bits"),
        ("2, pl.BOOL", "2 is no value of type BOOL, which has 0 .. 1", "write a value of that range"),
        ("300.0, pl.INT8", "300 is no value of type INT8", "write a value of that range"),
    ],
)
def test_what_a_constant_beyond_its_type_is_told(text: str, said: str, hint: str) -> None:
    with pytest.raises(ParserError) as caught:
        pl.parse(source(f"s = pl.const({text})", "INT32"))
    assert said in str(caught.value)
    assert hint in str(caught.value.hint)
    assert (caught.value.span["line"], caught.value.span["column"]) == (4, 18)


def test_ranges() -> None:
    assert integer_range(DataType.INT4) == (-8, 7)
    assert integer_range(DataType.INDEX) == (-(2**63), 2**63 - 1)
    assert integer_range(DataType.FP32) is None
    assert fitting(10**30, DataType.FP32) == 10**30
    with pytest.raises(ValueError, match=r"16 is no value of type UINT4, which has 0 \.\. 15$"):
        fitting(16, DataType.UINT4)


@pytest.mark.parametrize("line", ["s = s + 2", "for i in pl.range(3):\n        s = s + 2"])
def test_a_typed_number_plus_a_bare_one_is_an_index(line: str) -> None:
    """Bare integers beside scalars are INDEX, so the sum is one; the message says how to keep the type."""
    body = f"s: pl.Scalar[pl.INT32] = 0\n    {line}"
    with pytest.raises(ParserError, match="Cannot reassign 's' with a different type") as caught:
        pl.parse(source(body, "INT32"))
    said = "a bare integer is an INDEX: write pl.const(2, pl.INT32) for it, or s: pl.Scalar[pl.INT32] = ..."
    assert caught.value.hint == said
    for right in ("s = s + pl.const(2, pl.INT32)", "s: pl.Scalar[pl.INT32] = s + 2"):
        pl.parse(source(body.replace("s = s + 2", right), "INT32"))
