"""Speed of the simulated device: `python tests/benchmarks/bench_device.py`.

Prints, in one run: the nine cross-core programs and scope 3 with all sanitizers against the torch golden, and what the
sanitizers cost on 16x16 tiles and on scope 3. Times are CPU time of one thread, so that other work on the machine does
not count. Exits 1 when a limit is missed. Needs the compatibility kit.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from pytest_pypto.pypto.device import DeviceSettings, clear_cache, run_artifact  # noqa: E402
from tests.device.kit_artifacts import PLATFORMS, arrays, artifact, clones, golden  # noqa: E402
from tests.device.texts import Kernel, single  # noqa: E402
from tests.kit import KIT  # noqa: E402

NINE = [f"{kind}_{split}" for kind in ("sum_v2c", "gate_c2v", "bi") for split in ("none", "up_down", "left_right")]
ROUNDS = 15


def best(call: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Shortest CPU time of several calls, in milliseconds."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return 1000 * min(found)


def measured(name: str, platform: str, folder: Path) -> tuple[float, float, float, float]:
    """Milliseconds of the golden, a plain run, a checked run, and the first checked run of all."""
    module = golden(name)
    start = module.inputs(0)
    path = artifact(name, platform, folder)

    def numbers() -> None:
        module.golden(clones(start))

    def device(settings: DeviceSettings) -> None:
        run_artifact(path, arrays(clones(start)), settings)

    clear_cache()
    cold = best(lambda: device(DeviceSettings.strict()), 1)
    plain, strict = DeviceSettings(), DeviceSettings.strict()
    return best(numbers), best(lambda: device(plain)), best(lambda: device(strict)), cold


def small_tiles(folder: Path) -> float:
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
    times = {}
    for label, settings in (("plain", DeviceSettings()), ("strict", DeviceSettings.strict())):
        run_artifact(path, [a, o], settings)
        times[label] = best(lambda s=settings: run_artifact(path, [a, o], s))  # type: ignore[misc]
    print(f"16x16 tiles: plain {times['plain']:.2f} ms, checked {times['strict']:.2f} ms")
    return times["strict"] / times["plain"]


class Limits:
    """Prints a measure against its limit and remembers misses."""

    def __init__(self) -> None:
        self.missed = 0

    def check(self, what: str, value: float, limit: float, unit: str) -> None:
        """One line."""
        good = value <= limit
        self.missed += not good
        print(f"{'ok  ' if good else 'MISS'} {what}: {value:.2f} {unit} (limit {limit:.2f})")


def main() -> int:
    """Run everything."""
    if not KIT.is_dir():
        print("the compatibility kit is not beside this checkout (../shared/compat)")
        return 2
    torch.set_num_threads(1)
    limits = Limits()
    with tempfile.TemporaryDirectory() as tmp:
        for platform in PLATFORMS:
            for name in NINE:
                gold, plain, strict, cold = measured(name, platform, Path(tmp))
                limits.check(f"{name} {platform}, checked", strict, 15 * gold + 20, "ms")
                print(f"     golden {gold:.3f} ms, plain {plain:.2f} ms, first run with reading {cold:.1f} ms")
            gold, plain, strict, cold = measured("scope3", platform, Path(tmp))
            limits.check(f"scope3 {platform}, checked / golden", strict / gold, 40, "x")
            limits.check(f"scope3 {platform}, checked / plain", strict / plain, 1.5, "x")
            print(f"     golden {gold:.3f} ms, plain {plain:.2f} ms, checked {strict:.2f} ms, first run {cold:.1f} ms")
        limits.check("16x16 tiles, checked / plain", small_tiles(Path(tmp) / "small"), 3, "x")
    return 1 if limits.missed else 0


if __name__ == "__main__":
    sys.exit(main())
