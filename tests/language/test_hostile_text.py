"""Text that wants to run, to crash the parser or to exhaust memory: always an ordinary error, always soon."""

from __future__ import annotations

import builtins
import contextlib
import os
import time
from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import ParserError

HEAD = "# pypto.program: P\nimport pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
METHOD = HEAD + "    def f(self, x: pl.Tensor[[4, 4], pl.FP32]):\n        {}\n        return x\n"
USER = "import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4, 4], pl.FP32]):\n    {}\n    return x\n"

TOO_BIG = {
    "parentheses": "y = " + "(" * 5000 + "1" + ")" * 5000,
    "brackets": "y = " + "[" * 300 + "]" * 300,
    "minus signs": "y = " + "-" * 100_000 + "1",
    "not": "y = " + "not " * 20_000 + "x",
    "lambda": "y = " + "lambda: " * 20_000 + "1",
    "sum on one line": "y = " + "+".join(["1"] * 150_000),
    "sum of names": "k = pl.const(1, pl.INDEX); y = " + "+".join(["k"] * 20_000),
    "attributes": "y = x" + ".a" * 50_000,
    "subscripts": "y = x" + "[0]" * 50_000,
    "calls": "y = x" + "()" * 50_000,
    "decimal": "y = " + "9" * 5000,
    "hexadecimal": "y = 0x" + "f" * 100_000,
    "power": "y = 9**9**9**9",
    "shift": "y = 1 << 100000000",
    "comparison": "b = " + "<".join(["1"] * 5000),
    "condition": "k = pl.const(1, pl.INDEX); b = " + " and ".join(["k < 3"] * 5000),
    "string": "pl.exp(x, attrs={'a': 'x' * 10**9})",
    "format": "pl.static_print(f'{x:>1000000000}')",
    "percent": "y = '%1000000000d' % 3",
    "list": "y = [0] * 10**10",
    "deps": "y = pl.system.task_dummy(deps=[x for i in range(10**9)])",
}


@pytest.mark.parametrize("template", [METHOD, USER], ids=["dump", "source"])
@pytest.mark.parametrize("name", TOO_BIG)
def test_oversized_text(name: str, template: str) -> None:
    start = time.perf_counter()
    with pytest.raises(ParserError):
        pl.parse(template.format(TOO_BIG[name]), "<hostile>")
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    "code",
    [
        "\n".join("    " * i + "if x:" for i in range(99)) + "\n" + "    " * 99 + "pass\n",
        "\n".join(" " * i + "if x:" for i in range(2000)),
        "x = " + "1," * 200_000,
        "a\0b",
        "x = 1\n" * 2_000_000,
    ],
    ids=["indentation", "more indentation", "line", "NUL", "length"],
)
def test_oversized_module(code: str) -> None:
    with pytest.raises(ParserError):
        pl.parse(code, "<hostile>")


def test_growing_constants_stop_growing() -> None:
    code = "import pypto.language as pl\nA = [1, 1]\nB = 7\n" + "A = A + A\nB = B * B\n" * 60
    code += "@pl.function\ndef f(x: pl.Tensor[A, pl.FP32]):\n    return x\n"
    with pytest.raises(ParserError, match="Unsupported shape: A"):
        pl.parse(code)


def test_long_elif_chain() -> None:
    head = "import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32], n: pl.Scalar[pl.INDEX]):\n"
    chain = "    if n == 0:\n        y = x\n" + "".join(f"    elif n == {i}:\n        y = x\n" for i in range(3000))
    with pytest.raises(ParserError, match="nested too deeply"):
        pl.parse(head + chain + "    return x\n")


HARMLESS = "def f(x: pl.Tensor[[4], pl.FP32]):\n    return x\n"
LIBRARY = "import pypto.language as pl\n"
WANTS_TO_RUN = [
    "import os\nos.system('touch {mark}')\n",
    "__import__('os').system('touch {mark}')\n",
    f"{LIBRARY}@pl.function(type=__import__('os').system('touch {{mark}}'))\n{HARMLESS}",
    f"{LIBRARY}@pl.function\n{HARMLESS}".replace("[4]", "[open('{mark}', 'w').close() or 4]"),
    f"{LIBRARY}@pl.function\n{HARMLESS}".replace("):", " = open('{mark}', 'w')):"),
    f"{LIBRARY}@pl.program\nclass P(metaclass=open('{{mark}}', 'w')):\n    @pl.function\n"
    "    def f(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n",
    f"{LIBRARY}N = open('{{mark}}', 'w')\n@pl.function\n{HARMLESS}".replace("[4]", "[N]"),
    f"{LIBRARY}@open('{{mark}}', 'w')\n@pl.function\n{HARMLESS}",
    METHOD.replace("{}", "y = pl.exp.__globals__['os'].system('touch {mark}')"),
    METHOD.replace("{}", "y = x.__class__.__mro__[1].__subclasses__()"),
    METHOD.replace("{}", "y = pl.tile.__loader__.exec_module(x)"),
    METHOD.replace("{}", "__import__('os').system('touch {mark}')"),
    METHOD.replace("{}", "pl.static_print(open('{mark}', 'w'))"),
    METHOD.replace("{}", "pl.static_assert(open('{mark}', 'w'))"),
    METHOD.replace("{}", "y: pl.Tensor[[eval('open(1)')], pl.FP32] = pl.exp(x)"),
]


@pytest.mark.filterwarnings("ignore:default values of parameters have no effect")
@pytest.mark.parametrize("number", range(len(WANTS_TO_RUN)))
def test_text_is_never_executed(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    code = WANTS_TO_RUN[number].replace("{mark}", str(mark))
    pl.parse(USER.format("y = pl.exp(x)"))  # everything the parser needs is imported by now
    touched: list[Any] = []
    for name in ("exec", "eval", "compile", "__import__", "open"):
        monkeypatch.setattr(builtins, name, _watch(getattr(builtins, name), name, touched))
    with contextlib.suppress(ParserError, ValueError, SyntaxError):
        pl.parse(code, "<hostile>")
    monkeypatch.undo()
    assert not mark.exists()
    assert "exec" not in touched
    assert "eval" not in touched


def _watch(function: Any, name: str, touched: list[Any]) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not args or "hostile" in str(args[0]) or name in ("exec", "eval"):
            touched.append(name)
        return function(*args, **kwargs)

    return call


def test_only_the_named_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.py"
    path.write_text(METHOD.format("y: pl.Tensor[[4, 4], pl.FP32] = pl.tensor.exp(x)"))
    pl.loads(str(path))
    opened: list[str] = []
    real = builtins.open
    monkeypatch.setattr(
        builtins, "open", lambda file, *a, **k: (opened.append(os.fspath(file)), real(file, *a, **k))[1]
    )
    pl.loads(str(path))
    assert opened == [str(path)]


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "dump.py"
    path.write_bytes(b"# pypto.program: P\n# caf\xe9\n")
    with pytest.raises(ParserError, match="is not UTF-8 text") as caught:
        pl.loads(str(path))
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (2, 6)


def test_every_truncation_of_a_dump_is_an_ordinary_error_or_a_program() -> None:
    text = METHOD.format("y: pl.Tensor[[4, 4], pl.FP32] = pl.tensor.adds(x, 1.5, attrs={'a': [x]})").replace("'", '"')
    for stop in range(0, len(text), 3):
        try:
            pl.parse(text[:stop], "<cut>")
        except (ParserError, SyntaxError, ValueError):
            continue


@pytest.mark.parametrize("newline", ["\r", "\r\n"])
def test_line_ends_of_other_systems(newline: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.py"
    path.write_bytes(METHOD.format("y = pl.add(x, zz)").replace("\n", newline).encode())
    with pytest.raises(ParserError, match="Undefined variable 'zz'") as caught:
        pl.loads(str(path))
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (8, 23)


def test_columns_count_characters() -> None:
    with pytest.raises(ParserError, match="Undefined variable 'qq'") as caught:
        pl.parse(USER.format("größe = pl.exp(x); z = pl.add(größe, qq)  # \u2028 line separator"))
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (4, 42)
