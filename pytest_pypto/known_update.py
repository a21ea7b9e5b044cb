"""Rewriting the file of known failures after a run; comments and the other entries stay as they are.

An entry is touched only when every test it is about ran: deleted when all passed, narrowed to those that failed when
some did. What fails and is not listed is added on demand, with the first line of the failure as its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_pypto.known import EVENT, HEADER, Entry, KnownFailures

REASON_LENGTH = 120


def activate(config: pytest.Config) -> None:
    """Take part in the session when `--pypto-known-update` asks for it; not in workers."""
    known: KnownFailures | None = config.pluginmanager.getplugin("pypto-known")
    if known is not None and known.mode != "no" and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Update(known), "pypto-known-update")


@dataclass(eq=False)
class Update:
    """Collects what tests came to, and writes the file at the end; lives where reports arrive.

    Attributes:
        known: the entries, the file, and the messages about it.
        events: for each test, see `EVENT`.
    """

    known: KnownFailures
    events: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what a test came to."""
        found: list[Any] = [value for name, value in report.user_properties if name == EVENT]
        if found:
            self.events[report.nodeid] = found[-1]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Write the file when something changes, and say so with the other messages about it."""
        known = self.known
        rests = ((entry.where, self._rest(entry, known.covered.get(entry.where))) for entry in known.entries)
        changes = {where: rest for where, rest in rests if rest is not None}
        added = list(self._unlisted()) if known.mode == "all" else []
        if changes or added:
            known.idle.append(self._write(changes, added))

    def _write(self, changes: dict[str, list[dict[str, str]]], added: list[dict[str, str]]) -> str:
        file, shown = self.known.file, self.known.shown
        try:
            before = file.read_text(encoding="utf-8") if file.exists() else ""
            file.write_text(rewritten(before, self.known.entries, changes, added), encoding="utf-8")
        except (ValueError, OSError) as exc:
            return f"{shown} was left as it is: {exc}"
        gone = sum(not rest for rest in changes.values())
        counts = ((gone, "deleted"), (len(changes) - gone, "narrowed"), (len(added), "added"))
        return f"{shown} was rewritten: " + ", ".join(f"{count} {what}" for count, what in counts if count)

    def _rest(self, entry: Entry, covered: Sequence[str] | None) -> list[dict[str, str]] | None:
        """What remains of an entry: nothing, or narrower ones; None when it stays as it is."""
        if not covered or any(nodeid not in self.events for nodeid in covered):
            return None
        phases = [self.events[nodeid]["phase"] for nodeid in covered]
        failed = [nodeid for nodeid, phase in zip(covered, phases, strict=True) if phase == entry.phase]
        elsewhere = set(phases) - {"", entry.phase}
        if len(failed) == len(covered) or (elsewhere and self.known.mode == "passing"):
            return None
        more = {"reason": entry.reason} | ({"issue": entry.issue} if entry.issue else {})
        return [self._table(nodeid, **more) for nodeid in failed]

    def _unlisted(self) -> Iterator[dict[str, str]]:
        """Tables for failures that no entry expects, in an order that no distribution changes."""
        for nodeid, event in sorted(self.events.items()):
            listed = [e for e in self.known.entries if e.names(nodeid) and e.holds_on(event["platform"] or e.platform)]
            if event["phase"] and not any(entry.phase == event["phase"] for entry in listed):
                yield self._table(nodeid, reason=event["reason"][:REASON_LENGTH])

    def _table(self, nodeid: str, **more: str) -> dict[str, str]:
        event = self.events[nodeid]
        platform = {"platform": event["platform"]} if event["platform"] else {}
        return {"id": nodeid} | platform | {"phase": event["phase"]} | more


def rewritten(
    text: str,
    entries: Sequence[Entry],
    changes: Mapping[str, Sequence[Mapping[str, str]]],
    added: Sequence[Mapping[str, str]],
) -> str:
    """The text of the file after the changes.

    Args:
        text: before.
        entries: what it holds, in order.
        changes: for an entry (by `where`), the tables that take its place.
        added: tables for the end.

    Raises:
        ValueError: the entries are not written as `[[known]]` tables.
    """
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if HEADER.match(line)]
    if len(heads) != len(entries):
        raise ValueError("its entries are not written as [[known]] tables")
    starts = [_with_comments(lines, head) for head in heads]
    parts = [lines[: starts[0]] if starts else lines]
    for entry, start, end in zip(entries, starts, [*starts[1:], len(lines)], strict=False):
        rest = changes.get(entry.where)
        parts.append(lines[start:end] if rest is None else [row for table in rest for row in _rows(table)])
    parts += [_rows(table) for table in added]
    return _joined(parts)


def _with_comments(lines: Sequence[str], head: int) -> int:
    """First line of an entry: the comments right above its header are about it."""
    while head > 0 and lines[head - 1].lstrip().startswith("#"):
        head -= 1
    return head


def _rows(table: Mapping[str, str]) -> list[str]:
    return ["[[known]]", *(f"{key} = {_quoted(value)}" for key, value in table.items()), ""]


def _quoted(value: str) -> str:
    """A TOML string; what UTF-8 or TOML cannot hold becomes a question mark."""
    clean = value.encode("utf-8", "replace").decode().replace("\x7f", "?")
    return json.dumps(clean, ensure_ascii=False)


def _joined(parts: Sequence[Sequence[str]]) -> str:
    """The parts with one empty line between them."""
    texts: list[Any] = ["\n".join(part).strip("\n") for part in parts]
    return "\n\n".join(filter(None, texts)) + "\n"
