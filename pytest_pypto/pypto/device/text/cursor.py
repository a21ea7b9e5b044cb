"""A cursor over tokens with the small pieces of grammar that all operations share."""

from __future__ import annotations

import re
import struct
from typing import Any, NoReturn

from ..findings import DeviceError
from .lexer import Token
from .types import BITS, PtoType, ScalarT, parse_type

_WHOLE_ATTRS = frozenset(
    re.findall(
        r"\w+",
        "base dir_mask ffts_mode id lane_stride local_slot_num offset rounds size slot_num slot_size split "
        "upperOrLower",
    )
)
"""Attributes that are whole numbers."""
_MAX_WHOLE = 1 << 31


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
        message = re.sub(r"\S{200,}", lambda m: f"{m[0][:60]}...", message)
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

    def values(self, opening: str, closing: str, count: int | None = None) -> list[str]:
        """Comma separated values between two brackets; exactly `count` of them when that is given."""
        start = self.expect(opening)
        found: list[str] = []
        while not self.at(closing):
            found.append(self.value())
            if not self.accept(","):
                break
        self.expect(closing)
        if count is not None and len(found) != count:
            self.fail(f"expected {count} value(s) between {opening} and {closing}, found {len(found)}", start)
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
            value: Any = whole(token.text) if _spells_whole(token.text) else float(token.text)
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
            token = self.here
            found[key] = self.attr()
            if key in _WHOLE_ATTRS and not _fits(found[key]):
                self.fail(f"attribute {key!r} must be a whole number of 32 bits, got {token.text!r}", token)
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
        if typ.dtype == "i1" and token.kind == "ident" and token.text in ("true", "false"):
            return token.text == "true"
        if token.kind != "number":
            self.fail(f"expected a number, found {token.text!r}", token)
        if typ.dtype.startswith(("f", "bf")):
            try:
                return _float(token.text, typ.dtype)
            except ValueError as exc:
                self.fail(str(exc), token)
        if not _spells_whole(token.text):
            self.fail(f"{token.text!r} is no value of type {typ}", token)
        return self._whole_literal(typ, token)

    def _whole_literal(self, typ: ScalarT, token: Token) -> int | bool:
        """A constant of an integer type; the upper half of a signless type spells the negative numbers."""
        value, bits = whole(token.text), BITS.get(typ.dtype) or int(re.sub(r"\D", "", typ.dtype))
        if typ.dtype == "i1":
            bits = 1
        low = 0 if typ.dtype.startswith("u") else -(1 << (bits - 1))
        high = (1 << (bits - 1)) - 1 if typ.dtype == "index" else (1 << bits) - 1
        if not low <= value <= high:
            self.fail(f"{token.text} does not fit type {typ} ({low}..{high})", token)
        if typ.dtype == "i1":
            return bool(value)
        return value - (1 << bits) if low < 0 and value >= 1 << (bits - 1) else value


def _spells_whole(text: str) -> bool:
    return re.fullmatch(r"-?(\d+|0[xX][0-9a-fA-F]+)", text) is not None


def whole(text: str) -> int:
    """The number that decimal or hexadecimal digits spell; leading zeros mean nothing."""
    return int(text, 16 if "x" in text.lower() else 10)


def _fits(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_MAX_WHOLE <= value < _MAX_WHOLE


_HEX = {"f32": ("<f", "<I"), "f16": ("<e", "<H"), "f64": ("<d", "<Q"), "bf16": ("<f", "<I")}


def _float(text: str, dtype: str) -> float:
    """A floating constant; hexadecimal digits are the bits.

    Raises:
        ValueError: bits of a type that has no such spelling, or too many.
    """
    if "x" not in text.lower():
        return float(text)
    if dtype not in _HEX:
        raise ValueError(f"{text} spells the bits of a float, which type {dtype} does not have; write a decimal number")
    value, packed = whole(text), _HEX[dtype]
    if not 0 <= value < 1 << BITS.get(dtype, int(re.sub(r"\D", "", dtype))):
        raise ValueError(f"{text} has more bits than type {dtype}")
    bits = value << 16 if dtype == "bf16" else value
    return float(struct.unpack(packed[0], struct.pack(packed[1], bits))[0])
