"""Tokens of `.pto` text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..findings import DeviceError

MAX_BYTES = 64 << 20
MAX_LINE = 1 << 16
MAX_DIGITS = 400
"""Characters of one number; the longest decimal spelling of a finite double has fewer."""

_TOKEN = re.compile(
    r"""[ \t\r]*(?:
    (?P<newline>\n)
  | (?P<comment>//[^\n]*)
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
    )""",
    re.VERBOSE | re.ASCII,
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
    found: list[Token] = []
    add = found.append
    line, start, pos = 1, 0, 0
    for match in _TOKEN.finditer(text):
        if match.start() != pos:
            break
        pos = match.end()
        kind = match.lastgroup
        if kind == "newline":
            line += 1
            if pos - start > MAX_LINE:
                raise DeviceError(f"the line is longer than {MAX_LINE} characters", file=file, line=line - 1)
            start = pos
        elif kind != "comment":
            assert kind is not None
            at = match.start(kind)
            if kind == "unclosed":
                message = f"the type or attribute in column {at - start + 1} is not closed with '>' on its line"
                raise DeviceError(message, file=file, line=line)
            if kind == "number" and pos - at > MAX_DIGITS:
                message = f"the number in column {at - start + 1} has {pos - at} characters, more than {MAX_DIGITS}"
                raise DeviceError(message, file=file, line=line)
            add(Token(kind, match.group(kind), line, at - start + 1))
    if text[pos:].strip(" \t\r"):
        pos += len(text[pos:]) - len(text[pos:].lstrip(" \t\r"))
        raise DeviceError(f"unexpected character {text[pos]!r} in column {pos - start + 1}", file=file, line=line)
    if len(text) - start > MAX_LINE:
        raise DeviceError(f"the line is longer than {MAX_LINE} characters", file=file, line=line)
    add(Token("end", "end of file", line, pos - start + 1))
    return found
