"""Speed of the simulated device: `python -m pytest_pypto run tests/benchmarks/bench_device.py`.

Prints, in one run: the nine cross-core programs (at most 15 times the torch golden plus 20 ms) and scope 3 (at most 40
times its golden) with all sanitizers, and what the sanitizers cost on 16x16 tiles (at most 3 times) and on scope 3 (at
most 1.5 times). Exits 1 when a limit is missed. Needs the compatibility kit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
import torch
from measure import Report, in_turns, rounds_option, scratch

from pytest_pypto.pypto.device import DeviceSettings, clear_cache, run_artifact
from tests.device.kit_artifacts import PLATFORMS, arrays, artifact, clones, golden
from tests.device.texts import Kernel, single
from tests.kit import KIT

NINE = [f"{kind}_{split}" for kind in ("sum_v2c", "gate_c2v", "bi") for split in ("none", "up_down", "left_right")]
PLAIN, STRICT = DeviceSettings(), DeviceSettings.strict()


def measured(name: str, platform: str, folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds of the golden, a plain run, a checked run, and the first checked run of all."""
    module = golden(name)
    start = module.inputs(0)
    path = artifact(name, platform, folder)

    def device(settings: DeviceSettings) -> Callable[[], Any]:
        return lambda: run_artifact(path, arrays(clones(start)), settings)

    clear_cache()
    before = time.process_time()
    device(STRICT)()
    first = 1000 * (time.process_time() - before)
    calls = {"golden": lambda: module.golden(clones(start)), "plain": device(PLAIN), "checked": device(STRICT)}
    return in_turns(calls, rounds) | {"first": first}


def small_tiles(report: Report, folder: Path, rounds: int) -> None:
    """Cost of the sanitizers on a kernel of 16x16 tiles: 400 rounds of a load, six operations and a store."""
    k = Kernel("k", [("a", "f32", (6400, 16)), ("o", "f32", (6400, 16))])
    names = [k.tile(f"t{i}", 16, 16, 1024 * i) for i in range(5)]
    k.line(f"scf.for %i = {k.c(0)} to {k.c(400)} step {k.c(1)} {{")
    k.line(f"%row = arith.muli %i, {k.c(16)} : index")
    k.load("a", names[0], ("row", 0), (16, 16))
    k.op("tadd", [names[0], names[0]], [names[1]])
    k.op("tmul", [names[0], names[1]], [names[2]])
    k.op("tsub", [names[2], names[1]], [names[3]])
    k.op("tmuls", [names[3], (k.c(0.5, "f32"), "f32")], [names[4]])
    k.op("tmax", [names[4], names[0]], [names[1]])
    k.op("texp", [names[1]], [names[2]])
    k.store(names[2], "o", ("row", 0), (16, 16))
    k.line("}")
    path = single(folder, k, ["o"])
    a, o = np.ones((6400, 16), np.float32), np.zeros((6400, 16), np.float32)
    calls = {
        "plain": lambda: run_artifact(path, [a, o], PLAIN),
        "checked": lambda: run_artifact(path, [a, o], STRICT),
    }
    found = in_turns(calls, rounds)
    note = f"plain {found['plain']:.2f} ms, checked {found['checked']:.2f} ms"
    report.row("16x16 tiles, checked / plain", found["checked"] / found["plain"], 3, note=note)


def program(report: Report, name: str, platform: str, folder: Path, rounds: int) -> None:
    """The figures of one program."""
    found = measured(name, platform, folder, rounds)
    note = ", ".join(f"{what} {value:.2f}" for what, value in found.items()) + " ms"
    if name != "scope3":
        report.row(f"{name} {platform}, checked", found["checked"], 15 * found["golden"] + 20, "ms", note)
        return
    report.row(f"{name} {platform}, checked / golden", found["checked"] / found["golden"], 40, note=note)
    report.row(f"{name} {platform}, checked / plain", found["checked"] / found["plain"], 1.5)


def main() -> int:
    """Measure everything."""
    rounds = rounds_option(__doc__, 15)
    if not KIT.is_dir():
        print("the compatibility kit is not beside this checkout (../shared/compat)")
        return 2
    torch.set_num_threads(1)
    report = Report()
    with scratch() as folder:
        for platform in PLATFORMS:
            for name in (*NINE, "scope3"):
                program(report, name, platform, folder, rounds)
        small_tiles(report, folder / "small", rounds)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
