"""Faults that users of the language met, each as the smallest program that would show it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pypto.language as pl
import pytest
from pypto import DataType, ir

from .marked import function, host, printed_body

ROOT = Path(__file__).parents[2]
SPAN = ir.Span.unknown()


def loaded_again(node: ir.Function | ir.Program) -> ir.Function | ir.Program:
    """The node after print and load, compared on the way."""
    again = pl.parse(ir.python_print(node))
    ir.assert_structural_equal(node, again)
    assert ir.structural_hash(node) == ir.structural_hash(again)
    return again


def test_numeric_suffixes_are_part_of_a_name() -> None:
    """tmp_0 and tmp_1 are two variables, not two versions of one."""
    body = "tmp_0 = pl.add(x, 1.0)\ntmp_1 = pl.mul(x, 2.0)\ny = pl.add(tmp_1, tmp_0)\nreturn y"
    lines = printed_body(function(body))
    assert lines[2].endswith("pl.tensor.add(tmp_1, tmp_0)")
    func = pl.parse(function(body))
    assert isinstance(func, ir.Function)
    first, second, total = (s.var for s in ir.flatten_to_stmts(func.body)[:3])
    assert [v is w for v, w in zip(ir.flatten_to_stmts(func.body)[2].value.args, (second, first), strict=True)] == [
        True,
        True,
    ]
    assert len({first, second, total}) == 3


def test_one_name_in_disjoint_loops_is_two_variables() -> None:
    body = (
        "for i in pl.range(2):\n    t = pl.slice(x, [4, 4], [0, 0])\n    a = pl.exp(t)\n"
        "for j in pl.range(2):\n    t = pl.slice(x, [8, 8], [0, 0])\n    b = pl.exp(t)\nreturn x"
    )
    func = pl.parse(function(body))
    assert isinstance(func, ir.Function)
    loops = ir.flatten_to_stmts(func.body)[:2]
    first, second = (ir.flatten_to_stmts(loop.body)[0].var for loop in loops)
    assert first is not second
    assert [v.type.shape[0].value for v in (first, second)] == [4, 8]
    loaded_again(func)


def test_front_end_output_does_not_depend_on_the_hash_seed() -> None:
    code = host("a, t = pl.submit(self.step, x, x)\nb, u = pl.submit(self.step, a, x, deps=[t])\nreturn b")
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport pytest_pypto.pypto.language as pl\n"
        f"print(pl.parse({code!r}))"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(seen) == 1


def test_references_in_fields_of_scopes_are_references() -> None:
    body = (
        "n2 = k + 1\nwith pl.spmd(n2):\n    y = self.step(x, x)\n"
        "z = pl.slice(y, [64, 64], [0, 0], valid_shape=[n2, 64])\nreturn z"
    )
    program = pl.parse(host(body))
    assert isinstance(program, ir.Program)
    bound, launch, window = ir.flatten_to_stmts(program["main"].body)[:3]
    assert launch.core_num is bound.var
    assert window.var.type.valid_shape[0] is bound.var
    loaded_again(program)


def test_yield_in_the_middle_of_a_body_is_refused_by_the_verifier() -> None:
    from pypto.passes.properties import IRProperty, IRPropertySet
    from pypto.passes.verification import PropertyVerifierRegistry

    ib = ir.IRBuilder()
    with ib.function("f") as f:
        x = f.param("x", ir.TensorType([4], DataType.FP32))
        with ib.for_loop(ib.var("i", ir.ScalarType(DataType.INDEX)), 0, 4, 1) as loop:
            acc = loop.iter_arg("acc", x)
            loop.return_var("out")
            ib.emit(ir.YieldStmt([acc], SPAN))
            ib.let("late", 1)
        ib.return_stmt(loop.output())
    program = ir.Program([f.get_result()], "P", SPAN)
    properties = IRPropertySet()
    properties.insert(IRProperty.SSAForm)
    assert PropertyVerifierRegistry.verify(properties, program)


@pytest.mark.parametrize("value", [1.2566370614359172e-05, 0.1, 1e-45, 3.4028234663852886e38])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_floats_keep_their_bits(value: float, dtype: str) -> None:
    func = loaded_again(pl.parse(function(f"y = pl.const({value!r}, pl.{dtype})")))
    assert isinstance(func, ir.Function)
    made = ir.flatten_to_stmts(func.body)[0].value
    assert (made.value.hex(), made.dtype.name) == (value.hex(), dtype)


@pytest.mark.parametrize("dtype", ["INT8", "INT32", "INT64", "INDEX", "UINT64"])
def test_integers_keep_their_dtype(dtype: str) -> None:
    func = loaded_again(pl.parse(function(f"y = pl.const(3, pl.{dtype})")))
    assert isinstance(func, ir.Function)
    assert ir.flatten_to_stmts(func.body)[0].value.dtype.name == dtype


def test_an_int64_constant_into_an_int64_tensor() -> None:
    source = function("x = pl.tensor.write(x, [0], pl.const(7, pl.INT64))\nreturn x", "x: pl.Tensor[[4], pl.INT64]")
    assert "pl.tensor.write(x, [0], pl.const(7, pl.INT64))" in str(loaded_again(pl.parse(source)))


def test_extents_made_of_constants_are_not_folded() -> None:
    two = ir.ConstInt(32, DataType.INDEX, SPAN)
    total = ir.Add(two, two, DataType.INDEX, SPAN)
    rows = ir.Var("m", ir.ScalarType(DataType.INDEX), SPAN)
    same = ir.Add(rows, ir.ConstInt(0, DataType.INDEX, SPAN), DataType.INDEX, SPAN)
    ib = ir.IRBuilder()
    with ib.program("P") as p:
        with ib.function("f") as f:
            x = f.param("x", ir.TensorType([total, same], DataType.FP32))
            ib.return_stmt(x)
        p.add_function(f.get_result())
    again = loaded_again(p.get_result())
    assert isinstance(again, ir.Program)
    assert isinstance(again["f"].params[0].type.shape[0], ir.Add)


@pytest.mark.parametrize("pad", list(ir.PadValue), ids=lambda p: p.name)
@pytest.mark.parametrize("extents", [[], [5, 16], [8, 16]], ids=["none", "part", "full"])
def test_extents_and_pad_of_views_survive(extents: list[int], pad: ir.PadValue) -> None:
    """A full extent that is written down means the same as none."""
    window = ir.TensorView([16, 1], ir.TensorLayout.ND, extents, pad)
    tile = ir.TileView(valid_shape=extents or None, pad=pad)
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        x = f.param("x", ir.TensorType([8, 16], DataType.FP32, None, window))
        t = f.param("t", ir.TileType([8, 16], DataType.FP32, None, tile, ir.MemorySpace.Vec))
        ib.return_stmt([x, t])
    again = loaded_again(f.get_result())
    assert isinstance(again, ir.Function)
    x_type, t_type = (p.type for p in again.params)
    assert x_type.tensor_view.pad is pad
    assert t_type.get_effective_tile_view().pad is pad
    shapes = [[v.value for v in (ty.valid_shape or ty.shape)] for ty in (x_type, t_type)]
    assert shapes == [extents or [8, 16]] * 2


def test_unknown_attributes_are_kept_everywhere() -> None:
    source = host(
        "pl.func_attr({'mine': 1})\nfor i in pl.range(3, attrs={'mine': 2}):\n"
        "    y = self.step(x, x, attrs={'mine': 3})\nwith pl.cluster(attrs={'mine': 4}):\n"
        "    z = pl.tensor.exp(x, attrs={'mine': 5})\na, t = pl.submit(self.step, x, x, attrs={'mine': 6})\nreturn z"
    )
    text = str(loaded_again(pl.parse(source)))
    for number in range(1, 7):
        assert f'"mine": {number}' in text


def test_launches_are_not_judged_by_their_number_of_statements() -> None:
    body = "with pl.spmd(4):\n    t = pl.exp(x)\n    y = self.step(t, x)\nreturn y"
    loaded_again(pl.parse(host(body)))


def test_explicit_level_shows_every_layout() -> None:
    source = function(
        "t = pl.load(x, [0, 0], [64, 64])\nu = pl.move(t, target_memory=pl.Mem.Mat)",
        decorator="@pl.function(type=pl.FunctionType.InCore)",
    )
    text = ir.python_print(pl.parse(source), explicit_layout=True)
    tiles = [line for line in text.splitlines() if "pl.Tile[" in line]
    assert len(tiles) == 2
    assert all("blayout=" in t and "slayout=" in t and "fractal=" in t for t in tiles)


@pytest.mark.parametrize("name", ["and_", "or_", "not_"])
def test_operators_named_like_keywords_print_as_python(name: str) -> None:
    args = "t, t" if name != "not_" else "t"
    source = function(
        f"t = pl.load(x, [0, 0], [64, 64])\nu = pl.{name}({args})",
        "x: pl.Tensor[[64, 64], pl.INT16]",
        "@pl.function(type=pl.FunctionType.InCore)",
    )
    assert f"pl.tile.{name}(" in str(loaded_again(pl.parse(source)))


def test_dumps_are_python_that_compiles() -> None:
    from ..kit import dump_files

    for path in dump_files()[::40]:
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
        text = ir.python_print(pl.loads(path)) if "__FREE_VAR" not in path.read_text(encoding="utf-8") else ""
        compile(text, str(path), "exec")
