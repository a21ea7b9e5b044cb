"""Speed of the oracle: `python -m pytest_pypto run tests/benchmarks/bench_oracle.py`.

Prints, in one run: the scope 3 program raw (at most 2.5) and lowered for both platforms (at most 8) and the nine
cross-core programs against their golden in plain torch, the cost of a group call (at most 100 us), the time until a
deadlock is reported (at most 50 ms), the cost of a run beyond the lines of the script (at most 1 ms), and of validating
all dumps against running each distinct text once (at most 1.5).
Exits 1 when a limit is missed. Needs the compatibility kit.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from measure import Report, in_turns, keep_memory, rounds_option

from pytest_pypto.pypto.debug import run_oracle, torch_codegen, validate_pass_ir_codegen_results
from pytest_pypto.pypto.language.parser import loads
from tests.debug.build import program
from tests.debug.test_groups import MISSING_PUSH, MUTUAL, both, kernels
from tests.debug.test_kit import golden_of
from tests.kit import KIT

NINE = [f"{kind}_{split}" for kind in ("sum_v2c", "gate_c2v", "bi") for split in ("none", "up_down", "left_right")]
PLATFORMS = ("a2a3sim", "a5sim")


def stages(name: str, platform: str) -> list[Path]:
    return sorted((KIT / name / platform / "passes").glob("*.py"))


def prepared(path: Path, entry: str, values: dict[str, Any], **options: Any) -> Callable[[], Any]:
    """A call of the entry of a dump's script."""
    node: Any = loads(str(path))
    space: dict[str, Any] = {}
    exec(compile(torch_codegen(node, **options), str(path), "exec"), space)
    args = list(values.values())
    return lambda: space[entry](*args)


def against_golden(report: Report, name: str, limits: dict[str, float], rounds: int) -> None:
    """The scripts of a program and its golden, in turns."""
    module = golden_of(name)
    values = module.inputs(0)
    kept = {k: v.clone() if torch.is_tensor(v) else v for k, v in values.items()}
    calls: dict[str, Callable[[], Any]] = {"golden": lambda: module.golden(kept)}
    if "raw" in limits:
        calls["raw"] = prepared(stages(name, PLATFORMS[0])[0], module.ENTRY, values)
    for platform in PLATFORMS:
        calls[f"lowered {platform}"] = prepared(stages(name, platform)[-1], module.ENTRY, values)
    found = in_turns(calls, rounds)
    for what, value in found.items():
        if what != "golden":
            note = f"golden {1000 * found['golden']:.0f} us"
            report.row(f"{name} {what} / golden", value / found["golden"], limits.get(what.split()[0]), note=note)


def group_calls(report: Report) -> None:
    """A call of a group whose kernels do nothing, and of one that sends a tile there and back."""
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    spaces: dict[str, Any] = {}
    for what, text in (("empty", kernels("", "")), ("there and back", both(1))):
        space: dict[str, Any] = {}
        exec(torch_codegen(program(text)), space)
        spaces[what] = lambda f=space["main"]: [f(src, dst) for _ in range(100)]
    for what, value in in_turns(spaces, 20).items():
        report.row(f"group call, {what}", 10 * value, 100, "us")


def deadlocks(report: Report) -> None:
    """Time until a group that can never end is reported: a wait, so the clock counts and not the CPU."""
    for what, text in (("missing push", MISSING_PUSH), ("mutual wait", MUTUAL)):
        space: dict[str, Any] = {}
        exec(torch_codegen(program(text)), space)
        times = []
        for _ in range(10):
            start = time.perf_counter()
            with contextlib.suppress(RuntimeError):
                space["main"](torch.zeros(16, 16), torch.zeros(16, 16))
            times.append(1000 * (time.perf_counter() - start))
        report.row(f"deadlock reported, {what}", min(times), 50, "ms")


def runner(report: Report) -> None:
    """A run through the runner beyond the lines of the script."""
    path, module = stages("vadd", PLATFORMS[0])[-1], golden_of("vadd")
    node: Any = loads(str(path))
    args = list(module.inputs(0).values())
    call = prepared(path, module.ENTRY, module.inputs(0))
    found = in_turns({"runner": lambda: run_oracle(node, args, entry=module.ENTRY), "script": call}, 100)
    report.row("run_oracle beyond the script", found["runner"] - found["script"], 1, "ms")


def validation(report: Report, name: str) -> None:
    """Validating all dumps of a program against running each distinct text once."""
    module = golden_of(name)
    values = module.inputs(0)
    want = {k: v.clone() if torch.is_tensor(v) else v for k, v in values.items()}
    module.golden(want)
    expected = {k: v for k, v in want.items() if torch.is_tensor(v)}
    files = stages(name, PLATFORMS[0])
    texts = {f.read_bytes(): f for f in files}

    def each_text() -> None:
        for file in texts.values():
            node: Any = loads(str(file))
            args = [v.clone() if torch.is_tensor(v) else v for v in values.values()]
            run_oracle(node, args, entry=module.ENTRY, check_shapes=True)

    def validate() -> None:
        validate_pass_ir_codegen_results(
            files[0].parent, values, expected, rtol=module.RTOL, atol=module.ATOL, equal_nan=True, entry=module.ENTRY,
            stream=io.StringIO(),
        )  # fmt: skip

    found = in_turns({"texts": each_text, "validate": validate}, 3)
    note = f"{len(files)} dumps, {found['validate'] / 1000:.2f} s"
    report.row(f"validate {name} / each text once", found["validate"] / found["texts"], 1.5, note=note)


def main() -> int:
    """Measure everything."""
    rounds = rounds_option(__doc__, 40)
    if not KIT.is_dir():
        print("the compatibility kit is not beside this checkout (../shared/compat)")
        return 2
    keep_memory()
    torch.set_num_threads(1)
    report = Report()
    against_golden(report, "scope3", {"raw": 2.5, "lowered": 8.0}, rounds)
    for name in NINE:
        against_golden(report, name, {}, rounds)
    group_calls(report)
    deadlocks(report)
    runner(report)
    for name in ("scope3", "softmax_loop", "bi_up_down"):
        validation(report, name)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
