# ruff: noqa: E501  printed programs are not wrapped
"""LegalizeTileCast, LowerCompositeOps and FoldNoOpReshape on one kernel each."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto import backend, ir
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes.fold_no_op_reshape import FoldNoOpReshape
from pytest_pypto.pypto.passes.legalize_tile_cast import LegalizeTileCast
from pytest_pypto.pypto.passes.lower_composite_ops import LowerCompositeOps

HEAD = """# pypto.program: K
import pypto.language as pl

@pl.program
class K:
    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)
    def k(x: pl.Tensor[[16, 64], pl.{src}], o: pl.Out[pl.Tensor[[16, 64], pl.{dst}]]):
        t: pl.Tile[[16, 64], pl.{src}, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
        u: pl.Tile[[16, 64], pl.{dst}, pl.Mem.Vec] = {value}
        o1: pl.Tensor[[16, 64], pl.{dst}] = pl.tile.store(u, [0, 0], o)
        return o
"""


@pytest.fixture(autouse=True)
def architecture():
    backend.reset_for_testing()
    backend.set_backend_type(backend.BackendType.Ascend910B)
    yield
    backend.reset_for_testing()


def kernel(src: str, dst: str, value: str) -> ir.Program:
    return parse(HEAD.format(src=src, dst=dst, value=value))


def cast(src: str, dst: str, mode: str) -> ir.Program:
    return kernel(src, dst, f"pl.tile.cast(t, target_type=pl.{dst}, mode='{mode}')")


def casts_of(program: ir.Program) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []

    class Casts(ir.IRVisitor):
        def visit_call(self, op):
            if op.op.name == "tile.cast":
                found.append((str(op.kwargs["target_type"]), op.kwargs["mode"]))
            super().visit_call(op)

    Casts().visit_program(program)
    return found


def test_direct_cast_stays():
    program = cast("FP32", "BF16", "rint")
    assert LegalizeTileCast().apply(program) is program


def test_missing_cast_becomes_a_chain_in_the_same_mode():
    assert casts_of(LegalizeTileCast().apply(cast("FP16", "BF16", "floor"))) == [("fp32", 3), ("bfloat16", 3)]


def test_of_equally_long_chains_the_one_over_floats_is_taken():
    """Over INT32, 25.5 would become 26."""
    assert casts_of(LegalizeTileCast().apply(cast("BF16", "FP16", "rint"))) == [("fp32", 1), ("fp16", 1)]


def test_the_other_architecture_needs_another_chain():
    backend.reset_for_testing()
    backend.set_backend_type(backend.BackendType.Ascend950)
    program = cast("BF16", "FP16", "round")
    assert LegalizeTileCast().apply(program) is program


def test_no_chain_names_what_is_reachable():
    with pytest.raises(
        ValueError, match=r"cannot convert fp32 to uint32, directly or in steps; from fp32 it reaches .*int32"
    ):
        LegalizeTileCast().apply(cast("FP32", "UINT32", "round"))


def test_without_an_architecture_nothing_happens():
    backend.reset_for_testing()
    program = cast("FP16", "BF16", "floor")
    assert LegalizeTileCast().apply(program) is program


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_composite_values(name):
    """The expansion, run in single precision by numpy, follows the function over many periods."""
    import numpy as np

    program = LowerCompositeOps().apply(kernel("FP32", "FP32", f"pl.tile.{name}(t)"))
    x = np.concatenate([np.linspace(-200, 200, 4001), [0.0, 1e-6, 3.1415927]]).astype(np.float32)
    got = _interpret(program, x)
    assert np.abs(got - getattr(np, name)(x.astype(np.float64))).max() < 2e-6


def _interpret(program: ir.Program, x):
    import numpy as np

    rounding = {0: np.rint, 1: np.rint, 2: lambda v: np.trunc(v + np.copysign(0.5, v)), 3: np.floor}
    binary = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
    env: dict[object, object] = {}
    (func,) = program.functions.values()
    for stmt in ir.flatten_to_stmts(func.body):
        if not isinstance(stmt, ir.AssignStmt):
            continue
        call = stmt.value
        args = [np.float32(a.value) if isinstance(a, ir.ConstFloat) else env.get(a) for a in call.args]
        name = call.op.name.removeprefix("tile.")
        if name == "load":
            env[stmt.var] = x
        elif name == "cast":
            whole = call.kwargs["target_type"].is_int()
            env[stmt.var] = (
                rounding[call.kwargs["mode"]](args[0]).astype(np.int32) if whole else args[0].astype(np.float32)
            )
        elif name == "store":
            return args[0]
        else:
            env[stmt.var] = binary[name.removesuffix("s") if name in ("adds", "muls") else name](*args)
    raise AssertionError("the kernel stores nothing")


def test_composite_refuses_other_types():
    with pytest.raises((ValueError, TypeError), match=r"(?i)sin.*fp16|fp16.*sin|FP32"):
        LowerCompositeOps().apply(kernel("FP16", "FP16", "pl.tile.sin(t)"))


RESHAPE = """# pypto.program: R
import pypto.language as pl

@pl.program
class R:
    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)
    def k(x: pl.Tensor[[16, 64], pl.FP32]):
        m: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 4096)
        t: pl.Tile[[16, 64], pl.FP32, pl.MemRef(m, pl.const(0, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
        u: pl.Tile[[{shape}], pl.FP32, pl.MemRef(m, pl.const(0, pl.INT64), 4096), pl.Mem.Vec] = pl.tile.reshape(t, [{shape}])
"""


@pytest.mark.parametrize(("shape", "folded"), [("16, 64", True), ("64, 16", False)])
def test_reshape_to_the_same_type_is_an_alias(shape, folded):
    program = parse(RESHAPE.format(shape=shape))
    text = ir.python_print(FoldNoOpReshape().apply(program))
    assert ("pl.tile.reshape" not in text) is folded
