"""What the plugin costs tests that do not use it: counted in function calls, which do not depend on the machine."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

BUDGET = 60
"""Python calls that a foreign test may cost more because the plugin is there."""

COUNT = """
import cProfile, pstats, sys, pytest
profile = cProfile.Profile()
profile.enable()
code = pytest.main(sys.argv[1:])
profile.disable()
assert code == 0, code
print("CALLS", pstats.Stats(profile).total_calls)
"""
BARE = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:timeout", "-p", "no:hypothesispytest", "-q", "--tb=short"]


def calls(pytester: pytest.Pytester, tests: int, *flags: str) -> int:
    """Function calls of a session with so many empty tests."""
    name = f"test_many_{tests}.py"
    text = f"import pytest\n@pytest.mark.parametrize('n', range({tests}))\ndef test_it(n): pass\n"
    (pytester.path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", COUNT, name, *BARE, *flags],
        capture_output=True,
        text=True,
        cwd=pytester.path,
        timeout=120,
    )
    found = re.search(r"CALLS (\d+)", done.stdout)
    assert found, done.stdout + done.stderr
    return int(found[1])


def test_a_foreign_test_costs_next_to_nothing(pytester: pytest.Pytester) -> None:
    def per_test(*flags: str) -> float:
        return (calls(pytester, 300, *flags) - calls(pytester, 100, *flags)) / 200

    with_plugin, without = per_test(), per_test("-p", "no:pypto")
    assert with_plugin - without <= BUDGET


@pytest.mark.parametrize("way", [[], ["-n2"]], ids=["plain", "-n2"])
def test_foreign_tests_import_nothing_heavy(pytester: pytest.Pytester, way: list[str]) -> None:
    """Neither torch nor numpy nor PyPTO; also not in the controller, which prints the header and the summary."""
    pytester.makeconftest(
        """
        import sys
        def pytest_unconfigure(config):
            heavy = [m for m in ("torch", "numpy", "pypto", "pytest_pypto.harness.run") if m in sys.modules]
            print("HEAVY", heavy)
        """
    )
    pytester.makepyfile(
        """
        import sys
        import pytest

        def test_plain(): assert "torch" not in sys.modules and "pypto" not in sys.modules

        @pytest.mark.pypto_platform("a2a3sim", "a5sim")
        @pytest.mark.pypto_split("UP_DOWN")
        @pytest.mark.pypto_direction("C2V")
        @pytest.mark.pypto_tolerance(rtol=1e-3)
        def test_marked(pypto_platform): assert "torch" not in sys.modules and "pypto" not in sys.modules
        """
    )
    result = pytester.runpytest_subprocess("-s", "-p", "no:hypothesispytest", *way)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*HEAVY []*".replace("[", "[[]")])


def test_importing_the_package_is_quick_and_light() -> None:
    code = textwrap.dedent(
        """
        import sys
        before = set(sys.modules)
        import pytest_pypto
        ours = sorted(m for m in set(sys.modules) - before if m.startswith("pytest_pypto"))
        print(ours, [m for m in ("torch", "numpy", "pytest") if m in sys.modules])
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['pytest_pypto'] []"
