"""Values from outside a function, also where the reference asks for literals; symbols; memory references."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import ParserError, ParserTypeError

from .marked import function, printed_body

MODE = pl.SplitMode.UP_DOWN
OPTIONS = [pl.split(MODE), pl.cross_core_slot(slot_num=4)]
LEVEL = pl.Level.CORE_GROUP
SPACE = pl.Mem.Vec
DTYPE = pl.BF16
KIND = pl.FunctionType.InCore
TYPE = pl.Tensor[[64, 32], pl.FP32]
HINT = "named"
ROWS = pl.dynamic("ROWS")
SHAPE = [64, 32]
VIEW = pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)
RING = pl.MemRef(slots=2)
PING = pl.MemRef("ping")


class Config:
    rows = 64
    eps = 1e-6
    tile = 16

    class inner:
        cols = 32


def test_values_where_literals_are_usual() -> None:
    @pl.function(type=KIND, auto_scope=not False)
    def kern(x: pl.Tensor[SHAPE, DTYPE], y: TYPE, z: pl.Tensor[[Config.rows, Config.inner.cols * 2], pl.FP32]):
        t: pl.Tile[[64, 32], pl.FP32, SPACE] = pl.load(y, [0, 0], SHAPE)
        return t

    @pl.function
    def region(x: TYPE):
        with pl.at(LEVEL, optimizations=OPTIONS, name_hint=HINT):
            y = pl.add(x, Config.eps)
        with pl.at(level=LEVEL, optimizations=[pl.split(MODE)]):
            y = pl.mul(y, Config.tile)
        return y

    assert "x: pl.Tensor[[64, 32], pl.BF16], y: pl.Tensor[[64, 32], pl.FP32], z: pl.Tensor[[64, 64]" in str(kern)
    lines = str(region).splitlines()
    assert lines[2].strip() == (
        "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), "
        'pl.cross_core_slot(slot_num=4)], name_hint="named"):'
    )
    assert lines[4].strip() == "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):"
    assert lines[5].endswith("pl.tensor.muls(y, 16.0)")


@pytest.mark.parametrize("mode", list(pl.SplitMode))
def test_one_source_for_all_modes(mode: pl.SplitMode) -> None:
    @pl.program
    class Prog:
        @pl.function
        def main(self, x: pl.Tensor[[64, 32], pl.FP32]):
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(mode)]):
                y = pl.exp(x)
            return y

    region = ir.flatten_to_stmts(Prog["main"].body)[0]
    assert region.split is mode


def test_variables_of_every_enclosing_function_are_visible() -> None:
    rows = 48

    def outer() -> ir.Function:
        def inner() -> ir.Function:
            @pl.function
            def main(x: pl.Tensor[[64, 32], pl.FP32]):
                return pl.slice(x, [rows, 32], [0, 0])

            return main

        return inner()

    assert "pl.tensor.slice(x, [48, 32], [0, 0])" in str(outer())


def test_one_symbol_per_object_and_per_name() -> None:
    same = pl.dynamic("ROWS")

    @pl.program
    class Prog:
        @pl.function
        def a(self, x: pl.Tensor[[ROWS, 8], pl.FP32], y: pl.Tensor[[same, 8], pl.FP32]):
            return pl.slice(x, [ROWS - 1, 8], [0, 0])

        @pl.function
        def b(self, x: pl.Tensor[[ROWS, 8], pl.FP32]):
            return x

    first, second = Prog["a"].params
    assert first.type.shape[0] is second.type.shape[0] is Prog["b"].params[0].type.shape[0]
    assert str(Prog).count("ROWS = pl.dynamic") == 1


def test_unknown_extent_in_text_becomes_a_symbol() -> None:
    func = pl.parse(function("return x", "x: pl.Tensor[[M, M], pl.FP32]"))
    assert isinstance(func, ir.Function)
    rows, cols = func.params[0].type.shape
    assert rows is cols
    assert rows.name_hint == "M"


def test_scalar_parameter_is_the_symbol_of_its_name() -> None:
    source = function(
        "y = pl.slice(x, [D, 8], [0, 0])\nreturn y",
        "D: pl.Scalar[pl.INDEX], x: pl.Tensor[[D, 64], pl.FP32]",
        head="D = pl.dynamic('D')\n",
    )
    func = pl.parse(source)
    assert isinstance(func, ir.Function)
    assert func.params[1].type.shape[0] is func.params[0]
    late = source.replace(
        "D: pl.Scalar[pl.INDEX], x: pl.Tensor[[D, 64], pl.FP32]",
        "x: pl.Tensor[[D, 64], pl.FP32], D: pl.Scalar[pl.INDEX]",
    )
    with pytest.raises(ParserTypeError, match="is the extent of an earlier parameter"):
        pl.parse(late)


def test_extent_read_from_a_parameter_is_the_symbol_in_orchestration() -> None:
    head = "D = pl.dynamic('D')\n"
    source = function(
        "m = pl.tensor.dim(x, 0)\ny = pl.slice(x, [m, 8], [0, 0])\nreturn y",
        "x: pl.Tensor[[D, 64], pl.FP32]",
        head=head,
    )
    assert printed_body(source)[0] == "m: pl.Scalar[pl.INDEX] = pl.tensor.dim(x, 0)"
    orchestration = source.replace("@pl.function", "@pl.function(type=pl.FunctionType.Orchestration)")
    assert printed_body(orchestration)[0].endswith("pl.tensor.slice(x, [D, 8], [0, 0])")


def test_memory_references() -> None:
    @pl.function(type=pl.FunctionType.InCore)
    def kern(a: pl.Tensor[[64, 32], pl.FP32], i: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        u: pl.Tile[[32, 32], pl.FP32, RING[i % 2], pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
        v: pl.Tile[[32, 32], pl.FP32, RING[0], pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
        w: pl.Tile[[32, 32], pl.FP32, PING, pl.Mem.Vec] = pl.exp(u)
        z: pl.Tile[[32, 32], pl.FP32, pl.Mem.Vec, pl.MemRef("pong")] = pl.add(v, w)
        o = pl.store(z, [0, 0], o)
        return o

    stmts = ir.flatten_to_stmts(kern.body)
    first, second = (s.var.type.memref for s in stmts[:2])
    assert first.base_ is second.base_
    assert first.is_pinned_
    assert first.slot_count_ == 2
    text = str(kern)
    assert 'pl.MemRef("RING", slots=2)[i % 2], pl.Mem.Vec' in text
    assert 'pl.MemRef("ping"), pl.Mem.Vec' in text
    assert 'pl.MemRef("pong"), pl.Mem.Vec' in text
    assert ir.python_print(pl.parse(text)) == text


def test_one_declaration_has_one_name() -> None:
    first = pl.MemRef()
    second = first

    with pytest.raises(ParserError, match="one declared allocation is used under two names, 'first' and 'second'"):

        @pl.function(type=pl.FunctionType.InCore)
        def kern(a: pl.Tensor[[64, 32], pl.FP32]):
            u: pl.Tile[[32, 32], pl.FP32, first, pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
            v: pl.Tile[[32, 32], pl.FP32, second, pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
            return u, v


def test_two_declarations_do_not_share_a_name() -> None:
    first, second = pl.MemRef("x"), pl.MemRef("x")

    with pytest.raises(ParserError, match="two declared allocations are called 'x'"):

        @pl.function(type=pl.FunctionType.InCore)
        def kern(a: pl.Tensor[[64, 32], pl.FP32]):
            u: pl.Tile[[32, 32], pl.FP32, first, pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
            v: pl.Tile[[32, 32], pl.FP32, second, pl.Mem.Vec] = pl.load(a, [0, 0], [32, 32])
            return u, v


def test_view_from_outside() -> None:
    @pl.function
    def main(x: pl.Tensor[[64, 32], pl.FP32, VIEW]):
        return x

    assert "pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)" in str(main)


def test_value_of_the_wrong_kind() -> None:
    thing = object()
    with pytest.raises(ParserError, match="'thing' is a object from outside the function"):

        @pl.function
        def main(x: pl.Tensor[[64, 32], pl.FP32]):
            return pl.add(x, thing)


def test_constants_of_a_text() -> None:
    head = "N = 4\nT = pl.Tensor[[8, N * 2], pl.FP32]\nL = [N, N * 2]\nclass C:\n    r = 3\n"
    source = function("z = pl.slice(x, L, [0, 0])\ny = k * C.r", "x: T, k: pl.Scalar[pl.INDEX]", head=head)
    assert printed_body(source) == [
        "z: pl.Tensor[[4, 8], pl.FP32] = pl.tensor.slice(x, [4, 8], [0, 0])",
        "y: pl.Scalar[pl.INDEX] = k * 3",
    ]


def test_constants_that_text_changes_in_ways_only_running_would_tell_are_unknown() -> None:
    from .marked import error_of

    for change in ("N += 1", "if N:\n    N = 8", "for N in range(3):\n    pass", "N = f()", "del N", "import os as N"):
        error = error_of(function("z = k * N", head=f"N = 4\n{change}\n"))
        assert error.message == "Undefined variable 'N'"
        assert error.hint is not None
        assert error.hint.startswith("line 3 defines 'N'")


def test_unpacked_constants_and_annotated_members() -> None:
    head = "A, (B) = 1, 2\nclass C:\n    rows: int = 3\n"
    assert printed_body(function("z = k * (A + B + C.rows)", head=head)) == ["z: pl.Scalar[pl.INDEX] = k * 6"]
