"""Memories that are too small: the error says what fills them, where, and what to change."""

from __future__ import annotations

import re

import pytest

from pytest_pypto.pypto.passes._util import PassError
from pytest_pypto.pypto.passes.context import MemoryPlanner
from tests.kit import KIT, needs_kit

from .support import PLATFORMS, kernel, run_passes
from .whole import program, stages

PLANNERS = pytest.mark.parametrize("planner", [MemoryPlanner.PYPTO, MemoryPlanner.DSA_RP], ids=lambda p: p.name)
LIMITS = {"a2a3sim": 188416, "a5sim": 245760}
BIG = program(
    "x: [256, 256] FP32\ny: [256, 256] FP32\no: [256, 256] FP32 Out",
    "small = pl.slice(x, [8, 8], [0, 0])\no = pl.assemble(o, pl.mul(small, 2.0), [0, 0])\n"
    "t = pl.add(x, y)\no = pl.assemble(o, t, [0, 0])",
)


def refused(text: str, platform: str, planner: MemoryPlanner = MemoryPlanner.PYPTO) -> PassError:
    with pytest.raises(PassError) as caught:
        stages(text, platform, planner)
    return caught.value


@pytest.mark.parametrize("platform", PLATFORMS)
@PLANNERS
def test_vector_memory(platform: str, planner: MemoryPlanner) -> None:
    error = refused(BIG, platform, planner)
    lines = str(error).split("\n")
    assert re.fullmatch(
        rf"Vec buffer usage \(\d+ bytes\) exceeds platform limit \({LIMITS[platform]} bytes\)", lines[0]
    )
    assert lines[1].startswith("in function 'main_incore_0', what fills Vec:")
    assert lines[2].strip().startswith("262144 bytes  [256, 256] fp32 'x'")
    assert "Nearest fix: work on 'x' [256, 256] fp32 in smaller boxes" in lines[-1]
    assert lines[-1].endswith(f"{error.span}]")
    assert (error.span.begin_line, error.span.begin_column) == (10, 17), "where `x`, which is loaded whole, is used"
    assert "__" not in str(error)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("t = pl.exp(w)\no = pl.assemble(o, t, [0, 0])", (8, 17)),
        ("for i in pl.range(2):\n    t = pl.mul(pl.exp(w), 2.0)\n    o = pl.assemble(o, t, [0, 0])", (9, 28)),
        ("if n > 1:\n    o = pl.assemble(o, pl.add(w, w), [0, 0])", (9, 36)),
        ("t = pl.matmul(w, w)\no = pl.assemble(o, t, [0, 0])", (8, 13)),
    ],
)
def test_loads_that_the_author_did_not_write_are_where_the_tensor_is_used(
    body: str, place: tuple[int, int], platform: str
) -> None:
    text = program("w: [512, 512] FP32\nc: [1] INT32\no: [512, 512] FP32 Out", body)
    if "n >" in body:
        text, place = text.replace("if n >", "n = pl.read(c, [0])\n            if n >"), (place[0] + 1, place[1])
    error = refused(text, platform)
    assert (error.span.begin_line, error.span.begin_column) == place
    assert "fp32 'w'" in str(error)
    assert "__" not in str(error)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_cube_memory(platform: str) -> None:
    big = "[1024, 1024]"
    body = f"""
m: pl.Tile[{big}, pl.FP32, pl.Mem.Mat] = pl.tile.load(x, [0, 0], {big}, {big}, target_memory=pl.Mem.Mat)
l: pl.Tile[[16, 16], pl.FP32, pl.Mem.Left] = pl.tile.extract(m, 0, 0, [16, 16], target_memory=pl.Mem.Left)
return x
"""
    shape = "pl.Tensor[[1024, 1024], pl.FP32]"
    node = kernel(body, f"x: {shape}", kind="AIC", returns=shape)
    with pytest.raises(PassError, match=r"Mat buffer usage \(4194304 bytes\) exceeds platform limit \(524288 bytes\)"):
        run_passes(node, "InitMemRef", "AllocateMemoryAddr", platform)


def test_rings_count() -> None:
    """The slots of a pipe lie in the same memory; the error says so and how to need less."""
    text = program(
        "a: [128, 64] FP32\nb: [64, 256] FP32\no: [128, 256] FP32 Out",
        "m = pl.matmul(a, b)\no = pl.assemble(o, pl.exp(m), [0, 0])",
    )
    error = str(refused(text, "a5sim"))
    assert "reserved for pipes" in error
    assert "pl.cross_core_slot" in error
    assert "262144 bytes  reserved" in error


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_fits_after_reuse_is_accepted(platform: str) -> None:
    """Three tiles of a third of the memory each, of which two live at once."""
    steps = "\n".join(f"t = pl.mul(t, {k}.0)" for k in range(2, 8))
    text = program(
        "x: [128, 120] FP32\no: [128, 120] FP32 Out", f"t = pl.add(x, 1.0)\n{steps}\no = pl.assemble(o, t, [0, 0])"
    )
    stages(text, platform)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_tails_fit_into_a_freed_panel(platform: str) -> None:
    """A panel of 128 KiB dies; two halves follow and take its place."""
    body = """
p: pl.Tile[[128, 256], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [128, 256], [128, 256], target_memory=pl.Mem.Vec)
y1: pl.Tensor[[128, 256], pl.FP32] = pl.tile.store(p, [0, 0], y)
a: pl.Tile[[64, 256], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [0, 0], [64, 256], [64, 256], target_memory=pl.Mem.Vec)
b: pl.Tile[[64, 256], pl.FP32, pl.Mem.Vec] = pl.tile.load(x, [64, 0], [64, 256], [64, 256], target_memory=pl.Mem.Vec)
y2: pl.Tensor[[128, 256], pl.FP32] = pl.tile.store(a, [64, 0], y1)
y3: pl.Tensor[[128, 256], pl.FP32] = pl.tile.store(b, [0, 0], y2)
return y3
"""
    shape = "pl.Tensor[[128, 256], pl.FP32]"
    node = kernel(body, f"x: {shape}, y: pl.Out[{shape}]", kind="AIV", returns=shape)
    run_passes(node, "InitMemRef", "AllocateMemoryAddr", platform)
    placed = run_passes(node, "InitMemRef", "AllocateMemoryAddr", platform, memory_planner=MemoryPlanner.DSA_RP)
    ends = [
        int(o) + int(n) for o, n in re.findall(r"pl\.const\((\d+), pl\.INT64\), (\d+)\), pl\.Mem\.Vec", str(placed))
    ]
    assert max(ends) == 128 * 256 * 4


@needs_kit
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vec_overflow", ("Vec", "buffer", "limit")),
        ("mat_overflow", ("Mat", "buffer", "limit")),
        ("split_reduce_ud", ("reduce", "split axis")),
    ],
)
def test_programs_that_the_reference_refuses(platform: str, name: str, words: tuple[str, ...]) -> None:
    error = str(refused((KIT / "negative" / f"{name}.py").read_text(), platform))
    for word in words:
        assert word in error
