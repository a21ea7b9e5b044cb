"""Tokens of `.pto` text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..findings import DeviceError

MAX_BYTES = 64 << 20
MAX_LINE = 1 << 16

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)
  | (?P<comment>//[^\n]*)
  | (?P<newline>\n)
  | (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<value>%[A-Za-z0-9_.$]+)
  | (?P<symbol>@[A-Za-z_][\w.$]*)
  | (?P<label>\^[A-Za-z_]\w*)
  | (?P<number>-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
  | (?P<type>(?:!pto\.\w+\s*|vector|dense)<[^<>\n]*(?:<[^<>\n]*>[^<>\n]*)*>)
  | (?P<attr>\#pto(?:\.\w+)?\s*<[^<>\n]*>)
  | (?P<unclosed>!pto\.\w+|vector<|dense<|\#pto)
  | (?P<arrow>->)
  | (?P<ident>[A-Za-z_][\w.$]*)
  | (?P<punct>[(){}\[\],=:<>?\#*])
    """,
    re.VERBOSE,
)


@dataclass(slots=True)
class Token:
    """One token; `kind` is value, symbol, label, number, type, attr, arrow, ident, string, punct or end."""

    kind: str
    text: str
    line: int
    col: int


def decode(raw: bytes, file: str) -> str:
    """The text of a `.pto` file.

    Raises:
        DeviceError: not UTF-8 text, or larger than 64 MiB.
    """
    if len(raw) > MAX_BYTES:
        raise DeviceError(f"the file has {len(raw)} bytes, more than {MAX_BYTES}; this is no kernel", file=file)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = raw[: exc.start].count(b"\n") + 1
        raise DeviceError(
            f"byte {exc.start} is not UTF-8 text; the file is damaged, compile again", file=file, line=line
        ) from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise DeviceError("the file contains NUL bytes; it is binary or damaged, compile again", file=file, line=line)
    return text


def tokens(text: str, file: str) -> list[Token]:
    """All tokens of `text`, ending with one of kind "end".

    Raises:
        DeviceError: a character or an unfinished `<...>` that starts no token, or a line over 65536 characters.
    """
    return list(_scan(text, file))


def _scan(text: str, file: str) -> Iterator[Token]:
    line, start, pos, size = 1, 0, 0, len(text)
    match = _TOKEN.match
    while pos < size:
        found = match(text, pos)
        if found is None:
            raise DeviceError(f"unexpected character {text[pos]!r} in column {pos - start + 1}", file=file, line=line)
        kind = found.lastgroup or ""
        end = found.end()
        if kind == "newline":
            line, start = line + 1, end
        elif kind == "unclosed":
            raise DeviceError(
                f"the type or attribute in column {pos - start + 1} is not closed with '>' on its line",
                file=file,
                line=line,
            )
        elif kind not in ("space", "comment"):
            yield Token(kind, found.group(), line, pos - start + 1)
        pos = end
        if pos - start > MAX_LINE:
            raise DeviceError(f"the line is longer than {MAX_LINE} characters", file=file, line=line)
    yield Token("end", "end of file", line, pos - start + 1)
