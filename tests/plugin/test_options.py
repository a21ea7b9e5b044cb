"""Every option: its flag, its ini key, what wrong values say, and the header line."""

from __future__ import annotations

import pytest

from pytest_pypto.options import OPTIONS

pytestmark = pytest.mark.filterwarnings("ignore:A plugin raised an exception")  # pytest 7 on usage errors, in process

SHOW = """
def test_show(request):
    from pytest_pypto.plugin import state_of
    settings = state_of(request.config).settings
    print("VALUE", {name!r}, repr(settings[{name!r}]), settings.origin({name!r}))
"""

GOOD = [
    ("pypto_platform", "a5sim, a2a3sim,a5sim", "('a5sim', 'a2a3sim')"),
    ("pypto_toolchain", "embedded", "'embedded'"),
    ("pypto_seed", "0x10", "16"),
    ("pypto_rtol", "1e-3", "0.001"),
    ("pypto_atol", "0", "0.0"),
    ("pypto_keep", "all", "'all'"),
    ("pypto_sanitize", "race", "frozenset({'race'})"),
    ("pypto_order", "random:7", "{'order': 'random', 'seed': 7}"),
    ("pypto_known", "known.toml", "'known.toml'"),
    ("pypto_known_update", "no", "'no'"),
]


def test_the_table_of_good_values_is_complete() -> None:
    assert [name for name, _, _ in GOOD] == [option.name for option in OPTIONS]


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_flag(pytester: pytest.Pytester, name: str, text: str, value: str) -> None:
    pytester.makepyfile(SHOW.format(name=name))
    pytester.makefile(".toml", known="")
    result = pytester.runpytest("-s", f"--{name.replace('_', '-')}={text}")
    result.stdout.fnmatch_lines([f"*VALUE {name} {glob(value)} command line*"])


@pytest.mark.parametrize(("name", "text", "value"), GOOD)
def test_ini_key(pytester: pytest.Pytester, name: str, text: str, value: str) -> None:
    pytester.makepyfile(SHOW.format(name=name))
    pytester.makefile(".toml", known="")
    pytester.makeini(f"[pytest]\n{name} = {text}\n")
    result = pytester.runpytest("-s")
    result.stdout.fnmatch_lines([f"*VALUE {name} {glob(value)} ini*"])


def glob(text: str) -> str:
    """Text for fnmatch, brackets taken literally."""
    return text.replace("[", "[[]")


def test_the_command_line_wins_over_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SHOW.format(name="pypto_seed"))
    pytester.makeini("[pytest]\npypto_seed = 5\n")
    pytester.runpytest("-s", "--pypto-seed=6").stdout.fnmatch_lines(["*VALUE pypto_seed 6 command line*"])


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_default(pytester: pytest.Pytester, option: object) -> None:
    pytester.makepyfile(SHOW.format(name=option.name))
    result = pytester.runpytest("-s")
    result.stdout.fnmatch_lines([f"*VALUE {option.name} {glob(repr(option.parse(option.default)))} default*"])


BAD = [
    ("pypto_platform", "a2a3sim,a6", "unknown platform 'a6': choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_platform", "A2A3SIM", "unknown platform 'A2A3SIM': choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_platform", ",", "no platform given: choose from a2a3sim, a5sim, a2a3, a5"),
    ("pypto_toolchain", "mine", "unknown toolchain 'mine': choose from auto, installed, embedded"),
    ("pypto_seed", "x", "'x' is no seed: give an integer >= 0"),
    ("pypto_seed", "-1", "'-1' is no seed: give an integer >= 0"),
    ("pypto_rtol", "nan", "'nan' is no tolerance: give a finite number >= 0"),
    ("pypto_rtol", "-0.1", "'-0.1' is no tolerance: give a finite number >= 0"),
    ("pypto_atol", "tight", "'tight' is no tolerance: give a finite number >= 0"),
    ("pypto_keep", "some", "unknown choice for keeping 'some': choose from never, fail, all"),
]


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_wrong_value_on_the_command_line(pytester: pytest.Pytester, name: str, text: str, message: str) -> None:
    pytester.makepyfile("def test_a(): pass")
    flag = f"--{name.replace('_', '-')}"
    result = pytester.runpytest(f"{flag}={text}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {flag}: {message}"])


@pytest.mark.parametrize(("name", "text", "message"), BAD)
def test_wrong_value_in_the_ini_file(pytester: pytest.Pytester, name: str, text: str, message: str) -> None:
    pytester.makepyfile("def test_a(): pass")
    pytester.makeini(f"[pytest]\n{name} = {text}\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: ini key {name}: {message}"])


def test_an_installed_pypto_that_is_not_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_a(): pass")
    result = pytester.runpytest_subprocess("--pypto-toolchain=installed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --pypto-toolchain: no PyPTO is installed *--pypto-toolchain=embedded*"])


def test_a_foreign_package_is_named_in_the_header_and_never_imported(pytester: pytest.Pytester) -> None:
    folder = pytester.mkpydir("pypto")
    (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    pytester.makepyfile("import pypto.ir\ndef test_a(): assert pypto.ir.Var")
    pytester.makeini("[pytest]\npythonpath = .\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["pypto: embedded PyPTO * (shadows an unrelated package `pypto` at *)*"])


def test_header(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_a(): pass")
    result = pytester.runpytest("--pypto-rtol=1e-2", "--pypto-platform=a5sim")
    result.stdout.fnmatch_lines(
        ["pypto: embedded PyPTO *, platform=a5sim (command line), seed=0, rtol=1e-2 (command line)"]
    )


def test_help_documents_every_flag_and_ini_key(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest("--help").stdout.str()
    for option in OPTIONS:
        assert option.flag + "=" in text
        assert f"  {option.name} (string)" in text


def test_markers_are_documented(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--markers").stdout.fnmatch_lines(
        [
            "@pytest.mark.pypto_platform(*ids): *",
            "@pytest.mark.pypto_split(*modes): *",
            "@pytest.mark.pypto_direction(*ways): *",
            "@pytest.mark.pypto_tolerance(rtol=..., atol=..., output=...): *",
        ]
    )


def test_switched_off(pytester: pytest.Pytester) -> None:
    """Without the plugin there are no options, no header, no `pypto`, and nothing breaks."""
    pytester.makepyfile(
        """
        import importlib.util
        def test_a(): assert importlib.util.find_spec("pypto") is None
        """
    )
    result = pytester.runpytest_subprocess("-p", "no:pypto")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("pypto:*")
    result = pytester.runpytest_subprocess("-p", "no:pypto", "--pypto-seed=1")
    result.stderr.fnmatch_lines(["*unrecognized arguments: --pypto-seed=1*"])
