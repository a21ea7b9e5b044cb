"""Errors that name the next step: misspelt operators, operators of another level, returns out of a region."""

from __future__ import annotations

import pytest

from .marked import error_of, function, printed_body, unmark


@pytest.mark.parametrize(
    ("call", "near"),
    [
        ("ad(x, 1.0)", "pl.add()"),
        ("matmull(x, x)", "pl.matmul()"),
        ("an(x)", "pl.and_()"),
        ("lod(x)", "pl.load()"),
        ("tensor.ad(x, x)", "pl.tensor.add()"),
        ("adds(x, 1.0)", "pl.tensor.adds()"),
    ],
)
def test_nearest_legal_name(call: str, near: str) -> None:
    error = error_of(function(f"y = pl.{call}\nreturn x"))
    assert error.hint == f"did you mean {near}?"


def test_relu_of_a_tensor() -> None:
    error = error_of(function("y = pl.relu(x)\nreturn x"))
    assert "pl.maximum(x, 0.0)" in error.message


def test_early_return_in_a_region() -> None:
    body = "with pl.at(level=pl.Level.CORE_GROUP):\n    if k == 0:\n        «return x»\n    y = pl.exp(x)\n    return y"
    source, place = unmark(function(body))
    error = error_of(source)
    assert error.message == "'return' in the middle of a device region (pl.at)"
    assert error.span is not None
    assert (error.span["line"], error.span["column"]) == (place.line, place.column)


def test_return_at_the_end_of_a_region() -> None:
    lines = printed_body(function("with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.exp(x)\n    return y"))
    assert lines[-1].strip() == "return y"
