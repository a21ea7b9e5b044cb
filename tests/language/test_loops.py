"""Loops: what each form becomes, printed."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir

from .marked import function, printed_body

T = "pl.Tensor[[64, 64], pl.FP32]"


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("pl.range(4)", "pl.range(4)"),
        ("pl.range(0, 4)", "pl.range(4)"),
        ("pl.range(0, 4, 1)", "pl.range(4)"),
        ("pl.range(1, 4)", "pl.range(1, 4)"),
        ("pl.range(0, 64, 32)", "pl.range(0, 64, 32)"),
        ("pl.range(64, 0, -1)", "pl.range(64, 0, -1)"),
        ("pl.range(k)", "pl.range(k)"),
        ("pl.range(n)", "pl.range(n)"),
        ("pl.range(k + 1, 2 * k)", "pl.range(k + 1, 2 * k)"),
        ("pl.parallel(4)", "pl.parallel(4)"),
        ("pl.unroll(0, 4, 2)", "pl.unroll(0, 4, 2)"),
        ("pl.pipeline(4, stage=2)", "pl.pipeline(4, stage=2)"),
        ("pl.pipeline(0, 4, 2, stage=1)", "pl.pipeline(0, 4, 2, stage=1)"),
        ("pl.range(3, attrs={'note': 1, 'a': 'b'})", 'pl.range(3, attrs={"note": 1, "a": "b"})'),
        ("pl.range(pl.const(0, pl.INT32), 4)", "pl.range(pl.const(0, pl.INT32), 4)"),
    ],
)
def test_counted(written: str, printed: str) -> None:
    lines = printed_body(function(f"for i in {written}:\n    y = pl.exp(x)"))
    assert lines == [f"for i in {printed}:", f"    y: {T} = pl.tensor.exp(x)"]


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ("4", "INDEX"),
        ("n", "INDEX"),
        ("pl.const(0, pl.INT32), pl.const(8, pl.INT32)", "INT32"),
        ("pl.const(0, pl.INT64), pl.const(8, pl.INT64)", "INT64"),
        ("0, pl.const(8, pl.INT64)", "INDEX"),
        ("0, pl.const(8, pl.INT16)", "INT16"),
    ],
)
def test_type_of_the_loop_variable(bounds: str, dtype: str) -> None:
    func = pl.parse(function(f"for i in pl.range({bounds}):\n    y = pl.exp(x)"))
    assert isinstance(func, ir.Function)
    loop = ir.flatten_to_stmts(func.body)[0]
    assert loop.loop_var.type.dtype.name == dtype


def test_carried_values() -> None:
    body = "for i, (a, b) in pl.range(3, init_values=[x, k]):\n    c, d = pl.yield_(pl.exp(a), b + 1)\nreturn c"
    assert printed_body(function(body)) == [
        "for i, (a, b) in pl.range(3, init_values=(x, k)):",
        "    c, d = pl.yield_(pl.tensor.exp(a), b + 1)",
        "return c",
    ]


def test_one_carried_value_keeps_its_comma() -> None:
    body = "for i, (a,) in pl.parallel(3, init_values=(x,)):\n    b = pl.yield_(pl.exp(a))\nreturn b"
    assert printed_body(function(body)) == [
        "for i, (a,) in pl.parallel(3, init_values=(x,)):",
        f"    b: {T} = pl.yield_(pl.tensor.exp(a))",
        "return b",
    ]


def test_result_has_the_type_of_the_carried_value() -> None:
    body = "for i, (c,) in pl.range(3, init_values=(n,)):\n    d: pl.Scalar[pl.INDEX] = pl.yield_(c + 1)\nreturn x"
    assert printed_body(function(body))[1] == "    d: pl.Scalar[pl.INT32] = pl.yield_(pl.cast(c, pl.INDEX) + 1)"


def test_loop_without_yield_names_its_results() -> None:
    func = pl.parse(function("for i, (a,) in pl.range(3, init_values=(x,)):\n    y = pl.exp(a)\nreturn a_out"))
    assert isinstance(func, ir.Function)
    assert ir.flatten_to_stmts(func.body)[0].return_vars[0].name_hint == "a_out"


def test_while() -> None:
    assert printed_body(function("c = 0\nwhile c < k:\n    c = c + 1\nreturn x")) == [
        "c: pl.Scalar[pl.INDEX] = 0",
        "while c < k:",
        "    c: pl.Scalar[pl.INDEX] = c + 1",
        "return x",
    ]


def test_while_with_carried_values() -> None:
    body = (
        "for (a, c) in pl.while_(init_values=(x, 0)):\n    pl.cond(c < k)\n"
        "    b, d = pl.yield_(pl.exp(a), c + 1)\nreturn b"
    )
    assert printed_body(function(body)) == [
        "for (a, c) in pl.while_(init_values=(x, 0)):",
        "    pl.cond(c < k)",
        "    b, d = pl.yield_(pl.tensor.exp(a), c + 1)",
        "return b",
    ]


def test_break_and_continue() -> None:
    body = "for i in pl.range(4):\n    if i == 2:\n        break\n    if i == 1:\n        continue\n    y = pl.exp(x)"
    assert [line.strip() for line in printed_body(function(body))][2:5:2] == ["break", "continue"]


def test_break_outside_a_loop_is_pythons_error() -> None:
    with pytest.raises(SyntaxError, match=r"Failed to compile code from <t>: 'break' outside loop \(<t>, line 4\)"):
        pl.parse(function("break"), "<t>")


def test_names_of_a_plain_loop_stay_visible() -> None:
    assert printed_body(function("for i in pl.range(3):\n    y = pl.exp(x)\nreturn y"))[-1] == "return y"


def test_names_of_a_carrying_loop_do_not() -> None:
    from .marked import error_of

    source = function(
        "for i, (a,) in pl.range(3, init_values=(x,)):\n    y = pl.exp(a)\n    b = pl.yield_(y)\nreturn y"
    )
    assert error_of(source).message == "Undefined variable 'y'"


def test_a_loop_variable_that_is_assigned_is_another_variable() -> None:
    body = "for i in pl.range(3):\n    i = i + 1\n    y = pl.slice(x, [1, 64], [i, 0])"
    lines = printed_body(function(body))
    assert lines[:2] == ["for i in pl.range(3):", "    i_1: pl.Scalar[pl.INDEX] = i + 1"]
    assert lines[2].endswith("pl.tensor.slice(x, [1, 64], [i_1, 0])")
