"""Valid regions on their way through a program."""

from __future__ import annotations

import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.enums import MemorySpace, PadValue

from .build import F32, Body, code_of, function, program, region, run, scalar, space_of, tensor, tile

SENTINEL = -7.0


def out(*shape: int) -> torch.Tensor:
    return torch.full(shape, SENTINEL)


def test_unary_operators_and_casts_keep_the_region() -> None:
    def body(b: Body, x: e.Var, o: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (8, 16), (8, 4))
        u = b.op("u", "tile.neg", b.op("m", "tile.muls", t, 2.0))
        b.ret(b.op("r", "tile.store", u, (0, 0), o))

    x, o = torch.randn(8, 16), out(8, 16)
    run(function("f", [("x", tensor((8, 16))), ("o", tensor((8, 16)))], body), x, o)
    assert torch.equal(o[:, :4], -2 * x[:, :4])
    assert (o[:, 4:] == SENTINEL).all()


def test_reductions_leave_rows_without_data_alone() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 1], pl.FP32]]) -> pl.Tensor[[8, 1], pl.FP32]:
    t = pl.load(x, [0, 0], [8, 32], valid_shape=[4, 32])
    h = pl.cast(t, pl.FP16)
    f = pl.cast(h, pl.FP32)
    m = pl.mul(f, f)
    tmp = pl.tile.create([8, 32], dtype=pl.FP32)
    s = pl.row_sum(m, tmp)
    o = pl.store(s, [0, 0], o)
    return o
"""
    )
    x, o = torch.randn(8, 32), out(8, 1)
    run(p, x, o)
    torch.testing.assert_close(o[:4], x[:4].half().float().pow(2).sum(1, keepdim=True))
    assert (o[4:] == SENTINEL).all()


@pytest.mark.parametrize("op", ["tensor", "tile"])
def test_padding_does_not_become_data(op: str) -> None:
    types = tensor if op == "tensor" else tile

    def body(b: Body, x: e.Var, o: e.Var) -> None:
        t = b.op("t", f"{op}.adds", x, 1.0)
        u = b.op("u", f"{op}.add", t, t)
        b.ret(
            b.op(
                "r",
                "tensor.assemble" if op == "tensor" else "tile.store",
                *((o, u, (0, 0)) if op == "tensor" else (u, (0, 0), o)),
            )
        )

    f = function("f", [("x", types((8, 16), F32, (5, 16))), ("o", tensor((8, 16)))], body)
    x, o = torch.randn(8, 16), out(8, 16)
    run(f, x, o)
    assert torch.equal(o[:5], 2 * (x[:5] + 1))
    assert (o[5:] == SENTINEL).all()


def test_reshape_carries_the_region() -> None:
    def body(b: Body, x: e.Var, o: e.Var) -> None:
        t = b.op("t", "tensor.slice", x, (1, 8, 16), (0, 0, 0), (1, 5, 16))
        u = b.op("u", "tensor.exp", b.op("m", "tensor.reshape", t, (8, 16)))
        b.ret(b.op("r", "tensor.assemble", o, u, (0, 0)))

    x, o = torch.randn(1, 8, 16), out(8, 16)
    run(function("f", [("x", tensor((1, 8, 16))), ("o", tensor((8, 16)))], body), x, o)
    assert torch.equal(o[:5], x[0, :5].exp())
    assert (o[5:] == SENTINEL).all()


def test_a_slice_over_the_edge_and_the_true_maximum() -> None:
    def body(b: Body, x: e.Var, row: e.Var) -> None:
        t = b.op("t", "tensor.slice", x, (8, 16), (row, 0), type=tensor((8, 16)))
        filled = b.op("filled", "tensor.fillpad", t, pad_value=PadValue.min)
        b.ret(b.op("m", "tensor.row_max", t), b.op("n", "tensor.row_max", filled))

    x = -1 - torch.rand(10, 16)
    f = function("f", [("x", tensor((10, 16))), ("row", scalar())], body)
    cut, filled = run(f, x, 8)
    assert torch.equal(cut[:2], x[8:].amax(1, keepdim=True))
    assert region(cut) == (2, 1)
    assert torch.equal(filled[:2], x[8:].amax(1, keepdim=True))
    assert (filled[2:] == torch.finfo(torch.float32).min).all()


def test_a_ragged_last_block_is_loaded_and_stored_as_far_as_it_goes() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[40, 8], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[40, 8], pl.FP32]]) -> pl.Tensor[[40, 8], pl.FP32]:
    for i in pl.range(n):
        t = pl.load(x, [i * 16, 0], [16, 8])
        u = pl.exp(pl.neg(t))
        o = pl.store(u, [i * 16, 0], o)
    return o
"""  # noqa: E501
    )
    x, o = torch.randn(40, 8), out(40, 8)
    run(p, x, 3, o)
    assert torch.equal(o, (-x).exp())
    run(p, x, 2, o := out(40, 8))
    assert (o[32:] == SENTINEL).all()


def test_plain_code_where_windows_provably_lie_inside() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[64, 8], pl.FP32], o: pl.Out[pl.Tensor[[64, 8], pl.FP32]]) -> pl.Tensor[[64, 8], pl.FP32]:
    for i in pl.range(4):
        t = pl.load(x, [i * 16, 0], [16, 8])
        o = pl.store(pl.neg(t), [i * 16, 0], o)
    return o
"""
    )
    assert "_copy_region_attrs" not in code_of(p)


def test_a_region_given_at_run_time() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 16], valid_shape=[n, 16])
    f = pl.fillpad(t, pad_value=pl.PadValue.max)
    v = pl.tile.set_validshape(pl.neg(f), n, 8)
    o = pl.store(v, [0, 0], o)
    return o
"""  # noqa: E501
    )
    x = torch.randn(16, 16)
    for n in (0, 5, 16):
        o = out(16, 16)
        run(p, x, n, o)
        assert torch.equal(o[:n, :8], -x[:n, :8])
        o[:n, :8] = SENTINEL
        assert (o == SENTINEL).all()


def test_a_region_that_comes_with_an_argument() -> None:
    """The kernel's type says nothing; the window the caller passes has eight valid columns."""
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def k(self, x: pl.Tensor[[4, 16], pl.FP32], o: pl.Out[pl.Tensor[[4, 16], pl.FP32]]) -> pl.Tensor[[4, 16], pl.FP32]:
    t = pl.load(x, [0, 0], [4, 16])
    o = pl.store(pl.mul(t, 2.0), [0, 0], o)
    return o
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, x: pl.Tensor[[4, 16], pl.FP32], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[4, 16], pl.FP32]]) -> pl.Tensor[[4, 16], pl.FP32]:
    w = pl.slice(x, [4, 16], [0, 0], valid_shape=[4, n])
    o = self.k(w, o)
    return o
"""  # noqa: E501
    )
    x, o = torch.randn(4, 16), out(4, 16)
    run(p, x, 7, o)
    assert torch.equal(o[:, :7], 2 * x[:, :7])
    assert (o[:, 7:] == SENTINEL).all()


def test_exactly_the_valid_cells_change() -> None:
    def body(b: Body, t: e.Var, o: e.Var) -> None:
        b.ret(b.op("r", "tile.store", t, (1, 2), o))

    o = torch.full((10, 10), -9.0)
    run(function("f", [("t", tile((8, 8), F32, (5, 7))), ("o", tensor((10, 10)))], body), torch.ones(8, 8), o)
    assert (o == 1).sum() == 35
    assert (o == -9).sum() == 65


def test_a_store_extends_the_region_of_its_target() -> None:
    def body(b: Body, t: e.Var, o: e.Var) -> None:
        b.ret(b.op("r", "tile.store", t, (16, 0), o))

    f = function("f", [("t", tile((16, 64))), ("o", tensor((64, 64), F32, (16, 64)))], body)
    assert region(run(f, torch.ones(16, 64), torch.zeros(64, 64))) == (32, 64)


def test_products_with_few_valid_rows_still_fill_the_box() -> None:
    """Only the region narrows; the physical rows below are written as well."""

    def body(b: Body, x: e.Var, y: e.Var) -> None:
        b.ret(b.op("r", "tile.matmul", x, y))

    left = tile((4, 4), F32, (2, 4), MemorySpace.Left)
    f = function("f", [("x", left), ("y", tile((4, 4), F32, None, MemorySpace.Right))], body)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    result = run(f, x, y)
    assert region(result) == (2, 4)
    torch.testing.assert_close(result.detach(), x @ y)


def test_an_offset_in_a_branch_that_is_not_taken_does_no_harm() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[8, 8], pl.FP32], rank: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[16, 8], pl.FP32]]) -> pl.Tensor[[16, 8], pl.FP32]:
    t = pl.load(x, [0, 0], [8, 8])
    if rank > 0:
        o = pl.store(t, [(rank - 1) * 8, 0], o)
    return o
"""  # noqa: E501
    )
    o = out(16, 8)
    run(p, torch.ones(8, 8), 0, o)
    assert (o == SENTINEL).all()
    taken = space_of(p)
    with pytest.raises(IndexError, match="leaves the shape"):
        taken["main"](torch.ones(8, 8), 4, o)


def test_regions_cross_the_pipes_and_come_back() -> None:
    from .test_groups import kernels

    p = program(
        kernels(
            """
m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
pl.tpush_to_aiv(m, split=0)
""",
            """
a = pl.load(src, [0, 0], [16, 16])
v = pl.tile.set_validshape(a, 5, 16)
pl.tpush_to_aic(v, split=0)
b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
dst = pl.store(b, [0, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    space_of(p)["main"](src, dst)
    assert torch.equal(dst[:5], src[:5])
    assert (dst[5:] == SENTINEL).all()


@pytest.mark.parametrize(("valid", "stride"), [(5, 3), (13, 7), (10, 5)])
def test_ragged_rows_over_two_lanes(valid: int, stride: int) -> None:
    """Every valid row arrives in one of the lanes, and no padding is stored."""
    from .test_groups import kernels

    split = 3 if valid % 2 else 1
    p = program(
        kernels(
            f"""
t = pl.load(src, [0, 0], [16, 16], valid_shape=[{valid}, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(t, split={split}, lane_stride={stride})
""",
            f"""
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={split}, lane_stride={stride})
c = pl.add(b, 0.0)
dst = pl.store(c, [lane * {stride}, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    space_of(p)["main"](src, dst)
    assert torch.equal(dst[:valid], src[:valid])
    assert (dst[valid:] == SENTINEL).all()
