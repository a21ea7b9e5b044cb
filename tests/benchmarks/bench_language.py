"""What the language costs: loading and printing dumps against `ast.parse` of the same text, and importing.

    python tests/benchmarks/bench_language.py [FILES]

FILES are dumps (default: those of the compatibility kit). Prints one line per figure with its limit and exits 1 when
one is over. Times are the best of several runs, with the collector run between them.
"""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LOAD, PRINT, IMPORT_MS = 10.0, 3.0, 60.0
IMPORTS = {
    "import pypto.language": "import pytest_pypto.pypto.language",
    "import and first names": "import pytest_pypto.pypto.language as pl; pl.function, pl.Tensor, pl.FP32",
}


def best(action: Callable[[], object], runs: int = 5) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def each(action: Callable[[Any], object], items: Sequence[Any]) -> None:
    """`action` on every item; results are dropped at once, so that no run pays for the garbage of another."""
    for item in items:
        action(item)


def importing(code: str) -> float:
    """Milliseconds that `code` takes in a fresh process, without starting Python."""
    script = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r}); import pytest_pypto\n"
        f"start = time.perf_counter()\n{code}\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'torch or numpy was imported'\n"
        "print((time.perf_counter() - start) * 1000)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True) for _ in range(5)
    ]
    return min(float(r.stdout) for r in runs)


def texts(files: Sequence[str]) -> list[str]:
    """The dumps to measure: one in seven of the kit unless named."""
    sys.path.insert(0, str(ROOT))
    from tests.kit import dump_files

    paths = [Path(f) for f in files] or dump_files()[::7]
    found = [p.read_text(encoding="utf-8") for p in paths]
    return [t for t in found if "__FREE_VAR" not in t]


def report(name: str, value: float, limit: float, unit: str) -> bool:
    """Print one figure; True when it is within its limit."""
    sys.stdout.write(f"{name:32} {value:8.2f} {unit} (limit {limit:g})\n")
    return value <= limit


def main(files: Sequence[str]) -> int:
    """Measure everything; 1 when a limit is exceeded."""
    dumps = texts(files)
    if not dumps:
        sys.stderr.write("no dumps: name some files, or put the compatibility kit beside the checkout\n")
        return 2
    import pytest_pypto.pypto.language as pl
    from pytest_pypto.pypto import ir

    programs = [pl.parse(t) for t in dumps]
    base = best(lambda: each(ast.parse, dumps))
    load = best(lambda: each(pl.parse, dumps))
    shown = best(lambda: each(ir.python_print, programs))
    size = sum(map(len, dumps)) / 1e6
    sys.stdout.write(f"{len(dumps)} dumps, {size:.2f} MB, ast.parse {base * 1000:.0f} ms\n")
    good = [
        report("loading / ast.parse", load / base, LOAD, "x"),
        report("printing / ast.parse", shown / base, PRINT, "x"),
        *(report(name, importing(code), IMPORT_MS, "ms") for name, code in IMPORTS.items()),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
