"""What a marked test claims is checked, wherever its programs run; a test that checks nothing is told so."""

from __future__ import annotations

import pytest

from tests.plugin.kernels import ADD, MIXED

SPLIT = """
@pytest.mark.pypto_split({modes})
def test_it(pypto_split, pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program({given}))
    pypto_check(compiled, pypto_inputs(compiled), reference, layers=["oracle"])
"""
CLAIMS = [
    ("'NONE', 'UP_DOWN', 'LEFT_RIGHT'", "pypto_split", 3, ()),
    ("'UP_DOWN', 'LEFT_RIGHT'", "'NONE'", 0, ("*the test claims split UP_DOWN, but no function of the lowered*",)),
    ("'NONE', 'UP_DOWN'", "'UP_DOWN'", 1, ("*the test claims split NONE, but * has split UP_DOWN; *with_split(*",)),
    ("'LEFT_RIGHT'", "'UP_DOWN'", 0, ("*claims split LEFT_RIGHT*has UP_DOWN*pl.split(pypto_split)*",)),
]


def kernel(given: str) -> str:
    return given if given == "pypto_split" else f"pl.SplitMode[{given}]"


@pytest.mark.parametrize(("modes", "given", "passed", "lines"), CLAIMS)
def test_a_claimed_split(
    pytester: pytest.Pytester, modes: str, given: str, passed: int, lines: tuple[str, ...]
) -> None:
    pytester.makepyfile(MIXED + SPLIT.format(modes=modes, given=kernel(given)))
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(passed=passed, failed=modes.count("'") // 2 - passed)
    result.stdout.fnmatch_lines(lines)


def test_a_vector_program_with_a_claimed_split(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ADD + SPLIT.format(modes="'NONE', 'UP_DOWN'", given=""))
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*claims split UP_DOWN*(no function has any); *"])


def test_without_the_marker_nothing_is_claimed(pytester: pytest.Pytester) -> None:
    text = SPLIT.format(modes="'NONE'", given=kernel("'UP_DOWN'")).replace("@pytest.mark.pypto_split('NONE')", "")
    pytester.makepyfile(MIXED + text)
    pytester.runpytest().assert_outcomes(passed=1)


WAYS = [
    "pypto_check(compiled, inputs, reference, layers=['memory'])",
    "pypto_oracle(compiled, inputs)",
    "pypto_device(compiled, inputs)",
    "pytest_pypto.assert_oracle(compiled, inputs, reference)",
    "pytest_pypto.assert_device(compiled, inputs, reference)",
    "pytest_pypto.assert_memory(compiled)",
    "pytest_pypto.assert_roundtrip(compiled)",
    "pass",
]


@pytest.mark.parametrize("line", WAYS)
@pytest.mark.parametrize(("direction", "good"), [("V2C", False), ("C2V", True)])
def test_every_way_of_running_is_held_to_the_markers(
    pytester: pytest.Pytester, line: str, direction: str, good: bool
) -> None:
    pytester.makepyfile(
        MIXED
        + f"""
import pytest_pypto

@pytest.mark.pypto_direction("{direction}")
@pytest.mark.pypto_split("UP_DOWN")
def test_it(pypto_split, pypto_compile, pypto_inputs, pypto_oracle, pypto_device, {"pypto_check" * ("_check" in line)}):
    compiled = pypto_compile(program(pypto_split))
    inputs = pypto_inputs(compiled)
    {line}
"""
    )
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(**{"passed" if good else "failed": 1}, warnings=0)
    if not good:
        result.stdout.fnmatch_lines(["*the test claims V2C, but the lowered program has no vector-to-cube transfer*"])


def test_a_marked_test_that_compiles_nothing_is_told_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.pypto_split('NONE')\ndef test_it(): pass\ndef test_two(): pass\n")
    result = pytester.runpytest()
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*PytestPyptoWarning: *::test_it[[]NONE] is marked with split NONE and passed, but*"])


@pytest.mark.parametrize(
    ("line", "warnings", "passed"),
    [
        ("pass", 1, 1),
        ("pypto_check(compiled, inputs, reference, layers=['oracle'])", 0, 1),
        ("from pytest_pypto import assert_oracle; assert_oracle(compiled, inputs, reference)", 0, 1),
        ("assert False", 0, 0),
        ("pytest.skip('later')", 0, 0),
    ],
)
def test_a_forgotten_check(pytester: pytest.Pytester, line: str, warnings: int, passed: int, way: list[str]) -> None:
    pytester.makepyfile(
        ADD
        + f"""
def test_it(pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program())
    inputs = pypto_inputs(compiled)
    {line}
"""
    )
    result = pytester.runpytest(*way)
    result.assert_outcomes(passed=passed, failed=int("False" in line), skipped=int("skip" in line), warnings=warnings)
    if warnings:
        result.stdout.fnmatch_lines(["*PytestPyptoWarning: *::test_it[[]a2a3sim] asked for pypto_check and passed*"])
