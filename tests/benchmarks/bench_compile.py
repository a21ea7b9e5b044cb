"""What compiling costs, as ratios taken in one run: `python -m pytest_pypto run tests/benchmarks/bench_compile.py`.

Prints, for the nine cross-core programs and the decoder tail, the time of a cold compile without dumps over the time to
load the front-end dump, and with dumps over without; then the time to compile one program in which a loop nest stands
1, 2, 4, 8 and 16 times, each over the one before (2 is linear). Times are CPU seconds of this process, so that other
work on the machine counts less.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_main_job import cases

NEST = """
            for i{k} in pl.range(4):
                for j{k} in pl.range(4):
                    t{k} = pl.slice(x, [16, 16], [i{k} * 16, j{k} * 16])
                    u{k} = pl.exp(pl.mul(t{k}, 0.5))
                    o = pl.assemble(o, pl.add(u{k}, t{k}), [i{k} * 16, j{k} * 16])"""


def nests(count: int) -> str:
    """Source of a program whose one kernel has `count` loop nests."""
    body = "".join(NEST.format(k=k) for k in range(count))
    tensor = "pl.Tensor[[64, 64], pl.FP32]"
    return f"""import pypto.language as pl

@pl.program
class Nests:
    @pl.function
    def main(self, x: {tensor}, o: pl.Out[{tensor}]) -> {tensor}:
        with pl.at(level=pl.Level.CORE_GROUP):{body}
        return o
"""


def cpu(action: Callable[[], Any], repeat: int) -> float:
    """Median CPU time of `action`, after one run that does not count."""
    action()
    times = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return median(times)


def compile_cold(program: Any, dumps: bool, tmp: str) -> Callable[[], Any]:
    from pypto import ir

    def build() -> None:
        out = str(Path(tmp) / f"build{time.perf_counter_ns()}")
        ir.compile(program, platform="a2a3sim", output_dir=out, dump_passes=dumps, skip_ptoas=True)

    return build


def program_ratios(repeat: int) -> None:
    """Compile over load (at most 60 wanted), dumps over none (at most 2 wanted)."""
    import pypto.language as pl
    from pypto import ir

    print(f"{'program':24}{'compile/load':>14}{'dumps/none':>14}")
    for name, program, _golden, _inputs in cases():
        with tempfile.TemporaryDirectory() as tmp:
            path = Path(tmp) / "00_frontend.py"
            path.write_text(ir.python_print(program) + "\n")
            load = cpu(lambda path=path: pl.loads(str(path)), repeat)
            none, dumps = (cpu(compile_cold(program, d, tmp), repeat) for d in (False, True))
        print(f"{name:24}{none / load:14.1f}{dumps / none:14.2f}", flush=True)


def scaling(repeat: int) -> None:
    """Compile time of 2n loop nests over n (at most 2.3 wanted from 8 to 16)."""
    import pypto.language as pl

    before = 0.0
    for count in (1, 2, 4, 8, 16):
        program = pl.parse(nests(count))
        with tempfile.TemporaryDirectory() as tmp:
            now = cpu(compile_cold(program, False, tmp), repeat)
        if before:
            print(f"{count} loop nests over {count // 2}: {now / before:.2f}", flush=True)
        before = now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3, help="runs per figure; the median counts (default 3)")
    repeat = parser.parse_args().repeat
    program_ratios(repeat)
    scaling(repeat)


if __name__ == "__main__":
    main()
