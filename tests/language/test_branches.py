"""Branches: with results, without, and what names mean afterwards."""

from __future__ import annotations

from .marked import error_of, function, printed_body

T = "pl.Tensor[[64, 64], pl.FP32]"


def test_assignments_in_both_branches_are_one_variable() -> None:
    body = "if k == 0:\n    y = pl.exp(x)\nelif k == 1:\n    y = pl.neg(x)\nelse:\n    y = pl.abs(x)\nreturn y"
    assert printed_body(function(body)) == [
        "if k == 0:",
        f"    y: {T} = pl.tensor.exp(x)",
        "else:",
        "    if k == 1:",
        f"        y: {T} = pl.tensor.neg(x)",
        "    else:",
        f"        y: {T} = pl.tensor.abs(x)",
        "return y",
    ]


def test_yielded_results() -> None:
    body = f"if k == 0:\n    y: {T} = pl.yield_(pl.exp(x))\nelse:\n    y = pl.yield_(x)\nreturn y"
    assert printed_body(function(body)) == [
        "if k == 0:",
        f"    y: {T} = pl.yield_(pl.tensor.exp(x))",
        "else:",
        f"    y: {T} = pl.yield_(x)",
        "return y",
    ]


def test_two_results_and_different_names() -> None:
    body = "if k == 0:\n    a = pl.yield_(x)\nelse:\n    b = pl.yield_(pl.exp(x))\nreturn a"
    assert printed_body(function(body))[1::2] == ["    a, b = pl.yield_(x)", "    a, b = pl.yield_(pl.tensor.exp(x))"]


def test_bare_yield_names_nothing() -> None:
    assert printed_body(function("if k == 0:\n    pl.yield_(x)\nreturn x"))[1] == "    pl.yield_(x)"


def test_names_of_yielding_branches_are_their_own() -> None:
    body = "if k == 0:\n    t = pl.exp(x)\n    y = pl.yield_(t)\nelse:\n    y = pl.yield_(x)\nreturn t"
    assert error_of(function(body)).message == "Undefined variable 't'"


def test_yield_inside_a_runtime_scope_counts() -> None:
    body = (
        "if k == 0:\n    with pl.manual_scope():\n        y = pl.yield_(pl.exp(x))\n"
        "else:\n    y = pl.yield_(x)\nreturn y"
    )
    lines = printed_body(function(body))
    assert lines[2] == f"        y: {T} = pl.yield_(pl.tensor.exp(x))"


def test_siblings_must_agree_about_a_type() -> None:
    body = "if k == 0:\n    y = pl.slice(x, [32, 64], [0, 0])\nelse:\n    y = pl.slice(x, [16, 64], [0, 0])\nreturn y"
    assert error_of(function(body)).message.startswith("Cannot reassign 'y' with a different type")


def test_constant_conditions_are_not_decided() -> None:
    assert printed_body(function("if N == 4:\n    y = pl.exp(x)", head="N = 4\n"))[0] == (
        "if pl.const(4, pl.INDEX) == pl.const(4, pl.INDEX):"
    )


def test_conditions() -> None:
    body = "if k % 2 == 0 and not k == 4 or n > pl.const(3, pl.INT32):\n    y = x"
    assert printed_body(function(body))[0] == "if k % 2 == 0 and not k == 4 or n > pl.const(3, pl.INT32):"
