"""Parametrisation by markers: ids, order, intersection with the command line, and every wrong use."""

from __future__ import annotations

import pytest

NINE = """
    import pytest

    @pytest.mark.pypto_platform("a2a3sim", "a5sim")
    @pytest.mark.pypto_split("NONE", "UP_DOWN", "LEFT_RIGHT")
    @pytest.mark.pypto_direction("V2C", "C2V", "BIDIR")
    def test_it(pypto_platform, pypto_split, pypto_direction): pass
"""


def ids(result: pytest.RunResult) -> list[str]:
    """What stands in the brackets of the collected tests."""
    return [line.partition("[")[2].rstrip("]") for line in result.outlines if "::test" in line]


def test_ids_are_the_names_in_the_order_platform_split_direction(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(NINE)
    result = pytester.runpytest("--collect-only", "-q")
    assert ids(result) == [
        f"a2a3sim-{split}-{way}" for split in ("NONE", "UP_DOWN", "LEFT_RIGHT") for way in ("V2C", "C2V", "BIDIR")
    ]


def test_deselection_is_counted_and_shown(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(NINE)
    result = pytester.runpytest(*way)
    result.stdout.fnmatch_lines(["*9 variants deselected (9 on a5sim; --pypto-platform=a2a3sim)*"])
    result.assert_outcomes(passed=9, **({} if "-n2" in way else {"deselected": 9}))


def test_both_platforms(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(NINE)
    result = pytester.runpytest("--pypto-platform=a2a3sim,a5sim")
    result.assert_outcomes(passed=18)
    result.stdout.no_fnmatch_line("*deselected*")


def test_nothing_left_is_no_success(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.pypto_platform("a5sim")
        def test_it(): pass
        """
    )
    assert pytester.runpytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_hardware_is_skipped_with_the_reason_and_the_alternative(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.pypto_platform("a2a3", "a2a3sim")
        def test_it(): pass
        """
    )
    result = pytester.runpytest("--pypto-platform=a2a3,a2a3sim", "-rs", *way)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        ["*platform a2a3 is Ascend hardware and the embedded PyPTO has only simulators; *--pypto-platform=a2a3sim*"]
    )


def test_markers_work_without_the_fixtures_and_with_other_parameters(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.parametrize("n", [1, 2])
        @pytest.mark.pypto_split("UP_DOWN")
        def test_it(n): pass
        """
    )
    assert ids(pytester.runpytest("--collect-only", "-q")) == ["UP_DOWN-1", "UP_DOWN-2"]


def test_fixtures_without_markers(pytester: pytest.Pytester) -> None:
    """NONE, BIDIR, and each platform of the command line."""
    pytester.makepyfile(
        """
        import pypto.language as pl
        from pytest_pypto import Direction
        def test_it(pypto_platform, pypto_split, pypto_direction):
            assert pypto_split is pl.SplitMode.NONE
            assert pypto_direction is Direction.BIDIR and str(pypto_direction) == "BIDIR"
            assert isinstance(pypto_platform, str)
        def test_split_only(pypto_split): pass
        """
    )
    result = pytester.runpytest("-v", "--pypto-platform=a5sim,a2a3sim")
    result.stdout.fnmatch_lines(
        ["*test_it[[]a5sim] PASSED*", "*test_it[[]a2a3sim] PASSED*", "*test_split_only* PASSED*"]
    )


def test_values_may_be_members_names_or_one_list(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        import pypto.language as pl
        from pytest_pypto import Direction

        @pytest.mark.pypto_split(pl.SplitMode.UP_DOWN, "NONE")
        @pytest.mark.pypto_direction([Direction.C2V, "V2C"])
        def test_it(pypto_split, pypto_direction):
            assert isinstance(pypto_split, pl.SplitMode) and isinstance(pypto_direction, Direction)
        """
    )
    result = pytester.runpytest("-v", "-Wignore")
    result.assert_outcomes(passed=4)
    assert [line.split("[")[1].split("]")[0] for line in result.outlines if "::test_it" in line] == [
        "UP_DOWN-C2V",
        "UP_DOWN-V2C",
        "NONE-C2V",
        "NONE-V2C",
    ]


def test_the_closest_marker_wins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.pypto_split("NONE", "UP_DOWN")
        class TestIt:
            @pytest.mark.pypto_split("LEFT_RIGHT")
            def test_one(self): pass
            def test_two(self): pass
        """
    )
    assert ids(pytester.runpytest("--collect-only", "-q")) == ["LEFT_RIGHT", "NONE", "UP_DOWN"]


WRONG = [
    ('pypto_platform("a2a3sim", "a7")', "pypto_platform: unknown platform 'a7': choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_platform(3)", "pypto_platform: unknown platform 3: choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_platform", "pypto_platform needs at least one platform: choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_platform()", "pypto_platform needs at least one platform: choose from a2a3sim, a5sim, a2a3, a5"),
    ('pypto_platform("a5sim", "a5sim")', "pypto_platform lists 'a5sim' twice"),
    ('pypto_platform(ids=["a5sim"])', "pypto_platform takes no keyword 'ids': list the values, *"),
    ('pypto_platform("a5sim", strict=True)', "pypto_platform takes no keyword 'strict': list the values, *"),
    ('pypto_split("UPDOWN")', "pypto_split: unknown split mode 'UPDOWN': choose from NONE, UP_DOWN, LEFT_RIGHT"),
    ("pypto_split(1)", "pypto_split: unknown split mode 1: choose from NONE, UP_DOWN, LEFT_RIGHT"),
    ("pypto_split(None)", "pypto_split: unknown split mode None: choose from NONE, UP_DOWN, LEFT_RIGHT"),
    ("pypto_split()", "pypto_split needs at least one split mode: choose from NONE, UP_DOWN, LEFT_RIGHT"),
    ('pypto_split(mode="NONE")', "pypto_split takes no keyword 'mode': list the values, *"),
    ('pypto_direction("c2v")', "pypto_direction: unknown direction 'c2v': choose from V2C, C2V, BIDIR"),
    ("pypto_direction()", "pypto_direction needs at least one direction: choose from V2C, C2V, BIDIR"),
    ('pypto_direction("C2V", only="C2V")', "pypto_direction takes no keyword 'only': list the values, *"),
    ("pypto_tolerance(1e-3)", "pypto_tolerance takes keywords only (rtol=, atol=, output=), got 0.001"),
    ("pypto_tolerance()", "pypto_tolerance needs rtol= or atol="),
    ('pypto_tolerance(output="o")', "pypto_tolerance needs rtol= or atol="),
    ("pypto_tolerance(rtl=1)", "pypto_tolerance takes no keyword 'rtl': use rtol=, atol=, output="),
    ("pypto_tolerance(rtol=-1)", "pypto_tolerance: rtol=-1 is no tolerance: give a finite number >= 0"),
    ('pypto_tolerance(atol="x")', "pypto_tolerance: atol='x' is no tolerance: give a finite number >= 0"),
    ("pypto_tolerance(atol=1, output=3)", "pypto_tolerance: output=3 is no name of an output"),
]


@pytest.mark.parametrize(("mark", "message"), WRONG, ids=[mark for mark, _ in WRONG])
def test_wrong_use(pytester: pytest.Pytester, mark: str, message: str) -> None:
    """A wrong marker is an error of collection that names the test, quotes the value and lists the right ones."""
    pytester.makepyfile(
        f"""
        import pytest
        @pytest.mark.{mark}
        def test_it(pypto_platform): pass
        def test_other(): pass
        """
    )
    result = pytester.runpytest("--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*::test_it: {message}"])
    result.stdout.no_fnmatch_line("*During handling*")


@pytest.mark.parametrize("name", ["pypto_platforms", "pypto_spilt", "pypto_tolerances"])
def test_a_misspelt_marker(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.{name}('x')\ndef test_it(): pass\ndef test_other(): pass\n")
    result = pytester.runpytest("-Wignore")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            f"*::test_it: no marker is called '{name}'; the markers are pypto_platform, pypto_split, pypto_direction, "
            "pypto_tolerance, pypto_sanitize"
        ]
    )


def test_markers_of_others_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.pypt_slow\n@pytest.mark.slow\ndef test_it(): pass\n")
    pytester.runpytest("-Wignore").assert_outcomes(passed=1)


def test_own_reason_why_a_platform_cannot_run(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_pypto_unavailable(config, platform):
            return "reserved for nightly runs" if platform == "a5sim" else None
        """
    )
    pytester.makepyfile(NINE)
    result = pytester.runpytest("--pypto-platform=a2a3sim,a5sim", "-rs")
    result.assert_outcomes(passed=9, skipped=9)
    result.stdout.fnmatch_lines(["*reserved for nightly runs*"])
