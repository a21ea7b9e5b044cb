"""Launches over blocks, submitted tasks, lanes of vector regions, arrays and barriers."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.debug import torch_codegen
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.ir.types import ArrayType, TupleType

from .build import INDEX, Body, call, code_of, function, invoke, program, run, scalar, tensor

BLOCK = """
@pl.function(type=pl.FunctionType.InCore)
def blk(self, a: pl.Tensor[[64, 8], pl.FP32], o: pl.Out[pl.Tensor[[64, 8], pl.FP32]]) -> pl.Tensor[[64, 8], pl.FP32]:
    i = pl.tile.get_block_idx()
    n = pl.tile.get_block_num()
    t = pl.add(pl.load(a, [i * 16, 0], [16, 8]), pl.cast(n * 10 + i, pl.FP32))
    o = pl.store(t, [i * 16, 0], o)
    return o
"""
MAIN = """
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[64, 8], pl.FP32], o: pl.Out[pl.Tensor[[64, 8], pl.FP32]]) -> pl.Tensor[[64, 8], pl.FP32]:
{body}
    return o
"""
BANDS = torch.arange(4.0).repeat_interleave(16)[:, None] + 40


def host(*lines: str) -> str:
    return BLOCK + MAIN.format(body="\n".join(f"    {line}" for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("with pl.spmd(4):", "    o = self.blk(a, o)"),
        ("o, tid = pl.spmd_submit(self.blk, a, o, core_num=4)",),
    ],
    ids=["scope", "submit"],
)
def test_every_block_of_a_launch_runs(lines: tuple[str, ...]) -> None:
    a, o = torch.randn(64, 8), torch.zeros(64, 8)
    result = run(program(host(*lines)), a, o)
    assert result is o
    torch.testing.assert_close(o, a + BANDS)


def test_the_width_of_a_launch_may_be_computed() -> None:
    text = BLOCK + MAIN.replace("o: pl.Out", "n: pl.Scalar[pl.INDEX], o: pl.Out").format(
        body="    with pl.spmd(n * 2):\n        o = self.blk(a, o)"
    )
    a, o = torch.randn(64, 8), torch.full((64, 8), -7.0)
    run(program(text), a, 1, o)
    assert (o[32:] == -7).all()
    assert (o[:32] != -7).all()


def test_blocks_written_in_place() -> None:
    p = program(
        """
@pl.function
def main(self, a: pl.Tensor[[64, 8], pl.FP32], o: pl.Out[pl.Tensor[[64, 8], pl.FP32]]) -> pl.Tensor[[64, 8], pl.FP32]:
    for b in pl.spmd(4):
        o = pl.assemble(o, pl.exp(pl.slice(a, [16, 8], [b * 16, 0])), [b * 16, 0])
    return o
"""
    )
    a = torch.randn(64, 8)
    assert torch.equal(run(p, a, torch.zeros(64, 8)), a.exp())


def test_the_index_is_that_of_the_inner_launch_and_is_restored() -> None:
    ty = tensor((4,), INDEX)

    def kernel(b: Body, o: e.Var) -> None:
        i = b.op("i", "tile.get_block_idx")
        b.ret(b.op("w", "tensor.write", o, (i,), i))

    def outer(b: Body, o: e.Var) -> None:
        b.let("r", invoke("k", [o], ty, core_num=2))
        i = b.op("i", "tile.get_block_idx")
        b.ret(b.op("w", "tensor.write", o, (e.Add(i, e.index(2), INDEX),), i))

    def main(b: Body, o: e.Var) -> None:
        b.ret(b.let("r", invoke("outer", [o], ty, core_num=2)))

    names = {"k": kernel, "outer": outer, "main": main}
    p = Program([function(n, [("o", ty)], body) for n, body in names.items()], "P")
    assert run(p, torch.full((4,), -1), check_shapes=False).tolist() == [0, 1, 0, 1]


def test_mixed_kernels_run_once_per_block() -> None:
    from .test_groups import both

    p = program(both(1))
    main = p.get_function("main")
    assert main
    launched = []
    for stmt in s.stmts_of(main.body):
        if isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.Call):
            value = e.Call(stmt.value.op, stmt.value.args, {}, {"core_num": 3}, stmt.value.type)
            stmt = s.AssignStmt(stmt.var, value)
        launched.append(stmt)
    q = p.with_functions(
        [f for f in p.functions.values() if f.name != "main"] + [main.with_(body=s.SeqStmts(launched))]
    )
    assert "_run_spmd(3, _run_group_call, 'cross'" in torch_codegen(q)
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    assert torch.equal(run(q, src, dst), 2 * src)


BARRIER = """
@pl.function(type=pl.FunctionType.AIV)
def k(self, a: pl.Tensor[[4, 8], pl.FP32], tmp: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
    i = pl.tile.get_block_idx()
    tmp = pl.store(pl.mul(pl.load(a, [i, 0], [1, 8]), 2.0), [i, 0], tmp)
    {barrier}
    t = pl.load(tmp, [3 - i, 0], [1, 8])
    o = pl.store(t, [i, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[4, 8], pl.FP32], tmp: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
    with pl.spmd(4):
        o = self.k(a, tmp, o)
    return o
"""  # noqa: E501


def test_blocks_wait_for_each_other_at_a_barrier() -> None:
    """Every block reads what another one wrote before the barrier; without the barrier the values are old."""
    a = torch.randn(4, 8)
    good = program(BARRIER.format(barrier='pl.system.syncall(core_type="aiv_only")'))
    assert torch.equal(run(good, a, torch.zeros(4, 8), torch.zeros(4, 8)), 2 * a.flip(0))
    bad = program(BARRIER.format(barrier="j = i + 1"))
    assert not torch.equal(run(bad, a, torch.zeros(4, 8), torch.zeros(4, 8)), 2 * a.flip(0))


def test_a_barrier_that_not_all_blocks_reach() -> None:
    text = BARRIER.format(barrier='if i < 2:\n        pl.system.syncall(core_type="aiv_only")')
    with pytest.raises(
        RuntimeError, match=r"syncall: blocks \[0, 1\] of 4 wait at a barrier that the others never reach"
    ):
        run(program(text), torch.zeros(4, 8), torch.zeros(4, 8), torch.zeros(4, 8))


def test_mixed_groups_wait_for_other_blocks() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.AIC)
def g_aic(self, a: pl.Tensor[[32, 16], pl.FP32], tmp: pl.InOut[pl.Tensor[[32, 16], pl.FP32]], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
    i = pl.tile.get_block_idx()
    t = pl.load(a, [i * 16, 0], [16, 16], target_memory=pl.Mem.Mat)
    pl.tpush_to_aiv(t, split=1)
    pl.system.syncall(core_type="mix")
@pl.function(type=pl.FunctionType.AIV)
def g_aiv(self, a: pl.Tensor[[32, 16], pl.FP32], tmp: pl.InOut[pl.Tensor[[32, 16], pl.FP32]], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    i = pl.tile.get_block_idx()
    lane = pl.tile.get_subblock_idx()
    b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
    tmp = pl.store(pl.add(b, 1.0), [i * 16 + lane * 8, 0], tmp)
    pl.system.syncall(core_type="mix")
    t = pl.load(tmp, [(1 - i) * 16 + (1 - lane) * 8, 0], [8, 16])
    o = pl.store(t, [i * 16 + lane * 8, 0], o)
    return o
@pl.function(type=pl.FunctionType.Group)
def g(self, a: pl.Tensor[[32, 16], pl.FP32], tmp: pl.InOut[pl.Tensor[[32, 16], pl.FP32]], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    self.g_aic(a, tmp, o)
    r = self.g_aiv(a, tmp, o)
    return r
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[32, 16], pl.FP32], tmp: pl.InOut[pl.Tensor[[32, 16], pl.FP32]], o: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    with pl.spmd(2):
        o = self.g(a, tmp, o)
    return o
"""  # noqa: E501
    )
    a = torch.randn(32, 16)
    want = torch.cat(list(a.add(1).reshape(4, 8, 16).flip(0)))
    assert torch.equal(run(p, a, torch.zeros(32, 16), torch.zeros(32, 16)), want)


REGION = """
@pl.function
def main(self, a: pl.Tensor[[16, 8], pl.FP32], b: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        mm = pl.matmul(a, b)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
            part = pl.mul(pl.aiv_shard(mm), 2.0)
            {rest}
    return o
"""  # noqa: E501


@pytest.mark.parametrize(
    ("mode", "at"), [("UP_DOWN", "[lane * 8, 0]"), ("LEFT_RIGHT", "[0, lane * 8]"), ("NONE", "[0, 0]")]
)
def test_regions_of_two_lanes(mode: str, at: str) -> None:
    p = program(REGION.format(mode=mode, rest=f"o = pl.assemble(o, part, {at})"))
    a, b = torch.randn(16, 8), torch.randn(8, 16)
    torch.testing.assert_close(run(p, a, b, torch.zeros(16, 16)), 2 * (a @ b))


def test_lanes_of_a_region_exchange_their_parts() -> None:
    rest = "whole = pl.aic_gather(part)\n            prod = pl.matmul(whole, v)\n            o = pl.assemble(o, pl.aiv_shard(prod), [lane * 8, 0])"  # noqa: E501
    text = REGION.replace("o: pl.Out", "v: pl.Tensor[[16, 16], pl.FP32], o: pl.Out").format(mode="UP_DOWN", rest=rest)
    p = program(text)
    a, b, v = torch.randn(16, 8), torch.randn(8, 16), torch.randn(16, 16)
    torch.testing.assert_close(run(p, a, b, v, torch.zeros(16, 16)), 2 * (a @ b) @ v)
    assert "_aic_gather(" in code_of(p)


TASKS = """
@pl.function(type=pl.FunctionType.InCore)
def step(self, a: pl.Tensor[[2, 2], pl.FP32], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    o = pl.store(pl.add(pl.load(a, [0, 0], [2, 2]), 1.0), [0, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[2, 2], pl.FP32], s: pl.Out[pl.Tensor[[2, 2], pl.FP32]], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
{body}
    return o
"""  # noqa: E501


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        (["with pl.manual_scope():", "    s, t1 = pl.submit(self.step, a, s)", "    o, t2 = pl.submit(self.step, s, o, deps=[t1])"], 2.0),  # noqa: E501
        (["ids = pl.array.create(3, pl.TASK_ID)", "for i in pl.range(3):", "    s, t = pl.submit(self.step, a, s)", "    ids[i] = t", "o, u = pl.submit(self.step, s, o, deps=[ids])"], 2.0),  # noqa: E501
        (["s, t1 = pl.submit(self.step, a, s)", "bar = pl.system.task_dummy(deps=[t1])", "o, t2 = pl.submit(self.step, s, o, deps=[bar])"], 2.0),  # noqa: E501
        (["none = pl.system.task_invalid()", "o, t2 = pl.submit(self.step, a, o, deps=[none])"], 1.0),
    ],
    ids=["manual scope", "array of tasks", "joint", "no task"],
)  # fmt: skip
def test_submitted_kernels_run(lines: list[str], want: float) -> None:
    p = program(TASKS.format(body="\n".join(f"    {x}" for x in lines)))
    assert run(p, torch.zeros(2, 2), torch.full((2, 2), -7.0), torch.full((2, 2), -7.0)).tolist() == [[want] * 2] * 2


def submitting(predicate: e.Expr | None, flag: e.Var, args: int) -> Program:
    ty = tensor((2,))
    a, o = e.Var("a", ty), e.Var("o", ty)

    def step(b: Body, x: e.Var, out: e.Var) -> None:
        b.ret(b.op("w", "tensor.assemble", out, b.op("t", "tensor.adds", x, 1.0), (0,)))

    from pytest_pypto.pypto.ir.enums import ParamDirection

    kernel = function("step", [("x", ty), ("out", ty, ParamDirection.Out)], step)
    type_ = TupleType((ty, scalar(DataType.TASK_ID)))
    made = e.Submit(e.GlobalVar("step"), [a, o][:args], [], type=type_, predicate=predicate)
    pair, r, tid = e.Var("pair", type_), e.Var("r", ty), e.Var("tid", scalar(DataType.TASK_ID))
    body = (
        s.AssignStmt(pair, made),
        s.AssignStmt(r, e.TupleGetItemExpr(pair, 0)),
        s.AssignStmt(tid, e.TupleGetItemExpr(pair, 1)),
        s.ReturnStmt((r, tid)),
    )
    return Program([kernel, Function("main", [a, o, flag], [], s.SeqStmts(body))], "P")


def test_a_submit_may_leave_outputs_to_the_runtime() -> None:
    flag = e.Var("flag", scalar())
    made, tid = run(submitting(None, flag, 1), torch.ones(2), torch.zeros(2), 0)
    assert made.tolist() == [2.0, 2.0]
    assert isinstance(tid, int)
    assert tid > 0


def test_a_predicate_decides_whether_a_task_runs() -> None:
    flag = e.Var("flag", scalar())
    p = submitting(e.Gt(flag, e.index(0), DataType.BOOL), flag, 2)
    for value, want in ((1, 2.0), (0, -7.0)):
        made, _ = run(p, torch.ones(2), torch.full((2,), -7.0), value)
        assert made.tolist() == [want] * 2


def test_task_ids_of_scopes() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[2, 2], pl.FP32], o: pl.Out[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP) as ta:
        o = pl.assemble(o, pl.exp(a), [0, 0])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[ta]) as tb:
        o = pl.assemble(o, pl.exp(o), [0, 0])
    return o
"""
    )
    assert "ta = _new_task_id()" in code_of(p)
    torch.testing.assert_close(run(p, torch.zeros(2, 2), torch.zeros(2, 2)), torch.full((2, 2), 1.0).exp())


def test_task_values() -> None:
    def body(b: Body) -> None:
        none, some = b.op("none", "system.task_invalid"), b.op("some", "system.task_dummy")
        b.ret(b.op("p", "system.task_is_valid", none), b.op("q", "system.task_is_valid", some))

    assert run(function("f", [], body)) == (False, True)


@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.BOOL, INDEX], ids=str)
def test_arrays(dtype: DataType) -> None:
    def body(b: Body) -> None:
        arr = b.op("arr", "array.create", 3, dtype=dtype)
        one = e.ConstBool(True) if dtype is DataType.BOOL else e.ConstInt(5, dtype)
        new = b.op("new", "array.update_element", arr, 1, one)
        items = [b.op(f"x{k}", "array.get_element", v, 1) for k, v in enumerate((arr, new))]
        b.ret(*items)

    f = function("f", [], body)
    assert run(f) == ((False, True) if dtype is DataType.BOOL else (0, 5))


def test_array_bounds() -> None:
    arr, i = e.Var("arr", ArrayType(INDEX, 2)), e.Var("i", scalar())  # type: ignore[arg-type]
    get = s.ReturnStmt((call("array.get_element", [arr, i]),))
    f = Function("f", [i], [], s.SeqStmts((s.AssignStmt(arr, call("array.create", [2], {"dtype": INDEX})), get)))
    assert run(f, 1) == 0
    with pytest.raises(IndexError, match=r"array index 2 lies outside 0\.\.1"):
        run(f, 2)


def test_properties_of_the_device() -> None:
    def body(b: Body) -> None:
        b.ret(b.op("c", "system.available_cluster_count"), b.op("v", "system.available_aiv_count"))

    from .build import space_of

    space = space_of(function("f", [], body))
    assert space["f"]() == (24, 48)
    space["_CLUSTER_COUNT"] = 20
    assert space["f"]() == (20, 40)


def test_prefetches_change_nothing() -> None:
    def body(b: Body, x: e.Var) -> None:
        ctx = b.op("ctx", "prefetch.make_context")
        session = b.op("session", "prefetch.session", ctx)
        event = b.op("event", "prefetch.async_prefetch", x, ctx)
        b.ret(b.op("done", "prefetch.wait", event, session))

    assert run(function("f", [("x", tensor((1, 64)))], body), torch.zeros(1, 64)) is True


def test_subblock_and_block_operators_of_tensors() -> None:
    def body(b: Body) -> None:
        b.ret(*(b.op(n, f"tensor.get_{n}") for n in ("block_idx", "block_num", "subblock_idx")))

    assert run(function("f", [], body)) == (0, 1, 0)
