"""What the language costs: `python -m pytest_pypto run tests/benchmarks/bench_language.py`.

Prints loading (at most 10) and printing (at most 3) of the kit's dumps over `ast.parse` of the same text, and the CPU
time of importing `pypto.language` with the first names in a fresh process (at most 60 ms, without torch and numpy),
which is also told as a share of starting Python. Exits 1 when a limit is missed. Needs the compatibility kit.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from measure import ROOT, Report, in_turns, rounds_option

IMPORTS = {
    "import pypto.language": "import pytest_pypto.pypto.language",
    "import and first names": "import pytest_pypto.pypto.language as pl; pl.function, pl.Tensor, pl.FP32",
}


def each(action: Callable[[Any], object], items: Sequence[Any]) -> Callable[[], None]:
    """`action` on every item; results are dropped at once, so that no run pays for the garbage of another."""

    def run() -> None:
        for item in items:
            action(item)

    return run


def importing(code: str) -> tuple[float, float]:
    """Milliseconds of CPU time in a fresh process whose modules are compiled: `code`, and starting Python."""
    script = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r}); import pytest_pypto\n"
        f"start = time.process_time()\n{code}\nstop = time.process_time()\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'torch or numpy was imported'\n"
        "print(1000 * (stop - start), 1000 * start)"
    )
    keeps_bytecode = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=keeps_bytecode)
    took, before = map(float, run.stdout.split())
    return took, before


def texts() -> list[str]:
    """The dumps to measure: one in seven of the kit."""
    from tests.kit import dump_files

    found = [p.read_text(encoding="utf-8") for p in dump_files()[::7]]
    return [t for t in found if "__FREE_VAR" not in t]


def main() -> int:
    """Measure everything."""
    rounds = rounds_option(__doc__, 5)
    dumps = texts()
    if not dumps:
        print("the compatibility kit is not beside this checkout (../shared/compat)")
        return 2
    import pytest_pypto.pypto.language as pl
    from pytest_pypto.pypto import ir

    programs = [pl.parse(t) for t in dumps]
    calls = {
        "ast": each(ast.parse, dumps),
        "load": each(pl.parse, dumps),
        "print": each(ir.python_print, programs),
    }
    found = in_turns(calls, rounds)
    report = Report()
    note = f"{len(dumps)} dumps, {sum(map(len, dumps)) / 1e6:.2f} MB, ast.parse {found['ast']:.0f} ms"
    report.row("loading / ast.parse", found["load"] / found["ast"], 10, note=note)
    report.row("printing / ast.parse", found["print"] / found["ast"], 3)
    for name, code in IMPORTS.items():
        took, start = map(min, zip(*(importing(code) for _ in range(3 * rounds)), strict=True))
        report.row(name, took, 60, "ms", f"{took / start:.2f} of starting Python")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
