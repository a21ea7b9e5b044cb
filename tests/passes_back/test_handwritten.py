"""Groups whose author wrote the cube and the vector function: pushes, pops and frees by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .support import calls, function
from .whole import check_device, check_stages, out, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
SPLIT = pytest.mark.parametrize("split", [0, 1])
TENSOR = "pl.Tensor[[64, 64], pl.FP32]"
SLOT = 64 * 64 * 4
PARAMS = {"a": f"a: {TENSOR}", "b": f"b: {TENSOR}", "o": f"o: pl.Out[{TENSOR}]"}
A, B = randn(64, 64), randn(64, 64, seed=1)

CUBE_SENDS = f"""
buf = pl.import_peer_buffer(name="c2v", peer_func="vec")
pl.aic_initialize_pipe(buf, pl.const(0, pl.INT32), dir_mask=1, slot_size={SLOT}, slot_num=2)
l = pl.move(pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
r = pl.move(pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
pl.tpush_to_aiv(pl.matmul(l, r), split=SPLIT)
"""
VECTOR_RECEIVES = f"""
buf = pl.reserve_buffer(name="c2v", size={2 * SLOT}, base=-1)
pl.aiv_initialize_pipe(buf, pl.const(0, pl.INT32), dir_mask=1, slot_size={SLOT}, slot_num=2)
m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=SPLIT)
y = pl.add(m, 1.0)
pl.tfree_to_aic(m)
return pl.store(y, [0, 0], o)
"""
CUBE_RECEIVES = f"""
buf = pl.reserve_buffer(name="v2c", size={2 * SLOT}, base=-1)
pl.aic_initialize_pipe(pl.const(0, pl.INT32), buf, dir_mask=2, slot_size={SLOT}, slot_num=2)
m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=SPLIT)
l = pl.move(m, target_memory=pl.Mem.Left)
r = pl.move(pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
pl.tfree_to_aiv(m)
return pl.store(pl.matmul(l, r), [0, 0], o)
"""
VECTOR_SENDS = f"""
buf = pl.import_peer_buffer(name="v2c", peer_func="cube")
pl.aiv_initialize_pipe(pl.const(0, pl.INT32), buf, dir_mask=2, slot_size={SLOT}, slot_num=2)
pl.tpush_to_aic(pl.mul(pl.load(a, [0, 0], [64, 64]), 2.0), split=SPLIT)
"""
CUBE_TURNS = f"""
v = pl.reserve_buffer(name="v2c", size={2 * SLOT}, base=-1)
c = pl.import_peer_buffer(name="c2v", peer_func="vec")
pl.aic_initialize_pipe(c, v, dir_mask=3, slot_size={SLOT}, slot_num=2)
r = pl.move(pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
for i in pl.range(3):
    m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=SPLIT)
    l = pl.move(m, target_memory=pl.Mem.Left)
    pl.tfree_to_aiv(m)
    pl.tpush_to_aiv(pl.matmul(l, r), split=SPLIT)
"""
VECTOR_TURNS = f"""
v = pl.import_peer_buffer(name="v2c", peer_func="cube")
c = pl.reserve_buffer(name="c2v", size={2 * SLOT}, base=-1)
pl.aiv_initialize_pipe(c, v, dir_mask=3, slot_size={SLOT}, slot_num=2)
t = pl.load(a, [0, 0], [64, 64])
for i in pl.range(3):
    pl.tpush_to_aic(pl.mul(t, 0.1), split=SPLIT)
    m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=SPLIT)
    t = pl.add(m, 1.0)
    pl.tfree_to_aic(m)
return pl.store(t, [0, 0], o)
"""
CUBE_TWO_PIPES = f"""
v = pl.reserve_buffer(name="first", size={2 * SLOT}, base=-1)
w = pl.reserve_buffer(name="second", size={2 * SLOT}, base=-1)
pl.aic_initialize_pipe(pl.const(0, pl.INT32), v, dir_mask=2, slot_size={SLOT}, slot_num=2, id=0)
pl.aic_initialize_pipe(pl.const(0, pl.INT32), w, dir_mask=2, slot_size={SLOT}, slot_num=2, id=1)
m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0, id=0)
n: pl.Tile[[64, 64], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0, id=1)
l = pl.move(m, target_memory=pl.Mem.Left)
r = pl.move(n, target_memory=pl.Mem.Right)
return pl.store(pl.matmul(l, r), [0, 0], o)
"""
VECTOR_TWO_PIPES = f"""
v = pl.import_peer_buffer(name="first", peer_func="cube")
w = pl.import_peer_buffer(name="second", peer_func="cube")
pl.aiv_initialize_pipe(pl.const(0, pl.INT32), v, dir_mask=2, slot_size={SLOT}, slot_num=2, id=0)
pl.aiv_initialize_pipe(pl.const(0, pl.INT32), w, dir_mask=2, slot_size={SLOT}, slot_num=2, id=1)
pl.tpush_to_aic(pl.mul(pl.load(b, [0, 0], [64, 64]), 3.0), split=0, id=1)
pl.tpush_to_aic(pl.mul(pl.load(a, [0, 0], [64, 64]), 2.0), split=0, id=0)
"""
CUBE_GUARDED = CUBE_SENDS.replace("pl.tpush_to_aiv(pl.matmul(l, r), split=SPLIT)", "m = pl.matmul(l, r)") + (
    "for i in pl.range(4):\n    if i % 2 == 0:\n        pl.tpush_to_aiv(m, split=SPLIT)\n"
)
VECTOR_GUARDED = f"""
buf = pl.reserve_buffer(name="c2v", size={2 * SLOT}, base=-1)
pl.aiv_initialize_pipe(buf, pl.const(0, pl.INT32), dir_mask=1, slot_size={SLOT}, slot_num=2)
acc = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
for i in pl.range(4):
    if i % 2 == 0:
        m: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=SPLIT)
        acc = pl.add(acc, m)
return pl.store(acc, [0, 0], o)
"""


def group(cube: str, vector: str, split: int = 0, cube_args: str = "a, b, o", vector_args: str = "a, b, o") -> str:
    """A program with a hand-written group; the function that returns is called last."""
    returns = "cube" if "return" in cube else "vec"
    given = {"cube": cube_args, "vec": vector_args}
    body = [f"{'r = ' if n == returns else ''}self.{n}({given[n]})" for n in ("cube", "vec")]
    parts = [
        _function("AIC", "cube", cube_args, cube, split),
        _function("AIV", "vec", vector_args, vector, split),
        _function("Group", "grp", "a, b, o", "\n".join([*body, "return r"]), 0),
        _function("Orchestration", "main", "a, b, o", "o = self.grp(a, b, o)\nreturn o", 0),
    ]
    return "import pypto.language as pl\n\n@pl.program\nclass P:\n" + "".join(parts)


def _function(kind: str, name: str, args: str, body: str, split: int) -> str:
    back = f" -> {TENSOR}" if "return" in body else ""
    params = ", ".join(PARAMS[a] for a in args.split(", "))
    lines = [*(["pl.func_attr({'split': pl.SplitMode.UP_DOWN})"] if split else []), *body.strip().split("\n")]
    text = "".join(f"        {line}\n" for line in lines).replace("SPLIT)", f"{split})")
    return f"    @pl.function(type=pl.FunctionType.{kind})\n    def {name}(self, {params}){back}:\n{text}"


def run(text: str, want: torch.Tensor, platform: str, folder: Path) -> None:
    """Every stage, then the device."""
    inputs = {"a": A, "b": B, "o": out(64, 64)}
    check_stages(text, inputs, {"o": want}, platform, tolerance=1e-2)
    check_device(text, inputs, {"o": want}, platform, folder, tolerance=1e-2)


@PLATFORMS
@SPLIT
def test_cube_to_vector(platform: str, split: int, tmp_path: Path) -> None:
    run(group(CUBE_SENDS, VECTOR_RECEIVES, split), A @ B + 1, platform, tmp_path)


@PLATFORMS
@SPLIT
def test_vector_to_cube(platform: str, split: int, tmp_path: Path) -> None:
    run(group(CUBE_RECEIVES, VECTOR_SENDS, split), 2 * A @ B, platform, tmp_path)


@PLATFORMS
@SPLIT
def test_both_directions_in_a_loop(platform: str, split: int, tmp_path: Path) -> None:
    want = A
    for _ in range(3):
        want = (0.1 * want) @ B + 1
    run(group(CUBE_TURNS, VECTOR_TURNS, split), want, platform, tmp_path)


@PLATFORMS
def test_two_pipes(platform: str, tmp_path: Path) -> None:
    """What is pushed first is popped second; the frees that were not written name the pipe they free."""
    text = group(CUBE_TWO_PIPES, VECTOR_TWO_PIPES)
    run(text, 6 * A @ B, platform, tmp_path)
    last = list(stages(text, platform).values())[-1]
    frees = calls(function(last, "cube"), "system.tfree_to_aiv")
    assert [c.kwargs.get("id") for c in frees] == [0, 1]


@PLATFORMS
def test_transfers_in_a_branch(platform: str, tmp_path: Path) -> None:
    run(group(CUBE_GUARDED, VECTOR_GUARDED), 2 * (A @ B), platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize(("cube_args", "vector_args"), [("a, b", "o"), ("a, b, o", "b, o"), ("a, b", "a, b, o")])
def test_members_with_different_arguments(platform: str, cube_args: str, vector_args: str, tmp_path: Path) -> None:
    """Both get the group's own list, so that one launch can serve both."""
    text = group(CUBE_SENDS, VECTOR_RECEIVES, 0, cube_args, vector_args)
    run(text, A @ B + 1, platform, tmp_path)
    last = list(stages(text, platform).values())[-1]
    names = [[p.name_hint.split("__")[0] for p in function(last, n).params][:3] for n in ("cube", "vec", "grp")]
    assert names == [["a", "b", "o"]] * 3


@PLATFORMS
def test_frees_that_were_not_written_are_added(platform: str) -> None:
    text = group(CUBE_SENDS, VECTOR_RECEIVES.replace("pl.tfree_to_aic(m)\n", ""), 1)
    last = list(stages(text, platform).values())[-1]
    (free,) = calls(function(last, "vec"), "system.tfree_to_aic")
    assert free.kwargs["split"] == 1


def test_early_free_is_delayed_past_the_last_use() -> None:
    early = VECTOR_RECEIVES.replace("y = pl.add(m, 1.0)\npl.tfree_to_aic(m)", "pl.tfree_to_aic(m)\ny = pl.add(m, 1.0)")
    last = list(stages(group(CUBE_SENDS, early), "a5sim").values())[-1]
    text = str(function(last, "vec"))
    assert text.index("tile.add") < text.index("tfree_to_aic")
