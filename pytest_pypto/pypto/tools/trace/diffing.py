"""What changes between two dumps, by function, on the level of text: also a dump that does not load can be shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from .reading import Stage

HEAD = "(module)"
"""Name of the lines before the first function."""

_DEF = re.compile(r"( *)(?:async )?def +(\w+)")
_DECORATOR = re.compile(r"( *)@")

_SUBJECT = re.compile(r"\s*([^:=(\[]+)")

Opcode = tuple[str, int, int, int, int]


def functions_of(text: str) -> dict[str, tuple[str, ...]]:
    """The lines of a dump by function, in order; together they are the whole text.

    A function begins at its first decorator. A name that comes twice gets a number.
    """
    lines = text.split("\n")
    starts = _starts(lines)
    found: dict[str, tuple[str, ...]] = {}
    for (begin, name), (end, _) in zip(starts, [*starts[1:], (len(lines), "")], strict=True):
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found[unique] = tuple(lines[begin:end])
    return found


def _starts(lines: Sequence[str]) -> list[tuple[int, str]]:
    """First lines of the parts. Functions stand at one depth: that of the first one in the text."""
    starts = [(0, HEAD)]
    depth: str | None = None
    decorated: int | None = None
    for number, line in enumerate(lines):
        found = _DEF.match(line)
        if found and depth in (None, found[1]):
            depth = found[1]
            starts.append((number if decorated is None else decorated, found[2]))
            decorated = None
        elif (mark := _DECORATOR.match(line)) and depth in (None, mark[1]):
            decorated = number if decorated is None else decorated
        elif line.strip() and not _continues(line, depth):
            decorated = None  # it belonged to a class
    return starts[1:] if len(starts) > 1 and starts[1][0] == 0 else starts


def _continues(line: str, depth: str | None) -> bool:
    """Whether a line may belong to a decorator that was opened above it."""
    return depth is not None and (line.startswith(depth + " ") or line.lstrip()[0] in ")]}")


def opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Steps from one list of lines to another: (equal|replace|delete|insert, old from, to, new from, to)."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    middle = SequenceMatcher(None, old[first : len(old) - last], new[first : len(new) - last], autojunk=False)
    steps: list[Opcode] = [("equal", 0, first, 0, first)] if first else []
    for tag, a, b, c, d in middle.get_opcodes():
        step = (tag, a + first, b + first, c + first, d + first)
        steps += _aligned(old, new, step) if tag == "replace" else [step]
    if last:
        steps.append(("equal", len(old) - last, len(old), len(new) - last, len(new)))
    return steps


def _aligned(old: Sequence[str], new: Sequence[str], step: Opcode) -> list[Opcode]:
    """A replacement in parts, so that lines which define the same name stand beside each other."""
    _, a, b, c, d = step
    names = SequenceMatcher(None, [_subject(x) for x in old[a:b]], [_subject(x) for x in new[c:d]], autojunk=False)
    return [
        ("replace" if tag == "equal" else tag, a + i, a + j, c + k, c + m) for tag, i, j, k, m in names.get_opcodes()
    ]


def _subject(line: str) -> str:
    """What a line is about: the name it defines, or the operation it calls."""
    found = _SUBJECT.match(line)
    return found[1].strip() if found else line


@dataclass
class _Pool:
    """Numbers for things that come again and again, in order of their first use."""

    numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, thing: Any) -> int:
        return self.numbers.setdefault(thing, len(self.numbers))


def as_data(stages: Sequence[Stage]) -> dict[str, Any]:
    """The trace as plain values.

    `lines` are the distinct lines, `texts` the distinct functions as numbers of lines. A stage has its functions as
    [name, text] and its `changes` against the stage before as [name, old text, new text] with -1 for none. `diffs`
    holds the steps of each pair of texts under `"old-new"`.
    """
    lines, texts = _Pool(), _Pool()
    rows: list[dict[str, Any]] = []
    diffs: dict[str, list[Opcode]] = {}
    before: dict[str, int] = {}
    content: dict[int, tuple[str, ...]] = {}
    for number, stage in enumerate(stages):
        parts = functions_of(stage.text)
        now = {name: texts.number(tuple(map(lines.number, part))) for name, part in parts.items()}
        content.update((now[name], part) for name, part in parts.items())
        changes = _changes(before, now) if number else []
        for _, old, new in changes:
            if old >= 0 and new >= 0:
                diffs.setdefault(f"{old}-{new}", opcodes(content[old], content[new]))
        row = {"name": stage.name, "title": stage.title, "functions": [list(item) for item in now.items()]}
        rows.append(row | {"changes": changes, "log": stage.log})
        before = now
    return {"lines": list(lines.numbers), "texts": list(texts.numbers), "diffs": diffs, "stages": rows}


def _changes(before: dict[str, int], now: dict[str, int]) -> list[tuple[str, int, int]]:
    found = [(name, before.get(name, -1), text) for name, text in now.items() if before.get(name) != text]
    return found + [(name, text, -1) for name, text in before.items() if name not in now]
