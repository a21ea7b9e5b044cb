"""Cores, tasks, arrays and pipes: programs whose values show that the operator did its work."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType as D
from pytest_pypto.pypto.ir.enums import FunctionType

from ..arrays import INTS, NUMPY, close, to_numpy, to_torch
from ..build import Body, call, function, program, run, tensor, tile
from .kit import FULL, RAGGED, Kit, both, case

ONE: dict[str, Any] = {"dtypes": (D.FP32,), "forms": (FULL,), "unsaid": "it has no operand of an element type"}


def around(op: str, *args: Any, **kwargs: Any) -> None:
    """The operator between two others leaves their values alone."""

    def body(b: Body, x: e.Var) -> None:
        y = b.op("y", "tile.adds", x, 1.0)
        made = call(op, [x if a == "x" else a for a in args], kwargs)
        b.do(made)
        b.ret(b.op("z", "tile.muls", y, 3.0))

    f = function("f", [("x", tile((2, 2)))], body)
    assert run(f, torch.full((2, 2), 4.0)).tolist() == [[15.0, 15.0]] * 2


@case(
    *(f"system.{n}" for n in ("sync_src", "sync_dst", "bar_v", "bar_m", "bar_all", "fence")),
    *("system.sync_set", "system.sync_wait", "system.cacheinvalid", "system.set_ffts"),
    **ONE,
)
def quiet(k: Kit) -> None:
    flags = {"set_pipe": 1, "wait_pipe": 4, "event_id": 0}
    pipe = {"pipe": 1, "event_id": 0, "core_type": "aic"}
    keywords: dict[str, Any] = {"sync_src": flags, "sync_dst": flags, "sync_set": pipe, "sync_wait": pipe}
    if k.name in ("cacheinvalid", "set_ffts"):
        _with_tensor(k)
    else:
        around(k.op, **keywords.get(k.name, {}))


def _with_tensor(k: Kit) -> None:
    more: list[Any] = [(256,), (0,)] if k.name == "cacheinvalid" else []

    def body(b: Body, x: e.Var) -> None:
        b.do(call(k.op, [x, *more]))
        b.ret(b.op("y", "tensor.adds", x, e.ConstInt(1, D.INT64)))

    f = function("f", [("x", tensor((256,), D.INT64))], body)
    assert run(f, torch.ones(256, dtype=torch.int64)).tolist() == [2] * 256


@case("system.reserve_buffer", "system.import_peer_buffer", **ONE)
def buffer_address(k: Kit) -> None:
    more = {"name": "b", "peer_func": "f"} if k.name.startswith("import") else {"name": "b", "size": 512}

    def body(b: Body) -> None:
        made = call(k.op, [], more, type=e.ConstInt(0, D.INT32).type)
        b.ret(b.let("r", e.Add(made, e.ConstInt(4, D.INT32), D.INT32)))

    assert run(function("f", [], body)) == 4


@case(
    *("tile.get_block_idx", "tile.get_block_num", "tensor.get_block_idx", "tensor.get_block_num"),
    "system.syncall",
    **ONE,
)
def launch(k: Kit) -> None:
    """Four blocks; each adds the number asked for to its rows, behind a barrier when that is what is tried."""
    asked = k.op if k.name.startswith("get_") else f"{k.space.replace('system', 'tile')}.get_block_idx"
    barrier = 'pl.system.syncall(core_type="aiv_only")' if k.name == "syncall" else "pass"
    p = program(
        f"""
@pl.function(type=pl.FunctionType.InCore)
def band(self, a: pl.Tensor[[32, 16], pl.INT32], o: pl.Out[pl.Tensor[[32, 16], pl.INT32]]) -> pl.Tensor[[32, 16], pl.INT32]:
    i = pl.tile.get_block_idx()
    n = pl.{asked}()
    {barrier}
    t = pl.add(pl.load(a, [i * 8, 0], [8, 16]), pl.cast(n, pl.INT32))
    o = pl.store(t, [i * 8, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[32, 16], pl.INT32], o: pl.Out[pl.Tensor[[32, 16], pl.INT32]]) -> pl.Tensor[[32, 16], pl.INT32]:
    with pl.spmd(4):
        o = self.band(a, o)
    return o
"""  # noqa: E501
    )
    a = np.random.default_rng(1).integers(0, 99, (32, 16)).astype(np.int32)
    added = np.full(32, 4) if k.name == "get_block_num" else np.repeat(np.arange(4), 8)
    result = run_oracle(p, [torch.from_numpy(a), torch.zeros(32, 16, dtype=torch.int32)])
    np.testing.assert_array_equal(result.numpy(), a + added[:, None])


REGION = """
@pl.function{kind}
def main(self, a: {t}, o: pl.Out[{t}]) -> {t}:
    {region}
        lane2 = pl.{space}.get_subblock_idx()
        part = pl.aiv_shard(whole)
        again = pl.aiv_shard(pl.aic_gather(part))
        {put}
    return o
"""


@case(*both("aiv_shard", "aic_gather", "get_subblock_idx"), forms=(FULL, RAGGED))
def lanes(k: Kit) -> None:
    """Both lanes take their half, join the halves, take their half again, and store it where their number says."""
    t = f"pl.Tensor[[16, 8], pl.{_spelled(k.dtype)}]"
    rows = 13 if k.ragged else 16
    loop = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):"
    if k.space == "tensor":
        region = "with pl.at(level=pl.Level.CORE_GROUP):\n        "
        region += f"whole = pl.slice(a, [16, 8], [0, 0], valid_shape=[{rows}, 8])\n        {loop}"
        body = REGION.replace("        lane2", "            lane2").replace("        part", "            part")
        body = body.replace("        again", "            again").replace("        {put}", "            {put}")
        put = "o = pl.assemble(o, again, [lane2 * 8, 0])"
        text = body.format(kind="", t=t, region=region, space="tensor", put=put)
    else:
        region = f"whole = pl.load(a, [0, 0], [16, 8], valid_shape=[{rows}, 8])\n    {loop}"
        put = "o = pl.store(again, [lane2 * 8, 0], o)"
        kind = "(type=pl.FunctionType.InCore)"
        text = REGION.format(kind=kind, t=t, region=region, space="tile", put=put)
    a, o = k.array(1, (16, 8)), k.array(2, (16, 8))
    want = o.copy()
    want[:rows] = a[:rows]
    out = to_torch(o, k.dtype)
    run_oracle(program(text), [to_torch(a, k.dtype), out])
    close(to_numpy(out, k.dtype), want, k.dtype)


def _spelled(dtype: D) -> str:
    return "BF16" if dtype is D.BF16 else str(dtype).upper()


GROUP = """
@pl.function(type=pl.FunctionType.AIC)
def cross_aic(self, src: {t}, dst: pl.Out[{t}]):
    pl.aic_initialize_pipe(pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=3, slot_size=1024, slot_num=2)
    t = pl.load(src, [0, 0], [16, 16], valid_shape=[{rows}, 16], target_memory=pl.Mem.Mat)
    pl.tpush_to_aiv(t, split=1)
    m: pl.Tile[[16, 16], {d}, pl.Mem.Mat] = pl.tpop_from_aiv(split=1)
    pl.tpush_to_aiv(m, split=1)
    pl.tfree_to_aiv(m, split=1)
@pl.function(type=pl.FunctionType.AIV)
def cross_aiv(self, src: {t}, dst: pl.Out[{t}]) -> {t}:
    pl.aiv_initialize_pipe(pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=3, slot_size=1024, slot_num=2)
    lane = pl.tile.get_subblock_idx()
    b: pl.Tile[[8, 16], {d}, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
    pl.tpush_to_aic(b, split=1)
    pl.tfree_to_aic(b, split=1)
    c: pl.Tile[[8, 16], {d}, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
    dst = pl.store(c, [lane * 8, 0], dst)
    pl.tfree_to_aic(c, split=1)
    return dst
@pl.function(type=pl.FunctionType.Group)
def cross(self, src: {t}, dst: pl.Out[{t}]) -> {t}:
    self.cross_aic(src, dst)
    r = self.cross_aiv(src, dst)
    return r
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, src: {t}, dst: pl.Out[{t}]) -> {t}:
    o = self.cross(src, dst)
    return o
"""


@case(
    *("tile.tpush_to_aiv", "tile.tpop_from_aic", "tile.tpush_to_aic", "tile.tpop_from_aiv"),
    *("system.tfree_to_aiv", "system.tfree_to_aic"),
    *("system.aic_initialize_pipe", "system.aiv_initialize_pipe"),
    forms=(FULL, RAGGED),
)
def pipes(k: Kit) -> None:
    """A tile goes from the cube to both lanes, back, and to the lanes again, with its region."""
    d = f"pl.{_spelled(k.dtype)}"
    rows = 13 if k.ragged else 16
    p = program(GROUP.format(t=f"pl.Tensor[[16, 16], {d}]", d=d, rows=rows))
    a, o = k.array(1, (16, 16)), k.array(2, (16, 16))
    want = o.copy()
    want[:rows] = a[:rows]
    out = to_torch(o, k.dtype)
    run_oracle(p, [to_torch(a, k.dtype), out], leftover="error")
    close(to_numpy(out, k.dtype), want, k.dtype)


@case("system.task_invalid", "system.task_dummy", "system.task_is_valid", **ONE)
def tasks(k: Kit) -> None:
    def body(b: Body) -> None:
        none, some = b.op("none", "system.task_invalid"), b.op("some", "system.task_dummy")
        b.ret(b.op("p", "system.task_is_valid", none), b.op("q", "system.task_is_valid", some))

    assert run(function("f", [], body)) == (False, True)


@case("system.available_cluster_count", "system.available_aiv_count", **ONE)
def counts(k: Kit) -> None:
    def body(b: Body) -> None:
        b.ret(b.op("n", k.op))

    f = function("f", [], body, FunctionType.Orchestration)
    clusters = 7
    assert run_oracle(f, [], cluster_count=clusters) == clusters * (2 if k.name == "available_aiv_count" else 1)


@case("array.create", "array.get_element", "array.update_element", dtypes=INTS, forms=(FULL,))
def arrays(k: Kit) -> None:
    """A changed copy and the old one, at the limits of the type."""
    info = np.iinfo(NUMPY[k.dtype])

    def body(b: Body) -> None:
        arr = b.op("arr", "array.create", 3, dtype=k.dtype)
        new = b.op("new", "array.update_element", arr, 1, e.ConstInt(int(info.max), k.dtype))
        last = b.op("last", "array.update_element", new, 2, e.ConstInt(int(info.min), k.dtype))
        b.ret(
            *(b.op(f"x{n}", "array.get_element", v, n) for n, v in ((0, last), (1, last), (2, last), (4, arr)) if n < 3)
        )

    assert run(function("f", [], body)) == (0, int(info.max), int(info.min))


@case(
    *("prefetch.make_context", "prefetch.session", "prefetch.async_prefetch", "prefetch.wait"),
    forms=(FULL,),
)
def prefetch(k: Kit) -> None:
    def body(b: Body, x: e.Var) -> None:
        ctx = b.op("ctx", "prefetch.make_context")
        session = b.op("session", "prefetch.session", ctx)
        event = b.op("event", "prefetch.async_prefetch", x, ctx)
        done = b.op("done", "prefetch.wait", event, session)
        b.ret(done, b.op("y", "tensor.add", x, x))

    a = k.array(1, (1, 64))
    done, y = run(function("f", [("x", tensor((1, 64), k.dtype))], body), to_torch(a, k.dtype))
    assert done is True
    with np.errstate(all="ignore"):
        close(to_numpy(y, k.dtype), a + a, k.dtype)
