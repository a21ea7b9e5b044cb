"""Small hand-built programs and the fragments and values they must give."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug import torch_codegen
from pytest_pypto.pypto.debug.ops.system import split_mode_to_int
from pytest_pypto.pypto.debug.torch_codegen import _OP_MAP, _PREAMBLE, TorchCodegen, _split_mode_to_int
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import FunctionType, PadValue, SplitMode, TensorLayout
from pytest_pypto.pypto.ir.program import Function, Program

from .build import F16, F32, I32, INDEX, Body, call, code_of, function, invoke, region, run, space_of, tensor, tile


def one_op(name: str, *types: Any, **kwargs: Any) -> Function:
    """A function of one operator over parameters a, b, c, ..."""

    def body(b: Body, *params: e.Var) -> None:
        rest = iter(params)
        args = [
            next(rest) if hasattr(t, "shape") or not isinstance(t, (int, float, tuple, e.Expr)) else t for t in types
        ]
        b.ret(b.op("out", name, *args, **kwargs))

    given = [t for t in types if not isinstance(t, (int, float, tuple, e.Expr))]
    return function("f", [(n, t) for n, t in zip("abcdefg", given, strict=False)], body)


T, U = tensor((64, 64)), tile((64, 64))
INT = tensor((4, 4), I32)


@pytest.mark.parametrize(
    ("fragment", "op", "types", "kwargs"),
    [
        ("torch.add(a, b)", "tensor.add", (T, T), {}),
        ("torch.add(a, b)", "tile.add", (U, U), {}),
        ("(a + 1.0)", "tensor.adds", (T, 1.0), {}),
        ("torch.exp(a)", "tile.exp", (U,), {}),
        ("torch.neg(a)", "tensor.neg", (T,), {}),
        ("torch.sqrt(a)", "tensor.sqrt", (T,), {}),
        ("torch.rsqrt(a)", "tensor.rsqrt", (T,), {}),
        ("torch.reciprocal(a)", "tile.recip", (U,), {}),
        ("torch.bitwise_and(a, b)", "tensor.and", (INT, INT), {}),
        ("torch.bitwise_or(a, b)", "tensor.or", (INT, INT), {}),
        ("torch.bitwise_xor(a, b)", "tensor.xor", (INT, INT), {}),
        ("torch.bitwise_xor(a, b)", "tile.xor", (tile((4, 4), I32),) * 3, {}),
        ("torch.bitwise_not(a)", "tile.not", (tile((4, 4), DataType.INT16),), {}),
        ("(a << b)", "tensor.shl", (INT, INT), {}),
        ("(a >> b)", "tensor.shr", (INT, INT), {}),
        ("torch.bitwise_and(a, 3)", "tensor.ands", (INT, e.ConstInt(3, I32)), {}),
        ("(a << 3)", "tensor.shls", (INT, e.ConstInt(3, I32)), {}),
        ("(a >> 3)", "tile.shrs", (tile((4, 4), I32), e.ConstInt(3, I32)), {}),
        ("torch.matmul(a, b)", "tensor.matmul", (T, T), {}),
        ("torch.matmul(a, b).to(torch.float32)", "tensor.matmul", (T, T), {"out_dtype": F32}),
        ("torch.matmul(a.mT, b)", "tensor.matmul", (T, T), {"a_trans": True}),
        ("a + torch.matmul(b, c).float()", "tile.matmul_acc", (U, U, U), {}),
        (".to(torch.float16)", "tensor.cast", (T,), {"target_type": F16, "mode": 2}),
        (".sum(dim=-1, keepdim=True)", "tile.row_sum", (U, U), {}),
        ("a.mT", "tile.transpose_view", (U,), {}),
        ("_tile_load(a, (0, 0), (32, 32), (16, 16))", "tile.load", (T, (0, 0), (32, 32), (16, 16)), {}),
        ("_tensor_slice(a, (0, 0), (16, 64))", "tensor.slice", (T, (16, 64), (0, 0)), {}),
        ("_assemble(a, b, (0, 0))", "tensor.assemble", (T, T, (0, 0)), {}),
        ("_write_and_return(a, (0, 1), 5.0)", "tensor.write", (T, (0, 1), 5.0), {}),
    ],
)
def test_fragments(fragment: str, op: str, types: Any, kwargs: Any) -> None:
    assert fragment in code_of(one_op(op, *types, **kwargs))


def test_selection_fragments() -> None:
    def body(b: Body, src: e.Var, other: e.Var, tmp: e.Var) -> None:
        mask = b.op("mask", "tile.cmp", src, other, cmp_type=2)
        b.ret(b.op("r", "tile.sels", mask, src, tmp, -1.0))

    text = code_of(function("f", [("src", U), ("other", U), ("tmp", tile((1, 32), DataType.UINT8))], body))
    assert "(src < other)" in text
    assert "torch.where(mask, src, -1.0)" in text
    prelu = code_of(one_op("tile.prelu", U, U, tile((64, 64), DataType.UINT8)))
    assert "torch.where(a > 0, a, a * b)" in prelu


def test_view_fragments() -> None:
    source = tensor((2, 4))
    assert "_tensor_view(a, (4, 2), False)" in code_of(one_op("tensor.view", source, (4, 2)))
    assert "_tensor_view(a, (4, 2), True)" in code_of(one_op("tensor.view", source, (4, 2), layout=TensorLayout.DN))
    assert "out = a.mT" in code_of(one_op("tensor.view", source, layout=TensorLayout.DN))
    assert "out = a" in code_of(one_op("tensor.view", source, layout=TensorLayout.ND))
    partial = code_of(one_op("tensor.view", tensor((16, 256)), (32, 128), (16, 128)))
    assert "_tensor_view(a, (32, 128), False, (16, 128))" in partial


def test_a_nested_call_keeps_its_argument() -> None:
    def body(b: Body, h: e.Var) -> None:
        inner = call("tensor.slice", [h, (16, 512), (0, 0)])
        b.ret(b.op("out", "tensor.cast", inner, target_type=F32, mode=2))

    f = function("f", [("h", tensor((16, 512), DataType.BF16))], body)
    assert "_tensor_slice(h, (0, 0), (16, 512)).to(torch.float32)" in code_of(f)


def test_nested_calls_are_all_evaluated() -> None:
    def body(b: Body, x: e.Var) -> None:
        b.ret(b.let("r", call("tile.add", [call("tile.exp", [x]), call("tile.muls", [x, 2.0])])))

    x = torch.randn(4, 4)
    assert torch.equal(run(function("f", [("x", tile((4, 4)))], body), x), x.exp() + x * 2)


def test_a_script_starts_with_imports_and_helpers() -> None:
    text = torch_codegen(one_op("tensor.add", T, T))
    for part in ("import torch", "def _tile_load", "def _tile_store", "def f(a, b):"):
        assert part in text
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) <= {"torch", "__future__", "collections", "typing"}


def test_loops() -> None:
    acc, i = e.IterArg("acc", e.ConstFloat(0.0, F32).type, e.ConstFloat(0.0, F32)), e.Var("i", e.index(0).type)
    result = e.Var("total", acc.type)

    def loop(start: e.Expr, trips: int, a: e.IterArg) -> s.ForStmt:
        add = e.Add(a, e.ConstFloat(3.0, F32), F32)
        return s.ForStmt(i, e.index(0), e.index(trips), e.index(1), (a,), s.YieldStmt((add,)), (result,))

    f = Function("f", [], [acc.type], s.SeqStmts((loop(acc, 10, acc), s.ReturnStmt((result,)))))
    text = code_of(f)
    assert "acc = 0.0" in text
    assert "for i in range(0, 10, 1):" in text
    assert run(f) == 30.0
    start = e.Var("start", acc.type)
    given = e.IterArg("acc", acc.type, start)
    g = Function("g", [start], [acc.type], s.SeqStmts((loop(start, 5, given), s.ReturnStmt((result,)))))
    assert run(g, 0.0) == 15.0
    assert run(g, 1.0) == 16.0


def test_while_if_and_jumps() -> None:
    counter = e.IterArg("counter", e.index(0).type, e.index(0))
    body = s.YieldStmt((e.Add(counter, e.index(1), INDEX),))
    out = e.Var("n", counter.type)
    loop = s.WhileStmt(e.Lt(counter, e.index(7), DataType.BOOL), (counter,), body, (out,))
    f = Function("f", [], [counter.type], s.SeqStmts((loop, s.ReturnStmt((out,)))))
    text = code_of(f)
    assert "counter = 0" in text
    assert "while" in text
    assert run(f) == 7
    cond, a, b = e.Var("cond", e.ConstBool(True).type), e.Var("a", T), e.Var("b", T)
    result = e.Var("result", T)
    branch = s.IfStmt(cond, s.YieldStmt((a,)), s.YieldStmt((b,)), (result,))
    g = Function("g", [cond, a, b], [T], s.SeqStmts((branch, s.ReturnStmt((result,)))))
    text = code_of(g)
    for part in ("if cond:", "else:", "result = a", "result = b"):
        assert part in text
    x, y = torch.ones(64, 64), torch.zeros(64, 64)
    assert run(g, True, x, y) is x
    assert run(g, False, x, y) is y
    i = e.Var("i", e.index(0).type)
    jumps = s.SeqStmts((s.IfStmt(cond, s.BreakStmt()), s.ContinueStmt()))
    h = Function("h", [cond], [], s.ForStmt(i, e.index(0), e.index(3), e.index(1), (), jumps))
    assert "break" in code_of(h)
    assert "continue" in code_of(h)
    assert run(h, True) is None


NO_OPS = {
    "sync_src": {"set_pipe": 1, "wait_pipe": 2, "event_id": 0},
    "sync_dst": {"set_pipe": 1, "wait_pipe": 2, "event_id": 0},
    "sync_set": {"pipe": 1, "event_id": 0, "core_type": "aic"},
    "sync_wait": {"pipe": 1, "event_id": 0, "core_type": "aic"},
    "bar_v": {},
    "bar_m": {},
    "bar_all": {},
    "fence": {},
    "cacheinvalid": {},
    "aic_initialize_pipe": {"dir_mask": 1, "slot_size": 512},
    "aiv_initialize_pipe": {"dir_mask": 2, "slot_size": 512, "slot_num": 2, "id": 1},
    "reserve_buffer": {"name": "b", "size": 512},
    "import_peer_buffer": {"name": "b", "peer_func": "g"},
}


@pytest.mark.parametrize("name", NO_OPS)
def test_system_operators_have_no_effect_on_values(name: str) -> None:
    def body(b: Body, a: e.Var) -> None:
        zero = e.ConstInt(0, I32)
        args = [zero, zero] if name.endswith("initialize_pipe") else []
        b.do(call(f"system.{name}", args, NO_OPS[name], type=e.ConstInt(0, I32).type))
        b.ret(a)

    f = function("f", [("a", U)], body)
    assert re.search(rf"^ +\S.*# {name}$", code_of(f), re.M)
    x = torch.ones(64, 64)
    assert run(f, x) is x


@pytest.mark.parametrize("name", ["tfree_to_aic", "tfree_to_aiv", "set_ffts"])
def test_system_operators_with_operands(name: str) -> None:
    def body(b: Body, a: e.Var) -> None:
        b.do(call(f"system.{name}", [a], {"split": 0} if name.startswith("tfree") else {}, type=a.type))
        b.ret(a)

    assert f"# {name}" in code_of(function("f", [("a", U)], body))


def test_a_no_op_inside_an_expression_leaves_the_rest_of_the_line() -> None:
    def body(b: Body) -> None:
        zero = call("system.reserve_buffer", [], {"name": "b", "size": 8}, type=e.ConstInt(0, I32).type)
        b.ret(b.let("r", e.Add(zero, e.ConstInt(4, I32), I32)))

    assert run(function("f", [], body)) == 4


def test_pipes_and_lane() -> None:
    def push(b: Body, a: e.Var) -> None:
        b.do(call("tile.tpush_to_aiv", [a], {"split": 0}))

    def lane(b: Body) -> None:
        b.ret(b.op("idx", "tile.get_subblock_idx"))

    assert "_cross_core_rt.push_to_aiv(a, 0)" in code_of(function("f", [("a", U)], push))
    f = function("f", [], lane)
    assert "_get_subblock_idx()" in code_of(f)
    assert run(f) == 0


def test_block_index_outside_launches() -> None:
    def body(b: Body) -> None:
        b.ret(b.op("idx", "tile.get_block_idx"), b.op("num", "tile.get_block_num"))

    f = function("f", [], body)
    assert "idx = 0" in code_of(f)
    assert run(f) == (0, 1)


@pytest.mark.parametrize(
    "scope",
    [
        lambda body: s.InCoreScopeStmt(body=body),
        lambda body: s.ClusterScopeStmt(body=body),
        lambda body: s.RuntimeScopeStmt(True, body=body),
        lambda body: s.RuntimeScopeStmt(False, body=body),
    ],
)
def test_scopes_are_transparent(scope: Any) -> None:
    a, r = e.Var("a", T), e.Var("r", T)
    inner = s.AssignStmt(r, call("tensor.neg", [a]))
    f = Function("f", [a], [T], s.SeqStmts((scope(inner), s.ReturnStmt((r,)))))
    text = code_of(f)
    assert "    r = torch.neg(a)" in text
    assert "InCore" not in text
    x = torch.randn(64, 64)
    assert torch.equal(run(f, x), -x)


def test_write_assemble_and_windows_execute() -> None:
    out = run(one_op("tile.write", tile((2, 4)), (0, 1), 5.0), torch.zeros(2, 4))
    assert out.tolist() == [[0, 5, 0, 0], [0, 0, 0, 0]]
    target = torch.zeros(8, 8)
    assert run(one_op("tile.assemble", tile((8, 8)), tile((4, 4)), (2, 2)), target, torch.ones(4, 4)) is target
    want = torch.zeros(8, 8)
    want[2:6, 2:6] = 1
    assert torch.equal(target, want)
    loaded = run(one_op("tile.load", tensor((8, 8)), (0, 0), (8, 8), (4, 4)), torch.ones(8, 8))
    assert loaded.sum() == 16
    assert region(loaded) == (4, 4)


def test_slice_then_fill() -> None:
    def body(b: Body, x: e.Var) -> None:
        t = b.op("t", "tensor.slice", x, (8, 64), (0, 0), (8, 32))
        b.ret(b.op("r", "tensor.fillpad", t, pad_value=PadValue.min))

    x = torch.randn(8, 64)
    out = run(function("f", [("x", tensor((8, 64)))], body), x)
    assert torch.equal(out[:, :32], x[:, :32])
    assert (out[:, 32:] == torch.finfo(torch.float32).min).all()


def test_unknown_operators_and_nodes() -> None:
    with pytest.raises(TypeError, match=r"^torch_codegen expects .*got str"):
        torch_codegen("not a program")  # type: ignore[arg-type]
    a = e.Var("a", T)
    made = e.Call(e.Op("fake.nonexistent_op"), [a], type=T)
    with pytest.raises(ValueError, match=r"Unsupported op 'fake\.nonexistent_op'"):
        torch_codegen(Function("f", [a], [T], s.ReturnStmt((made,))))


def test_a_missing_function_is_an_error_when_the_script_is_made() -> None:
    a = e.Var("a", T)
    f = Function("main", [a], [T], s.ReturnStmt((invoke("gone", [a], T),)))
    other = Function("helper", [a], [T], s.ReturnStmt((a,)))
    with pytest.raises(ValueError, match="calls 'gone', which the program does not have"):
        torch_codegen(Program([f, other], "P"))


def test_the_table_of_operators_is_open() -> None:
    assert _OP_MAP["tensor.add"](["x", "y"], {}) == "torch.add(x, y)"
    assert _OP_MAP["tile.load"](["t", "(0, 0)", "(4, 4)", "(2, 2)"], {}) == "_tile_load(t, (0, 0), (4, 4), (2, 2))"
    a = e.Var("a", T)
    made = Function("f", [a], [T], s.ReturnStmt((e.Call(e.Op("my.op"), [a], {"k": 3}, type=T),)))
    table: Any = _OP_MAP
    table["my.op"] = lambda args, kwargs: f"({args[0]} * {kwargs['k']})"
    try:
        assert run(made, torch.ones(64, 64)).sum() == 3 * 64 * 64
    finally:
        del table["my.op"]


def test_split_modes_as_numbers() -> None:
    assert [_split_mode_to_int(x) for x in (None, 0, 2, 3, SplitMode.UP_DOWN)] == [0, 0, 2, 3, 1]
    for wrong in ("up", 1.5, object(), True):
        with pytest.raises(ValueError, match="Invalid split mode"):
            split_mode_to_int(wrong)


@pytest.mark.parametrize("split", [7, "up", -1])
def test_a_bad_split_is_refused_where_it_stands(split: Any) -> None:
    def body(b: Body, a: e.Var) -> None:
        b.do(call("tile.tpush_to_aiv", [a], {"split": split}, type=a.type))

    with pytest.raises(ValueError, match="Invalid split mode"):
        torch_codegen(function("f", [("a", U)], body))


def test_the_submodule_is_importable_beside_the_function() -> None:
    module = importlib.import_module("pytest_pypto.pypto.debug.torch_codegen")
    assert module.TorchCodegen is TorchCodegen
    assert callable(torch_codegen)
    space: dict[str, Any] = {}
    exec(_PREAMBLE, space)
    for name in ("_cross_core_rt", "_run_group_call", "_run_mixed_kernels", "_tile_load", "_fillpad", "_GROUP_META"):
        assert name in space


def test_scripts_share_no_state() -> None:
    text = torch_codegen(one_op("tensor.add", T, T))
    one: dict[str, Any] = {}
    two: dict[str, Any] = {}
    exec(text, one)
    exec(text, two)
    assert one["_tile_load"] is not two["_tile_load"]
    import types

    module = types.ModuleType("script")
    exec(text, module.__dict__)
    assert torch.equal(module.f(torch.ones(64, 64), torch.ones(64, 64)), torch.full((64, 64), 2.0))


def test_a_script_carries_only_the_helpers_it_uses() -> None:
    plain, padded = torch_codegen(one_op("tensor.add", T, T)), torch_codegen(one_op("tile.fillpad", U))
    assert "_CrossCoreRuntime" not in plain
    assert "def _fillpad" not in plain
    assert "def _fillpad" in padded
    assert len(plain) < len(_PREAMBLE) / 4


def test_functions_come_in_the_order_of_the_program() -> None:
    ty = tensor((2,))
    fns = [Function(n, [e.Var("a", ty)], [], s.SeqStmts(())) for n in ("zeta", "alpha")]
    text = torch_codegen(Program(fns, "P"))
    assert text.index("def alpha") < text.index("def zeta")
    assert "    pass\n" in text
    assert space_of(Program(fns, "P"))["alpha"](torch.ones(2)) is None


def test_group_functions_are_ordinary_functions_too() -> None:
    ty = tensor((2,))

    def body(b: Body, a: e.Var) -> None:
        b.ret(a)

    fns = [
        function(n, [("a", ty)], body, k) for n, k in (("g", FunctionType.Group), ("main", FunctionType.Orchestration))
    ]
    text = torch_codegen(Program(fns, "P"))
    assert "def g(a):" in text
    assert "_GROUP_META.update" not in text
