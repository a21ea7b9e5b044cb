"""Operator functions called from Python: wrappers in, wrappers out; and the builders of `ir.op`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import types as t
from pytest_pypto.pypto.ir.dtypes import FP32, INDEX, DataType
from pytest_pypto.pypto.ir.op import array, system, tensor, tile
from pytest_pypto.pypto.ir.span import Span
from pytest_pypto.pypto.language.op import tensor_ops, tile_ops, unified_ops
from pytest_pypto.pypto.language.typing import Array, DynVar, Out, Scalar, Tensor, Tile, Tuple, dynamic, wrap

X = e.Var("x", t.TensorType((64, 64), FP32))


def test_wrappers_go_in_and_come_out() -> None:
    made = unified_ops.add(Tensor(expr=X), 1.5)
    assert isinstance(made, Tensor)
    assert str(made.unwrap()) == "pl.tensor.adds(x, 1.5)"
    loaded = unified_ops.load(made, [0, 0], [16, 64])
    assert isinstance(loaded, Tile)
    assert loaded.dtype is FP32
    assert isinstance(tile_ops.read(loaded, [0, 1]), Scalar)


def test_subscripts_of_wrappers() -> None:
    x = Tensor(expr=X)
    assert str(x[0, 1].unwrap()) == "pl.tensor.read(x, [0, 1])"
    assert str(x[8:16].unwrap()) == "pl.tensor.slice(x, [8, 64], [8, 0])"
    assert str(x[3, 0:32].unwrap()) == "pl.tensor.slice(x, [1, 32], [3, 0], [], [0])"
    with pytest.raises(ValueError, match="no step"):
        x[0:8:2]
    with pytest.raises(ValueError, match="3 indices for a tensor of rank 2"):
        x[0, 0, 0]


def test_calls_remember_the_place_of_the_caller() -> None:
    made = tensor_ops.exp(X).unwrap()
    assert made.span.filename == __file__
    assert made.span.begin_line == test_calls_remember_the_place_of_the_caller.__code__.co_firstlineno + 1


def test_functions_document_themselves() -> None:
    assert unified_ops.exp.__doc__ == "E to the power of each element."
    assert tile_ops.load.__name__ == "load"
    assert "matmul" in dir(tensor_ops)
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        tensor_ops.frobnicate  # noqa: B018


def test_builders_build_calls() -> None:
    made = tensor.add(X, 2)
    assert isinstance(made, e.Call)
    assert str(made) == "pl.tensor.adds(x, 2.0)"
    assert str(tile.load(X, [0, 0], [8, 64])) == "pl.tile.load(x, [0, 0], [8, 64], [8, 64], target_memory=pl.Mem.Vec)"
    assert str(array.create(4, DataType.INT32)) == "pl.array.create(4, dtype=pl.INT32)"
    place = Span("kernel.py", 3, 5)
    assert system.bar_v(span=place).span is place
    assert tensor.exp(X, place).span is place
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        tile.frobnicate  # noqa: B018


def test_annotations() -> None:
    rows = dynamic("ROWS")
    made = Tensor[[rows, 64], FP32]
    assert made.shape == [rows, 64]
    assert made.dtype is FP32
    assert Out[made].inner is made
    assert Tile[[16, 16], FP32].shape == [16, 16]
    assert Array[4, DataType.INT32].extent == 4
    assert Tuple[()].types == ()
    assert Scalar[INDEX] == Scalar[INDEX]
    assert Scalar[INDEX] != Scalar[FP32]
    with pytest.raises(ValueError, match="annotation without a value"):
        made.unwrap()
    with pytest.raises(TypeError, match="needs a shape and a dtype"):
        Tensor[[64, 64]]
    with pytest.raises(TypeError, match="takes one dtype"):
        Scalar[3]


def test_symbols() -> None:
    rows = dynamic("ROWS")
    assert isinstance(rows, DynVar)
    assert rows.unwrap() is rows.unwrap()
    assert str((rows - 32).unwrap()) == "ROWS - 32"
    with pytest.raises(ValueError, match="Python identifier"):
        dynamic("not a name")
    with pytest.raises(TypeError, match="no truth value"):
        bool(rows)


def test_wrap_picks_the_class_by_type() -> None:
    assert isinstance(wrap(e.index(3)), Scalar)
    assert isinstance(wrap(e.make_tuple([1, 2])), Tuple)
    pointer = e.Var("p", t.PtrType.get())
    assert wrap(pointer) is pointer


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, pytest_pypto.pypto.language.op.unified_ops as u, pytest_pypto.pypto.ir.op.tile as t\n"
        "u.add, t.load\n"
        "sys.exit(any(m in sys.modules for m in ('torch', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
