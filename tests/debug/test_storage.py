"""Names keep the values they had; memory that callers see is written in place."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.program import Function, Program

from .build import F32, Body, call, code_of, function, invoke, program, run, scalar, tensor, tile


def test_an_old_tile_keeps_its_value_when_it_is_still_read() -> None:
    def body(b: Body, src: e.Var) -> None:
        t = b.op("t", "tile.full", (1, 4), 0.0, dtype=F32)
        u = b.op("u", "tile.assemble", t, src, (0, 0))
        b.ret(b.op("r", "tile.add", u, t))

    assert run(function("f", [("s", tile((1, 2)))], body), torch.ones(1, 2)).tolist() == [[1.0, 1.0, 0.0, 0.0]]


@pytest.mark.parametrize("op", ["tensor", "tile"])
def test_a_write_that_is_the_last_use_works_in_place(op: str) -> None:
    def body(b: Body, src: e.Var) -> None:
        t = b.op("t", f"{op}.create", (1, 4), dtype=F32)
        b.ret(b.op("u", f"{op}.assemble", t, src, (0, 0)))

    types = tensor if op == "tensor" else tile
    assert "clone" not in code_of(function("f", [("s", types((1, 2)))], body))


def test_the_old_value_in_the_same_expression() -> None:
    def body(b: Body, src: e.Var) -> None:
        t = b.op("t", "tile.full", (1, 4), 1.0, dtype=F32)
        b.ret(b.let("r", call("tile.sub", [call("tile.assemble", [t, src, (0, 0)]), t])))

    assert run(function("f", [("s", tile((1, 2)))], body), torch.full((1, 2), 5.0)).tolist() == [[4.0, 4.0, 0.0, 0.0]]


def test_the_old_value_under_an_alias() -> None:
    def body(b: Body, src: e.Var) -> None:
        t = b.op("t", "tile.full", (1, 2), 1.0, dtype=F32)
        alias = b.let("alias", t)
        moved = b.op("moved", "tile.reshape", alias, (2, 1))
        u = b.op("u", "tile.write", t, (0, 0), 9.0)
        b.ret(u, moved)

    new, old = run(function("f", [("s", tile((1, 1)))], body), torch.zeros(1, 1))
    assert new.tolist() == [[9.0, 1.0]]
    assert old.tolist() == [[1.0], [1.0]]


def test_parameters_are_written_in_place_and_returned_themselves() -> None:
    def body(b: Body, x: e.Var, out: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (2, 2), (2, 2))
        b.op("o1", "tile.store", t, (0, 0), out)
        b.ret(out)

    out = torch.zeros(4, 4)
    f = function("f", [("x", tensor((2, 2))), ("out", tensor((4, 4)))], body)
    assert run(f, torch.ones(2, 2), out) is out
    assert out.sum() == 4


def test_a_template_used_in_every_trip_stays_what_it_was() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[3, 4], pl.FP32], o: pl.Out[pl.Tensor[[3, 4], pl.FP32]]) -> pl.Tensor[[3, 4], pl.FP32]:
    blank = pl.tile.full([1, 4], dtype=pl.FP32, value=0.0)
    for i in pl.range(3):
        piece = pl.load(x, [i, i], [1, 1])
        row = pl.assemble(blank, piece, [0, i])
        o = pl.store(row, [i, 0], o)
    return o
"""
    )
    x = torch.arange(1.0, 13.0).reshape(3, 4)
    assert torch.equal(run(p, x, torch.zeros(3, 4)), x * torch.eye(3, 4))


def carried(writes: str, kept: bool) -> Function:
    """A carried tile that is written in every trip; the tile it starts from is read afterwards when `kept`."""
    src = e.Var("src", tile((1, 1)))
    start = e.Var("start", tile((1, 3)))
    acc, i, out = e.IterArg("acc", tile((1, 3)), start), e.Var("i", scalar()), e.Var("out", tile((1, 3)))
    step = e.Var("step", tile((1, 3)))
    loop = s.ForStmt(
        i,
        e.index(0),
        e.index(3),
        e.index(1),
        (acc,),
        s.SeqStmts((s.AssignStmt(step, call(writes, [acc, src, (0, i)])), s.YieldStmt((step,)))),
        (out,),
    )
    both = e.Var("both", tile((1, 3)))
    last = s.AssignStmt(both, call("tile.sub", [out, start if kept else out]))
    first = s.AssignStmt(start, call("tile.full", [(1, 3), 0.0], {"dtype": F32}))
    return Function("f", [src], [], s.SeqStmts((first, loop, last, s.ReturnStmt((both,)))))


@pytest.mark.parametrize(("kept", "want"), [(True, 1.0), (False, 0.0)])
def test_carried_tiles(kept: bool, want: float) -> None:
    f = carried("tile.assemble", kept)
    assert run(f, torch.ones(1, 1)).tolist() == [[want] * 3]
    assert ("clone" in code_of(f)) is kept


def test_two_carries_that_start_from_one_tile() -> None:
    src, start = e.Var("src", tile((1, 1))), e.Var("start", tile((1, 2)))
    a, b = (e.IterArg(n, tile((1, 2)), start) for n in "ab")
    na, nb = e.Var("na", tile((1, 2))), e.Var("nb", tile((1, 2)))
    ra, rb = e.Var("ra", tile((1, 2))), e.Var("rb", tile((1, 2)))
    body = s.SeqStmts(
        (
            s.AssignStmt(na, call("tile.assemble", [a, src, (0, 0)])),
            s.AssignStmt(nb, call("tile.assemble", [b, src, (0, 1)])),
            s.YieldStmt((na, nb)),
        )
    )
    loop = s.ForStmt(e.Var("i", scalar()), e.index(0), e.index(2), e.index(1), (a, b), body, (ra, rb))
    first = s.AssignStmt(start, call("tile.full", [(1, 2), 0.0], {"dtype": F32}))
    f = Function("f", [src], [], s.SeqStmts((first, loop, s.ReturnStmt((ra, rb)))))
    left, right = run(f, torch.ones(1, 1))
    assert (left.tolist(), right.tolist()) == ([[1.0, 0.0]], [[0.0, 1.0]])


def test_a_slice_is_what_it_was_when_it_was_taken() -> None:
    p = program(
        """
@pl.function
def main(self, x: pl.Tensor[[2, 2], pl.FP32], o: pl.InOut[pl.Tensor[[2, 2], pl.FP32]]) -> pl.Tensor[[2, 2], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        old = pl.slice(o, [2, 2], [0, 0])
        o = pl.assemble(o, x, [0, 0])
        o = pl.assemble(o, pl.add(old, 100.0), [0, 0])
    return o
"""
    )
    assert run(p, torch.ones(2, 2), torch.full((2, 2), 7.0)).tolist() == [[107.0, 107.0]] * 2


def test_a_slice_is_copied_only_when_its_parent_is_written_while_it_lives() -> None:
    def body(order: str) -> Any:
        def make(b: Body, o: e.Var, x: e.Var) -> None:
            old = b.op("old", "tensor.slice", o, (2, 2), (0, 0))
            if order == "before":
                b.op("o1", "tensor.assemble", o, x, (0, 0))
                b.ret(b.op("r", "tensor.neg", old))
            else:
                r = b.op("r", "tensor.neg", old)
                b.op("o1", "tensor.assemble", o, x, (0, 0))
                b.ret(r)

        return function("f", [("o", tensor((4, 4))), ("x", tensor((2, 2)))], make)

    assert "clone" in code_of(body("before"))
    assert "clone" not in code_of(body("after"))
    assert (run(body("before"), torch.ones(4, 4), torch.zeros(2, 2)) == -1).all()


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_a_window_moved_over_itself(space: str) -> None:
    """Source and target share memory and overlap: the source is read as it was."""

    def body(b: Body, x: e.Var) -> None:
        t = b.op("t", f"{space}.add", x, x)
        window = call(f"{space}.slice", [t, (1, 3), (0, 0)])
        b.ret(b.op("u", f"{space}.assemble", t, window, (0, 1)))

    types = tensor if space == "tensor" else tile
    out = run(function("f", [("x", types((1, 4)))], body), torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert out.tolist() == [[2.0, 2.0, 4.0, 6.0]]


def test_a_slice_read_in_the_next_trip() -> None:
    """The window of one trip is read in the next, after its parent was written."""
    p = program(
        """
@pl.function
def main(self, x: pl.Tensor[[1, 2], pl.FP32], o: pl.InOut[pl.Tensor[[1, 2], pl.FP32]]) -> pl.Tensor[[1, 2], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        last = pl.slice(o, [1, 2], [0, 0])
        for i in pl.range(3):
            now = pl.slice(o, [1, 2], [0, 0])
            o = pl.assemble(o, pl.add(now, last), [0, 0])
            last = now
    return o
"""
    )
    assert run(p, torch.zeros(1, 2), torch.ones(1, 2)).tolist() == [[5.0, 5.0]]


def test_a_window_that_a_kernel_fills_is_part_of_its_parent() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[2, 4], pl.FP32], o: pl.Out[pl.Tensor[[2, 4], pl.FP32]]) -> pl.Tensor[[2, 4], pl.FP32]:
    o = pl.store(pl.add(pl.load(a, [0, 0], [2, 4]), 1.0), [0, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[2, 4], pl.FP32], o: pl.Out[pl.Tensor[[4, 4], pl.FP32]]) -> pl.Tensor[[4, 4], pl.FP32]:
    w = pl.slice(o, [2, 4], [2, 0])
    w = self.k(a, w)
    return o
"""
    )
    out = torch.zeros(4, 4)
    run(p, torch.ones(2, 4), out)
    assert out.tolist() == [[0.0] * 4] * 2 + [[2.0] * 4] * 2


def test_created_tensors_filled_through_calls() -> None:
    ty = tensor((2, 2))

    def kernel(b: Body, a: e.Var, o: e.Var) -> None:
        t = b.op("t", "tile.load", a, (0, 0), (2, 2), (2, 2))
        b.ret(b.op("r", "tile.store", t, (0, 0), o))

    def main(b: Body, a: e.Var) -> None:
        o = b.op("o", "tensor.create", (2, 2), dtype=F32)
        b.let("unused", invoke("k", [a, o], ty))
        b.ret(o)

    p = Program([function("k", [("a", ty), ("o", ty)], kernel), function("main", [("a", ty)], main)], "P")
    assert run(p, torch.ones(2, 2)).tolist() == [[1.0, 1.0]] * 2


def test_a_loaded_tile_does_not_change_with_memory() -> None:
    def body(b: Body, x: e.Var, n: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (1, 2), (1, 2))
        b.op("w", "tile.store", n, (0, 0), x)
        b.ret(t)

    x = torch.ones(1, 2)
    assert run(function("f", [("x", tensor((1, 2))), ("n", tile((1, 2)))], body), x, torch.zeros(1, 2)).sum() == 2
    assert x.sum() == 0


SHARED = """
@pl.function(type=pl.FunctionType.InCore)
def k(self, a: pl.Tensor[[1, 2], pl.FP32], o: pl.Out[pl.Tensor[[1, 2], pl.FP32]]) -> pl.Tensor[[1, 2], pl.FP32]:
    t = pl.load(a, [0, 0], [1, 2])
    o = pl.store(pl.mul(t, 2.0), [0, 0], o)
    o = pl.store(pl.add(t, 1.0), [0, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, a: pl.Tensor[[1, 2], pl.FP32], o: pl.Out[pl.Tensor[[1, 2], pl.FP32]]) -> pl.Tensor[[1, 2], pl.FP32]:
    r = self.k({args})
    return r
"""


def test_loads_share_memory_only_when_nothing_writes_it() -> None:
    apart, same = program(SHARED.format(args="a, o")), program(SHARED.format(args="o, o"))
    assert "shared=True" in code_of(apart)
    assert "shared=True" not in code_of(same)
    assert run(apart, torch.ones(1, 2), torch.zeros(1, 2)).tolist() == [[2.0, 2.0]]
    assert run(same, torch.ones(1, 2), torch.full((1, 2), 3.0)).tolist() == [[4.0, 4.0]]


def test_a_tile_that_is_written_is_not_shared_with_memory() -> None:
    def body(b: Body, x: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (1, 2), (1, 2))
        b.ret(b.op("u", "tile.write", t, (0, 0), 5.0))

    x = torch.ones(1, 2)
    assert run(function("f", [("x", tensor((1, 2)))], body), x).tolist() == [[5.0, 1.0]]
    assert x.tolist() == [[1.0, 1.0]]


def test_merged_branches_do_not_share() -> None:
    """A branch that yields the old tile, written afterwards, must leave the old tile alone."""
    old, src, flag = e.Var("old", tile((1, 2))), e.Var("src", tile((1, 1))), e.Var("flag", e.ConstBool(True).type)
    merged, out, r = e.Var("m", tile((1, 2))), e.Var("o", tile((1, 2))), e.Var("r", tile((1, 2)))
    new = e.Var("new", tile((1, 2)))
    branch = s.IfStmt(
        flag,
        s.SeqStmts((s.AssignStmt(new, call("tile.neg", [old])), s.YieldStmt((new,)))),
        s.YieldStmt((old,)),
        (merged,),
    )
    f = Function(
        "f",
        [flag, src],
        [],
        s.SeqStmts(
            (
                s.AssignStmt(old, call("tile.full", [(1, 2), 1.0], {"dtype": F32})),
                branch,
                s.AssignStmt(out, call("tile.assemble", [merged, src, (0, 0)])),
                s.AssignStmt(r, call("tile.add", [out, old])),
                s.ReturnStmt((r,)),
            )
        ),
    )
    assert run(f, False, torch.full((1, 1), 10.0)).tolist() == [[11.0, 2.0]]
    assert run(f, True, torch.full((1, 1), 10.0)).tolist() == [[11.0, 0.0]]
