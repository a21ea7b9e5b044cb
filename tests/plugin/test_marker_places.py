"""Markers in every place where one can be written: none is silently without effect."""

from __future__ import annotations

import pytest

from tests.plugin.test_markers import ids

HEAD = "import pytest\nimport unittest\n"
BOTH = "--pypto-platform=a2a3sim,a5sim"

PARAM = """
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.{mark}), 2])
def test_it(x, pypto_platform, pypto_split, pypto_direction): pass
"""


def collect(pytester: pytest.Pytester, text: str, *flags: str) -> list[str]:
    pytester.makepyfile(HEAD + text)
    result = pytester.runpytest("--collect-only", "-q", *flags)
    result.assert_outcomes(errors=0)
    return ids(result)


@pytest.mark.parametrize(
    ("mark", "flag", "expected"),
    [
        ("pypto_platform('a5sim')", BOTH, ["a2a3sim-2", "a5sim-1", "a5sim-2"]),
        ("pypto_platform('a5sim')", "--pypto-platform=a2a3sim", ["a2a3sim-2"]),
        ("pypto_platform('a5sim')", "--pypto-platform=a5sim", ["a5sim-1", "a5sim-2"]),
        ("pypto_platform('a5sim', 'a2a3sim')", "--pypto-platform=a2a3sim", ["a2a3sim-1", "a2a3sim-2"]),
        ("pypto_split('UP_DOWN', 'NONE')", "-Wignore", ["a2a3sim-2", "a2a3sim-UP_DOWN-1", "a2a3sim-NONE-1"]),
        ("pypto_direction('C2V')", "-Wignore", ["a2a3sim-2", "a2a3sim-C2V-1"]),
    ],
)
def test_a_marker_in_a_param_is_about_that_parameter(
    pytester: pytest.Pytester, mark: str, flag: str, expected: list[str]
) -> None:
    assert sorted(collect(pytester, PARAM.format(mark=mark), flag)) == sorted(expected)


def test_a_marker_in_a_param_wins_over_the_one_of_the_test(pytester: pytest.Pytester) -> None:
    text = "@pytest.mark.pypto_split('NONE', 'LEFT_RIGHT')" + PARAM.format(mark="pypto_split('UP_DOWN')")
    assert sorted(collect(pytester, text)) == ["a2a3sim-LEFT_RIGHT-2", "a2a3sim-NONE-2", "a2a3sim-UP_DOWN-1"]


def test_a_marker_in_the_parameter_of_a_fixture(pytester: pytest.Pytester) -> None:
    text = """
@pytest.fixture(params=[pytest.param(1, marks=pytest.mark.pypto_split("UP_DOWN")), 2])
def one(request): return request.param
def test_it(one, pypto_split): assert pypto_split.name == {1: "UP_DOWN", 2: "NONE"}[one]
"""
    pytester.makepyfile(HEAD + text)
    result = pytester.runpytest("-v", "-Wignore")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines_random(["*test_it[[]2-plain]*", "*test_it[[]1-UP_DOWN]*"])


def test_the_closest_tolerance_is_that_of_the_param(pytester: pytest.Pytester) -> None:
    text = """
from pytest_pypto.markers import sanitizers_of, tolerance_of
pytestmark = [pytest.mark.pypto_tolerance(rtol=1), pytest.mark.pypto_sanitize("all")]
@pytest.mark.pypto_tolerance(rtol=2, atol=2)
@pytest.mark.pypto_sanitize("none")
@pytest.mark.parametrize("x", [pytest.param(1, marks=[pytest.mark.pypto_tolerance(rtol=3),
                                                      pytest.mark.pypto_sanitize("race")])])
def test_it(x, request):
    assert tolerance_of(request.node).rtol == {"": 3} and tolerance_of(request.node).atol == {"": 2}
    assert sanitizers_of(request.node) == {"race"}
"""
    pytester.makepyfile(HEAD + text)
    pytester.runpytest().assert_outcomes(passed=1)


def test_a_class_wins_over_its_base(pytester: pytest.Pytester) -> None:
    text = """
@pytest.mark.pypto_platform("a2a3sim")
@pytest.mark.pypto_split("UP_DOWN")
class Base:
    def test_it(self, pypto_split): pass
@pytest.mark.pypto_platform("a5sim")
class TestDerived(Base): pass
"""
    assert collect(pytester, text, BOTH) == ["a5sim-UP_DOWN"]


CASE = """
class TestIt(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _take(self, pypto_platform, pypto_split, pypto_direction):
        self.taken = (pypto_platform, pypto_split.name, pypto_direction.name)

    @pytest.mark.pypto_platform("a5sim")
    @pytest.mark.pypto_split("UP_DOWN")
    @pytest.mark.pypto_direction("C2V")
    def test_marked(self): assert self.taken == ("a5sim", "UP_DOWN", "C2V")
    def test_plain(self): assert self.taken == ("a2a3sim", "NONE", "BIDIR")
"""


def test_methods_of_unittest_follow_their_markers(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(HEAD + CASE)
    result = pytester.runpytest(BOTH, "-W", "always::pytest_pypto.claimed.PytestPyptoWarning", *way)
    result.assert_outcomes(passed=2, warnings=2)
    result.stdout.fnmatch_lines_random(
        ["*this test runs on a2a3sim only, not on a5sim: *", "*is marked with split UP_DOWN and direction C2V *"]
    )


def test_methods_of_unittest_are_deselected_and_skipped_by_platform(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + CASE)
    pytester.runpytest().assert_outcomes(passed=1, deselected=1)
    pytester.makepyfile(HEAD + CASE.replace('platform("a5sim")', 'platform("a5")'))
    result = pytester.runpytest("--pypto-platform=a2a3sim,a5", "-rs", "-Wignore")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*platform a5 is Ascend hardware*"])


UNIT = "class TestIt(unittest.TestCase):\n    @pytest.mark.{mark}\n    def test_it(self): pass\n"
CONFTEST = "def pytest_generate_tests(metafunc):\n    import pytest\n    metafunc.parametrize('x', [{param}])\n"
DIRECT = "@pytest.mark.parametrize('{name}', ['a2a3sim']{more})\ndef test_it({name}): pass\n"

SILENT = [
    (PARAM.format(mark="pypto_plattform('a5sim')"), "test_it: no marker is called 'pypto_plattform'; *"),
    (PARAM.format(mark="pypto_platform('a7')"), "test_it: pypto_platform: unknown platform 'a7': *"),
    (PARAM.format(mark="pypto_tolerance(rtl=3)"), "test_it: pypto_tolerance takes no keyword 'rtl': *"),
    (PARAM.format(mark="pypto_sanitize('rce')"), "test_it: pypto_sanitize: unknown sanitizer 'rce': *"),
    ("@pytest.mark.pypto_sanitize('rce')\ndef test_it(): pass", "test_it: pypto_sanitize: unknown sanitizer 'rce': *"),
    (UNIT.format(mark="pypto_spilt('NONE')"), "TestIt::test_it: no marker is called 'pypto_spilt'; *"),
    (UNIT.format(mark="pypto_split('UPDOWN')"), "TestIt::test_it: pypto_split: unknown split mode 'UPDOWN': *"),
    (UNIT.format(mark="pypto_split('NONE', 'UP_DOWN')"), "TestIt::test_it: pypto_split lists 2 values, but *"),
    (
        "@pytest.mark.pypto_split('NONE')\n@pytest.mark.pypto_split('UP_DOWN')\ndef test_it(): pass",
        "test_it: pypto_split is given twice in one place: list the values in one marker",
    ),
    (
        "@pytest.mark.pypto_platform('a5sim')\n@pytest.mark.pypto_platform('a2a3sim')\nclass TestIt:\n"
        "    def test_it(self): pass",
        "TestIt::test_it: pypto_platform is given twice in one place: *",
    ),
    (DIRECT.format(name="pypto_platform", more=""), "test_it: pypto_platform is parametrised directly, *"),
    (DIRECT.format(name="pypto_split", more=", indirect=True"), "test_it: pypto_split is parametrised directly, *"),
    (
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.pypto_split('NONE'))])\ndef test_it(x): pass",
        "test_it: pypto_split('NONE') marks a parameter, but *",
    ),
]


@pytest.mark.parametrize(("text", "message"), SILENT, ids=range(len(SILENT)))
def test_what_would_be_without_effect_is_an_error(pytester: pytest.Pytester, text: str, message: str) -> None:
    pytester.makepyfile(f"{HEAD}{text}\n\ndef test_other(): pass\n")
    result = pytester.runpytest("-Wignore")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*.py::{message}"])
    result.stdout.fnmatch_lines(["ERROR *.py* - Failed: *"])


def test_every_wrong_marker_of_a_file_is_listed(pytester: pytest.Pytester) -> None:
    tests = [f"@pytest.mark.pypto_split('{name}')\ndef test_{name}(): pass\n" for name in ("a", "b")]
    pytester.makepyfile(HEAD + "\n".join(tests))
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["*::test_a: *unknown split mode 'a'*", "*::test_b: *unknown split mode 'b'*"])


def test_parameters_that_a_conftest_makes(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST.format(param="pytest.param(1, marks=pytest.mark.pypto_split('UP_DOWN'))"))
    pytester.makepyfile(HEAD + "def test_it(x, pypto_split): pass")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*::test_it: pypto_split('UP_DOWN') marks a parameter, but *"])


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("pypto_split('UP_DOWN')", "*pypto_split was added to the test after its variants were made*"),
        ("pypto_spilt('UP_DOWN')", "*no marker is called 'pypto_spilt'*"),
    ],
)
def test_a_marker_that_comes_too_late(pytester: pytest.Pytester, mark: str, message: str) -> None:
    pytester.makeconftest(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        f"    for item in items:\n        item.add_marker(pytest.mark.{mark})\n"
    )
    pytester.makepyfile("def test_it(pypto_split): pass")
    result = pytester.runpytest("-Wignore")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])


def test_a_late_marker_that_needs_no_variants_works(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest\ndef pytest_collection_modifyitems(items):\n"
        "    for item in items:\n        item.add_marker(pytest.mark.pypto_tolerance(rtol=7))\n"
    )
    pytester.makepyfile(
        "from pytest_pypto.markers import tolerance_of\n"
        "def test_it(request): assert tolerance_of(request.node).rtol == {'': 7}\n"
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_overridden_fixtures_are_the_authors_choice(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n@pytest.fixture\ndef pypto_platform(): return 'a5sim'\n"
        "def test_it(pypto_config): assert pypto_config.platform == 'a5sim'\n"
    )
    pytester.runpytest().assert_outcomes(passed=1)
