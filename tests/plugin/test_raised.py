"""What the fixtures raise: shown as plain text, and still errors that a test can catch or expect."""

from __future__ import annotations

import pytest

from pytest_pypto.failures import as_failure
from pytest_pypto.harness.errors import ArgumentError, CaseError, CheckFailed
from pytest_pypto.harness.verdict import Verdict

from .kernels import ADD

CATCHES = """
from pytest_pypto import CaseError, CheckFailed
import unittest

@pytest.fixture
def wrong(pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program())
    return lambda: pypto_check(compiled, pypto_inputs(compiled), off_by_one, layers=["oracle"])

@pytest.mark.parametrize("kind", [CheckFailed, AssertionError, Exception, pytest.fail.Exception])
def test_caught(wrong, kind):
    with pytest.raises(kind, match="oracle failed") as caught:
        wrong()
    assert isinstance(caught.value, CheckFailed) and not caught.value.verdict.passed

@pytest.mark.xfail(raises=AssertionError, strict=True)
def test_expected(wrong):
    wrong()

class TestCase(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _take(self, wrong):
        self.wrong = wrong

    def test_caught(self):
        with self.assertRaises(CheckFailed):
            self.wrong()

def test_misuse(pypto_compile, pypto_inputs):
    with pytest.raises(TypeError, match="got int 3"):
        pypto_compile(3)
    with pytest.raises(CaseError, match="no parameter is called 'x'"):
        pypto_inputs(program(), x=1)
"""


def test_what_fixtures_raise_can_be_caught_and_expected(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD + CATCHES)
    pytester.runpytest("--pypto-keep=never").assert_outcomes(passed=6, xfailed=1)


def test_uncaught_it_is_shown_without_frames(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(test_it=ADD + CATCHES + "def test_shown(wrong): wrong()\n")
    result = pytester.runpytest("--pypto-keep=never", "-k", "shown", "--tb=long", *way)
    result.stdout.fnmatch_lines(["pypto: oracle failed: *", "FAILED *test_shown* - CheckFailed: pypto: oracle*"])
    result.stdout.no_fnmatch_line("*workbench.py*")
    result.stdout.no_fnmatch_line(">*")


@pytest.mark.parametrize(
    "error", [CaseError("a"), ArgumentError("a"), CheckFailed("a", Verdict("n", "p", ())), KeyError("a")]
)
def test_as_failure_keeps_class_fields_and_words(error: Exception) -> None:
    made = as_failure(error)
    assert isinstance(made, type(error))
    assert isinstance(made, pytest.fail.Exception)
    assert str(made) == str(error)
    assert made.args == error.args
    assert type(made).__name__ == type(error).__name__
    assert getattr(made, "verdict", None) == getattr(error, "verdict", None)
    assert str(as_failure(error, "other words")) == "other words"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("with pypto_compile_error(): pypto_compile(3)", "*takes a @pl.program or a @pl.jit kernel, got int 3*"),
        ("with pypto_compile_error(line='x = 1'): pass", "*line='x = 1' is no line number; words go into keywords=*"),
        ("with pypto_compile_error(3): pass", "*3 is no class of errors, and no name of one*"),
        ("with pypto_compile_error(ValueError): pass", "*expected ValueError, but nothing was raised*"),
    ],
)
def test_mistakes_around_expected_errors(pytester: pytest.Pytester, line: str, message: str) -> None:
    pytester.makepyfile(f"def test_it(pypto_compile, pypto_compile_error):\n    {line}\n")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])
