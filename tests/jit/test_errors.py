"""Errors in jit functions speak of the author's file, line, column and names."""

from __future__ import annotations

import inspect

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.language.parser.diagnostics import (
    InvalidOperationError,
    ParserError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from tests.kit import shown

torch = pytest.importorskip("torch")
X = torch.zeros(16, 32)


@pl.jit.incore
def helper(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    t = pl.load(a, [0, 0], [16, 32])
    t = pl.add(t, missing)  # noqa: F821
    o = pl.store(t, [0, 0], o)
    return o


@pl.jit
def entry(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = helper(a, o)
    return o


@pl.jit
def shapes(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        m, n = a.shape
        t = pl.slice(a, [m, n // 2], [0, 0])
        o[:] = pl.add(a, t)
    return o


@pl.jit
def renamed(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        first = pl.add(a, a)
        first = pl.cast(first, pl.FP16)
        frist = pl.cast(frst, pl.FP32)  # noqa: F821
        o[:] = frist
    return o


@pl.jit
def python(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    print(a)
    return o


@pl.jit
def recursive(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = looping(a, o)
    return o


@pl.jit.inline
def looping(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = looping_too(a, o)
    return o


@pl.jit.inline
def looping_too(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = looping(a, o)
    return o


def place(function: object, line: str) -> tuple[int, int]:
    """1-based line of `line` within a function, and the column of its first character."""
    lines, first = inspect.getsourcelines(function.func)  # type: ignore[attr-defined]
    for number, text in enumerate(lines):
        if line in text:
            return first + number, text.index(line) + 1
    raise AssertionError(line)


@pytest.mark.parametrize(
    ("kernel", "where", "text", "error", "message"),
    [
        (entry, helper, "missing)", UndefinedVariableError, "Undefined variable 'missing'"),
        (shapes, shapes, "pl.add(a, t)", InvalidOperationError, "pl operation 'add': The operator tensor.add requires"),
        (renamed, renamed, "frst, pl", UndefinedVariableError, "Undefined variable 'frst'"),
        (python, python, "print(a)", UnsupportedFeatureError, "Unsupported function call: print(a)"),
    ],
)
def test_place(kernel: object, where: object, text: str, error: type[ParserError], message: str) -> None:
    with pytest.raises(error) as caught:
        kernel.specialize(X, X)  # type: ignore[attr-defined]
    found = caught.value
    assert found.message.startswith(message)
    assert found.span is not None
    assert found.span["filename"] == __file__
    assert (found.span["line"], found.span["column"]) == place(where, text)
    assert text.split(")")[0] in shown(found)


def test_hints_use_the_authors_names() -> None:
    with pytest.raises(UndefinedVariableError) as caught:
        renamed.specialize(X, X)
    assert caught.value.hint == "did you mean 'first'?"


def test_recursion_is_refused() -> None:
    with pytest.raises(ParserError, match="jit function 'looping' calls itself"):
        recursive.specialize(X, X)


def test_helpers_are_not_called_from_python() -> None:
    with pytest.raises(TypeError, match=r"@pl.jit.incore function 'helper' is called by @pl.jit functions"):
        helper(X, X)
    with pytest.raises(TypeError, match=r"@pl.jit.incore function 'helper' is called by @pl.jit functions"):
        helper.compile(X, X)


def test_source_that_cannot_be_read() -> None:
    scope: dict[str, object] = {"pl": pl}
    exec("def hidden(a: pl.Tensor):\n    return a\n", scope)
    with pytest.raises(OSError, match="cannot read the source of jit function 'hidden'"):
        pl.jit(scope["hidden"]).specialize(X)
