"""Speed of the oracle: `python tests/benchmarks/bench_oracle.py`.

Prints, in one run: the scope 3 program raw and lowered for both platforms and the nine cross-core programs against
their golden in plain torch, the cost of a group call, of a run beyond the lines of the script, and of validating all
dumps against running each distinct text once. Exits 1 when a limit is missed. Needs the compatibility kit.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from pytest_pypto.pypto.debug import run_oracle, torch_codegen, validate_pass_ir_codegen_results  # noqa: E402
from pytest_pypto.pypto.language.parser import loads  # noqa: E402
from tests.debug.build import program  # noqa: E402
from tests.debug.test_groups import both, kernels  # noqa: E402
from tests.debug.test_kit import golden_of  # noqa: E402
from tests.kit import KIT  # noqa: E402

NINE = [f"{kind}_{split}" for kind in ("sum_v2c", "gate_c2v", "bi") for split in ("none", "up_down", "left_right")]
PLATFORMS = ("a2a3sim", "a5sim")
MISSED: list[str] = []


def best(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest processor time of every call, in milliseconds; the calls take turns, so that noise hits all alike."""
    for call in calls.values():
        call()
    found = dict.fromkeys(calls, float("inf"))
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            found[name] = min(found[name], 1000 * (time.process_time() - start))
    gc.enable()
    return found


def row(what: str, value: float, limit: float, unit: str) -> None:
    """Print one measurement with its limit."""
    good = value <= limit
    bound = "" if limit == float("inf") else f"limit {limit:g}"
    print(f"{what:<56} {value:9.2f} {unit:<3} {bound}{'' if good else '  MISSED'}")
    if not good:
        MISSED.append(what)


def stages(name: str, platform: str) -> list[Path]:
    return sorted((KIT / name / platform / "passes").glob("*.py"))


def prepared(path: Path, entry: str, values: dict[str, Any], **options: Any) -> Callable[[], Any]:
    """A call of the entry of a dump's script."""
    node: Any = loads(str(path))
    space: dict[str, Any] = {}
    exec(compile(torch_codegen(node, **options), str(path), "exec"), space)
    args = list(values.values())
    return lambda: space[entry](*args)


def against_golden(name: str, limits: dict[str, float], rounds: int) -> None:
    """The scripts of a program and its golden, in turns."""
    module = golden_of(name)
    values = module.inputs(0)
    kept = {k: v.clone() if torch.is_tensor(v) else v for k, v in values.items()}
    calls: dict[str, Callable[[], Any]] = {"golden": lambda: module.golden(kept)}
    if "raw" in limits:
        calls["raw"] = prepared(stages(name, PLATFORMS[0])[0], module.ENTRY, values)
    for platform in PLATFORMS:
        calls[f"lowered {platform}"] = prepared(stages(name, platform)[-1], module.ENTRY, values)
    found = best(calls, rounds)
    for what, value in found.items():
        if what != "golden":
            limit = limits.get(what.split()[0], float("inf"))
            row(f"{name} {what} / golden ({1000 * found['golden']:.0f} us)", value / found["golden"], limit, "x")


def group_calls() -> None:
    """A call of a group whose kernels do nothing, and of one that sends a tile there and back."""
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    spaces: dict[str, Any] = {}
    for what, text in (("empty", kernels("", "")), ("there and back", both(1))):
        space: dict[str, Any] = {}
        exec(torch_codegen(program(text)), space)
        spaces[what] = lambda f=space["main"]: [f(src, dst) for _ in range(100)]
    for what, value in best(spaces, 20).items():
        row(f"group call, {what}", 10 * value, 100, "us")


def runner() -> None:
    """A run through the runner beyond the lines of the script."""
    path, module = stages("vadd", PLATFORMS[0])[-1], golden_of("vadd")
    node: Any = loads(str(path))
    args = list(module.inputs(0).values())
    call = prepared(path, module.ENTRY, module.inputs(0))
    found = best({"runner": lambda: run_oracle(node, args, entry=module.ENTRY), "script": call}, 100)
    row("run_oracle beyond the script", found["runner"] - found["script"], 1, "ms")


def validation(name: str) -> None:
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

    found = best({"texts": each_text, "validate": validate}, 3)
    what = f"validate {name}, {len(files)} dumps ({found['validate'] / 1000:.2f} s) / texts"
    row(what, found["validate"] / found["texts"], 1.5, "x")


def main() -> int:
    """Measure everything."""
    if not KIT.is_dir():
        print("the compatibility kit is not beside this checkout")
        return 0
    torch.set_num_threads(1)
    against_golden("scope3", {"raw": 2.5, "lowered": 8.0}, 40)
    for name in NINE:
        against_golden(name, {}, 30)
    group_calls()
    runner()
    for name in ("scope3", "softmax_loop", "bi_up_down"):
        validation(name)
    print(f"missed: {', '.join(MISSED)}" if MISSED else "every limit is kept")
    return 1 if MISSED else 0


if __name__ == "__main__":
    sys.exit(main())
