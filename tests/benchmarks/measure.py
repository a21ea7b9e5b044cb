"""What the benchmark scripts share: measuring in turns, and printing a figure with its limit.

Figures are ratios of CPU times that one run measures in turns, so that other work on the machine hits all of them
alike; the shortest of several runs counts, since noise only ever adds. Works with `python FILE` and with
`python -m pytest_pypto run FILE`, from any directory.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def use_embedded() -> None:
    """Make `import pypto` find the embedded compiler."""
    from pytest_pypto import toolchain

    if toolchain.current() is None:
        toolchain.activate()


def in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest CPU time of every call in milliseconds; each runs once before that does not count.

    The collector runs between rounds and, as in real life, inside the calls; what was there before is set aside.
    """
    for call in calls.values():
        call()
    gc.collect()
    gc.freeze()
    found = dict.fromkeys(calls, float("inf"))
    try:
        for _ in range(rounds):
            gc.collect()
            for name, call in calls.items():
                start = time.process_time()
                call()
                found[name] = min(found[name], 1000 * (time.process_time() - start))
    finally:
        gc.unfreeze()
    return found


def keep_memory() -> None:
    """Have the C library keep freed memory, where it can be told to.

    Else a program that asks for megabytes pays for fresh pages each time in some processes and never in others, as its
    memory happens to lie, and its time doubles or not.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
        if mallopt is not None:
            mallopt(option, 1 << 30)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that is gone afterwards, in memory where the machine has such a place.

    Making and deleting thousands of files costs a disk more the fuller its tables are; that is no time of ours.
    """
    memory = Path("/dev/shm")
    where = str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        yield Path(folder)


class Report:
    """Prints figures against their limits and remembers which are missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def row(self, what: str, value: float, limit: float | None = None, unit: str = "x", note: str = "") -> None:
        """One line; without a limit the figure is only told."""
        good = limit is None or value <= limit
        bound = "" if limit is None else f"at most {limit:.4g}"
        mark = "    " if limit is None else "ok  " if good else "MISS"
        print(f"{mark} {what:<52}{value:9.2f} {unit:<3}{bound:15}{note}".rstrip(), flush=True)
        if not good:
            self.missed.append(what)

    def close(self) -> int:
        """The closing line; the exit code."""
        print(f"missed: {', '.join(self.missed)}" if self.missed else "every limit is kept")
        return 1 if self.missed else 0


def example(name: str) -> ModuleType:
    """The example module called `name`."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def rounds_option(doc: str | None, default: int) -> int:
    """The value of `--rounds`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=default, help=f"runs per figure (default {default})")
    return int(parser.parse_args().rounds)
