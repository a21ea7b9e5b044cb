"""What compiling costs: `python -m pytest_pypto run tests/benchmarks/bench_compile.py`.

Prints, for the nine cross-core programs and the decoder tail on both platforms, a cold compile without dumps over
loading the front-end dump (at most 60), and with dumps over without (at most 2); then a program in which a loop nest
stands 1, 2, 4, 8 and 16 times, each over the one before (16 over 8 at most 2.3). Exits 1 when a limit is missed.
"""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from measure import Report, in_turns, rounds_option, scratch, use_embedded
from programs import cases

PLATFORMS = ("a2a3sim", "a5sim")
COUNTS = (1, 2, 4, 8, 16)
NEST = """
            for i{k} in pl.range(4):
                for j{k} in pl.range(4):
                    t{k} = pl.slice(x, [16, 16], [i{k} * 16, j{k} * 16])
                    u{k} = pl.exp(pl.mul(t{k}, 0.5))
                    o = pl.assemble(o, pl.add(u{k}, t{k}), [i{k} * 16, j{k} * 16])"""
_numbers = itertools.count()


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


def compile_cold(program: Any, platform: str, dumps: bool, folder: Path) -> Callable[[], Any]:
    """A compile into a new directory."""
    from pypto import ir

    def build() -> None:
        out = folder / f"build{next(_numbers)}"
        ir.compile(program, platform=platform, output_dir=str(out), dump_passes=dumps, skip_ptoas=True)

    return build


def program_ratios(report: Report, rounds: int, folder: Path) -> None:
    """Compile over load, dumps over none."""
    import pypto.language as pl
    from pypto import ir

    for case in cases():
        path = folder / "00_frontend.py"
        path.write_text(ir.python_print(case.program) + "\n")
        for platform in PLATFORMS:
            calls = {what: compile_cold(case.program, platform, what == "dumps", folder) for what in ("none", "dumps")}
            calls["load"] = lambda path=path: pl.loads(str(path))
            found = in_turns(calls, rounds)
            what, note = f"{case.name} {platform}", f"{found['none']:.1f} ms against {found['load']:.2f} ms"
            report.row(f"{what}, cold compile / load", found["none"] / found["load"], 60, note=note)
            report.row(f"{what}, with dumps / without", found["dumps"] / found["none"], 2)
            for built in folder.glob("build*"):
                shutil.rmtree(built)


def scaling(report: Report, rounds: int, folder: Path) -> None:
    """Compile time of 2n loop nests over n."""
    import pypto.language as pl

    calls = {str(n): compile_cold(pl.parse(nests(n)), PLATFORMS[0], False, folder) for n in COUNTS}
    found = in_turns(calls, rounds)
    for few, many in itertools.pairwise(COUNTS):
        ratio = found[str(many)] / found[str(few)]
        report.row(f"compile {many} loop nests / {few}", ratio, 2.3 if many == COUNTS[-1] else None)


def main() -> int:
    """Measure everything."""
    rounds = rounds_option(__doc__, 7)
    use_embedded()
    report = Report()
    with scratch() as folder:
        program_ratios(report, rounds, folder)
        scaling(report, rounds, folder)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
