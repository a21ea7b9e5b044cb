"""A cursor over tokens with the small pieces of grammar that all operations share."""

from __future__ import annotations

import re
import struct
from typing import Any, NoReturn

from ..findings import DeviceError
from .lexer import Token
from .types import PtoType, ScalarT, parse_type


class Cursor:
    """Reads tokens one after the other; every complaint carries file, line and column."""

    __slots__ = ("file", "pos", "tokens")

    def __init__(self, tokens: list[Token], file: str) -> None:
        self.tokens, self.file, self.pos = tokens, file, 0

    @property
    def here(self) -> Token:
        """The next token."""
        return self.tokens[self.pos]

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Complain about `token`, by default the next one."""
        at = token or self.here
        raise DeviceError(f"{message} (column {at.col})", file=self.file, line=at.line)

    def take(self) -> Token:
        """The next token, consumed."""
        token = self.tokens[self.pos]
        if token.kind != "end":
            self.pos += 1
        return token

    def at(self, text: str) -> bool:
        """True when the next token is `text`."""
        return self.here.text == text and self.here.kind != "string"

    def accept(self, text: str) -> bool:
        """Consume `text` if it comes next."""
        if self.at(text):
            self.pos += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Consume `text`, which must come next."""
        if not self.at(text):
            self.fail(f"expected {text!r}, found {self.here.text!r}")
        return self.take()

    def kind(self, kind: str, what: str) -> str:
        """The text of the next token, which must be of `kind`."""
        if self.here.kind != kind:
            self.fail(f"expected {what}, found {self.here.text!r}")
        return self.take().text

    def value(self) -> str:
        """A value name, without `%`."""
        return self.kind("value", "a value (%name)")[1:]

    def values(self, opening: str, closing: str) -> list[str]:
        """Comma separated values between two brackets."""
        self.expect(opening)
        found: list[str] = []
        while not self.at(closing):
            found.append(self.value())
            if not self.accept(","):
                break
        self.expect(closing)
        return found

    def ints(self) -> list[int]:
        """`[8, 16]`"""
        self.expect("[")
        found = [self.integer()]
        while self.accept(","):
            found.append(self.integer())
        self.expect("]")
        return found

    def integer(self) -> int:
        """A whole number."""
        text = self.kind("number", "a number")
        if not re.fullmatch(r"-?\d+", text):
            self.fail(f"expected a whole number, found {text!r}", self.tokens[self.pos - 1])
        return int(text)

    def type(self) -> PtoType:
        """A type."""
        token = self.take()
        if token.kind not in ("type", "ident"):
            self.fail(f"expected a type, found {token.text!r}", token)
        text = token.text
        if token.kind == "ident" and self.at("<"):  # `memref<...>` and the like are not of the subset
            self.fail(f"unknown type {text!r}", token)
        try:
            return parse_type(text)
        except ValueError as exc:
            self.fail(str(exc), token)

    def types(self) -> list[PtoType]:
        """Comma separated types; a quoted word among them (`"row"`) is skipped."""
        found: list[PtoType] = []
        while True:
            if self.here.kind == "string":
                self.take()
            else:
                found.append(self.type())
            if not self.accept(","):
                return found

    def attr(self) -> Any:
        """The value of one attribute."""
        token = self.take()
        if token.kind == "string":
            return token.text[1:-1]
        words = token.text[token.text.index("<") + 1 : -1].split() if token.kind == "attr" else []
        if words:
            return words[-1]
        if token.kind == "symbol":
            return token.text[1:]
        if token.kind == "ident":
            return {"true": True, "false": False}.get(token.text, token.text)
        if token.kind == "number":
            value: Any = float(token.text) if re.search(r"[.eE]", token.text) else int(token.text, 0)
            if self.accept(":"):
                self.type()
            return value
        self.fail(f"expected the value of an attribute, found {token.text!r}", token)

    def attrs(self) -> dict[str, Any]:
        """`{name = value, ...}`; empty when there is no brace."""
        found: dict[str, Any] = {}
        if not self.accept("{"):
            return found
        while not self.at("}"):
            key = self.kind("ident", "the name of an attribute")
            if key in found:
                self.fail(f"attribute {key!r} is given twice")
            self.expect("=")
            found[key] = self.attr()
            if not self.accept(","):
                break
        self.expect("}")
        return found

    def loc(self) -> str | None:
        """`loc("file":line:col)` as `file:line:col`, when it comes next."""
        if not self.accept("loc"):
            return None
        self.expect("(")
        name = self.kind("string", "a file name")[1:-1]
        self.expect(":")
        line = self.integer()
        self.expect(":")
        column = self.integer()
        self.expect(")")
        return f"{name}:{line}:{column}"

    def literal(self, typ: PtoType, token: Token) -> int | float | bool:
        """The number that `token` spells for a constant of type `typ`."""
        if not isinstance(typ, ScalarT):
            self.fail(f"a constant cannot have type {typ}", token)
        if token.kind == "ident" and token.text in ("true", "false"):
            return token.text == "true"
        if token.kind != "number":
            self.fail(f"expected a number, found {token.text!r}", token)
        if typ.dtype.startswith(("f", "bf")):
            return _float(token.text, typ.dtype)
        if not re.fullmatch(r"-?\d+|0[xX][0-9a-fA-F]+", token.text):
            self.fail(f"{token.text!r} is no value of type {typ}", token)
        value = int(token.text, 0)
        return bool(value) if typ.dtype == "i1" else value


def _float(text: str, dtype: str) -> float:
    if not text.lower().startswith("0x"):
        return float(text)
    bits = int(text, 16)
    if dtype == "f32":
        return float(struct.unpack("<f", struct.pack("<I", bits & 0xFFFFFFFF))[0])
    if dtype == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0])
    if dtype == "f16":
        return float(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])
