"""One source for every split mode: `with_split` through the public print and parse API.

A PyPTO whose parser wants a literal mode in `pl.split(...)` cannot take it from a closure. The program is printed, the
mode in the text is replaced, and the text is parsed again; places keep pointing into the user's file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pytest_pypto.harness.errors import CaseError

_SCOPE = re.compile(r"^(?P<indent>\s*)with pl\.at\(level=pl\.Level\.CORE_GROUP(?P<rest>.*)\)(?P<tail>.*):\s*$")
_SPLIT = re.compile(r"pl\.split\(.*\)")
_LIST = re.compile(r", optimizations=\[(?P<items>[^\[\]]*)\]")
_REGION = re.compile(r"\bpl\.split_aiv\(")
NONE_FOUND = (
    "program {name!r} has no CORE_GROUP scope whose split could be set; "
    "write `with pl.at(level=pl.Level.CORE_GROUP):` around the mixed region"
)


def with_split(program: Any, mode: Any) -> Any:
    """The program with the split of its mixed scopes replaced.

    Every CORE_GROUP scope gets the mode, except scopes that contain a `pl.split_aiv` region: these say themselves what
    each lane does.

    Args:
        program: an `ir.Program` as the front end made it.
        mode: a `pl.SplitMode`, or its name; NONE removes the split.

    Raises:
        CaseError: no such scope, or no such mode.
    """
    import pypto.language as pl
    from pypto import ir

    name = mode if isinstance(mode, str) else getattr(mode, "name", repr(mode))
    if not hasattr(pl.SplitMode, name):
        known = ", ".join(m.name for m in pl.SplitMode)
        raise CaseError(f"no split mode is called {name!r}; the modes are {known}")
    text = ir.python_print(program)
    changed = replace_split(text, name)
    if changed is None:
        raise CaseError(NONE_FOUND.format(name=program.name))
    return _parse(changed, _places(program, pl.parse(text)))


def replace_split(text: str, name: str) -> str | None:
    """The printed program with the mode replaced, line by line; None when there is no scope to change."""
    lines = text.splitlines()
    count = 0
    for number, line in enumerate(lines):
        match = _SCOPE.match(line)
        if match is None or _has_region(lines, number, len(match["indent"])):
            continue
        rest = _options(match["rest"], name)
        lines[number] = f"{match['indent']}with pl.at(level=pl.Level.CORE_GROUP{rest}){match['tail']}:"
        count += 1
    return "\n".join(lines) + "\n" if count else None


def _has_region(lines: list[str], number: int, indent: int) -> bool:
    for line in lines[number + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return False
        if _REGION.search(line):
            return True
    return False


def _options(rest: str, name: str) -> str:
    """Arguments of `pl.at` after the level, with the split replaced, added or removed."""
    found = _LIST.search(rest)
    items = [item for item in _items(found["items"] if found else "") if not _SPLIT.fullmatch(item)]
    if name != "NONE":
        items.append(f"pl.split(pl.SplitMode.{name})")
    listed = f", optimizations=[{', '.join(items)}]" if items else ""
    return rest[: found.start()] + listed + rest[found.end() :] if found else rest + listed


def _items(text: str) -> list[str]:
    """Parts between the commas that stand outside parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


SourceMap = dict[int, tuple[str, int, int]]


def _places(program: Any, printed: Any) -> SourceMap:
    """Printed line -> place in the user's file, from two programs of the same structure."""
    places: SourceMap = {}
    for original, copy in zip(spans_of(program), spans_of(printed), strict=False):
        if original.begin_line > 0 and copy.begin_line > 0:
            places.setdefault(copy.begin_line, (original.filename, original.begin_line, original.begin_column))
    return places


def spans_of(program: Any) -> Iterator[Any]:
    """Places of the functions and statements of a program, in program order."""
    for function in program.functions.values():
        yield function.span
        yield from _stmt_spans(function.body)


def _stmt_spans(stmt: Any) -> Iterator[Any]:
    if stmt is None:
        return
    if type(stmt).__name__ == "SeqStmts":
        for inner in stmt.stmts:
            yield from _stmt_spans(inner)
        return
    yield stmt.span
    for name in ("then_body", "else_body", "body"):
        inner = getattr(stmt, name, None)
        if inner is not None and hasattr(inner, "span"):
            yield from _stmt_spans(inner)


def _parse(text: str, places: SourceMap) -> Any:
    import inspect

    import pypto.language as pl

    if "source_map" in inspect.signature(pl.parse).parameters:
        return pl.parse(text, filename="<with_split>", source_map=places)
    return pl.parse(text)
