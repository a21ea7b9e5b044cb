"""Writing the program after every pass, one file each."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from ..ir.printer import Printed, print_program
from ..ir.program import Program
from ..ir.same_nodes import same_nodes
from .instruments import PassInstrument

if TYPE_CHECKING:
    from .base import Pass
    from .diagnostic_types import Diagnostic


class PassDumpLevel(Enum):
    """How much dumps say: nothing is written, the usual text, or text with every tile layout spelled out."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2

    @classmethod
    def of(cls, value: bool | PassDumpLevel) -> PassDumpLevel:
        """`True` is CONCISE, `False` is NONE.

        Raises:
            TypeError: neither a bool nor a level.
        """
        if isinstance(value, PassDumpLevel):
            return value
        if isinstance(value, bool):
            return cls.CONCISE if value else cls.NONE
        raise TypeError(f"dump level must be a bool or a PassDumpLevel (NONE, CONCISE, EXPLICIT), got {value!r}")


class DumpInstrument(PassInstrument):
    """Writes `00_frontend.py` at once and `NN_after_<Pass>.py` after every pass into `directory`.

    A function that a pass left unchanged is not printed again, even when the pass built it anew.
    """

    def __init__(self, directory: str | Path, program: Program, level: PassDumpLevel, prefix: str = "pl") -> None:
        super().__init__("dump")
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.explicit = level is PassDumpLevel.EXPLICIT
        self.prefix = prefix
        self.number = 0
        self._printed: Printed = {}
        self._last: tuple[Program, bytes] | None = None
        self._write("00_frontend", program)

    def text(self, program: Program) -> bytes:
        """The printed program in UTF-8, from memory when it is the one printed last."""
        if self._last is None or self._last[0] is not program:
            self._carry_over(program)
            shown = print_program(program, self.prefix, explicit=self.explicit, printed=self._printed)
            self._printed = {f: self._printed[f] for f in program.functions.values()}
            self._last = (program, shown.encode() + b"\n")
        return self._last[1]

    def _carry_over(self, program: Program) -> None:
        """Take over the text of functions that are other objects than before, but the same node for node."""
        before = {f.name: f for f in self._printed}
        for func in program.functions.values():
            old = before.get(func.name)
            if old is not None and old is not func and same_nodes(old, func):
                self._printed[func] = self._printed[old]

    def _write(self, stem: str, program: Program) -> None:
        with open(f"{self.directory}/{stem}.py", "wb", buffering=0) as file:
            file.write(self.text(program))

    def run_after_pass(self, pass_: Pass, program: Program) -> None:
        """Write the dump of this pass."""
        self.number += 1
        self._write(f"{self.number:02d}_after_{pass_.get_name()}", program)

    def log(self, diagnostics: list[Diagnostic], pass_: Pass) -> None:
        """Write the diagnostics of a pass beside its dump."""
        text = "".join(f"{d}\n" for d in diagnostics)
        (self.directory / f"{self.number:02d}_after_{pass_.get_name()}.log").write_text(
            text, encoding="utf-8", errors="backslashreplace"
        )
