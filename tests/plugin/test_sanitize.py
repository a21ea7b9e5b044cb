"""Which sanitizers run and in which order: option, ini twin, marker, argument."""

from __future__ import annotations

import pytest

from pytest_pypto.options import SANITIZERS
from pytest_pypto.pypto.device.findings import ALL_KINDS

pytestmark = pytest.mark.filterwarnings("ignore:A plugin raised an exception")  # pytest 7 on usage errors, in process

READS_OUT = """
import pypto.language as pl
import pytest


@pl.program
class ReadsOut:
    @pl.function
    def main(
        self, a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.assemble(out, pl.add(a, pl.slice(out, [16, 64], [0, 0])), [0, 0])
        return out


def reference(t):
    t["out"] += t["a"]

{marker}
def test_reads_out(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(ReadsOut)
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden(reference, inputs){more})
"""


def outcome(pytester: pytest.Pytester, *flags: str, marker: str = "", more: str = "") -> pytest.RunResult:
    pytester.makepyfile(READS_OUT.format(marker=marker, more=more))
    return pytester.runpytest(*flags)


def test_the_names_are_those_of_the_device() -> None:
    assert frozenset(SANITIZERS) == ALL_KINDS


def test_all_are_on_by_default(pytester: pytest.Pytester, way: list[str]) -> None:
    result = outcome(pytester, *way)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*uninitialised*"])


@pytest.mark.parametrize(
    ("flags", "marker", "more"),
    [
        (["--pypto-sanitize=none"], "", ""),
        (["--pypto-sanitize=race,overlap"], "", ""),
        (["-o", "pypto_sanitize=none"], "", ""),
        ([], "@pytest.mark.pypto_sanitize('none')", ""),
        (["--pypto-sanitize=uninitialised"], "@pytest.mark.pypto_sanitize('race')", ""),
        ([], "", ", sanitize=False"),
        (["--pypto-sanitize=all"], "@pytest.mark.pypto_sanitize('all')", ", sanitize=False"),
    ],
)
def test_what_is_off_is_not_found(pytester: pytest.Pytester, flags: list[str], marker: str, more: str) -> None:
    outcome(pytester, *flags, marker=marker, more=more).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("flags", "marker", "more"),
    [
        (["--pypto-sanitize=uninitialised"], "", ""),
        (["--pypto-sanitize=none"], "@pytest.mark.pypto_sanitize('race', 'uninitialised')", ""),
        (["--pypto-sanitize=none"], "@pytest.mark.pypto_sanitize('none')", ", sanitize=True"),
    ],
)
def test_what_is_on_is_found(pytester: pytest.Pytester, flags: list[str], marker: str, more: str) -> None:
    outcome(pytester, *flags, marker=marker, more=more).assert_outcomes(failed=1)


@pytest.mark.parametrize("order", ["program", "late", "random", "random:12", "exhaustive"])
def test_every_order_runs(pytester: pytest.Pytester, order: str) -> None:
    outcome(pytester, "--pypto-sanitize=none", f"--pypto-order={order}").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (
            "--pypto-sanitize=rase",
            "*--pypto-sanitize: unknown sanitizer 'rase': choose from all, none, uninitialised,*",
        ),
        ("--pypto-sanitize=all,race", "*all, race: all and none stand alone*"),
        ("--pypto-sanitize=", "*no sanitizer given: choose from*"),
        ("--pypto-order=rand", "*unknown order 'rand': choose from program, late, random, exhaustive, or random:SEED*"),
        ("--pypto-order=late:3", "*unknown order 'late:3'*"),
        ("--pypto-order=random:x", "*'x' is no seed*"),
    ],
)
def test_wrong_options(pytester: pytest.Pytester, flag: str, message: str) -> None:
    result = outcome(pytester, flag)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("@pytest.mark.pypto_sanitize('rase')", "*pypto_sanitize: unknown sanitizer 'rase'*"),
        ("@pytest.mark.pypto_sanitize()", "*pypto_sanitize: no sanitizer given: choose from*"),
        ("@pytest.mark.pypto_sanitize(kinds='race')", "*pypto_sanitize takes no keyword 'kinds'*"),
    ],
)
def test_wrong_markers(pytester: pytest.Pytester, marker: str, message: str) -> None:
    result = outcome(pytester, marker=marker)
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines([message])
