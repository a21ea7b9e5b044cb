"""`@pl.function`, `@pl.program` and `@pl.inline` on Python code."""
# ruff: noqa: F821  names that inline functions define, and names that nothing defines

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import (
    ParserError,
    ParserSyntaxError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

T = pl.Tensor[[8, 8], pl.FP32]


@pl.function
def module_level(x: T) -> T:
    return pl.exp(x)


@pl.inline
def doubled(t):
    twice = pl.add(t, t)
    return twice


@pl.inline
def both(t, factor):
    return doubled(t), pl.mul(t, factor)


def test_function_is_an_ir_function_at_once() -> None:
    assert isinstance(module_level, ir.Function)
    assert module_level.name == "module_level"
    assert module_level.func_type is pl.FunctionType.Opaque
    assert module_level.span.filename == __file__


def test_methods_wait_for_the_program() -> None:
    class Plain:
        @pl.function(type=pl.FunctionType.InCore)
        def kern(self, x: T) -> T:
            return x

    assert callable(Plain.kern)
    program = pl.program(Plain)
    assert isinstance(program, ir.Program)
    assert program.name == "Plain"
    assert program["kern"].level is pl.Level.CHIP_DIE
    assert program["kern"].role is pl.Role.SubWorker


def test_called_forms() -> None:
    @pl.program()
    class Prog:
        @pl.function()
        def main(self, x: T):
            return x

    assert Prog["main"].params[0].name_hint == "x"


def test_functions_are_sorted_by_name() -> None:
    @pl.program
    class Prog:
        @pl.function
        def b(self, x: T):
            return x

        @pl.function
        def a(self, x: T):
            return self.b(x)

    assert [f.name for f in Prog.functions.values()] == ["a", "b"]


@pytest.mark.parametrize(
    ("kind", "level", "role"),
    [
        ("Orchestration", "CHIP", "Orchestrator"),
        ("Graph", "CHIP", "Orchestrator"),
        ("InCore", "CHIP_DIE", "SubWorker"),
        ("AIC", "AIC", "SubWorker"),
        ("AIV", "AIV", "SubWorker"),
        ("Group", "CORE_GROUP", "SubWorker"),
        ("Opaque", None, None),
        ("Inline", None, None),
        ("Spmd", None, None),
    ],
)
def test_derived_level_and_role(kind: str, level: str | None, role: str | None) -> None:
    @pl.function(type=getattr(pl.FunctionType, kind))
    def main(x: T):
        return x

    assert (main.level and main.level.name, main.role and main.role.name) == (level, role)


def test_attributes() -> None:
    @pl.function(auto_scope=False)
    def main(x: T, k: pl.Scalar[pl.INDEX]):
        """A docstring."""
        pl.func_attr({"note": "hand written", "level_hint": 3})
        pl.func_attr({"split": pl.SplitMode.UP_DOWN, "who": [x], "expr": k + 1})
        return x

    assert list(main.attrs) == ["note", "level_hint", "split", "who", "expr", "auto_scope"]
    assert main.attrs["split"] == 1
    assert main.split is pl.SplitMode.UP_DOWN
    assert main.attrs["who"][0] is main.params[0]
    text = str(main)
    assert "@pl.function(auto_scope=False)" in text
    assert '"split": pl.SplitMode.UP_DOWN, "who": [x], "expr": k + 1})' in text


def test_split_none_is_no_attribute() -> None:
    @pl.function
    def main(x: T):
        pl.func_attr({"split": pl.SplitMode.NONE})
        return x

    assert main.attrs == {}


def test_attributes_in_the_decorator_are_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="write pl.func_attr"):

        @pl.function(attrs={"split": pl.SplitMode.LEFT_RIGHT, "a": 1})
        def main(x: T):
            return x

    assert main.attrs == {"split": 2, "a": 1}


def test_contradicting_level() -> None:
    with pytest.raises(ParserSyntaxError, match="which implies level=CHIP_DIE, but explicit level=HOST"):

        @pl.function(type=pl.FunctionType.InCore, level=pl.Level.HOST)
        def main(x: T):
            return x


def test_defaults_have_no_effect_and_that_is_said_once() -> None:
    with pytest.warns(UserWarning, match="default values of parameters have no effect") as said:

        @pl.function
        def main(x: T = None, y: T = None):  # type: ignore[assignment]
            return x

    assert [p.name_hint for p in main.params] == ["x", "y"]
    assert [(Path(w.filename).name, w.lineno) for w in said] == [(Path(__file__).name, main.span.begin_line)]


@pytest.mark.parametrize(("rest", "name"), [("*args: int", "args"), ("*, y: T", "y"), ("**kw", "kw")])
def test_parameters_that_no_caller_can_pass_are_refused(rest: str, name: str) -> None:
    code = f"import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32], {rest}):\n    return x\n"
    with pytest.raises(UnsupportedFeatureError, match=f"Unsupported kind of parameter: '{name}'") as caught:
        pl.parse(code)
    assert caught.value.span is not None
    assert (caught.value.span["line"], caught.value.span["column"]) == (3, 35 + rest.index(name))


def test_constants_of_the_class_are_known_in_it() -> None:
    @pl.program
    class P:
        ROWS = 8

        @pl.function
        def f(self, x: pl.Tensor[[ROWS, 4], pl.FP32]):
            y = pl.slice(x, [ROWS // 2, 4], [0, 0])
            return y

    assert "x: pl.Tensor[[8, 4], pl.FP32]" in str(P)
    assert "y: pl.Tensor[[4, 4], pl.FP32]" in str(P)


def test_a_constant_that_differs_between_the_class_and_its_surroundings() -> None:
    code = "import pypto.language as pl\nN = 4\n@pl.program\nclass P:\n    N = 8\n    @pl.function\n"
    code += "    def f(self, x: pl.Tensor[[N], pl.FP32]):\n        return x\n"
    with pytest.raises(ParserSyntaxError, match="'N' is 8 in class 'P' and 4 outside"):
        pl.parse(code)


def test_an_extent_that_running_code_does_not_define() -> None:
    with pytest.raises(UndefinedVariableError, match="Undefined variable 'ROWZ'") as caught:

        @pl.function
        def main(x: pl.Tensor[[ROWZ, 4], pl.FP32]):  # type: ignore[name-defined]
            return x

    assert caught.value.hint


def _bad_function() -> None:
    @pl.function
    def f(x: T):
        return yy


def _bad_called_function() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def f(x: T):
        return yy


def _bad_program() -> None:
    @pl.program
    class P:
        @pl.function
        def f(self, x: T):
            return yy


def _bad_text() -> None:
    pl.parse("import pypto.language as pl\n@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    return yy\n")


@pytest.mark.parametrize("define", [_bad_function, _bad_called_function, _bad_program, _bad_text])
def test_the_traceback_of_an_authors_error_is_the_authors(define: Callable[[], None]) -> None:
    with pytest.raises(UndefinedVariableError) as caught:
        define()
    shown = [str(entry.path) for entry in caught.traceback.filter(caught)]
    assert shown == [__file__, __file__]
    assert len(caught.traceback) <= 4
    assert caught.value.__cause__ is None


def test_the_traceback_of_our_own_fault_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.language.parser import statements

    def fault(ctx: Any, node: Any) -> None:
        raise KeyError("ours")

    monkeypatch.setitem(statements.STATEMENTS, ast.Return, fault)
    with pytest.raises(KeyError, match="ours") as caught:
        _bad_function()
    assert [entry.name for entry in caught.traceback.filter(caught)][-2:] == ["parse_body", "fault"]


def test_external_source_is_found_from_the_defining_file() -> None:
    @pl.function(type=pl.FunctionType.AIV, external_source="kernels/fast.cpp")
    def fast(x: T): ...

    assert fast.attrs["external_source"] == str(Path(__file__).parent / "kernels" / "fast.cpp")
    assert str(fast).endswith("    ...")


def test_host_worker_keeps_its_python() -> None:
    @pl.program
    class Prog:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def work(x: T):
            for i in range(3):
                print(i)

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def later(x: T): ...

    assert ir.flatten_to_stmts(Prog["work"].body)[0].body == "for i in range(3):\n    print(i)"
    assert Prog["later"].requires_runtime_binding
    assert not Prog["work"].requires_runtime_binding


def test_inline_functions_are_spliced() -> None:
    @pl.function
    def main(x: T, f: pl.Scalar[pl.FP32]):
        a, _b = both(x, f)
        _c, _d = both(a, 3.0)
        return twice

    lines = [line.strip().partition(": ")[::2] for line in str(main).splitlines()[2:-1]]
    assert [name for name, _ in lines] == ["twice", "_tuple_tmp", "a", "_b", "twice", "_tuple_tmp_1", "_c", "_d"]
    assert lines[1][1].endswith("[twice, pl.tensor.muls(x, f)]")
    assert lines[5][1].endswith("[twice, pl.tensor.muls(a, 3.0)]")
    assert str(main).endswith("return twice")


def test_errors_inside_an_inline_function_point_into_it() -> None:
    @pl.inline
    def broken(t):
        return pl.add(t, missing)

    with pytest.raises(ParserError, match="Undefined variable 'missing'") as caught:

        @pl.function
        def main(x: T):
            return broken(x)

    assert caught.value.span is not None
    line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught.value.span["line"] - 1]
    assert line.strip().startswith("return pl.add(t, missing)")


def test_an_inline_function_that_calls_itself() -> None:
    @pl.inline
    def forever(t):
        return forever(t)

    with pytest.raises(ParserError, match="inline function 'forever' calls itself"):

        @pl.function
        def main(x: T):
            return forever(x)


def test_columns_count_the_indentation_of_the_file() -> None:
    with pytest.raises(ParserError) as caught:

        @pl.function
        def main(x: T):
            return yy

    assert caught.value.span is not None
    assert caught.value.span["column"] == 20
    assert caught.value.source_lines is not None
    assert caught.value.source_lines[caught.value.span["line"] - 1] == "            return yy"


def _namespace(code: str, filename: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "made", "pl": pl, "T": T}
    exec(compile(textwrap.dedent(code), filename, "exec"), names)
    return names


def test_source_that_cannot_be_found() -> None:
    code = "@pl.function\ndef main(x: T):\n    return x\n"
    with pytest.raises(ParserSyntaxError, match="Cannot retrieve source code for 'main'"):
        _namespace(code, "<nowhere>")


def test_source_in_linecache_is_found() -> None:
    code = "@pl.function\ndef main(x: T):\n    return x\n"
    linecache.cache["<cell 1>"] = (len(code), None, code.splitlines(True), "<cell 1>")
    assert isinstance(_namespace(code, "<cell 1>")["main"], ir.Function)


def test_file_that_changed_under_its_module() -> None:
    code = "@pl.function\ndef main(x: T):\n    return x\n"
    linecache.cache["<cell 2>"] = (1, None, ["\n", "\n", *code.splitlines(True)], "<cell 2>")
    with pytest.raises(ParserSyntaxError, match=r"is no `def main`"):
        _namespace(code, "<cell 2>")


def test_two_classes_of_one_name_in_one_function() -> None:
    def make(wide: bool) -> ir.Program:
        if wide:

            @pl.program
            class Prog:
                @pl.function
                def main(self, x: pl.Tensor[[64], pl.FP32]):
                    return x

        else:

            @pl.program
            class Prog:
                @pl.function
                def main(self, x: pl.Tensor[[8], pl.FP32]):
                    return x

        return Prog

    assert ["[[64]" in str(make(True)), "[[8]" in str(make(False))] == [True, True]


def test_program_is_for_classes() -> None:
    with pytest.raises(ParserSyntaxError, match=r"@pl\.program is for classes"):
        pl.program(lambda: None)  # type: ignore[arg-type]


def test_deprecated_attributes_of_methods() -> None:
    with pytest.warns(DeprecationWarning, match="write pl.func_attr"):

        @pl.program
        class Prog:
            @pl.function(attrs={"split": pl.SplitMode.UP_DOWN, "a": 1})
            def main(self, x: T):
                return x

    assert Prog["main"].attrs == {"split": 1, "a": 1}
