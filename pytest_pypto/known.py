"""Known failures as data: a TOML file says which test fails where and why; a listed test that passes is an error.

[[known]]
id = "tests/test_norm.py::test_norm"          # all variants; with [..] one variant; * stands for any text
platform = "a5sim"                            # optional: only there
phase = "passes"                              # where it fails first, one of PHASES
reason = "AutoTileMatmulL0 splits a bias tile"
issue = "https://example.org/issues/7"        # optional
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from pytest_pypto.options import PLATFORMS, Settings
from pytest_pypto.selection import variant_of

PHASES = ("compile", "roundtrip", "oracle", "passes", "memory", "device", "test")
"""Where a test can fail: compiling, a layer of the check (the first that failed), or the test's own code."""

KEYS = ("id", "platform", "phase", "reason", "issue")
REQUIRED = ("id", "phase", "reason")
HEADER = re.compile(r"\s*\[\[\s*known\s*\]\]")


# ---------------------------------------------------------------------------------------------------------------
# The file


@dataclass(frozen=True)
class Entry:
    """One known failure.

    Attributes:
        id: node id, with or without the parameters in brackets; `*` stands for any text.
        phase: see `PHASES`.
        reason: why it fails.
        where: `file:line` of the entry.
        platform: where it fails, "" for everywhere.
        issue: link or number, "" for none.
    """

    id: str
    phase: str
    reason: str
    where: str
    platform: str = ""
    issue: str = ""

    def names(self, nodeid: str) -> bool:
        """Whether the id means this test."""
        wanted = ".*".join(map(re.escape, self.id.split("*")))
        return re.fullmatch(wanted + r"(\[.*\])?", nodeid, re.DOTALL) is not None

    def holds_on(self, platform: str) -> bool:
        """Whether it is about this platform."""
        return self.platform in ("", platform)

    @property
    def text(self) -> str:
        """Reason and issue."""
        return f"{self.reason} ({self.issue})" if self.issue else self.reason


def read_known(file: Path, shown: str) -> tuple[Entry, ...]:
    """The entries of a file.

    Args:
        file: TOML with `[[known]]` tables.
        shown: how messages call it.

    Raises:
        ValueError: no such file, no TOML, or an entry is not as it should be; the text has `file:line`.
    """
    if not file.is_file():
        raise ValueError(f"no such file: {shown}")
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    text = file.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ValueError(f"{shown} is no TOML: {exc}") from None
    rows = data.get("known", [])
    other = next((key for key in data if key != "known"), None)
    if other is not None or not isinstance(rows, list):
        raise ValueError(f"{shown}: unexpected {other or 'known'!r}; the file consists of [[known]] tables")
    lines = _lines(text, len(rows))
    found = [_entry(row, f"{shown}:{line}") for row, line in zip(rows, lines, strict=True)]
    _refuse_twice(found)
    return tuple(found)


def _lines(text: str, count: int) -> list[int]:
    """Line of each entry. When the tables are written in another way than `[[known]]`, all are on line 1."""
    found = [number for number, line in enumerate(text.splitlines(), 1) if HEADER.match(line)]
    return found if len(found) == count else [1] * count


def _entry(row: Any, where: str) -> Entry:
    if not isinstance(row, Mapping):
        raise ValueError(f"{where}: {row!r} is no table; write [[known]] and one line for each key")
    for key, value in row.items():
        if key not in KEYS:
            raise ValueError(f"{where}: unknown key {key!r}: choose from {', '.join(KEYS)}")
        if not isinstance(value, str):
            raise ValueError(f"{where}: {key} must be a text, got {value!r}")
    for key in REQUIRED:
        if not row.get(key, "").strip():
            raise ValueError(f"{where}: no {key}: every known failure needs {', '.join(REQUIRED)}")
    for key, accepted in (("phase", PHASES), ("platform", PLATFORMS)):
        if row.get(key, accepted[0]) not in accepted:
            raise ValueError(f"{where}: unknown {key} {row[key]!r}: choose from {', '.join(accepted)}")
    return Entry(**row, where=where)


def _refuse_twice(entries: Sequence[Entry]) -> None:
    seen: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        first = seen.setdefault((entry.id, entry.platform, entry.phase), entry)
        if first is not entry:
            raise ValueError(f"{entry.where}: {entry.id!r} is listed already at {first.where}; delete one of them")


# ---------------------------------------------------------------------------------------------------------------
# Where a test failed

_FAILED_IN = pytest.StashKey[tuple[BaseException, str]]()


class failing_in:
    """`with failing_in(item, "compile"): ...`: note the phase that an exception comes from."""

    def __init__(self, item: pytest.Item, phase: str) -> None:
        self.item, self.phase = item, phase

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, exc: BaseException | None, trace: TracebackType | None) -> None:
        if exc is not None:
            self.item.stash[_FAILED_IN] = (exc, self.phase)


def phase_of(item: pytest.Item, exc: BaseException) -> str:
    """The phase that an exception comes from: as noted by a fixture, else by the PyPTO code that raised it."""
    noted = item.stash.get(_FAILED_IN, None)
    if noted is not None and noted[0] is exc:
        return noted[1]
    last = [room for room in map(_room, _modules(exc)) if room]
    return last[-1] if last else "test"


def _modules(exc: BaseException) -> Iterator[str]:
    trace = exc.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__", ""))
        trace = trace.tb_next


def _room(module: str) -> str:
    """Phase that a module of PyPTO belongs to, "" for other modules."""
    parts = module.removeprefix("pytest_pypto.").split(".")
    if parts[0] != "pypto":
        return ""
    if parts[1:2] == ["debug"]:
        return "oracle"
    if parts[1:2] == ["device"] or (parts[1:2] == ["runtime"] and parts[2:3] not in (["compile"], ["config"])):
        return "device"
    return "compile"


# ---------------------------------------------------------------------------------------------------------------
# The session


def activate(config: pytest.Config, settings: Settings) -> None:
    """Read the file and take part in the session; nothing happens without `--pypto-known`, or with `--runxfail`.

    Raises:
        pytest.UsageError: the file is not as it should be.
    """
    shown, mode = settings["pypto_known"], settings["pypto_known_update"]
    if not shown or config.getoption("runxfail", False):
        if mode != "no":
            raise pytest.UsageError("--pypto-known-update needs --pypto-known=FILE, and no --runxfail")
        return
    by_ini = settings.origin("pypto_known") == "ini"
    base = config.inipath.parent if by_ini and config.inipath is not None else config.invocation_params.dir
    try:
        missing = mode == "all" and not (base / shown).exists()
        entries = () if missing else read_known(base / shown, shown)
    except (ValueError, OSError) as exc:
        raise pytest.UsageError(f"{'ini key pypto_known' if by_ini else '--pypto-known'}: {exc}") from None
    found = KnownFailures(entries, settings.platforms, mode, base / shown, shown)
    config.pluginmanager.register(found, "pypto-known")


@dataclass(eq=False)
class KnownFailures:
    """Turns listed failures into expected ones, and listed tests that pass into failures.

    Attributes:
        entries: what is known.
        platforms: of this session; a test that is not parametrised runs on the first.
        mode: how the file is updated after the run, see `--pypto-known-update`.
        file, shown: the file, and how messages call it.
        idle: messages about entries that no test belongs to.
        covered: for each entry (by `where`), the collected tests it is about; None when the run may not have all.
    """

    entries: tuple[Entry, ...]
    platforms: tuple[str, ...]
    mode: str = "no"
    file: Path = Path()
    shown: str = ""
    idle: list[str] = field(default_factory=list)
    covered: dict[str, list[str] | None] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Look for entries without a test, before anything is deselected."""
        asked = any("::" in arg for arg in config.args) or config.getoption("lf", False)
        collected = {_file(item.nodeid) for item in items}
        for entry in self.entries:
            mine = [item for item in items if entry.names(item.nodeid)]
            if mine and entry.platform in self.platforms and not any(self._about(entry, item) for item in mine):
                self.idle.append(f"{entry.where}: no variant of {entry.id!r} runs on {entry.platform}")
            about = [item.nodeid for item in mine if self._about(entry, item)]
            partial = "*" in _file(entry.id) or (asked and entry.id not in about)
            self.covered[entry.where] = None if partial else about
            file = _file(entry.id)
            gone = "*" not in file and not (config.rootpath / file).is_file()
            if not mine and (gone or (file in collected and not asked)):
                self.idle.append(f"{entry.where}: no test is called {entry.id!r}; correct or delete the entry")

    def _about(self, entry: Entry, item: pytest.Item) -> bool:
        variant = variant_of(item)
        platform = variant.platform if variant is not None and variant.platform else self.platforms[0]
        return entry.holds_on(platform) and entry.names(item.nodeid)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Correct the outcome of a listed test."""
        outcome: Any = yield
        report: pytest.TestReport = outcome.get_result()
        if report.when == "teardown" or hasattr(report, "wasxfail"):
            return
        entries = [entry for entry in self.entries if self._about(entry, item)]
        if report.failed and call.excinfo is not None:
            phase = phase_of(item, call.excinfo.value)
            if entries:
                _failed(report, entries, phase)
            self._event(report, item, phase, _reason(call.excinfo))
        elif report.passed and report.when == "call":
            self._event(report, item, "", "")
            if entries and self.mode == "no":
                report.outcome, report.longrepr = "failed", "\n".join(map(_passes_now, entries))

    def _event(self, report: pytest.TestReport, item: pytest.Item, phase: str, reason: str) -> None:
        """Tell the one that updates the file, perhaps in another process, what a test came to."""
        if self.mode != "no":
            variant = variant_of(item)
            platform = variant.platform if variant is not None else ""
            report.user_properties.append((EVENT, {"phase": phase, "platform": platform, "reason": reason}))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker sends its messages."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["pypto_known"], output["pypto_known_covered"] = self.idle, self.covered

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take a worker's messages; every worker has the same."""
        output = getattr(node, "workeroutput", None) or {}
        self.idle += [message for message in output.get("pypto_known", ()) if message not in self.idle]
        self.covered.update(output.get("pypto_known_covered", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report entries without a test."""
        if self.idle:
            terminalreporter.section("pypto known failures", sep="-")
            for message in self.idle:
                terminalreporter.write_line(message)


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


EVENT = "pypto.known"
"""Property of a report: the phase a test failed in ("" when it passed), its platform, and why."""


def _reason(caught: pytest.ExceptionInfo[BaseException]) -> str:
    """One line about a failure."""
    verdict = getattr(caught.value, "verdict", None)
    if verdict is not None and verdict.failed_layers:
        first = verdict.failed_layers[0]
        return f"{first.layer}: {first.reason}"
    return next(iter(str(caught.value).splitlines()), "") or caught.typename


def _failed(report: pytest.TestReport, entries: Sequence[Entry], phase: str) -> None:
    expected = next((entry for entry in entries if entry.phase == phase), None)
    if expected is not None:
        report.outcome, report.wasxfail = "skipped", f"{expected.text} [{phase}, {expected.where}]"
        return
    lines = [f"{entry.where} expects a failure in {entry.phase}; this one is in {phase}" for entry in entries]
    report.sections.append(("pypto known failures", "\n".join(lines)))


def _passes_now(entry: Entry) -> str:
    broad = "" if entry.platform and "[" in entry.id else ", or narrow its id or platform to what still fails"
    return f"pypto: {entry.where}: this test passes now; delete the entry{broad} (known failure: {entry.text})"
