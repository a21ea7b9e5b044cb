"""`pl.parse`, `pl.loads` and their older names."""

from __future__ import annotations

from pathlib import Path

import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import ParserError, ParserSyntaxError

from .marked import HEAD, function

FUNCTION = function("return x")
PROGRAM = (
    f"{HEAD}@pl.program\nclass P:\n    @pl.function\n    def f(self, x: pl.Tensor[[4], pl.FP32]):\n        return x\n"
)


def test_parse_gives_what_the_text_defines() -> None:
    assert isinstance(pl.parse(FUNCTION), ir.Function)
    assert isinstance(pl.parse(PROGRAM), ir.Program)


def test_loads_reads_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text("\ufeff" + PROGRAM, encoding="utf-8")
    assert isinstance(pl.loads(str(path)), ir.Program)
    assert isinstance(pl.loads(path), ir.Program)
    with pytest.raises(OSError, match=r"missing\.py"):
        pl.loads(str(tmp_path / "missing.py"))


def test_errors_of_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(function("return yy"), encoding="utf-8")
    with pytest.raises(ParserError) as caught:
        pl.loads(str(path))
    assert caught.value.span is not None
    assert caught.value.span["file"] == str(path)


def test_older_names(tmp_path: Path) -> None:
    assert pl.parse_program(PROGRAM).name == "P"
    with pytest.raises(ValueError, match=r"Expected @pl.program but found @pl.function in <string>"):
        pl.parse_program(FUNCTION)
    path = tmp_path / "p.py"
    path.write_text(FUNCTION, encoding="utf-8")
    with pytest.raises(ValueError, match=r"Expected @pl\.program but found @pl\.function in "):
        pl.loads_program(str(path))


def test_no_definition() -> None:
    with pytest.raises(ValueError, match=r"^No @pl.function or @pl.program found in <t>\."):
        pl.parse("x = 1\n", "<t>")


def test_several_definitions() -> None:
    code = FUNCTION + FUNCTION.replace(HEAD, "").replace("main", "other")
    with pytest.raises(ValueError, match=r"^Multiple functions/programs found in <t>: \['main', 'other'\]"):
        pl.parse(code, "<t>")


def test_functions_that_a_program_took_up_do_not_count() -> None:
    code = FUNCTION + PROGRAM.replace(HEAD, "").replace("return x", "return main(x, 1, 2)")
    program = pl.parse(code)
    assert isinstance(program, ir.Program)
    assert program["main"] is not None


def test_no_python() -> None:
    with pytest.raises(
        SyntaxError, match=r"^Failed to compile code from <t>: invalid syntax \(<t>, line 2\)"
    ) as caught:
        pl.parse("import pypto.language as pl\ndef f(:\n", "<t>")
    assert (caught.value.filename, caught.value.lineno) == ("<t>", 2)


@pytest.mark.parametrize(
    ("line", "prefix"),
    [
        ("import pypto.language as P", "P"),
        ("from pypto import language as P", "P"),
        ("import pypto.language", "pypto.language"),
        ("from pypto import language", "language"),
    ],
)
def test_other_import_names(line: str, prefix: str) -> None:
    func = pl.parse(FUNCTION.replace("import pypto.language as pl", line).replace("pl.", f"{prefix}."))
    assert ir.structural_equal(func, pl.parse(FUNCTION))


def test_names_imported_one_by_one() -> None:
    code = (
        "import pypto.language as pl\nfrom pypto.language import FP32, Mem, SplitMode, Tensor, DataType\n"
        "@pl.function(type=pl.FunctionType.InCore)\ndef f(x: Tensor[[4, 4], FP32], y: pl.Tensor[[4], DataType.BF16]):\n"
        "    t = pl.load(x, [0, 0], [4, 4], target_memory=Mem.Mat)\n    return t\n"
    )
    assert "target_memory=pl.Mem.Mat" in str(pl.parse(code))


def test_print_under_another_prefix() -> None:
    program = pl.parse(PROGRAM)
    text = ir.python_print(program, prefix="P")
    assert "from pypto import language as P\n" in text
    assert ir.structural_equal(pl.parse(text), program)


def test_two_symbols_of_one_text_that_share_a_name_are_one() -> None:
    func = pl.parse(
        function("return x", "x: pl.Tensor[[A, B], pl.FP32]", head="A = pl.dynamic('M')\nB = pl.dynamic('M')\n")
    )
    assert isinstance(func, ir.Function)
    rows, cols = func.params[0].type.shape
    assert rows is cols


def test_a_function_with_a_symbol_prints_and_loads() -> None:
    func = pl.parse(function("y = pl.slice(x, [M, 8], [0, 0])\nreturn y", "x: pl.Tensor[[M, 64], pl.FP32]"))
    assert ir.structural_equal(pl.parse(ir.python_print(func)), func)


def test_declarations_load_and_print() -> None:
    text = PROGRAM.replace("return x", "...")
    program = pl.parse(text)
    assert isinstance(program, ir.Program)
    assert program["f"].requires_runtime_binding
    assert ir.python_print(program).endswith("        ...")


def test_unknown_dtype() -> None:
    with pytest.raises(ParserSyntaxError, match="has no attribute 'FP23'") as caught:
        pl.parse(FUNCTION.replace("FP32", "FP23"))
    assert caught.value.hint == "did you mean pl.FP32?"


def test_a_printed_function_keeps_constants_that_source_would_retype() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        x = f.param("x", ir.TileType([8, 16], pl.FP16, None, None, pl.Mem.Vec))
        two = ir.ConstInt(2, pl.INDEX, ir.Span.unknown())
        ib.return_stmt(ib.let("y", ir.Call(ir.Op("tile.muls"), [x, two], x.type, ir.Span.unknown())))
    ir.assert_structural_equal(pl.parse(str(f.get_result())), f.get_result())
