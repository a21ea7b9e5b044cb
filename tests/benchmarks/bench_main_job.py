"""What the main job costs: `python -m pytest_pypto run tests/benchmarks/bench_main_job.py`.

Prints, for the nine cross-core programs and the decoder tail, the oracle over the hand-written torch golden (the
program as written, and after all passes), compiling through `pypto_compile`'s cache cold and warm over loading the
front-end text, and what the plugin adds to 1,000 empty tests. The limits are those of the oracle on the decoder tail
(2.5 raw, 8 lowered), of a cold compile (60) and of the plugin (1.03). Exits 1 when one is missed.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from measure import Report, in_turns, keep_memory, rounds_option, scratch, use_embedded
from programs import Case, cases

PLATFORMS = ("a2a3sim", "a5sim")
EMPTY = """import pytest

@pytest.mark.parametrize("i", range({tests}))
def test_empty(i):
    pass
"""


def lowered(program: Any, platform: str) -> Any:
    """The program after the Default passes."""
    from pypto.backend import reset_for_testing, set_backend_type
    from pypto.ir.pass_manager import OptimizationStrategy, PassManager
    from pypto.runtime import RunConfig

    reset_for_testing()
    set_backend_type(RunConfig(platform=platform).backend_type)
    try:
        return PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    finally:
        reset_for_testing()


def script(program: Any, entry: str) -> Callable[..., Any]:
    """The oracle's function for `program`."""
    from pypto.debug import torch_codegen

    space: dict[str, Any] = {}
    exec(compile(torch_codegen(program), "<oracle>", "exec"), space)
    made: Callable[..., Any] = space[entry]
    return made


def oracle_ratios(report: Report, case: Case, rounds: int) -> None:
    """Oracle over golden; inputs are changed in place by both, which costs neither more."""
    inputs = case.clones()
    calls: dict[str, Callable[[], Any]] = {"golden": lambda: case.golden(inputs)}
    programs = {"raw": case.program, **{f"lowered {p}": lowered(case.program, p) for p in PLATFORMS}}
    for what, program in programs.items():
        call, values = script(program, case.entry), list(case.clones().values())
        calls[what] = lambda call=call, values=values: call(*values)
    found = in_turns(calls, rounds)
    for what in programs:
        limit = {"decode tail raw": 2.5}.get(f"{case.name} {what}", 8.0 if case.name == "decode tail" else None)
        note = f"golden {1000 * found['golden']:.0f} us"
        report.row(f"{case.name}, oracle {what} / golden", found[what] / found["golden"], limit, note=note)


def compile_ratios(report: Report, case: Case, rounds: int, folder: Path) -> None:
    """A compile that nobody did before, one that this process did, and one that another process did, over a load."""
    import pypto.language as pl
    from pypto import ir

    from pytest_pypto.harness.cache import CompileCache
    from pytest_pypto.harness.store import Store

    text = ir.python_print(case.program)
    options = {"platform": PLATFORMS[0], "skip_ptoas": True, "dump_passes": False}
    warm, store = CompileCache(Store(folder / "store")), folder / "cold"

    def cold() -> None:
        shutil.rmtree(store, ignore_errors=True)
        CompileCache(Store(store)).compile(case.program, options)

    found = in_turns(
        {
            "load": lambda: pl.parse(text),
            "cold": cold,
            "warm": lambda: warm.compile(case.program, options),
            "warm, other process": lambda: CompileCache(Store(folder / "store")).compile(case.program, options),
        },
        rounds,
    )
    for what in ("cold", "warm", "warm, other process"):
        limit = 60 if what == "cold" else None
        report.row(f"{case.name}, compile {what} / load", found[what] / found["load"], limit)


def session_time(command: Sequence[str], folder: Path) -> float:
    """CPU seconds of a child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env={**os.environ, "PYTEST_ADDOPTS": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plugin_ratio(report: Report, rounds: int, folder: Path, tests: int = 1000) -> None:
    """Sessions of empty tests with the plugin and without, in pairs."""
    (folder / "test_empty.py").write_text(EMPTY.format(tests=tests))
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_empty.py"]
    pairs = [(session_time([*plain, "-p", "no:pypto"], folder), session_time(plain, folder)) for _ in range(rounds)]
    without, with_ = min(a for a, _ in pairs), min(b for _, b in pairs)
    note = f"{1e6 * (with_ - without) / tests:+.0f} us a test, median pair {median(b / a for a, b in pairs):.3f}"
    report.row(f"{tests} empty tests, with / without the plugin", with_ / without, 1.03, note=note)


def main() -> int:
    """Measure everything."""
    rounds = rounds_option(__doc__, 7)
    use_embedded()
    import torch

    torch.set_num_threads(1)
    keep_memory()
    report = Report()
    with scratch() as folder:
        for case in cases():
            oracle_ratios(report, case, 3 * rounds)
        for case in cases():
            compile_ratios(report, case, rounds, folder / case.name)
        plugin_ratio(report, rounds, folder)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
