"""What happens while parsing: static checks and prints, comments, warnings."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import ParserError

from .marked import error_of, function, printed_body


def test_static_print_says_where(capsys: pytest.CaptureFixture[str]) -> None:
    pl.parse(function("pl.static_print('n is', N, f'twice {N * 2} of {x}', k + 1)", head="N = 4\n"), "user.py")
    out = capsys.readouterr().out
    assert out == "static_print [user.py:5]: n is 4 twice 8 of x: pl.Tensor[[64, 64], pl.FP32] k + 1\n"


@pytest.mark.parametrize(
    "condition", ["N == 4", "N > 3 and N < 5", "not N == 5", "1 < N < 9", "N", "len(S) == 2", "S[0] == 64", "True"]
)
def test_static_assert_holds(condition: str) -> None:
    assert printed_body(function(f"pl.static_assert({condition})\nreturn x", head="N = 4\nS = [64, 32]\n")) == [
        "return x"
    ]


def test_static_assert_fails_with_its_message() -> None:
    assert error_of(function("pl.static_assert(N == 5, f'N is {N}')", head="N = 4\n")).message == (
        "static_assert failed: N is 4"
    )
    error = error_of(function("pl.static_assert(False)"))
    assert (type(error), error.message) == (ParserError, "static_assert failed")


def test_comments_go_to_their_statement() -> None:
    body = (
        "# one\n#two\ny = pl.exp(x)  # behind\n\n# of the loop\nfor i in pl.range(3):  # head\n    # inside\n"
        "    z = pl.exp('#' if False else x)\nreturn y"
    ).replace("'#' if False else x", "x")
    assert printed_body(function(body)) == [
        "# one",
        "# two",
        "# behind",
        "y: pl.Tensor[[64, 64], pl.FP32] = pl.tensor.exp(x)",
        "# of the loop",
        "# head",
        "for i in pl.range(3):",
        "    # inside",
        "    z: pl.Tensor[[64, 64], pl.FP32] = pl.tensor.exp(x)",
        "return y",
    ]


def test_docstring_becomes_comments() -> None:
    assert printed_body(function('"""First.\n\n    Second.\n"""\nreturn x')) == [
        "# First.",
        "#",
        "# Second.",
        "return x",
    ]


def test_hash_in_a_string_is_no_comment() -> None:
    body = "y = pl.tensor.exp(x, attrs={'a': 'b # c'})\nreturn y"
    assert printed_body(function(body))[0].endswith('attrs={"a": "b # c"})')


def test_comments_survive_the_round_trip() -> None:
    from pypto import ir

    text = ir.python_print(pl.parse(function("# one\ny = pl.exp(x)\nif k == 0:\n    # two\n    z = y\nreturn y")))
    assert ir.python_print(pl.parse(text)) == text


def test_pass_and_ellipsis_are_nothing() -> None:
    assert printed_body(function("pass\nreturn x")) == ["return x"]
    assert printed_body(function("pass")) == ["pass"]
