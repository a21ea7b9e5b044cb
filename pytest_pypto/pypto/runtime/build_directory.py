"""The directory of an artifact: its name, the lock of one compile at a time, and what an earlier build left in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ..codegen.metadata import CONFIG_NAME, META_NAME
from ..ir.program import Program

LOCK_NAME = ".compile.lock"
_DUMP = re.compile(r"(00_frontend|\d\d+_after_.+)\.(py|log)")
_MARKERS = (META_NAME, CONFIG_NAME, "distributed_meta.json", "orchestration/host_orch.py")
_REPORTS = ("pipeline_profile.txt", "pipeline_profile.json", "codegen_errors.txt")
_KERNEL = re.compile(r"kernels/((aiv|aic)/)?[^/\\]+\.pto")
_PRINTED = "# pypto.program:"
"""First words of a host program that a compile wrote."""


def make_directory(program: Program, output_dir: str | os.PathLike[str] | None) -> Path:
    """The artifact directory, made. A default name that is taken gets `_1`, `_2`, ..."""
    if output_dir is not None:
        directory = Path(os.fspath(output_dir)).resolve()
        directory.mkdir(parents=True, exist_ok=True)
        return directory
    base = Path(os.environ.get("PYPTO_PROG_BUILD_DIR") or "build_output").resolve()
    base.mkdir(parents=True, exist_ok=True)
    stem = f"{program.name or 'program'}_{time.strftime('%Y%m%d_%H%M%S')}"
    for number in range(10_000):
        directory = base / (stem if number == 0 else f"{stem}_{number}")
        try:
            directory.mkdir()
        except FileExistsError:
            continue
        return directory
    raise RuntimeError(f"{base} holds too many directories named {stem}_*; remove old builds or pass output_dir=")


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """One compile at a time per directory, across processes."""
    with FileLock(directory / LOCK_NAME):
        yield


def forget_earlier_build(directory: Path) -> None:
    """Remove what would make an earlier build of this directory look like this one.

    These are markers, reports, pass dumps, host programs and the kernels that the earlier metadata list. All else in
    the directory may be the user's and stays; so does the log of hints, which is appended to.
    """
    for part in (directory, *sorted(p.parent for p in directory.glob(f"next_levels/*/{META_NAME}"))):
        _forget_code(part)
    for marker in (*_MARKERS, *(f"report/{name}" for name in _REPORTS)):
        (directory / marker).unlink(missing_ok=True)
    dumps = directory / "passes_dump"
    for path in dumps.glob("*") if dumps.is_dir() else ():
        if _DUMP.fullmatch(path.name):
            path.unlink()
    for meta in directory.glob(f"next_levels/*/{META_NAME}"):
        meta.unlink()
    if dumps.is_dir() and not any(dumps.iterdir()):
        shutil.rmtree(dumps)


def _forget_code(part: Path) -> None:
    for kernel in _listed_kernels(part / META_NAME):
        (part / kernel).unlink(missing_ok=True)
        (part / "ptoas" / Path(kernel).name).unlink(missing_ok=True)
    for host in part.glob("orchestration/*.py"):
        if host.is_file() and _was_printed(host):
            host.unlink()
            host.with_suffix(".cpp").unlink(missing_ok=True)


def _listed_kernels(meta: Path) -> list[str]:
    """Kernels of an earlier build; none when its metadata are damaged or of another compiler."""
    try:
        listed = json.loads(meta.read_text(encoding="utf-8"))["files"]
        return [name for name in listed if _KERNEL.fullmatch(name)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _was_printed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PRINTED)) == _PRINTED.encode()
