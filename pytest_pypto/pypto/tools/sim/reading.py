"""The profile files of a run: tasks on cores, their counters, names and dependencies."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RECORDS = "chip_swimlane_records.json"
COUNTERS = "pmu.csv"
DEPENDENCIES = "deps.json"


class ProfileError(Exception):
    """What the user has to put right before there is a trace."""


@dataclass(frozen=True)
class TaskRow:
    """One task on one core; times in ticks.

    Attributes:
        core: number of the core.
        task: token of the task, `(ring << 32) | index`.
        start, end: of the kernel.
        kernel: its name, `task N` when no file tells it.
        dispatch, finish: when the scheduler sent it and saw its end; None below level 2.
        counters: the row of `pmu.csv`, empty without one.
    """

    core: int
    task: int
    start: int
    end: int
    kernel: str
    dispatch: int | None = None
    finish: int | None = None
    counters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """A run.

    Attributes:
        clock_hz: ticks per second.
        clock: what the ticks are, in words; "" for a counter of the chip.
        core_types: `aic` or `aiv`, by number of the core.
        tasks: in the order of the file.
        scheduler, orchestrator: phases, a list for each thread.
        edges: (predecessor, successor) tokens.
        files: what was read.
    """

    clock_hz: int
    clock: str
    core_types: tuple[str, ...]
    tasks: tuple[TaskRow, ...]
    scheduler: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    orchestrator: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    edges: tuple[tuple[int, int], ...] = ()
    files: tuple[Path, ...] = ()


def read_profile(given: Path) -> Profile:
    """The profile in a directory, or in the `dfx_outputs` of an artifact.

    Raises:
        ProfileError: there is none, or a file is damaged.
    """
    folder = given / "dfx_outputs" if (given / "dfx_outputs").is_dir() else given
    if not folder.is_dir():
        raise ProfileError(f"{given} is no directory; give an artifact, or its dfx_outputs")
    if not (folder / RECORDS).is_file():
        raise ProfileError(
            f"{folder} has no {RECORDS}; run with RunConfig(enable_chip_swimlane=4). "
            "Binary dumps of the vendor's simulator are not read by this version"
        )
    names = sorted(folder.glob("name_map_*.json"))
    files = [folder / RECORDS, *(f for f in (folder / COUNTERS, folder / DEPENDENCIES) if f.is_file()), *names]
    with damage_named(folder):
        return _profile(folder, names, tuple(files))


@contextmanager
def damage_named(folder: Path) -> Iterator[None]:
    """Say of data that are not as they should be where they come from.

    Raises:
        ProfileError: instead of what the data led to.
    """
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as exc:
        raise ProfileError(f"a profile file in {folder} is damaged: {type(exc).__name__}: {exc}") from exc


def _profile(folder: Path, names: list[Path], files: tuple[Path, ...]) -> Profile:
    records = _json(folder / RECORDS)
    meta = records["metadata"]
    kinds = tuple(str(kind) for kind in meta["core_types"])
    deps = _json(folder / DEPENDENCIES) if folder / DEPENDENCIES in files else {}
    hz = int(meta["clock_freq_hz"])
    if hz <= 0:
        raise ValueError(f"clock_freq_hz is {hz}")
    return Profile(
        hz,
        str(meta.get("clock", "")),
        kinds,
        _tasks(records, kinds, _Names(names, deps), _counters(folder / COUNTERS) if folder / COUNTERS in files else {}),
        tuple(tuple(thread) for thread in records.get("aicpu_scheduler_phases", ())),
        tuple(tuple(thread) for thread in records.get("aicpu_orchestrator_phases", ())),
        tuple(dict.fromkeys((int(edge["pred"]), int(edge["succ"])) for edge in deps.get("edges", ()))),
        files,
    )


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise ProfileError(f"{file} is no JSON text: {exc}") from None


class _Names:
    """Names of kernels, from their number or from the task and the kind of core."""

    def __init__(self, files: list[Path], deps: Mapping[str, Any]) -> None:
        self.by_number: dict[str, str] = {}
        for file in files:
            self.by_number.update(_json(file)["callable_id_to_name"])
        self.by_task = {int(task["task_id"]): task["kernel_ids"] for task in deps.get("tasks", ())}

    def of(self, task: int, kind: str, counters: Mapping[str, str]) -> str:
        """The name of the kernel of a task on a core of a kind."""
        number = counters.get("func_id")
        if number is None and task in self.by_task:
            cube, vector, _ = self.by_task[task]
            number = cube if kind == "aic" else vector
        return self.by_number.get(str(number), f"task {task}")


Counters = Mapping[tuple[int, int], "list[dict[str, str]]"]


def _counters(file: Path) -> Counters:
    """Rows by (core, task), in order: a task can come to the same core more than once."""
    found: dict[tuple[int, int], list[dict[str, str]]] = defaultdict(list)
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            found[int(row["core_id"]), int(row["task_id"])].append(row)
    return found


def _tasks(
    records: Mapping[str, Any], kinds: tuple[str, ...], names: _Names, counters: Counters
) -> tuple[TaskRow, ...]:
    sent = {(core, number): (begin, end) for core, number, begin, end in records.get("aicpu_tasks", ())}
    left = {key: iter(rows) for key, rows in counters.items()}
    rows = []
    for core, task, number, start, end in records["aicore_tasks"]:
        if not 0 <= core < len(kinds):
            raise ValueError(f"core {core} of task {task} is not one of the {len(kinds)} cores")
        counted = next(left.get((core, task), iter(())), {})
        name = names.of(task, kinds[core], counted)
        rows.append(TaskRow(core, task, start, end, name, *sent.get((core, number), (None, None)), counters=counted))
    return tuple(rows)
