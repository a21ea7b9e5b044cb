"""Faults that users of such oracles and compilers have met before, as small programs with the right value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle, torch_codegen
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.enums import ScopeKind
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.span import UNKNOWN, Span

from .build import Body, function, program, run, tensor
from .test_groups import kernels

SENTINEL = -7.0


def kernel(shapes: dict[str, str], body: str, kind: str = "InCore") -> Program:
    """One kernel `main`; the last parameter is the output."""
    *inputs, out = shapes.items()
    params = [f"{n}: {t}" for n, t in inputs] + [f"{out[0]}: pl.Out[{out[1]}]"]
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return program(
        f"@pl.function(type=pl.FunctionType.{kind})\n"
        f"def main(self, {', '.join(params)}) -> {out[1]}:\n{lines}\n    return {out[0]}\n"
    )


def f32(*shape: int) -> str:
    return f"pl.Tensor[[{', '.join(map(str, shape))}], pl.FP32]"


def out(*shape: int) -> torch.Tensor:
    return torch.full(shape, SENTINEL)


@dataclass(frozen=True, slots=True, eq=False)
class Unheard(s.ScopeStmt):
    """A scope of a kind that the oracle has never heard of."""

    scope_kind: ClassVar[ScopeKind] = ScopeKind.Runtime
    name_hint: str = ""
    body: s.Stmt = field(kw_only=True)
    span: Span = field(kw_only=True, default=UNKNOWN)
    attrs: dict[str, Any] = field(kw_only=True, default_factory=dict)
    leading_comments: tuple[str, ...] = ()


def test_a_new_kind_of_scope_is_walked() -> None:
    def body(b: Body, x: e.Var) -> None:
        inner = Body()
        y = inner.op("y", "tensor.adds", x, 1.0)
        b.stmts.append(Unheard(body=inner.seq()))
        b.ret(y)

    assert run(function("f", [("x", tensor((2, 2)))], body), torch.zeros(2, 2)).sum() == 4


def test_extents_known_at_run_time_only() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[M, 8], pl.FP32], o: pl.Out[pl.Tensor[[M, 8], pl.FP32]]) -> pl.Tensor[[M, 8], pl.FP32]:
    rows = pl.tensor.dim(x, 0)
    for i in pl.range(0, rows, 4):
        n = pl.min(rows - i, 4)
        t = pl.load(x, [i, 0], [4, 8], valid_shape=[n, 8])
        u = pl.exp(t)
        o = pl.store(u, [i, 0], o)
    return o
""",
        'M = pl.dynamic("M")\n',
    )
    for rows in (7, 16):
        x, o = torch.randn(rows, 8), out(rows, 8)
        run(p, x, o)
        assert torch.equal(o, x.exp())


def test_both_lanes_of_a_kernel_without_cube_run() -> None:
    p = kernel(
        {"x": f32(128, 64), "o": f32(128, 64)},
        """
pl.func_attr({"split": pl.SplitMode.UP_DOWN, "split_aiv": True})
lane = pl.tile.get_subblock_idx()
t = pl.load(x, [lane * 64, 0], [64, 64])
o = pl.store(pl.exp(t), [lane * 64, 0], o)
""",
        "AIV",
    )
    x, o = torch.randn(128, 64), out(128, 64)
    run(p, x, o)
    assert torch.equal(o, x.exp())


def test_the_cube_adds_to_memory_once_for_both_lanes() -> None:
    p = kernel(
        {"x": f32(16, 16), "y": "pl.InOut[pl.Tensor[[16, 16], pl.FP32]]", "o": f32(16, 16)},
        """
pl.func_attr({"split": pl.SplitMode.UP_DOWN, "split_aiv": True})
lane = pl.tile.get_subblock_idx()
a = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
m = pl.matmul(pl.move(a, target_memory=pl.Mem.Left), pl.move(a, target_memory=pl.Mem.Right))
y = pl.store(m, [0, 0], y, atomic=pl.AtomicType.Add)
t = pl.load(x, [lane * 8, 0], [8, 16])
o = pl.store(t, [lane * 8, 0], o, atomic=pl.AtomicType.Add)
""",
    )
    x, y, o = torch.randn(16, 16), torch.ones(16, 16), torch.ones(16, 16)
    run(p, x, y, o)
    torch.testing.assert_close(y, 1 + x @ x)
    assert torch.equal(o, 1 + x)


def test_gathering_halves_after_a_reshape() -> None:
    """The halves of a column, laid down as rows, are put together along the columns."""
    p = kernel(
        {"x": f32(16, 1), "v": f32(16, 16), "o": f32(1, 16)},
        """
with pl.at(level=pl.Level.CORE_GROUP):
    for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
        t = pl.slice(x, [8, 1], [lane * 8, 0])
        whole = pl.aic_gather(pl.reshape(t, [1, 8]))
        m = pl.matmul(whole, v)
        o = pl.assemble(o, pl.aiv_shard(m), [0, lane * 8])
""",
        "Opaque",
    )
    x, o = torch.randn(16, 1), out(1, 16)
    run(p, x, torch.eye(16), o)
    assert torch.equal(o.flatten(), x.flatten())


def test_a_scale_per_column_over_two_lanes() -> None:
    p = program(
        kernels(
            "t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\npl.tpush_to_aiv(t, split=2)",
            """
lane = pl.tile.get_subblock_idx()
row = pl.load(src, [0, 0], [1, 16])
b: pl.Tile[[16, 8], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=2)
flat = pl.reshape(row, [16])
part = pl.tile.slice(flat, [8], [lane * 8])
scale = pl.reshape(part, [1, 8])
dst = pl.store(pl.col_expand_mul(b, scale), [0, lane * 8], dst)
""",
        )
    )
    src, dst = torch.ones(16, 16), out(16, 16)
    src[0] = torch.arange(1.0, 17.0)
    run(p, src, dst)
    assert torch.equal(dst, src * src[0])


def test_a_bias_that_every_lane_needs_whole() -> None:
    p = program(
        kernels(
            "t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\npl.tpush_to_aiv(t, split=1)",
            """
lane = pl.tile.get_subblock_idx()
bias = pl.load(src, [3, 0], [1, 16])
b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
dst = pl.store(pl.col_expand_add(b, bias), [lane * 8, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    run(p, src, dst)
    assert torch.equal(dst, src + src[3])


@pytest.mark.parametrize("valid", [10, 8, 3, 16])
def test_a_run_time_extent_is_cut_per_lane(valid: int) -> None:
    """Ten of sixteen rows are eight and two, not five and five."""
    p = program(
        kernels(
            f"""
t = pl.load(src, [0, 0], [16, 16], valid_shape=[{valid}, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(t, split=1, lane_stride=8)
""",
            """
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1, lane_stride=8)
c = pl.add(b, 1.0)
dst = pl.store(c, [lane * 8, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    run(p, src, dst)
    assert torch.equal(dst[:valid], src[:valid] + 1)
    assert (dst[valid:] == SENTINEL).all()


def test_a_lane_without_data_does_nothing_and_ends() -> None:
    p = kernel(
        {"x": f32(8, 16), "o": f32(16, 8)},
        """
empty: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [8, 16], [0, 0])
turned = pl.tile.transpose(empty, 0, 1)
part = pl.tile.slice(turned, [16, 4], [0, 2])
o = pl.store(turned, [0, 0], o)
o = pl.store(part, [0, 0], o)
""",
    )
    o = out(16, 8)
    run(p, torch.ones(8, 16), o, check_shapes=False)
    assert (o == SENTINEL).all()


def test_the_directions_of_a_pipe_carry_tiles_of_different_size() -> None:
    p = program(
        kernels(
            """
m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
small = pl.tile.extract(m, 4, 0, [4, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(small, split=0)
""",
            """
a = pl.load(src, [0, 0], [16, 16])
pl.tpush_to_aic(a, split=0)
b: pl.Tile[[4, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
dst = pl.store(b, [0, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    run(p, src, dst)
    assert torch.equal(dst[:4], src[4:8])
    assert (dst[4:] == SENTINEL).all()


def test_two_branches_of_one_loop_update_two_outputs() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.InCore)
def main(self, x: pl.Tensor[[4, 8], pl.FP32], a: pl.Out[pl.Tensor[[4, 8], pl.FP32]], b: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> tuple[pl.Tensor[[4, 8], pl.FP32], pl.Tensor[[4, 8], pl.FP32]]:
    for i in pl.range(4):
        t = pl.load(x, [i, 0], [1, 8])
        if i < 2:
            a = pl.store(t, [i, 0], a)
        if i > 0:
            b = pl.store(t, [i, 0], b)
    return a, b
"""  # noqa: E501
    )
    x, a, b = torch.randn(4, 8), out(4, 8), out(4, 8)
    run(p, x, a, b)
    assert torch.equal(a[:2], x[:2])
    assert torch.equal(b[1:], x[1:])
    assert (a[2:] == SENTINEL).all()
    assert (b[:1] == SENTINEL).all()


def test_modes_of_a_split_agree_to_the_bit() -> None:
    """Integer products scaled per column, whole and in two halves."""
    results = []
    for split, cols in ((0, 16), (2, 8)):
        at = "lane * 8" if split else "0"
        p = program(
            kernels(
                f"""
t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
m = pl.matmul(pl.move(t, target_memory=pl.Mem.Left), pl.move(t, target_memory=pl.Mem.Right))
pl.tpush_to_aiv(m, split={split})
""",
                f"""
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[16, {cols}], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={split})
scale = pl.load(src, [0, {at}], [1, {cols}])
dst = pl.store(pl.col_expand_mul(b, scale), [0, {at}], dst)
""",
            )
        )
        torch.manual_seed(0)
        src, dst = torch.randint(-127, 127, (16, 16)).float(), out(16, 16)
        run(p, src, dst)
        results.append(dst)
    assert torch.equal(*results)


def test_members_of_a_group_may_have_different_parameters() -> None:
    p = program(
        """
@pl.function(type=pl.FunctionType.AIC)
def g_aic(self, src: pl.Tensor[[16, 16], pl.FP32]):
    t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
    pl.tpush_to_aiv(t, split=1)
@pl.function(type=pl.FunctionType.AIV)
def g_aiv(self, dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]], f: pl.Scalar[pl.FP32]) -> pl.Tensor[[16, 16], pl.FP32]:
    lane = pl.tile.get_subblock_idx()
    b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
    dst = pl.store(pl.mul(b, f), [lane * 8, 0], dst)
    return dst
@pl.function(type=pl.FunctionType.Group)
def g(self, src: pl.Tensor[[16, 16], pl.FP32], f: pl.Scalar[pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    self.g_aic(src)
    r = self.g_aiv(dst, f)
    return r
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, src: pl.Tensor[[16, 16], pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    dst = self.g(src, 3.0, dst)
    return dst
"""  # noqa: E501
    )
    src, dst = torch.randn(16, 16), out(16, 16)
    assert run_oracle(p, [src, dst], entry="main") is dst
    assert torch.equal(dst, 3 * src)


@pytest.mark.parametrize("valid", [50, 64, 1])
def test_the_maximum_of_negative_rows_with_few_valid_columns(valid: int) -> None:
    p = kernel(
        {"x": f32(8, 64), "o": f32(8, 1)},
        f"""
t = pl.load(x, [0, 0], [8, 64], valid_shape=[8, {valid}])
f = pl.fillpad(t, pad_value=pl.PadValue.min)
m = pl.row_max(f, pl.tile.create([8, 64], dtype=pl.FP32))
o = pl.store(m, [0, 0], o)
""",
    )
    x, o = -1 - torch.randn(8, 64).abs(), out(8, 1)
    run(p, x, o)
    assert torch.equal(o, x[:, :valid].amax(1, keepdim=True))


def test_padding_of_a_slice_over_the_edge() -> None:
    p = kernel(
        {"x": f32(10, 16), "o": f32(8, 1)},
        """
t = pl.tensor.slice(x, [8, 16], [8, 0], valid_shape=[2, 16], pad_value=pl.PadValue.min)
f = pl.tensor.fillpad(t, pad_value=pl.PadValue.min)
m = pl.tensor.row_max(f)
o = pl.tensor.assemble(o, m, [0, 0])
""",
        "Orchestration",
    )
    x, o = -1 - torch.rand(10, 16), out(8, 1)
    run(p, x, o)
    assert torch.equal(o[:2], x[8:].amax(1, keepdim=True))
    assert (o[2:] == torch.finfo(torch.float32).min).all()


def test_a_negative_offset_that_is_taken_is_an_error() -> None:
    p = kernel(
        {"x": f32(8, 8), "rank": "pl.Scalar[pl.INDEX]", "o": f32(16, 8)},
        "t = pl.load(x, [0, 0], [8, 8])\no = pl.store(t, [(rank - 1) * 8, 0], o)",
    )
    o = out(16, 8)
    with pytest.raises(IndexError, match="negative offset in"):
        run(p, torch.ones(8, 8), 0, o)
    assert (o == SENTINEL).all()


def test_a_maximum_with_a_number() -> None:
    p = kernel(
        {"x": f32(4, 4), "o": f32(4, 4)},
        "t = pl.load(x, [0, 0], [4, 4])\no = pl.store(pl.tile.maximums(t, 0.0), [0, 0], o)",
    )
    x, o = torch.randn(4, 4), out(4, 4)
    run(p, x, o)
    assert torch.equal(o, x.relu())


def test_tiles_named_like_builtins_beside_their_use() -> None:
    p = kernel(
        {"range": f32(4, 4), "n": "pl.Scalar[pl.INDEX]", "torch": f32(4, 4)},
        """
max = pl.load(range, [0, 0], [4, 4])
k = pl.max(n, 1)
for min in pl.range(k):
    max = pl.add(max, 1.0)
torch = pl.store(max, [0, 0], torch)
""",
    )
    x, o = torch.randn(4, 4), out(4, 4)
    run(p, x, 3, o)
    torch.testing.assert_close(o, x + 3)


def test_scripts_do_not_depend_on_what_ran_before() -> None:
    p = program(kernels("pl.tpush_to_aiv(pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat), split=0)", "pass"))
    first = torch_codegen(p)
    with pytest.warns(RuntimeWarning, match="left"):
        run(p, torch.zeros(16, 16), torch.zeros(16, 16))
    assert torch_codegen(p) == first
