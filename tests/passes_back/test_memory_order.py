"""Both cores reach one tensor in global memory: a token makes the later one wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .support import calls, function
from .whole import check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
SPLITS = pytest.mark.parametrize("split", ["NONE", "UP_DOWN", "LEFT_RIGHT"])
A, B, C = randn(32, 64), randn(64, 64, seed=1), randn(32, 64, seed=2)
PARAMS = "a: [32, 64] FP32\nb: [64, 64] FP32\nc: [32, 64] FP32 InOut\nq: [32, 64] FP32 Out"


def tokens(text: str, platform: str) -> tuple[int, int]:
    """Pushes of the cube and of the vector core after ExpandMixedKernel."""
    node = stages(text, platform)["ExpandMixedKernel"]
    cube = calls(function(node, "main_incore_0_aic"), "tile.tpush_to_aiv")
    vector = calls(function(node, "main_incore_0_aiv"), "tile.tpush_to_aic")
    return len(cube), len(vector)


def check(text: str, want: dict[str, torch.Tensor], platform: str, folder: Path) -> None:
    inputs = {"a": A, "b": B, "c": C, "q": out(32, 64)}
    check_stages(text, inputs, want, platform)
    check_device(text, inputs, want, platform, folder)


@PLATFORMS
@SPLITS
def test_vector_reads_what_the_cube_stored(platform: str, split: str, tmp_path: Path) -> None:
    text = program(
        PARAMS, "m = pl.matmul(a, b)\nc = pl.assemble(c, m, [0, 0])\nq = pl.assemble(q, pl.add(c, 1.0), [0, 0])", split
    )
    assert tokens(text, platform) == (1, 0)
    check(text, {"c": A @ B, "q": A @ B + 1}, platform, tmp_path)


@PLATFORMS
@SPLITS
def test_cube_reads_what_the_vector_core_stored(platform: str, split: str, tmp_path: Path) -> None:
    text = program(
        PARAMS, "c = pl.assemble(c, pl.mul(a, 2.0), [0, 0])\nq = pl.assemble(q, pl.matmul(c, b), [0, 0])", split
    )
    assert tokens(text, platform) == (0, 1)
    check(text, {"c": 2 * A, "q": 2 * A @ B}, platform, tmp_path)


@PLATFORMS
@SPLITS
def test_cube_overwrites_what_the_vector_core_read(platform: str, split: str, tmp_path: Path) -> None:
    text = program(
        PARAMS,
        "z = pl.add(c, 1.0)\nc = pl.assemble(c, pl.matmul(a, b), [0, 0])\nq = pl.assemble(q, z, [0, 0])",
        split,
    )
    check(text, {"c": A @ B, "q": C + 1}, platform, tmp_path)


@PLATFORMS
def test_no_token_between_different_tensors(platform: str) -> None:
    text = program(PARAMS, "c = pl.assemble(c, pl.matmul(a, b), [0, 0])\nq = pl.assemble(q, pl.add(a, 1.0), [0, 0])")
    assert tokens(text, platform) == (0, 0)


LOOP_PARAMS = "a: [128, 64] FP32\nb: [64, 64] FP32\nc: [32, 64] FP32 InOut\nq: [128, 64] FP32 Out"
BIG = randn(128, 64, seed=4)


def check_loop(text: str, want: dict[str, torch.Tensor], platform: str, folder: Path) -> None:
    inputs = {"a": BIG, "b": B, "c": C, "q": out(128, 64)}
    check_stages(text, inputs, want, platform, tolerance=1e-2)
    check_device(text, inputs, want, platform, folder, tolerance=1e-2)


@PLATFORMS
@SPLITS
@pytest.mark.parametrize("loop", ["pl.range(4)", "pl.pipeline(4, stage=2)"])
def test_cube_does_not_overwrite_what_the_last_turn_still_reads(
    platform: str, split: str, loop: str, tmp_path: Path
) -> None:
    text = program(
        LOOP_PARAMS,
        f"for i in {loop}:\n    m = pl.matmul(pl.slice(a, [32, 64], [i * 32, 0]), b)\n"
        "    c = pl.assemble(c, m, [0, 0])\n    q = pl.assemble(q, pl.add(c, 1.0), [i * 32, 0])",
        split,
    )
    check_loop(text, {"c": (BIG @ B)[96:], "q": BIG @ B + 1}, platform, tmp_path)


@PLATFORMS
@SPLITS
@pytest.mark.parametrize("loop", ["pl.range(4)", "pl.pipeline(4, stage=2)"])
def test_vector_core_does_not_overwrite_what_the_last_turn_still_reads(
    platform: str, split: str, loop: str, tmp_path: Path
) -> None:
    text = program(
        LOOP_PARAMS,
        f"for i in {loop}:\n    c = pl.assemble(c, pl.mul(pl.slice(a, [32, 64], [i * 32, 0]), 2.0), [0, 0])\n"
        "    q = pl.assemble(q, pl.matmul(c, b), [i * 32, 0])",
        split,
    )
    check_loop(text, {"c": 2 * BIG[96:], "q": 2 * BIG @ B}, platform, tmp_path)


@PLATFORMS
@SPLITS
def test_reading_after_a_loop_and_a_branch_that_wrote(platform: str, split: str, tmp_path: Path) -> None:
    text = program(
        LOOP_PARAMS,
        "for i in pl.range(4):\n    q = pl.assemble(q, pl.matmul(pl.slice(a, [32, 64], [i * 32, 0]), b), [i * 32, 0])\n"
        "    if i > 1:\n        c = pl.assemble(c, pl.mul(pl.slice(a, [32, 64], [i * 32, 0]), 2.0), [0, 0])\n"
        "q = pl.assemble(q, pl.mul(pl.slice(q, [32, 64], [32, 0]), 2.0), [0, 0])\n"
        "q = pl.assemble(q, pl.matmul(c, b), [64, 0])",
        split,
    )
    want = BIG @ B
    want[:32] = 2 * want[32:64]
    want[64:96] = 2 * BIG[96:] @ B
    check_loop(text, {"q": want}, platform, tmp_path)


@PLATFORMS
def test_windows_that_move_on_need_no_token_back(platform: str) -> None:
    """Each turn has rows of its own: the vector core waits for the cube, never the other way round."""
    text = program(
        LOOP_PARAMS,
        "for i in pl.range(4):\n    r = i * 32\n"
        "    q = pl.assemble(q, pl.matmul(pl.slice(a, [32, 64], [r, 0]), b), [r, 0])\n"
        "    q = pl.assemble(q, pl.mul(pl.slice(q, [32, 64], [r, 0]), 2.0), [r, 0])",
    )
    assert tokens(text, platform) == (1, 0)
