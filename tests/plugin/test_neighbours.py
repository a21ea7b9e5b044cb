"""One bad test stays one failure: what hangs, crashes, or differs in tolerance leaves the tests beside it alone."""

from __future__ import annotations

import pytest

from .kernels import ADD, MIXED

CHECK = """
@pytest.fixture
def checked(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(program())  # in the set-up, so that a time limit of the call meets the golden alone
    inputs = pypto_inputs(compiled)
    def run(golden, **options):
        pypto_check(compiled, inputs, pypto_golden(golden, inputs), layers=["oracle", "device"], **options)
    return run

"""

HANG = """
def endless(t):
    while True:
        pass

def test_before(checked): checked(reference)
@pytest.mark.timeout(1, func_only=True)
def test_hang(checked): checked(endless)
def test_after(checked): checked(reference)
"""


def test_a_golden_that_hangs(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(test_it=ADD + CHECK + HANG)
    result = pytester.runpytest(*way)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*Timeout*1.0s*", "2 checks (2 on a2a3sim)"])


def test_a_process_that_dies(pytester: pytest.Pytester) -> None:
    text = "import os\n" + HANG.replace("while True:\n        pass", "os._exit(3)").replace("timeout(1,", "timeout(60,")
    pytester.makepyfile(test_it=ADD + CHECK + text)
    result = pytester.runpytest("-n2")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines_random(["*crashed while running 'test_it.py::test_hang*", "2 checks (2 on a2a3sim)"])


def test_tolerances_of_one_program_are_each_tests_own(pytester: pytest.Pytester, way: list[str]) -> None:
    tests = """
    @pytest.mark.pypto_tolerance(atol=2)
    def test_wide(checked): checked(off_by_one)
    def test_policy(checked): checked(off_by_one)
    @pytest.mark.parametrize("atol", [2, 0.5])
    def test_argument(checked, atol): checked(off_by_one, atol=atol)
    """
    pytester.makepyfile(test_it=ADD + CHECK + "\n".join(line[4:] for line in tests.splitlines()))
    result = pytester.runpytest("-rA", "--pypto-keep=never", *way)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(["PASSED *test_wide*", "PASSED *test_argument[[]a2a3sim-2]", "FAILED *policy*"])


def test_an_inout_output_starts_from_its_value_also_with_a_golden_from_the_cache(pytester: pytest.Pytester) -> None:
    slow = "    import time\n    time.sleep(0.25)  # slow enough to be kept\n    "
    text = MIXED.replace("def reference(t: dict[str, Any]) -> None:\n    ", "def reference(t):\n" + slow)
    assert slow in text
    check = CHECK.replace("pypto_inputs(compiled)", "pypto_inputs(compiled, seed=1)")
    tests = "@pytest.mark.parametrize('n', [1, 2])\ndef test_it(checked, n): checked(reference)\n"
    pytester.makepyfile(test_it=text + check + tests)
    pytester.runpytest().assert_outcomes(passed=2)
    assert len(list(pytester.path.glob(".pytest_cache/d/pypto/golden/*/golden.pt"))) == 1
