"""Value names of one `.pto` function: the wished name while it is free, else the next number."""

from __future__ import annotations

import re
import struct

_ILLEGAL = re.compile(r"[^A-Za-z0-9_.$]")


class NamePool:
    """Hands out `%name` texts, each once."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next = 0

    def reserve(self, name: str) -> str:
        """Take exactly `name` (without `%`)."""
        self._used.add(name)
        return f"%{name}"

    def take(self, hint: str | None = None) -> str:
        """`%hint` when free, else the next number."""
        if hint is not None:
            clean = _ILLEGAL.sub("_", hint)
            if clean and clean not in self._used and not clean[0].isdigit():
                return self.reserve(clean)
        while str(self._next) in self._used:
            self._next += 1
        return self.reserve(str(self._next))


class ConstantTable:
    """Numeric constants of one function, each declared once, in order of first use."""

    def __init__(self, names: NamePool) -> None:
        self._names = names
        self._by_key: dict[tuple[str, str], str] = {}
        self.lines: list[str] = []

    def integer(self, value: int, type_text: str) -> str:
        """Name of an integer constant of type `index`, `i64`, `i1`, `ui32`, ... or, for whole numbers, `f32`."""
        key = (str(value), type_text)
        if key not in self._by_key:
            digits = f"n{-value}" if value < 0 else str(value)
            unsigned = type_text.startswith("ui")
            signless = self._define(None, f"{value} : {type_text[1:]}") if unsigned else ""
            wish = f"c{digits}_{type_text}"
            if unsigned:
                name = self._names.take(wish)
                cast = f"builtin.unrealized_conversion_cast {signless} : {type_text[1:]} to {type_text}"
                self.lines.append(f"{name} = {cast}")
            else:
                name = self._define(wish, f"{value} : {type_text}")
            self._by_key[key] = name
        return self._by_key[key]

    def floating(self, value: float, type_text: str) -> str:
        """Name of a floating-point constant; infinities and NaN are written as bit patterns, as MLIR wants them."""
        text = float_text(value, type_text)
        key = (text, type_text)
        if key not in self._by_key:
            wish = f"cst_{len(self._by_key)}" if self._by_key else "cst"
            self._by_key[key] = self._define(wish, f"{text} : {type_text}")
        return self._by_key[key]

    def _define(self, wish: str | None, text: str) -> str:
        name = self._names.take(wish)
        self.lines.append(f"{name} = arith.constant {text}")
        return name


def float_text(value: float, type_text: str) -> str:
    """`2.00000000000000000e+00`, or a bit pattern when the value is not finite."""
    if value - value == 0:
        return f"{value:.17e}"
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if type_text == "bf16":
        return f"0x{bits >> 16:04X}"
    if type_text == "f16":
        half = struct.unpack("<H", struct.pack("<e", value))[0]
        return f"0x{half:04X}"
    return f"0x{bits:08X}"
