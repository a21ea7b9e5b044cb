"""Pass dumps as stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FRONTEND = "00_frontend.py"
_DUMP = re.compile(r"(\d{2,})_(?:after_)?(\w+)\.py")
_SNAPSHOT = re.compile(r"(\d{2,})_after_\w+\.py")


class TraceError(Exception):
    """What the user has to put right before there is a trace."""


@dataclass(frozen=True)
class Stage:
    """The program at one point of the pipeline.

    Attributes:
        name: stem of the dump, e.g. `04_after_ConvertToSSA`.
        title: the pass, e.g. `ConvertToSSA`; the stem for a file that is named otherwise.
        text: the dump.
        log: diagnostics of the pass, "" for none.
    """

    name: str
    title: str
    text: str
    log: str = ""


@dataclass(frozen=True)
class Trace:
    """Stages in order, and diagnostics that belong to none of them as (name, text)."""

    stages: tuple[Stage, ...]
    notes: tuple[tuple[str, str], ...] = ()


def read_trace(paths: Sequence[Path]) -> Trace:
    """One directory of dumps (or a build that has one), or dump files in the order given.

    Raises:
        TraceError: there is no complete sequence of dumps, or a file cannot be read.
    """
    if len(paths) == 1 and not paths[0].is_file():
        return _read_directory(paths[0])
    for path in paths:
        if not path.is_file():
            what = "is a directory: give one directory alone, or files" if path.is_dir() else "does not exist"
            raise TraceError(f"{path} {what}")
    if len(paths) == 1:
        raise TraceError(f"{paths[0]} is one dump and a trace compares dumps: give its directory, or more files")
    return Trace(tuple(_stage(path) for path in paths))


def _read_directory(given: Path) -> Trace:
    if not given.is_dir():
        raise TraceError(
            f"{given} does not exist; give the passes_dump directory of a build made with dump_passes=True"
        )
    folder = given / "passes_dump" if (given / "passes_dump").is_dir() else given
    files = [folder / FRONTEND, *_snapshots(folder)]
    hints = folder.parent / "report" / "perf_hints.log"
    known = {file.with_suffix(".log") for file in files}
    strays = [log for log in sorted(folder.glob("*.log")) if log not in known]
    strays += [hints] if folder.name == "passes_dump" and hints.is_file() else []
    return Trace(tuple(_stage(file) for file in files), tuple((log.name, _text(log)) for log in strays))


def _snapshots(folder: Path) -> list[Path]:
    """The dumps after passes, in order; numbered from 1 without gaps."""
    if not (folder / FRONTEND).is_file():
        raise TraceError(f"{folder} has no {FRONTEND}; compile with dump_passes=True")
    by_index: dict[int, Path] = {}
    for file in sorted(folder.glob("*.py")):
        if file.name == FRONTEND:
            continue
        found = _SNAPSHOT.fullmatch(file.name)
        if not found:
            raise TraceError(f"malformed name {file.name!r} in {folder}: dumps are called NN_after_<Pass>.py")
        index = int(found[1])
        if index in by_index or index == 0:
            other = by_index[index].name if index in by_index else FRONTEND
            raise TraceError(f"duplicate snapshot index {found[1]}: {other} and {file.name}")
        by_index[index] = file
    if not by_index:
        raise TraceError(f"{folder} has {FRONTEND} and no pass snapshot: the compile stopped before its first pass")
    missing = next((i for i in range(1, max(by_index)) if i not in by_index), None)
    if missing is not None:
        raise TraceError(
            f"missing snapshot index {missing:02d} in {folder}; to compare what is there, give the files instead of "
            "the directory"
        )
    return [by_index[i] for i in sorted(by_index)]


def _stage(file: Path) -> Stage:
    found = _DUMP.fullmatch(file.name)
    log = file.with_suffix(".log")
    return Stage(file.stem, found[2] if found else file.stem, _text(file), _text(log) if log.is_file() else "")


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise TraceError(f"{file} is not UTF-8: {exc.reason} at byte {exc.start}") from None
    except OSError as exc:
        raise TraceError(f"{file} cannot be read: {exc.strerror}") from None
