"""Mixed kernels: group tables, lanes, transfers, deadlocks, schedules."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle, torch_codegen
from pytest_pypto.pypto.ir.enums import SplitMode

from .build import program, space_of

KERNELS = """
@pl.function(type=pl.FunctionType.AIC)
def cross_aic(self, src: pl.Tensor[[16, 16], pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
{aic}
@pl.function(type=pl.FunctionType.AIV)
def cross_aiv(self, src: pl.Tensor[[16, 16], pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
{aiv}
    return dst
@pl.function(type=pl.FunctionType.Group)
def cross(self, src: pl.Tensor[[16, 16], pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    self.cross_aic(src, dst)
    r = self.cross_aiv(src, dst)
    return r
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, src: pl.Tensor[[16, 16], pl.FP32], dst: pl.Out[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    o = self.cross(src, dst)
    return o
"""  # noqa: E501


def kernels(aic: str, aiv: str) -> str:
    """The group `cross` of two kernels, given as lines."""

    def indent(text: str) -> str:
        return "\n".join(f"    {line}" for line in text.strip().splitlines()) or "    pass"

    return KERNELS.format(aic=indent(aic), aiv=indent(aiv))


def both(split: int) -> str:
    """Vector to cube and back: every lane sends its part, the cube adds it to itself, the lanes store their parts."""
    rows, cols = {0: (16, 16), 1: (8, 16), 2: (16, 8)}[split]
    at = {0: "[0, 0]", 1: "[lane * 8, 0]", 2: "[0, lane * 8]"}[split]
    part = f"pl.Tile[[{rows}, {cols}], pl.FP32, pl.Mem.Vec]"
    return kernels(
        f"""
m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split={split})
t = pl.tile.move(m, target_memory=pl.Mem.Vec)
u = pl.add(t, t)
pl.tpush_to_aiv(u, split={split})
""",
        f"""
lane = pl.tile.get_subblock_idx()
a = pl.load(src, {at}, [{rows}, {cols}])
pl.tpush_to_aic(a, split={split})
b: {part} = pl.tpop_from_aic(split={split})
dst = pl.store(b, {at}, dst)
""",
    )


UP_DOWN_BOTH = both(1)


@pytest.mark.parametrize("split", [0, 1, 2])
def test_there_and_back(split: int) -> None:
    p = program(both(split))
    text = torch_codegen(p)
    assert "_run_group_call('cross'" in text
    assert f"'split': {split}" in text
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    out = space_of(p)["main"](src, dst)
    assert out is dst
    assert torch.equal(dst, 2 * src)


@pytest.mark.parametrize("split", [0, 1, 2])
def test_cube_to_vector(split: int) -> None:
    rows, cols = {0: (16, 16), 1: (8, 16), 2: (16, 8)}[split]
    at = {0: "[0, 0]", 1: "[lane * 8, 0]", 2: "[0, lane * 8]"}[split]
    p = program(
        kernels(
            f"t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\npl.tpush_to_aiv(t, split={split})",
            f"""
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[{rows}, {cols}], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={split})
dst = pl.store(pl.add(b, 1.0), {at}, dst)
""",
        )
    )
    src, dst = torch.arange(256.0).reshape(16, 16), torch.full((16, 16), -7.0)
    assert torch.equal(space_of(p)["main"](src, dst), src + 1)


def test_both_lanes_of_a_dual_dispatch_receive_a_copy_and_lane_zero_counts() -> None:
    text = kernels(
        """
t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(t, split=0)
m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
dst = pl.store(m, [0, 0], dst)
""",
        """
pl.func_attr({"dual_aiv_dispatch": True})
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
pl.tpush_to_aic(pl.add(b, pl.cast(lane + 1, pl.FP32)), split=0)
""",
    )
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    assert torch.equal(space_of(program(text))["main"](src, dst), src + 1)


def test_the_split_comes_from_the_transfers_then_the_group_then_the_vector_kernel() -> None:
    plain = program(kernels("pass_ = pl.tile.get_subblock_idx()", "lane = pl.tile.get_subblock_idx()"))
    assert "'split': 0" in torch_codegen(plain)
    group = plain.get_function("cross")
    aiv = plain.get_function("cross_aiv")
    assert group
    assert aiv
    rest = [f for f in plain.functions.values() if f.name not in ("cross", "cross_aiv")]
    given = plain.with_functions([*rest, group, aiv.with_(attrs={"split": SplitMode.LEFT_RIGHT})])
    assert "'split': 2" in torch_codegen(given)
    given = plain.with_functions([*rest, group.with_(attrs={"split": SplitMode.UP_DOWN}), aiv])
    assert "'split': 1" in torch_codegen(given)


def test_kernels_of_several_split_modes_are_legal_but_ambiguous_ones_are_not() -> None:
    text = kernels(
        """
t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(t, split=1)
pl.tpush_to_aiv(t, split={second})
""",
        """
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
dst = pl.store(b, [lane * 8, 0], dst, atomic=pl.AtomicType.Add)
c: pl.Tile[{shape}, pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split={second})
dst = pl.store(c, {at}, dst, atomic=pl.AtomicType.Add)
""",
    )
    legal = program(text.format(second=2, shape="[16, 8]", at="[0, lane * 8]"))
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    assert torch.equal(space_of(legal)["main"](src, dst), 2 * src)
    wrong = program(text.format(second=0, shape="[16, 16]", at="[0, 0]"))
    with pytest.raises(ValueError, match=r"Conflicting cross-core split kwargs in group cross: \[0, 1\]"):
        torch_codegen(wrong)


def test_two_pipes_of_one_direction() -> None:
    p = program(
        kernels(
            """
t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
u = pl.load(src, [0, 0], [8, 16], target_memory=pl.Mem.Mat)
pl.tpush_to_aiv(t, split=0, id=0)
pl.tpush_to_aiv(u, split=0, id=1)
""",
            """
c: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0, id=1)
b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0, id=0)
dst = pl.store(b, [0, 0], dst)
dst = pl.store(c, [8, 0], dst)
""",
        )
    )
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    assert torch.equal(space_of(p, check_shapes=True)["main"](src, dst), torch.cat([src[:8], src[:8]]))


MISSING_PUSH = kernels(
    "t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)",
    "b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\ndst = pl.store(b, [0, 0], dst)",
)
MUTUAL = kernels(
    "m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)\npl.tpush_to_aiv(m, split=0)",
    "b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)\npl.tpush_to_aic(b, split=0)",
)


@pytest.mark.parametrize("text", [MISSING_PUSH, MUTUAL], ids=["missing push", "mutual wait"])
def test_deadlocks_are_reported_at_once(text: str) -> None:
    space = space_of(program(text))
    space["_PIPE_WAIT_TIMEOUT_SEC"] = space["_MIXED_KERNEL_TIMEOUT_SEC"] = 3600.0  # no clock ends the wait
    with pytest.raises(RuntimeError, match="Mixed-kernel execution timeout for cross") as caught:
        space["main"](torch.zeros(16, 16), torch.zeros(16, 16))
    message = str(caught.value)
    assert "deadlock detected" in message
    assert "pipe_state={" in message
    assert "cross-aiv-lane0: cross_aiv waits in tpop_from_aic (split=0, lane=0) at script line" in message


def test_a_deadlock_names_the_kernel_line() -> None:
    p = program(MUTUAL)
    with pytest.raises(RuntimeError, match="deadlock") as caught:
        run_oracle(p, [torch.zeros(16, 16), torch.zeros(16, 16)])
    assert "<string>:" in str(caught.value)
    assert "pop_from_aiv(0)" in str(caught.value)


def test_after_a_failure_the_next_group_works() -> None:
    both_groups = MISSING_PUSH.replace("cross", "bad").replace("def main", "def broken") + both(1)
    space = space_of(program(both_groups))
    src, dst = torch.randn(16, 16), torch.zeros(16, 16)
    for _ in range(2):
        with pytest.raises(RuntimeError):
            space["broken"](src, dst)
        assert torch.equal(space["main"](src, dst), 2 * src)
    assert space["_get_subblock_idx"]() == 0
    assert space["_get_runtime_cancel_event"]() is None


def test_tiles_that_nobody_pops_are_reported() -> None:
    text = kernels(
        "t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\npl.tpush_to_aiv(t, split=1)\npl.tpush_to_aiv(t, split=1)",  # noqa: E501
        "b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)\n",
    )
    p = program(text)
    args = torch.zeros(16, 16), torch.zeros(16, 16)
    with pytest.warns(RuntimeWarning, match="1 left in C→V lane 0 .*1 left in C→V lane 1"):
        space_of(p)["main"](*args)
    with pytest.raises(RuntimeError, match="group cross ended with tiles in its pipes"):
        run_oracle(p, args, leftover="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_oracle(p, args, leftover="ignore")


AHEAD = kernels(
    """
pl.aic_initialize_pipe(pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=3, slot_size=1024, slot_num=2)
t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
for i in pl.range(10):
    pl.tpush_to_aiv(t, split=0)
m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
pl.tfree_to_aiv(m)
""",
    """
pl.aiv_initialize_pipe(pl.const(0, pl.INT32), pl.const(0, pl.INT32), dir_mask=3, slot_size=1024, slot_num=2)
a = pl.load(src, [0, 0], [16, 16])
{first}
for i in pl.range(10):
    b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
    dst = pl.store(b, [0, 0], dst)
    {free}
{last}
""",
)


def test_slots_run_out_in_the_bounded_mode_only() -> None:
    """Ten tiles ahead of a consumer that never frees a slot: fine with endless queues, stuck with two slots."""
    args = torch.zeros(16, 16), torch.zeros(16, 16)
    push = "pl.tpush_to_aic(a, split=0)"
    kept = program(AHEAD.format(first="", last=push, free="b2 = pl.add(b, 1.0)"))
    run_oracle(kept, args)
    with pytest.raises(RuntimeError, match=r"waits in tpush_to_aiv \(split=0, lane=0\)"):
        run_oracle(kept, args, bounded_pipes=True)
    freed = program(AHEAD.format(first="", last=push, free="pl.tfree_to_aic(b)"))
    run_oracle(freed, args, bounded_pipes=True)


def crashing(lane: str) -> str:
    return kernels(
        "m: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=1)\npl.tpush_to_aiv(m, split=1)",
        f"""
lane = pl.tile.get_subblock_idx()
a = pl.load(src, [0, 0], [8, 16])
if lane == {lane}:
    dst = pl.store(a, [lane * 8 + 12, 0], dst)
pl.tpush_to_aic(a, split=1)
""",
    )


@pytest.mark.parametrize("lane", ["0", "1"])
def test_a_lane_that_fails_cancels_its_peers(lane: str) -> None:
    space = space_of(program(crashing(lane)))
    message = rf"Mixed-kernel execution failed in cross_aiv \(lane={lane}\) for cross\n(.|\n)*IndexError: tile.store"
    space["_PIPE_WAIT_TIMEOUT_SEC"] = space["_MIXED_KERNEL_TIMEOUT_SEC"] = 3600.0  # no clock ends the wait
    with pytest.raises(RuntimeError, match=message) as caught:
        space["main"](torch.zeros(16, 16), torch.zeros(16, 16))
    assert isinstance(caught.value.__cause__, IndexError)


ORDERED = kernels(
    "t = pl.load(src, [0, 0], [16, 16], target_memory=pl.Mem.Mat)\npl.tpush_to_aiv(t, split=1)",
    """
lane = pl.tile.get_subblock_idx()
b: pl.Tile[[8, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
dst = pl.store(b, [0, 0], dst)
""",
)


def test_the_order_of_lanes_follows_the_seed_and_nothing_else() -> None:
    """Both lanes store to the same rows, so the order decides: always lane 1 last without a seed."""
    p = program(ORDERED)
    src = torch.arange(256.0).reshape(16, 16)

    def once(seed: int | None) -> bool:
        dst = torch.zeros(16, 16)
        run_oracle(p, [src, dst], schedule_seed=seed)
        return torch.equal(dst[:8], src[8:])

    assert all(once(None) for _ in range(5))
    by_seed = [once(k) for k in range(16)]
    assert [once(k) for k in range(16)] == by_seed
    assert set(by_seed) == {True, False}
    space = space_of(p)
    space["_SCHEDULE_SEED"] = by_seed.index(False)
    dst = torch.zeros(16, 16)
    space["main"](src, dst)
    assert torch.equal(dst[:8], src[:8])


def test_groups_that_map_their_arguments() -> None:
    """The kernels take other lists than the group: the calls in its body count."""
    p = program(
        """
@pl.function(type=pl.FunctionType.AIC)
def cube(self, x: pl.Tensor[[16, 16], pl.FP32]):
    t = pl.load(x, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
    pl.tpush_to_aiv(t, split=0)
@pl.function(type=pl.FunctionType.AIV)
def vector(self, row: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    b: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
    out = pl.store(b, [row, 0], out)
    return out
@pl.function(type=pl.FunctionType.Group)
def grp(self, out: pl.Out[pl.Tensor[[32, 16], pl.FP32]], x: pl.Tensor[[16, 16], pl.FP32], k: pl.Scalar[pl.INDEX]) -> pl.Tensor[[32, 16], pl.FP32]:
    self.cube(x)
    r = self.vector(k * 4, out)
    return r
@pl.function(type=pl.FunctionType.Orchestration)
def main(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[32, 16], pl.FP32]]) -> pl.Tensor[[32, 16], pl.FP32]:
    o = self.grp(out, x, 2)
    return o
"""  # noqa: E501
    )
    x, out = torch.randn(16, 16), torch.zeros(32, 16)
    assert space_of(p)["main"](x, out) is out
    assert torch.equal(out[8:24], x)


def test_groups_on_several_threads_do_not_disturb_each_other() -> None:
    space = space_of(program(both(1)))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        g = torch.Generator().manual_seed(seed)
        for _ in range(20):
            src, dst = torch.randn(16, 16, generator=g), torch.zeros(16, 16)
            if not torch.equal(space["main"](src, dst), 2 * src):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_group_call_is_cheap() -> None:
    """A call of generated lanes costs far less than starting a thread (the figure proper is in the benchmarks)."""
    space = space_of(program(kernels("pass_ = pl.tile.get_subblock_idx()", "lane = pl.tile.get_subblock_idx()")))
    args = torch.zeros(16, 16), torch.zeros(16, 16)
    space["main"](*args)
    before = threading.active_count()
    space["main"](*args)
    assert threading.active_count() == before
