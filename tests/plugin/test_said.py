"""What green and failed checks say beyond pass and fail: not compared, advice, not kept, and wrong arguments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.plugin.kernels import ADD

TWO = """
import pypto.language as pl
import pytest

T = pl.Tensor[[8, 16], pl.FP32]

@pl.program
class Two:
    @pl.function
    def main(self, x: T, o1: pl.Out[T], o2: pl.Out[T]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o1 = pl.assemble(o1, pl.add(x, 1.0), [0, 0])
            o2 = pl.assemble(o2, pl.add(x, 2.0), [0, 0])
        return o1, o2
"""
COVERED = """
{mark}
@pytest.mark.parametrize("n", range({count}))
def test_it(n, pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(Two)
    pypto_check(compiled, pypto_inputs(compiled), {golden}, layers=["oracle"])
"""


@pytest.mark.parametrize(
    ("golden", "count", "line"),
    [
        ("lambda t: {'o1': t['x'] + 1}", 1, "not compared: o2 in *::test_it[[]a2a3sim-0] (1x; *"),
        ("lambda t: {'o1': t['x'] + 1}", 5, "not compared: o2 in *, o2 in *, o2 in * and 2 more (5x; *"),
        ("lambda t: (t['x'] + 1, t['x'] + 2)", 1, ""),
        ("lambda t: {'o1': t['x'] + 1, 'o2': t['x'] + 2}", 1, ""),
    ],
)
def test_outputs_that_no_golden_covers(
    pytester: pytest.Pytester, way: list[str], golden: str, count: int, line: str
) -> None:
    pytester.makepyfile(TWO + COVERED.format(golden=golden, count=count, mark=""))
    result = pytester.runpytest(*way)
    result.assert_outcomes(passed=count)
    if line:
        result.stdout.fnmatch_lines([line])
    else:
        result.stdout.no_fnmatch_line("*not compared*")


HELPERS = """
from pytest_pypto import assert_memory, assert_oracle, assert_passes

def test_it(pypto_compile, pypto_inputs):
    compiled = pypto_compile(Two)
    inputs = pypto_inputs(compiled)
    assert_memory(compiled)
    assert_oracle(compiled, inputs, lambda t: {"o1": t["x"] + 1})
    assert_passes(compiled, inputs, lambda t: {"o2": t["x"] + 2})
"""


def test_checks_without_a_fixture_count(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(test_it=TWO + HELPERS)
    result = pytester.runpytest("--junitxml=out.xml", *way)
    result.assert_outcomes(passed=1)
    here = "test_it.py::test_it[[]a2a3sim]"
    result.stdout.fnmatch_lines(
        [
            "3 checks (3 on a2a3sim)",
            "layers: oracle 1 passed, passes 1 passed, memory 1 passed",
            f"not compared: o2 in {here}, o1 in {here} (2x; no golden covers them)",
        ]
    )
    assert (pytester.path / "out.xml").read_text().count('name="pypto.layers"') == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "assert_oracle(compiled, pypto_inputs(compiled), lambda t: {'o1': t['x']})",
            "E *CheckFailed: pypto: oracle *",
        ),
        ("assert_oracle(Two, {}, {})", "E *assert_oracle: the first argument is a compiled program *"),
        ("assert_device(compiled, 3, {})", "E *assert_device: the second argument is the arguments *"),
        ("assert_memory(Two)", "E *assert_memory: the first argument is a compiled program *"),
        ("assert_roundtrip(3)", "E *assert_roundtrip: the first argument is a compiled program *"),
        ("pypto_golden(lambda t: t['nothing'], pypto_inputs(compiled))", "E *KeyError: 'nothing'"),
        ("pypto_check(compiled, {'x': 1}, lambda t: t['o1'])", "pypto: inputs lack 'o1', 'o2'; *outputs included"),
    ],
)
def test_failures_end_at_the_authors_line(pytester: pytest.Pytester, line: str, message: str) -> None:
    """The frames of the harness are no help to an author."""
    text = "from pytest_pypto import *\ndef test_it(pypto_compile, pypto_inputs, pypto_golden, pypto_check):\n"
    pytester.makepyfile(test_it=f"{TWO}\n{text}    compiled = pypto_compile(Two)\n    {line}\n")
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*pytest_pypto/*.py:*")


RERUN = """
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item):
    for _ in range(3):
        runtestprotocol(item, log=True, nextitem=None)
    return True
"""


def test_a_repeated_test_counts_each_of_its_checks_once(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(RERUN)
    pytester.makepyfile(TWO + COVERED.format(golden="lambda t: {'o1': t['x'] + 1}", count=1, mark=""))
    pytester.runpytest().stdout.fnmatch_lines(["3 checks (3 on a2a3sim)", "layers: oracle 3 passed"])


def test_a_cache_that_cannot_be_written(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a read-only tree: artifacts go to the directory for temporary files."""
    (pytester.path / ".pytest_cache").write_text("in the way")
    elsewhere = pytester.mkdir("elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    pytester.makepyfile(TWO + COVERED.format(golden="lambda t: (t['x'] + 1, t['x'] + 2)", count=1, mark=""))
    pytester.runpytest("-Wignore").assert_outcomes(passed=1)
    assert list(elsewhere.glob("pytest-pypto-*/artifact/*/compiled_meta.json"))


@pytest.mark.parametrize(("output", "good"), [("o1", True), ("zz", False)])
def test_a_tolerance_of_an_output(pytester: pytest.Pytester, output: str, good: bool) -> None:
    mark = f"@pytest.mark.pypto_tolerance(atol=100, output='{output}')"
    pytester.makepyfile(TWO + COVERED.format(golden="lambda t: (t['x'] + 5, t['x'] + 2)", count=1, mark=mark))
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(passed=int(good), failed=int(not good))
    if not good:
        result.stdout.fnmatch_lines(["*the marker gives a tolerance of output 'zz', *; the outputs are 'o1', 'o2', *"])


CHECK = """
def test_add(pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program())
    pypto_check(compiled, pypto_inputs(compiled), off_by_one, layers=["oracle"])
"""


def test_a_failure_whose_directory_cannot_be_made(pytester: pytest.Pytester) -> None:
    """The report is the usual one; that nothing was kept is said beside it."""
    pytester.makepyfile(ADD + CHECK)
    pytester.path.joinpath("pypto_artifacts").write_text("a file in the way")
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*1 of 2048 elements differ*", "not kept: *Error: *pypto_artifacts*", "repeat: *"])
    pytester.path.joinpath("pypto_artifacts").unlink()
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["kept: *pypto_artifacts*"])
    result.stdout.no_fnmatch_line("*not kept*")


ADVICE = """
def pytest_pypto_verdict(item, verdict):
    pass

import pytest

@pytest.fixture(autouse=True)
def _advice(monkeypatch):
    import dataclasses
    from pytest_pypto.harness import layers
    from pytest_pypto.harness.verdict import Finding
    real = layers.oracle
    note = Finding("dead store", "nobody reads line 7", "kernel:7", "advice")
    monkeypatch.setattr(layers, "oracle", lambda *a: dataclasses.replace(real(*a), findings=(note,)))
"""


def test_advice_names_tests_and_is_kept(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ADVICE)
    pytester.makepyfile(ADD + CHECK.replace("off_by_one", "reference"))
    result = pytester.runpytest("--pypto-keep=all")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["advice: * in *::test_add[[]a2a3sim] (the texts are in what --pypto-keep=all keeps)"])
    for name in ("report.txt", "report.html"):
        report: Path = next(pytester.path.glob(f"pypto_artifacts/*/{name}"))
        assert "dead store [kernel:7]: nobody reads line 7" in report.read_text()


ARGUMENTS = [
    ("pypto_check(compiled, inputs, {'out': want})", ""),
    ("pypto_check(compiled, inputs, pypto_golden({'out': want}, inputs))", ""),
    ("pypto_check(compiled, inputs, {'out': want + 1})", "*elements differ*"),
    ("pypto_check(compiled, inputs, {})", "*golden 'dict' wrote no tensor and returned nothing*"),
    ("pypto_check(compiled, inputs, {'o': want})", "pypto: golden 'dict' added 'o'; the names are 'a', 'b', 'out'"),
    ("pypto_check(compiled)", "E *TypeError: pypto_check() missing 2 required positional arguments: *"),
    ("pypto_device()", "E *TypeError: pypto_device() missing 2 required positional arguments: *"),
    (
        "pypto_check(inputs, compiled, reference)",
        "pypto: pypto_check: the first argument is a compiled program *; got inputs (of pypto_inputs)",
    ),
    (
        "pypto_check(compiled, reference, inputs)",
        "pypto: pypto_check: the second argument is the arguments by parameter name *; got the function 'reference'",
    ),
    (
        "pypto_check(Program, inputs, reference)",
        "pypto: pypto_check: *; got the program 'VectorAdd', which is not compiled; compile it first: *",
    ),
    ("pypto_check(compiled, inputs, None)", "pypto: pypto_check: the third argument is a golden: *; got None"),
    ("pypto_check(compiled, None, reference)", "pypto: pypto_check: the second argument is *; got None"),
    ("pypto_check(compiled, inputs, inputs)", "pypto: pypto_check: the third argument is a golden: *; got inputs *"),
    (
        "pypto_inputs(None)",
        "pypto: pypto_inputs: the first argument is a compiled program * or a @pl.program; got None",
    ),
    ("pypto_golden(inputs, reference)", "pypto: pypto_golden: the first argument is a golden: *; got inputs *"),
    ("pypto_golden(reference, None)", "pypto: pypto_golden: the second argument is the arguments *; got None"),
    ("pypto_device(Program, inputs)", "pypto: pypto_device: *; got the program 'VectorAdd', which is not compiled*"),
    ("pypto_oracle(inputs, compiled)", "pypto: pypto_oracle: the first argument is *; got inputs (of pypto_inputs)"),
    ("pypto_check(compiled, inputs, reference, layers=())", "pypto: layers=() checks nothing; the layers are round*"),
    ("pypto_check(compiled, inputs, reference, layers='device')", "pypto: layers='device' is no list of layers; *"),
    ("pypto_check(compiled, inputs, reference, layers=['device'])", ""),
]


@pytest.mark.parametrize(("line", "message"), ARGUMENTS, ids=[line for line, _ in ARGUMENTS])
def test_arguments_of_the_fixtures(pytester: pytest.Pytester, line: str, message: str) -> None:
    pytester.makepyfile(
        ADD
        + f"""
def test_it(pypto_compile, pypto_inputs, pypto_golden, pypto_check, pypto_oracle, pypto_device):
    Program = program()
    compiled = pypto_compile(Program)
    inputs = pypto_inputs(compiled)
    want = inputs["a"] + inputs["b"]
    {line}
"""
    )
    result = pytester.runpytest("--pypto-keep=never")
    result.assert_outcomes(failed=int(bool(message)), passed=int(not message))
    if message:
        result.stdout.fnmatch_lines([message])
        result.stdout.no_fnmatch_line("*Traceback*")


COMPILE_ERROR = """
import pytest
import pypto.language as pl

@pl.program
class Large:
    @pl.function
    def main(self, x: pl.Tensor[[512, 512], pl.FP32], out: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(x, 1.0), [0, 0])
        return out

def test_it(pypto_compile):
    pypto_compile(Large)  # here
"""


@pytest.mark.parametrize(("flags", "inner"), [([], False), (["--tb=short"], False), (["--full-trace"], True)])
def test_a_compile_error_ends_at_the_authors_line(pytester: pytest.Pytester, flags: list[str], inner: bool) -> None:
    pytester.makepyfile(COMPILE_ERROR)
    result = pytester.runpytest(*flags)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*pypto_compile(Large)  # here"])
    frames = [line for line in result.outlines if re.search(r"pytest_pypto/.*\.py:\d+", line)]
    assert bool(frames) == inner


def test_a_fault_inside_the_compiler_keeps_its_frames(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def _fault(monkeypatch):
            from pytest_pypto.harness.cache import CompileCache

            def broken(*args):
                raise KeyError("a fault inside")

            monkeypatch.setattr(CompileCache, "compile", broken)
        """
    )
    pytester.makepyfile(COMPILE_ERROR)
    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["*raise KeyError(*"])
