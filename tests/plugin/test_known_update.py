"""`--pypto-known-update`: which entries are deleted, narrowed, added and left, and that the rest of the file stays."""

from __future__ import annotations

import pytest

from pytest_pypto.known_update import rewritten

from .test_known import entry

pytestmark = pytest.mark.filterwarnings("ignore:A plugin raised an exception")  # pytest 7 on usage errors, in process

TESTS = """
import pytest

@pytest.mark.pypto_platform("a2a3sim", "a5sim")
def test_platform(pypto_platform): assert pypto_platform == "a2a3sim"

@pytest.mark.parametrize("n", [1, 2, 3])
def test_many(n): assert n != 2, "two is no good"

def test_good(): pass
def test_skipped(): pytest.skip("not today")
"""
TOP = "# Known failures\n\n"
GOOD = entry("test_it.py::test_good")
MANY = "# of numbers\n" + entry("test_it.py::test_many", issue="#7")
KEPT = entry("test_it.py::test_skipped") + entry("other.py::test_x") + entry("*::test_good")
BOTH = "--pypto-platform=a2a3sim,a5sim"


def update(pytester: pytest.Pytester, text: str, *flags: str) -> tuple[pytest.RunResult, str]:
    """A run with a file, and the file afterwards."""
    pytester.makepyfile(test_it=TESTS)
    file = pytester.path / "known.toml"
    file.write_text(text)
    result = pytester.runpytest("--pypto-known=known.toml", *flags)
    return result, file.read_text()


def test_passing(pytester: pytest.Pytester, way: list[str]) -> None:
    result, text = update(pytester, TOP + GOOD + MANY + KEPT, "--pypto-known-update=passing", *way)
    result.assert_outcomes(passed=4, xfailed=1, skipped=1, **({} if "-n2" in way else {"deselected": 1}))
    assert text == TOP + entry("test_it.py::test_many[2]", issue="#7") + KEPT.strip() + "\n"
    result.stdout.fnmatch_lines(["known.toml was rewritten: 1 deleted, 1 narrowed"])
    again, same = update(pytester, text, "--pypto-known-update=passing", *way)
    again.stdout.no_fnmatch_line("*was rewritten*")
    assert same == text


def test_all(pytester: pytest.Pytester, way: list[str]) -> None:
    wrong = entry("test_it.py::test_many[2]", "compile")
    result, text = update(pytester, wrong, "--pypto-known-update=all", BOTH, *way)
    result.assert_outcomes(passed=4, failed=2, skipped=1)
    assert text == "\n".join(
        [
            "[[known]]", 'id = "test_it.py::test_many[2]"', 'phase = "test"',
            'reason = "two is no good"', "",
            "[[known]]", 'id = "test_it.py::test_platform[a5sim]"', 'platform = "a5sim"', 'phase = "test"',
            "reason = \"assert 'a5sim' == 'a2a3sim'\"", "",
        ]
    )  # fmt: skip
    result.stdout.fnmatch_lines(["known.toml was rewritten: 1 deleted, 2 added"])
    update(pytester, text, BOTH)[0].assert_outcomes(passed=4, xfailed=2, skipped=1)


@pytest.mark.parametrize(
    "flags",
    [("-k", "test_many and 1"), ("test_it.py::test_good",), ("test_it.py::test_many[1]",), ("-x", "-k", "many")],
)
def test_an_entry_whose_tests_did_not_all_run_stays(pytester: pytest.Pytester, flags: tuple[str, ...]) -> None:
    other = entry("test_it.py::test_platform", "compile")
    assert update(pytester, MANY + other, "--pypto-known-update=passing", *flags)[1] == (
        "\n".join([entry("test_it.py::test_many[2]", issue="#7").strip(), "", other.strip(), ""])
        if "many" in flags
        else MANY + other
    )


def test_an_entry_that_fails_in_another_phase_stays(pytester: pytest.Pytester) -> None:
    text = entry("test_it.py::test_many", "compile")
    result, after = update(pytester, text, "--pypto-known-update=passing", "-k", "many")
    result.assert_outcomes(passed=2, failed=1, deselected=4)
    assert after == text


def test_the_file_is_made_when_all_are_added(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=TESTS)
    pytester.runpytest("--pypto-known=new.toml", "--pypto-known-update=all")
    assert (pytester.path / "new.toml").read_text().count("[[known]]") == 1
    pytester.runpytest("--pypto-known=new.toml").assert_outcomes(passed=4, xfailed=1, skipped=1, deselected=1)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--pypto-known-update=passing"], "ERROR: --pypto-known-update needs --pypto-known=FILE, and no --runxfail"),
        (["--pypto-known=k.toml", "--pypto-known-update=yes"], "ERROR: *: unknown way * no, passing, all"),
        (["--pypto-known=k.toml", "--pypto-known-update=passing"], "ERROR: --pypto-known: no such file: k.toml"),
    ],
)  # fmt: skip
def test_wrong_use(pytester: pytest.Pytester, flags: list[str], message: str) -> None:
    pytester.makepyfile(test_it=TESTS)
    pytester.runpytest(*flags).stderr.fnmatch_lines([message])


def test_a_file_in_another_style_is_left_alone(pytester: pytest.Pytester) -> None:
    text = 'known = [{id = "test_it.py::test_good", phase = "test", reason = "because"}]\n'
    result, after = update(pytester, text, "--pypto-known-update=passing")
    result.stdout.fnmatch_lines(["known.toml was left as it is: its entries are not written as [[][[]known]] tables"])
    assert after == text


def test_texts_survive() -> None:
    import sys

    if sys.version_info < (3, 11):
        pytest.skip("reads TOML with the standard library")
    import tomllib

    reasons = ['a "quote" \\ and\ttab', "line\nbreak", "ümläut 空", "\x00\x1f\x7f", "\udce4"]
    made = rewritten("", (), {}, [{"id": "x", "phase": "test", "reason": reason} for reason in reasons])
    read = [row["reason"] for row in tomllib.loads(made)["known"]]
    assert read == [*reasons[:3], "\x00\x1f?", "?"]
