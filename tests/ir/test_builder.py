"""`ir.IRBuilder`: what is built prints as the language writes it."""

from __future__ import annotations

import pypto.language as pl
import pytest
from pypto import DataType, ir

TENSOR = ir.TensorType([64], DataType.FP32)
SPAN = ir.Span.unknown()


def call(name: str, *args: ir.Expr) -> ir.Call:
    return ir.create_op_call(name, list(args), SPAN)


def test_function() -> None:
    ib = ir.IRBuilder()
    with ib.function("double", type=ir.FunctionType.InCore) as f:
        x = f.param("x", TENSOR)
        o = f.param("o", TENSOR, direction=ir.ParamDirection.Out)
        f.return_type(TENSOR)
        y = ib.let("y", call("tensor.add", x, o))
        ib.return_stmt(y)
    func = f.get_result()
    assert str(func).splitlines()[1:] == [
        "def double(x: pl.Tensor[[64], pl.FP32], o: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:",
        "    y: pl.Tensor[[64], pl.FP32] = pl.tensor.add(x, o)",
        "    return y",
    ]
    assert ir.structural_equal(pl.parse(str(func)), func)
    assert func.span.filename == __file__


def test_loop_with_carried_values() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        x = f.param("x", TENSOR)
        i = ib.var("i", ir.ScalarType(DataType.INDEX))
        with ib.for_loop(i, 0, 8, 2, kind=ir.ForKind.Pipeline, attrs={"pipeline_stages": 2}) as loop:
            acc = loop.iter_arg("acc", x)
            out = loop.return_var("out")
            ib.emit(ir.YieldStmt([call("tensor.exp", acc)], SPAN))
        assert loop.output() is out
        assert loop.outputs() == [out]
        ib.return_stmt([out])
    assert [line.strip() for line in str(f.get_result()).splitlines()[2:]] == [
        "for i, (acc,) in pl.pipeline(0, 8, 2, stage=2, init_values=(x,)):",
        "out: pl.Tensor[[64], pl.FP32] = pl.yield_(pl.tensor.exp(acc))",
        "return out",
    ]
    assert isinstance(loop.get_result(), ir.ForStmt)


def test_carried_values_and_results_must_match() -> None:
    def build() -> None:
        ib = ir.IRBuilder()
        with ib.function("f") as f:
            x = f.param("x", TENSOR)
            with ib.for_loop(ib.var("i", ir.ScalarType(DataType.INDEX)), 0, 8, 1) as loop:
                loop.iter_arg("acc", x)

    message = r"^For loop has 1 iteration arguments but 0 return variables\. They must match\.$"
    with pytest.raises(ValueError, match=message):
        build()


def test_while_loop() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        with ib.while_loop(True) as loop:
            c = loop.iter_arg("c", 0)
            loop.set_condition(c < 5)
            loop.return_var("d")
            ib.emit(ir.YieldStmt([c + 1], SPAN))
        ib.return_stmt(loop.output())
    assert str(f.get_result()).splitlines()[2:5] == [
        "    for (c,) in pl.while_(init_values=(0,)):",
        "        pl.cond(c < 5)",
        "        d: pl.Scalar[pl.INDEX] = pl.yield_(c + 1)",
    ]


def test_branch() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        x = f.param("x", TENSOR)
        with ib.if_stmt(ir.ConstBool(True, SPAN)) as branch:
            y = branch.return_var("y", TENSOR)
            ib.emit(ir.YieldStmt([x], SPAN))
            branch.else_()
            ib.emit(ir.YieldStmt([call("tensor.exp", x)], SPAN))
        ib.return_stmt(y)
    assert [line.strip() for line in str(f.get_result()).splitlines()[2:6]] == [
        "if True:",
        "y: pl.Tensor[[64], pl.FP32] = pl.yield_(x)",
        "else:",
        "y: pl.Tensor[[64], pl.FP32] = pl.yield_(pl.tensor.exp(x))",
    ]
    with ib.function("g"), ib.if_stmt(True) as twice:
        twice.else_()
        with pytest.raises(RuntimeError, match=r"else_\(\) was called already"):
            twice.else_()


@pytest.mark.parametrize(
    ("kind", "fields", "head"),
    [
        (ir.ScopeKind.InCore, {"split": ir.SplitMode.UP_DOWN}, "pl.at(level=pl.Level.CORE_GROUP, optimizations="),
        (ir.ScopeKind.Cluster, {"name_hint": "g"}, 'pl.cluster(name_hint="g")'),
        (ir.ScopeKind.Hierarchy, {"level": ir.Level.CHIP}, "pl.at(level=pl.Level.CHIP)"),
        (ir.ScopeKind.Spmd, {"core_num": 4}, "pl.spmd(4)"),
        (ir.ScopeKind.Runtime, {"manual": True}, "pl.scope(mode=pl.ScopeMode.MANUAL)"),
    ],
)
def test_scopes(kind: ir.ScopeKind, fields: dict[str, object], head: str) -> None:
    ib = ir.IRBuilder()
    with ib.function("f"), ib.scope(kind, **fields) as scope:  # type: ignore[arg-type]
        ib.eval_stmt(call("system.fence"))
    assert str(scope.get_result()).startswith(f"with {head}")


def test_scope_fields_are_checked() -> None:
    ib = ir.IRBuilder()
    with ib.function("f"):
        with pytest.raises(ValueError, match="a Hierarchy scope needs level"), ib.scope(ir.ScopeKind.Hierarchy):
            pass
        with (
            pytest.raises(ValueError, match="a Cluster scope has no core_num"),
            ib.scope(ir.ScopeKind.Cluster, core_num=4),
        ):
            pass


def test_program() -> None:
    ib = ir.IRBuilder()
    with ib.program("P") as p:
        callee = p.declare_function("kern")
        with ib.function("kern") as k:
            x = k.param("x", TENSOR)
            ib.return_stmt(x)
        p.add_function(k.get_result())
        with ib.function("main") as m:
            x = m.param("x", TENSOR)
            ib.return_stmt(ir.Call(callee, [x], TENSOR, SPAN))
        p.add_function(m.get_result())
        assert p.get_global_var("kern") is callee
        with pytest.raises(KeyError, match="function 'other' is not declared"):
            p.get_global_var("other")
    assert [f.name for f in p.get_result().functions.values()] == ["kern", "main"]
    assert ir.structural_equal(pl.parse(str(p.get_result())), p.get_result())


def test_numbers_are_constants() -> None:
    ib = ir.IRBuilder()
    with ib.function("f") as f:
        a = ib.let("a", 3)
        b = ib.let("b", 0.5)
        c = ib.let("c", True)
        ib.assign(a, a + 1)
        ib.return_stmt([a, b, c])
        assert ib.in_function()
        assert not ib.in_loop()
        assert not ib.in_if()
        ib.add_function_attrs({"note": 1})
        ib.push_pending_leading_comments(["said"])
        ib.break_stmt()
    dtypes = [v.type.dtype for v in (a, b, c)]
    assert dtypes == [DataType.INDEX, DataType.FP32, DataType.BOOL]
    assert str(f.get_result()).splitlines()[2] == '    pl.func_attr({"note": 1})'
    assert str(f.get_result()).splitlines()[-2:] == ["    # said", "    break"]


def test_types() -> None:
    ib = ir.IRBuilder()
    place = ib.memref(ir.MemorySpace.Vec, 64, 512, 3)
    assert (place.base_.name_hint, place.byte_offset_.value, place.size_) == ("mem_vec_3", 64, 512)
    tile = ib.tile_type([8, 16], DataType.FP32, place, ib.tile_view([4, 16], [], None))
    assert tile.memory_space is ir.MemorySpace.Vec
    assert tile.valid_shape[0].value == 4
    tensor = ib.tensor_type([8, 16], DataType.FP32, tensor_view=ib.tensor_view([32, 1], ir.TensorLayout.ND))
    assert str(tensor) == ("pl.Tensor[[8, 16], pl.FP32, pl.TensorView(stride=[32, 1], layout=pl.TensorLayout.ND)]")


def test_misuse() -> None:
    ib = ir.IRBuilder()
    with pytest.raises(RuntimeError, match="no block is open"):
        ib.return_stmt()
    with pytest.raises(RuntimeError, match="no function is open"):
        ib.add_function_attrs({})
    with ib.function("f") as f, pytest.raises(RuntimeError, match="the block is still open"):
        f.get_result()
    with ib.function("g"), ib.for_loop(ib.var("i", ir.ScalarType(DataType.INDEX)), 0, 4, 1) as loop:
        with pytest.raises(IndexError, match="there is no iter_arg at position 0"):
            loop.return_var("r")
        with pytest.raises(IndexError, match="result 0 of 0"):
            loop.output()
