"""Known failures: the file, where a test fails, tests that pass again, and entries without a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_pypto.known import Entry, _room, read_known

from .kernels import ADD

pytestmark = pytest.mark.filterwarnings("ignore:A plugin raised an exception")  # pytest 7 on usage errors, in process

PLAIN = """
import pytest

def test_bad(pypto_platform):
    assert pypto_platform == "a2a3sim", "wrong platform"

@pytest.mark.parametrize("n", [1, 2, 3])
def test_many(n):
    assert n != 2

def test_good():
    pass

def test_skipped():
    pytest.skip("not today")
"""


def entry(id_: str, phase: str = "test", **more: str) -> str:
    """Text of one entry."""
    keys = {"id": id_, "phase": phase, "reason": "because", **more}
    return "[[known]]\n" + "".join(f'{key} = "{value}"\n' for key, value in keys.items()) + "\n"


def run(
    pytester: pytest.Pytester, way: list[str], *entries: str, source: str = PLAIN, flags: tuple[str, ...] = ()
) -> pytest.RunResult:
    """Run the source with these entries in force."""
    pytester.makepyfile(test_it=source)
    (pytester.path / "known.toml").write_text("".join(entries))
    return pytester.runpytest("--pypto-known=known.toml", "-rx", *way, *flags)


# -- what listed tests come to ----------------------------------------------------------------------------------------


def test_listed_failures_are_expected(pytester: pytest.Pytester, way: list[str]) -> None:
    both = ("--pypto-platform=a2a3sim,a5sim",)
    entries = [
        entry("test_it.py::test_bad", platform="a5sim", issue="#7"),
        entry("test_it.py::test_many[2]"),
    ]
    result = run(pytester, way, *entries, flags=both)
    result.assert_outcomes(passed=4, xfailed=2, skipped=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines_random(
        [
            "XFAIL test_it.py::test_bad[[]a5sim[]] - because (#7) [[]test, known.toml:1[]]*",
            "XFAIL test_it.py::test_many[[]2[]] - because [[]test, known.toml:8[]]*",
        ]
    )
    result.stdout.no_fnmatch_line("*pypto known failures*")


def test_a_listed_test_that_passes_is_a_failure(pytester: pytest.Pytester, way: list[str]) -> None:
    comment = "# why\n# and when\n"
    result = run(pytester, way, comment, entry("test_it.py::test_good"), entry("test_it.py::test_many"))
    result.assert_outcomes(passed=1, xfailed=1, failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            "pypto: known.toml:3: this test passes now; delete the entry, or narrow its id or platform to what still "
            "fails (known failure: because)",
            "pypto: known.toml:8: this test passes now; *",
        ]
    )


def test_one_variant_that_passes(pytester: pytest.Pytester) -> None:
    result = run(pytester, [], entry("test_it.py::test_bad[a2a3sim]", platform="a2a3sim"), flags=("-k", "bad"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["pypto: known.toml:1: this test passes now; delete the entry (known failure: because)"]
    )


def test_another_platform_is_not_excused(pytester: pytest.Pytester) -> None:
    result = run(pytester, [], entry("test_it.py::test_many[2]", platform="a5sim"))
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    run(pytester, [], entry("test_it.py::test_many[2]", platform="a2a3sim")).assert_outcomes(
        passed=4, xfailed=1, skipped=1
    )


def test_stars_stand_for_any_text(pytester: pytest.Pytester) -> None:
    run(pytester, [], entry("*::test_m*[2]")).assert_outcomes(passed=4, xfailed=1, skipped=1)


def test_another_phase_is_not_excused(pytester: pytest.Pytester, way: list[str]) -> None:
    result = run(pytester, way, entry("test_it.py::test_many[2]", "compile"))
    result.assert_outcomes(passed=4, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["known.toml:1 expects a failure in compile; this one is in test"])


def test_failure_of_a_fixture(pytester: pytest.Pytester) -> None:
    source = """
    import pytest

    @pytest.fixture
    def broken():
        raise RuntimeError("no")

    def test_a(broken):
        pass
    """
    result = run(pytester, [], entry("test_it.py::test_a"), source=source)
    result.assert_outcomes(xfailed=1)


def test_marks_of_pytest_come_first(pytester: pytest.Pytester) -> None:
    source = "import pytest\n@pytest.mark.xfail(reason='mine')\ndef test_a():\n    assert 0\n"
    result = run(pytester, [], entry("test_it.py::test_a", "compile"), source=source)
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines(["XFAIL test_it.py::test_a - mine*"])


def test_runxfail_ignores_the_file(pytester: pytest.Pytester) -> None:
    result = run(pytester, [], entry("test_it.py::test_many"), flags=("--runxfail",))
    result.assert_outcomes(passed=4, failed=1, skipped=1)


def test_nothing_takes_part_without_the_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_a(pytestconfig): assert not pytestconfig.pluginmanager.has_plugin('pypto-known')")
    pytester.runpytest().assert_outcomes(passed=1)


# -- where a kernel's test fails --------------------------------------------------------------------------------------

CHECK = """
def test_it(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile({program})
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden({golden}, inputs), layers={layers})
"""
PHASES = {
    "compile by the fixture": (
        "compile",
        CHECK.format(program="program(1 << 20)", golden="reference", layers="('oracle',)"),
    ),
    "compile by the language": (
        "compile",
        "def test_it(pypto_platform):\n    @pl.program\n    class P:\n        @pl.function\n"
        "        def main(self, a: pl.Tensor[[16], pl.FP32]):\n            return pl.no_such_operation(a)\n",
    ),
    "oracle": (
        "oracle",
        CHECK.format(program="program()", golden="off_by_one", layers="('roundtrip', 'oracle', 'passes')"),
    ),
    "passes": ("passes", CHECK.format(program="program()", golden="off_by_one", layers="('passes', 'device')")),
    "device": ("device", CHECK.format(program="program()", golden="off_by_one", layers="('memory', 'device')")),
    "the device's fixture": (
        "device",
        "def test_it(pypto_compile, pypto_inputs, pypto_device):\n    compiled = pypto_compile(program())\n"
        "    pypto_device(compiled, pypto_inputs(compiled), device={'order': 'never'})\n",
    ),
    "the oracle's fixture": (
        "test",  # a mistake of the author is no failure of the oracle
        "def test_it(pypto_compile, pypto_inputs, pypto_oracle):\n    compiled = pypto_compile(program())\n"
        "    pypto_oracle(compiled, pypto_inputs(compiled), after='NoSuchPass')\n",
    ),
    "an expected error before it": (
        "test",
        "def test_it(pypto_compile):\n    with pytest.raises(Exception):\n        pypto_compile(program(1 << 20))\n"
        "    assert 0\n",
    ),
}


@pytest.mark.parametrize("case", PHASES)
def test_phase(pytester: pytest.Pytester, case: str) -> None:
    phase, source = PHASES[case]
    result = run(pytester, [], entry("test_it.py::test_it", phase), source=ADD + source)
    result.assert_outcomes(xfailed=1)
    other = "memory" if phase != "memory" else "oracle"
    result = run(pytester, [], entry("test_it.py::test_it", other), source=ADD + source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"known.toml:1 expects a failure in {other}; this one is in {phase}"])


def test_the_repeat_command_shows_the_failure(pytester: pytest.Pytester) -> None:
    source = ADD + CHECK.format(program="program()", golden="off_by_one", layers="('oracle',)")
    result = run(pytester, [], entry("test_it.py::test_it", "device"), source=source, flags=("--pypto-seed=3",))
    assert [line for line in result.outlines if line.startswith("repeat:")] == [
        "repeat: python -m pytest 'test_it.py::test_it[a2a3sim]' --pypto-platform=a2a3sim --pypto-seed=3"
    ]


# -- entries without a test -------------------------------------------------------------------------------------------


def test_entries_without_a_test_are_reported(pytester: pytest.Pytester, way: list[str]) -> None:
    entries = [
        entry("test_it.py::test_gone"),
        entry("test_away.py::test_bad"),
        entry("test_it.py::test_bad[a5sim]", platform="a5sim"),
    ]
    result = run(pytester, way, *entries, flags=("--deselect=test_it.py::test_many[2]",))
    assert result.ret == pytest.ExitCode.OK
    lines = [line for line in result.outlines if line.startswith("known.toml:")]
    assert lines == [
        "known.toml:1: no test is called 'test_it.py::test_gone'; correct or delete the entry",
        "known.toml:6: no test is called 'test_away.py::test_bad'; correct or delete the entry",
        "known.toml:11: no test is called 'test_it.py::test_bad[a5sim]'; correct or delete the entry",
    ]


def test_a_platform_without_a_variant(pytester: pytest.Pytester) -> None:
    source = "import pytest\n@pytest.mark.pypto_platform('a2a3sim')\ndef test_a(): pass\n"
    flags = ("--pypto-platform=a2a3sim,a5sim",)
    result = run(pytester, [], entry("test_it.py::test_a", platform="a5sim"), source=source, flags=flags)
    result.stdout.fnmatch_lines(["known.toml:1: no variant of 'test_it.py::test_a' runs on a5sim"])


@pytest.mark.parametrize("args", [("test_it.py::test_good",), ("test_other.py",), ("-k", "good")])
def test_part_of_the_tests_says_nothing_about_the_rest(pytester: pytest.Pytester, args: tuple[str, ...]) -> None:
    pytester.makepyfile(test_other="def test_good(): pass")
    result = run(pytester, [], entry("test_it.py::test_many[2]"), flags=args)
    result.stdout.no_fnmatch_line("*known.toml:*")


def test_last_failed_says_nothing_about_the_rest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=PLAIN)
    pytester.runpytest()
    result = run(pytester, [], entry("test_it.py::test_gone"), flags=("--lf",))
    result.stdout.no_fnmatch_line("*known.toml:*")


# -- the file ---------------------------------------------------------------------------------------------------------


def test_path_in_the_ini_file_is_relative_to_it(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(test_it=PLAIN)
    pytester.makeini("[pytest]\npypto_known = data/known.toml\n")
    (pytester.mkdir("data") / "known.toml").write_text(entry("test_it.py::test_many[2]"))
    monkeypatch.chdir(pytester.mkdir("elsewhere"))
    pytester.runpytest("..").assert_outcomes(passed=4, xfailed=1, skipped=1)
    result = pytester.runpytest("..", "-o", "pypto_known=data/none.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: ini key pypto_known: no such file: data/none.toml"])


ID = 'id = "t.py::test_a"\n'
FINE = ID + 'phase = "device"\nreason = "r"\n'
BAD = {
    "no reason": (
        f'[[known]]\n{ID}phase = "device"\n',
        "k.toml:1: no reason: every known failure needs id, phase, reason",
    ),
    "empty reason": (f'\n\n[[known]]\n{ID}phase = "device"\nreason = " "\n', "k.toml:3: no reason: *"),
    "no phase": (f'[[known]]\n{ID}reason = "r"\n', "k.toml:1: no phase: *"),
    "no id": ('[[known]]\nphase = "device"\nreason = "r"\n', "k.toml:1: no id: *"),
    "phase": (
        f'[[known]]\n{FINE}[[known]]\n{ID}phase = "codegen"\nreason = "r"\n',
        "k.toml:5: unknown phase 'codegen': choose from compile, roundtrip, oracle, passes, memory, device, test",
    ),
    "platform": (f'[[known]]\n{FINE}platform = "a6"\n', "k.toml:1: unknown platform 'a6': choose from a2a3sim, *"),
    "key": (f"[[known]]\n{FINE}strict = true\n", "k.toml:1: unknown key 'strict': choose from id, platform, *"),
    "type": (f"[[known]]\n{FINE}issue = 7\n", "k.toml:1: issue must be a text, got 7"),
    "twice": (f"[[known]]\n{FINE}[[known]]\n{FINE}", "k.toml:5: 't.py::test_a' is listed already at k.toml:1; *"),
    "table": (f"[known]\n{FINE}", "k.toml: unexpected 'known'; the file consists of *known* tables"),
    "no table": ("known = [1]\n", "k.toml:1: 1 is no table; *"),
    "other": ("version = 1\n", "k.toml: unexpected 'version'; the file consists of *known* tables"),
    "syntax": ("[[known]]\nid = t\n", "k.toml is no TOML: *line 2*"),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_file(pytester: pytest.Pytester, case: str) -> None:
    text, message = BAD[case]
    (pytester.path / "k.toml").write_text(text)
    result = pytester.runpytest("--pypto-known=k.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --pypto-known: {message}"])


def test_no_file(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--pypto-known=none.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --pypto-known: no such file: none.toml"])


def test_read(tmp_path: Path) -> None:
    file = tmp_path / "k.toml"
    file.write_text(
        f'# [[known]] in a comment\n  [[ known ]]\n{FINE}\n[[known]]\n{FINE}platform = "a5"\nissue = "#1"\n'
    )
    assert read_known(file, "k.toml") == (
        Entry("t.py::test_a", "device", "r", "k.toml:2"),
        Entry("t.py::test_a", "device", "r", "k.toml:7", "a5", "#1"),
    )
    file.write_text("")
    assert read_known(file, "k.toml") == ()


@pytest.mark.parametrize(
    ("pattern", "nodeid", "expected"),
    [
        ("t.py::test_a", "t.py::test_a", True),
        ("t.py::test_a", "t.py::test_a[1-x]", True),
        ("t.py::test_a", "t.py::test_ab", False),
        ("t.py::test_a[1]", "t.py::test_a[1]", True),
        ("t.py::test_a[1]", "t.py::test_a", False),
        ("t.py::test_a[1]", "t.py::test_a[1-x]", False),
        ("t.py::test_a[1*]", "t.py::test_a[1-x]", True),
        ("t.py::test_*", "t.py::test_a", True),
        ("t?py::test_a", "t.py::test_a", False),
        ("t.py::Test::test_a", "t.py::Test::test_a[x]", True),
    ],
)
def test_names(pattern: str, nodeid: str, expected: bool) -> None:
    assert Entry(pattern, "test", "r", "k.toml:1").names(nodeid) is expected


@pytest.mark.parametrize(
    ("module", "phase"),
    [
        ("pypto.ir.compile", "compile"),
        ("pytest_pypto.pypto.passes.convert_to_ssa", "compile"),
        ("pytest_pypto.pypto.runtime.compile", "compile"),
        ("pytest_pypto.pypto.runtime.compiled", "device"),
        ("pypto.runtime", "device"),
        ("pytest_pypto.pypto.device.run", "device"),
        ("pypto.debug.torch_codegen", "oracle"),
        ("pytest_pypto.workbench", ""),
        ("pyptography", ""),
        ("", ""),
    ],
)
def test_phase_by_module(module: str, phase: str) -> None:
    assert _room(module) == phase
