"""The fixtures in use: a green check, failures of every kind and what they say, totals and properties."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.plugin.kernels import ADD, MIXED

CHECK = """
def test_add(pypto_compile, pypto_inputs, pypto_golden, pypto_check):
    compiled = pypto_compile(program())
    inputs = pypto_inputs(compiled)
    pypto_check(compiled, inputs, pypto_golden({golden}, inputs){more})
"""
MIXED_CHECK = """
@pytest.mark.pypto_platform("a2a3sim", "a5sim")
@pytest.mark.pypto_split("NONE", "UP_DOWN", "LEFT_RIGHT")
@pytest.mark.pypto_direction({direction!r})
def test_mixed(pypto_split, pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program(pypto_split))
    pypto_check(compiled, pypto_inputs(compiled), reference)
"""


def check(golden: str = "reference", more: str = "") -> str:
    return ADD + CHECK.format(golden=golden, more=more)


def files_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}


def test_a_green_check(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(check())
    result = pytester.runpytest(*way)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "1 check (1 on a2a3sim)",
            "layers: roundtrip 1 passed, oracle 1 passed, passes 1 passed, memory 1 passed, device 1 passed",
        ]
    )


def test_every_variant_of_a_mixed_kernel(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MIXED + MIXED_CHECK.format(direction="C2V"))
    result = pytester.runpytest("--pypto-platform=a2a3sim,a5sim")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(["6 checks (3 on a2a3sim, 3 on a5sim)"])


def test_a_green_check_writes_nothing_outside_the_cache(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(check())
    before = files_below(pytester.path)
    pytester.runpytest().assert_outcomes(passed=1)
    new = {f for f in files_below(pytester.path) - before if not f.startswith(".pytest_cache")}
    assert new == set()


def test_a_wrong_golden(pytester: pytest.Pytester, way: list[str]) -> None:
    """The worst element with its index, the count, and the command that repeats the test."""
    path = pytester.makepyfile(check("off_by_one"))
    result = pytester.runpytest("--pypto-seed=3", *way)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "pypto: *oracle*failed: *::test_add[[]a2a3sim] (a2a3sim, split NONE, seed *)",
            "oracle (front-end program against golden): the program and the golden disagree",
            "*out: float32[[]32, 64]: 1 of 2048 elements differ (0.0488 %)",
            "*rtol=* (policy: float32, k=1) atol=* (policy: float32, k=1)",
            "*where: one element, row 5 column 7",
            "*worst at [[]5, 7]: actual *, expected *, off by 1 (allowed *), * ulp; tile (0, 0) element (5, 7)",
            f"repeat: python -m pytest '{path.name}::test_add[[]a2a3sim]' --pypto-platform=a2a3sim --pypto-seed=3",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_repeat_command_repeats_the_failure(pytester: pytest.Pytester) -> None:
    import shlex

    pytester.makepyfile(check("off_by_one"))
    first = pytester.runpytest("--pypto-seed=3")
    command = next(line for line in first.outlines if line.startswith("repeat: ")).removeprefix("repeat: ")
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "pytest"]
    second = pytester.runpytest(*words[3:])
    second.assert_outcomes(failed=1)
    worst = [line for line in first.outlines if "worst at" in line]
    assert [line for line in second.outlines if "worst at" in line] == worst


def test_a_claimed_direction_that_is_not_there(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(MIXED + MIXED_CHECK.format(direction="V2C"))
    result = pytester.runpytest()
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["*the test claims V2C, but the lowered program has no vector-to-cube transfer*"])


BAD_TESTS = [
    ("pypto_inputs(compiled, A=1)", "pypto: no parameter is called 'A'; the parameters are 'a', 'b', 'out'"),
    (
        "import torch; pypto_inputs(compiled, a=torch.ones(2, 2))",
        "pypto: input 'a' has shape (2, 2), the program takes In a: fp32[[]32, 64]",
    ),
    (
        "import torch; pypto_inputs(compiled, a=torch.ones(32, 64).double())",
        "pypto: input 'a' has dtype torch.float64, the program takes torch.float32 *",
    ),
    ("pypto_golden(lambda t: None, inputs)", "pypto: golden '<lambda>' wrote no tensor and returned nothing*"),
    ("pypto_check(compiled, {'a': inputs['a']}, golden)", "pypto: inputs lack 'b', 'out'; the parameters are *"),
    (
        "pypto_check(compiled, inputs, golden, layers=['oracel'])",
        "pypto: no layer is called 'oracel'; the layers are *",
    ),
    ("pypto_check(compiled, inputs, golden, rtol=-1)", "pypto: rtol=-1 is no tolerance: give a finite number >= 0"),
    ("pypto_check(compiled, inputs, golden, atol='x')", "pypto: atol='x' is no tolerance: *"),
    (
        "pypto_compile(program(), platfrom='a5sim')",
        "pypto: RunConfig has no field 'platfrom'; its fields are platform, arch, *",
    ),
    ("pypto_compile(3)", "pypto: pypto_compile takes a @pl.program or a @pl.jit kernel, got int 3"),
    ("pypto_compile(program(), 1)", "pypto: pypto_compile takes sample arguments for @pl.jit kernels only"),
    (
        "pypto_oracle(compiled, inputs, after='Nowhere')",
        "pypto: no pass is called 'Nowhere'; the stages are 00_frontend, *",
    ),
]


@pytest.mark.parametrize(("line", "message"), BAD_TESTS, ids=[line for line, _ in BAD_TESTS])
def test_mistakes_of_the_test_author(pytester: pytest.Pytester, line: str, message: str) -> None:
    """One clear sentence, no traceback of the harness."""
    pytester.makepyfile(
        ADD
        + f"""
def test_it(pypto_compile, pypto_inputs, pypto_golden, pypto_check, pypto_oracle):
    compiled = pypto_compile(program())
    inputs = pypto_inputs(compiled)
    golden = pypto_golden(reference, inputs)
    {line}
"""
    )
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*pytest_pypto*Error*")


# ---------------------------------------------------------------------------------------------------------------
# Tolerances


TOLERANCES = [
    ("", [], "", "", "policy: float32, k=1"),
    ("", [], "pypto_rtol = 2e-2", "", "ini"),
    ("", ["--pypto-rtol=3e-2"], "pypto_rtol = 2e-2", "", "command line"),
    ("@pytest.mark.pypto_tolerance(rtol=4e-2)", ["--pypto-rtol=3e-2"], "", "", "marker"),
    ("@pytest.mark.pypto_tolerance(rtol=4e-2)", ["--pypto-rtol=3e-2"], "", ", rtol=5e-2", "argument"),
    ("@pytest.mark.pypto_tolerance(rtol=4e-2, output='out')", [], "", "", "marker"),
]


@pytest.mark.parametrize(("mark", "flags", "ini", "argument", "source"), TOLERANCES, ids=[t[4] for t in TOLERANCES])
def test_where_a_tolerance_comes_from(
    pytester: pytest.Pytester, mark: str, flags: list[str], ini: str, argument: str, source: str
) -> None:
    pytester.makeini(f"[pytest]\n{ini}\n")
    pytester.makepyfile(ADD + mark + CHECK.format(golden="off_by_one", more=argument + ", layers=['oracle']"))
    result = pytester.runpytest(*flags)
    result.stdout.fnmatch_lines([f"*rtol=* ({source}) atol=*"])


@pytest.mark.parametrize(("number", "source"), [("1e-5", "policy: float32, k=1"), ("2e-5", "RunConfig")])
def test_a_run_config_sets_a_tolerance_unless_it_is_the_default(
    pytester: pytest.Pytester, number: str, source: str
) -> None:
    pytester.makeconftest(
        f"""
        import pytest
        @pytest.fixture
        def pypto_config(pypto_platform):
            from pypto.runtime import RunConfig
            return RunConfig(platform=pypto_platform, rtol={number}, atol={number})
        """
    )
    pytester.makepyfile(check("off_by_one", ", layers=['oracle']"))
    pytester.runpytest().stdout.fnmatch_lines([f"*rtol=* ({source}) atol=* ({source})"])


def test_a_plugin_may_give_tolerances_and_comparators(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_pypto_tolerance(item, output, dtype):
            assert (output, dtype) == ("out", "float32")
            return 0.5, 2.0
        """
    )
    pytester.makepyfile(check("off_by_one"))
    pytester.runpytest().assert_outcomes(passed=1)
    pytester.makeconftest(
        """
        def pytest_pypto_compare(item, output, actual, expected):
            from pytest_pypto import TensorDiff, Tolerance
            return TensorDiff(output, False, Tolerance(0.0, 0.0), "float32", (32, 64), "shape", "my own complaint")
        """
    )
    pytester.runpytest("--pypto-keep=never").stdout.fnmatch_lines(["*my own complaint"])


# ---------------------------------------------------------------------------------------------------------------
# What leaves the process


def test_verdicts_reach_other_plugins(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_pypto_verdict(item, verdict):
            print("VERDICT", item.name, verdict.passed, [layer.layer for layer in verdict.layers])
        """
    )
    pytester.makepyfile(check())
    result = pytester.runpytest("-s")
    result.stdout.fnmatch_lines(
        ["*VERDICT test_add[[]a2a3sim] True [[]'roundtrip', 'oracle', 'passes', 'memory', 'device']"]
    )


def properties(path: Path) -> dict[str, str]:
    return {p.attrib["name"]: p.attrib["value"] for p in ElementTree.parse(path).iter("property")}


def test_junit_properties(pytester: pytest.Pytester, way: list[str]) -> None:
    pytester.makepyfile(check("off_by_one", ", layers=['oracle', 'memory']"))
    pytester.runpytest("--junitxml=out.xml", *way)
    found = properties(pytester.path / "out.xml")
    assert found["pypto.platform"] == "a2a3sim"
    assert found["pypto.split"] == "NONE"
    assert found["pypto.layers"] == "oracle=failed memory=passed"
    assert found["pypto.toolchain"].startswith("embedded PyPTO")
    verdict = json.loads(found["pypto.verdict"])
    assert verdict["passed"] is False
    assert verdict["seed"] == int(found["pypto.seed"])


KEEP = [
    ("never", "off_by_one", False),
    ("fail", "off_by_one", True),
    ("fail", "reference", False),
    ("all", "reference", True),
]


@pytest.mark.parametrize(("choice", "golden", "kept"), KEEP)
def test_keeping(pytester: pytest.Pytester, choice: str, golden: str, kept: bool) -> None:
    pytester.makepyfile(check(golden))
    result = pytester.runpytest(f"--pypto-keep={choice}")
    folders = list((pytester.path / "pypto_artifacts").glob("*test_add*"))
    assert bool(folders) == kept
    if kept:
        names = files_below(folders[0])
        assert {"report.txt", "report.html", "report.json", "repeat.py", "inputs.pt", "golden.pt"} <= names
        assert "artifact/compiled_meta.json" in names
        assert "artifact/passes_dump/00_frontend.py" in names
        assert (pytester.path / "pypto_artifacts" / ".gitignore").read_text() == "*\n"
    if golden == "off_by_one" and kept:
        result.stdout.fnmatch_lines([f"kept: {folders[0]}"])


def test_what_was_kept_repeats_the_failure_without_pytest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(check("off_by_one"))
    pytester.runpytest()
    folder = next((pytester.path / "pypto_artifacts").glob("*test_add*"))
    done = pytester.runpython(folder / "repeat.py")
    assert done.ret == 1
    done.stderr.fnmatch_lines(
        ["pypto: oracle, passes, device failed: *::test_add[[]a2a3sim] (a2a3sim, *seed *)", "*worst at [[]5, 7]*"]
    )
    seed = re.search(r"seed (\d+)", done.stderr.str())
    assert seed is not None
    assert seed[0] in (folder / "report.txt").read_text()


@pytest.mark.parametrize(("golden", "agrees"), [("reference", True), ("off_by_one", False)])
def test_what_was_kept_feeds_the_tools_of_pypto(pytester: pytest.Pytester, golden: str, agrees: bool) -> None:
    pytester.makepyfile(check(golden))
    pytester.runpytest("--pypto-keep=all")
    artifact = next((pytester.path / "pypto_artifacts").glob("*test_add*")) / "artifact"
    where = ["--work-dir", str(artifact), "--platform", "a2a3sim", "--device-id", "0"]
    module = [sys.executable, "-c", "from pytest_pypto.__main__ import tools; raise SystemExit(tools())"]
    done = pytester.run(*module, "execute-artifact", *where)
    assert (done.ret == 0) == agrees
    if not agrees:
        done.stderr.fnmatch_lines(["*Output 'out' does not match golden*", "Mismatched elements: 1/2048"])


# ---------------------------------------------------------------------------------------------------------------
# Other fixtures


def test_oracle_and_device_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        ADD
        + """
def test_it(pypto_compile, pypto_inputs, pypto_oracle, pypto_device):
    import torch
    compiled = pypto_compile(program())
    inputs = pypto_inputs(compiled)
    want = inputs["a"] + inputs["b"]
    for run in (pypto_oracle(compiled, inputs), pypto_oracle(compiled, inputs, after="ConvertToSSA"),
                pypto_oracle(program(), inputs), pypto_device(compiled, inputs)):
        assert torch.equal(run.tensors["out"], want)
    assert bool((inputs["out"] == -7).all())
"""
    )
    pytester.runpytest().assert_outcomes(passed=1)


def test_equal_programs_are_compiled_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        ADD
        + """
def test_one(pypto_compile):
    first = pypto_compile(program())
    assert pypto_compile(program()) is first
    assert pypto_compile(program(64)) is not first
    assert pypto_compile(program(), platform="a5sim") is not first
"""
    )
    pytester.runpytest().assert_outcomes(passed=1)
    artifacts = list((pytester.path / ".pytest_cache").glob("d/pypto/artifact/*/compiled_meta.json"))
    assert len(artifacts) == 3
    stamps = {
        p: p.stat().st_mtime_ns for p in (pytester.path / ".pytest_cache").glob("d/pypto/artifact/*/kernels/*/*.pto")
    }
    pytester.runpytest().assert_outcomes(passed=1)
    assert stamps == {p: p.stat().st_mtime_ns for p in stamps}


def test_workers_share_artifacts(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        ADD
        + """
@pytest.mark.parametrize("n", range(4))
def test_it(n, pypto_compile, pypto_inputs, pypto_check):
    compiled = pypto_compile(program())
    pypto_check(compiled, pypto_inputs(compiled), reference)
"""
    )
    pytester.runpytest("-n2").assert_outcomes(passed=4)
    assert len(list((pytester.path / ".pytest_cache").glob("d/pypto/artifact/*/compiled_meta.json"))) == 1


@pytest.mark.parametrize("damage", ["compiled_meta.json", "kernels"])
def test_a_damaged_cache_is_made_again_or_reported(pytester: pytest.Pytester, damage: str) -> None:
    pytester.makepyfile(check())
    pytester.runpytest().assert_outcomes(passed=1)
    artifact = next((pytester.path / ".pytest_cache").glob("d/pypto/artifact/*/compiled_meta.json")).parent
    if damage == "kernels":
        for path in (artifact / "kernels").rglob("*.pto"):
            path.write_text("not a kernel")
        result = pytester.runpytest()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["device (artifact on the device against golden): the dispatch failed: *.pto*"])
    else:
        (artifact / damage).write_text("{")
        pytester.runpytest().assert_outcomes(passed=1)


def test_global_state_is_reset_around_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pypto
        from pypto import backend
        from pypto.pypto_core.passes import PassContext

        def test_one():
            assert not backend.is_backend_configured() and PassContext.current() is None
            backend.set_backend_type(backend.BackendType.Ascend950)
            PassContext([]).__enter__()
            assert pypto.get_log_level() != pypto.LogLevel.NONE
            pypto.set_log_level(pypto.LogLevel.NONE)

        test_two = test_one
        """
    )
    pytester.runpytest().assert_outcomes(passed=2)


def test_workers_share_the_processors(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        def test_it():
            import torch
            want = max(1, (os.cpu_count() or 1) // 2)
            assert os.environ["OMP_NUM_THREADS"] == str(want) and torch.get_num_threads() == want
        """
    )
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        pytester._monkeypatch.delenv(name, raising=False)
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=1)


def test_expected_errors(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        import pypto.language as pl

        def broken():
            @pl.program
            class Broken:
                @pl.function
                def main(self, x: pl.Tensor[[4, 4], pl.FP32]) -> pl.Tensor[[4, 4], pl.FP32]:
                    return nothing

        def test_right(pypto_compile_error):
            with pypto_compile_error("UndefinedVariableError", line=9, keywords=["nothing"]) as seen:
                broken()
            assert seen.line == 9

        def test_class(pypto_compile_error):
            with pypto_compile_error(KeyError):
                broken()

        def test_line(pypto_compile_error):
            with pypto_compile_error(line=3):
                broken()

        def test_words(pypto_compile_error):
            with pypto_compile_error(keywords="everything"):
                broken()

        def test_none(pypto_compile_error):
            with pypto_compile_error("ParserError"):
                pass
        """
    )
    result = pytester.runpytest()
    result.assert_outcomes(passed=1, failed=4)
    result.stdout.fnmatch_lines(
        [
            "pypto: expected KeyError, got UndefinedVariableError",
            "pypto: expected the error at line 3, it points at line 9",
            "pypto: the message does not say 'everything'",
            "pypto: expected ParserError, but nothing was raised",
        ]
    )
