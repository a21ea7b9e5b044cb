"""Source with the place of an expected error marked: `y = pl.add(x, «zz»)`."""

from __future__ import annotations

from dataclasses import dataclass

import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import ParserError

HEAD = "import pypto.language as pl\n"
PARAMS = "x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32], k: pl.Scalar[pl.INDEX]"


@dataclass(frozen=True)
class Place:
    """A span of text; lines and columns are 1-based, `end_column` is behind the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


def unmark(source: str) -> tuple[str, Place]:
    """The source without its marks, and the place they enclosed."""
    start, stop = source.index("«"), source.index("»")
    clean = source.replace("«", "").replace("»", "")
    return clean, Place(*_at(clean, start), *_at(clean, stop - 1))


def _at(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def function(body: str, params: str = PARAMS, decorator: str = "@pl.function", head: str = "") -> str:
    """A module with one function `main`."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    return f"{HEAD}{head}{decorator}\ndef main({params}):\n{lines}"


def kernel(body: str, params: str = PARAMS, head: str = "") -> str:
    """A module with one InCore function `main`."""
    return function(body, params, "@pl.function(type=pl.FunctionType.InCore)", head)


def host(body: str, params: str = PARAMS, head: str = "", more: str = "") -> str:
    """A program with a kernel `step(a, o)` and an Orchestration function `main`."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").splitlines())
    tensor = "pl.Tensor[[64, 64], pl.FP32]"
    return (
        f"{HEAD}{head}@pl.program\nclass Prog:\n"
        "    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def step(self, a: {tensor}, o: pl.Out[{tensor}]) -> {tensor}:\n"
        "        return pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], o)\n\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration{more})\n"
        f"    def main(self, {params}):\n{lines}"
    )


def error_of(source: str) -> ParserError:
    """The parser error of a source without marks."""
    with pytest.raises(ParserError) as caught:
        pl.parse(source, "user.py")
    return caught.value


def printed_body(source: str) -> list[str]:
    """Lines of the printed body of the (last) function, without indentation of the body."""
    lines = ir.python_print(pl.parse(source, "user.py")).splitlines()
    start = max(i for i, line in enumerate(lines) if line.lstrip().startswith("def ")) + 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    return [line[indent:] for line in lines[start:]]
