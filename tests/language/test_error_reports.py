"""What an author sees: the block with the source line and the caret, hints, and several errors at once."""

from __future__ import annotations

import sys
import traceback

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import (
    ErrorRenderer,
    ParserError,
    ParserSyntaxError,
    SSAViolationError,
    UndefinedVariableError,
    concise_error_message,
    get_error_code,
)

from tests.kit import shown

from .marked import error_of, function, host


def test_message_is_all_of_str_where_notes_are_known() -> None:
    error = error_of(function("return yy"))
    assert error.message == "Undefined variable 'yy'"
    first, *rest = str(error).split("\n")
    assert first == error.message
    assert bool(rest) == (sys.version_info < (3, 11))


def test_span_is_a_dict() -> None:
    error = error_of(function("return yy"))
    assert error.span == {
        "filename": "user.py",
        "line": 4,
        "column": 12,
        "end_line": 4,
        "end_column": 14,
        "file": "user.py",
        "begin_line": 4,
        "begin_column": 12,
    }


def test_block_has_context_caret_and_hint() -> None:
    error = error_of(function("first = pl.exp(x)\nz = pl.add(frist, x)\nreturn z"))
    assert ErrorRenderer(use_color=False).render(error) == "\n".join(
        [
            "Error: Undefined variable 'frist'",
            "  --> user.py:5:16",
            "  |",
            "3 | def main(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32], k: pl.Scalar[pl.INDEX]):",
            "4 |     first = pl.exp(x)",
            "5 |     z = pl.add(frist, x)",
            "  |                ^^^^^ Undefined variable 'frist'",
            "6 |     return z",
            "7 |",
            "  |",
            "   = help: did you mean 'first'?",
        ]
    )


def test_caret_covers_the_whole_span() -> None:
    text = ErrorRenderer(use_color=False).render(error_of(function("z = pl.add(x, k + 1.0)")))
    assert "  |                   ^^^^^^^\n" in text


def test_caret_of_a_statement_of_several_lines_covers_its_first() -> None:
    text = ErrorRenderer(use_color=False).render(error_of(function("z = pl.frob(\n    x,\n)")))
    assert "4 |     z = pl.frob(\n  |         ^^^^^^^^ " in text


def test_tabs_count_four() -> None:
    error = error_of("import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32]):\n\treturn yy\n")
    assert error.span is not None
    assert error.span["column"] == 9
    text = ErrorRenderer(use_color=False).render(error)
    assert "4 |     return yy\n  |            ^^ " in text


def test_colours_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    error = error_of(function("return yy"))
    assert "\033[" in ErrorRenderer(use_color=True).render(error)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in ErrorRenderer().render(error)


def test_error_without_place() -> None:
    assert ErrorRenderer(use_color=False).render(ParserError("no idea", note="really")) == (
        "Error: no idea\n   = note: really"
    )


def test_traceback_shows_the_block() -> None:
    error = error_of(function("return yy"))
    printed = "".join(traceback.format_exception(error))
    assert printed.count("--> user.py:4:12") == 1
    assert printed.count("^^ Undefined variable 'yy'") == 1


def test_independent_errors_are_reported_together() -> None:
    error = error_of(
        function(
            "a = pl.frob(x)\nb = pl.add(a, x)\nb += x\nfor i in pl.range(3):\n    c = pl.add(x, zz)\nd = pl.exp(c)"
        )
    )
    found = [(type(e).__name__, e.span["line"] if e.span else 0) for e in (error, *error.related)]
    assert found == [("InvalidOperationError", 4), ("UnsupportedFeatureError", 6), ("UndefinedVariableError", 8)]
    assert shown(error).count("-->") == 3


def test_errors_of_several_functions_are_reported_together() -> None:
    source = host("y = self.stpe(x, x)\nreturn y").replace("return pl.store(", "return pl.stroe(")
    error = error_of(source)
    assert [e.message for e in (error, *error.related)] == [
        "Unknown operation 'pl.stroe'",
        "Function 'stpe' not defined in program",
    ]


def test_what_only_follows_from_an_error_is_not_reported() -> None:
    error = error_of(
        function("a = pl.frob(x)\nb = pl.add(a, a)\nc, d = (b, a)\nwith pl.cluster():\n    e = d\nreturn e")
    )
    assert error.related == ()


def test_a_failed_loop_head_takes_the_names_of_its_body_along() -> None:
    error = error_of(function("for i in range(3):\n    a = x\n    b = a\nreturn b"))
    assert error.related == ()


def test_errors_stop_at_twenty() -> None:
    error = error_of(function("\n".join(f"a{i} = zz{i}" for i in range(40))))
    assert len(error.related) == 19


def test_previous_definition() -> None:
    error = error_of(function("z = pl.exp(x)\nz = x", decorator="@pl.function(strict_ssa=True)"))
    assert isinstance(error, SSAViolationError)
    assert error.previous_span["line"] == 4


def test_unknown_operator_names_its_neighbour() -> None:
    assert error_of(function("z = pl.tensor.mtmul(x, x)")).hint == "did you mean pl.tensor.matmul()?"


def test_name_that_only_running_would_define() -> None:
    error = error_of(function("z = pl.mul(x, M)", head="import math\nM = math.ceil(3.5)\n"))
    assert isinstance(error, UndefinedVariableError)
    assert error.hint is not None
    assert error.hint.startswith("line 3 defines 'M', but text is read without being run")


def test_source_map_places_errors_in_the_users_file() -> None:
    code = function("z = pl.exp(x)\nw = pl.add(z, qq)")
    with pytest.raises(ParserError, match="Undefined variable 'qq'") as caught:
        pl.parse(code, "<made>", source_map={5: ("kernel.py", 42, 9)})
    assert caught.value.span is not None
    assert (caught.value.span["file"], caught.value.span["line"], caught.value.span["column"]) == ("kernel.py", 42, 23)


def test_helpers_for_tools() -> None:
    assert get_error_code(ParserSyntaxError) is not None
    assert get_error_code(KeyError) is None
    assert concise_error_message(ValueError("broken [a.py:3:4]\nmore"), strip_trailing_span=True) == "broken"
