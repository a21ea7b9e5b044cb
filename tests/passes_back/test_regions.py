"""`for lane in pl.split_aiv(2, mode=...)`: written for the whole tile or per lane, with and without the cube core."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.language.parser.diagnostics.exceptions import ParserError

from .whole import HEAD, check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
A, B = randn(32, 64), randn(64, 64, seed=1)
PARAMS = "a: [32, 64] FP32\nb: [64, 64] FP32\no: [32, 64] FP32 Out"


def region(mode: str, *body: str) -> str:
    return "\n".join((f"for lane in pl.split_aiv(2, mode=pl.SplitMode.{mode}):", *(f"    {line}" for line in body)))


def inputs() -> dict[str, torch.Tensor]:
    return {"a": A, "b": B, "o": out(32, 64)}


@PLATFORMS
@pytest.mark.parametrize("mode", ["NONE", "UP_DOWN", "LEFT_RIGHT"])
def test_body_for_the_whole_tile(platform: str, mode: str) -> None:
    body = region(mode, "y = pl.add(m, 1.0)", "o = pl.assemble(o, y, [0, 0])")
    check_stages(program(PARAMS, f"m = pl.matmul(a, b)\n{body}"), inputs(), {"o": A @ B + 1}, platform)


@PLATFORMS
@pytest.mark.parametrize(
    ("mode", "offset"), [("NONE", "[0, 0]"), ("UP_DOWN", "[lane * 16, 0]"), ("LEFT_RIGHT", "[0, lane * 32]")]
)
def test_body_for_one_lane(platform: str, mode: str, offset: str) -> None:
    body = region(mode, "t = pl.aiv_shard(m)", f"o = pl.assemble(o, pl.add(t, 1.0), {offset})")
    check_stages(program(PARAMS, f"m = pl.matmul(a, b)\n{body}"), inputs(), {"o": A @ B + 1}, platform)


@PLATFORMS
@pytest.mark.parametrize(("mode", "offset"), [("UP_DOWN", "[lane * 9, 0]"), ("LEFT_RIGHT", "[0, lane * 8]")])
def test_shard_of_odd_extents(platform: str, mode: str, offset: str) -> None:
    """The second lane has one row or column less, and writes none more."""
    a, b = randn(17, 32), randn(32, 15, seed=1)
    body = region(mode, "t = pl.aiv_shard(m)", f"o = pl.assemble(o, pl.add(t, 1.0), {offset})")
    text = program("a: [17, 32] FP32\nb: [32, 15] FP32\no: [17, 15] FP32 Out", f"m = pl.matmul(a, b)\n{body}")
    check_stages(text, {"a": a, "b": b, "o": out(17, 15)}, {"o": a @ b + 1}, platform)


@PLATFORMS
def test_gather(platform: str) -> None:
    body = region("UP_DOWN", "t = pl.slice(a, [16, 64], [lane * 16, 0])", "g = pl.aic_gather(pl.mul(t, 2.0))")
    text = program(PARAMS, f"{body}\no = pl.assemble(o, pl.matmul(g, b), [0, 0])")
    check_stages(text, inputs(), {"o": 2 * A @ B}, platform)


@PLATFORMS
def test_shard_and_gather(platform: str) -> None:
    body = region("UP_DOWN", "t = pl.aiv_shard(m)", "g = pl.aic_gather(pl.mul(t, 2.0))")
    text = program(PARAMS, f"m = pl.matmul(a, b)\n{body}\no = pl.assemble(o, pl.matmul(g, b), [0, 0])")
    check_stages(text, inputs(), {"o": 2 * A @ B @ B}, platform, tolerance=1e-2)


@PLATFORMS
def test_regions_of_two_modes(platform: str) -> None:
    first = region("UP_DOWN", "t = pl.aiv_shard(m)", "o = pl.assemble(o, pl.add(t, 1.0), [lane * 16, 0])")
    second = region("LEFT_RIGHT", "t2 = pl.aiv_shard(n)", "q = pl.assemble(q, pl.add(t2, 2.0), [0, lane * 32])")
    text = program(f"{PARAMS}\nq: [32, 64] FP32 Out", f"m = pl.matmul(a, b)\n{first}\nn = pl.matmul(a, b)\n{second}")
    want = {"o": A @ B + 1, "q": A @ B + 2}
    check_stages(text, {**inputs(), "q": out(32, 64)}, want, platform)


@PLATFORMS
def test_lanes_that_differ(platform: str) -> None:
    body = region(
        "UP_DOWN",
        *("t = pl.aiv_shard(m)", "if lane == 0:", "    y = pl.add(t, 1.0)", "else:", "    y = pl.add(t, 2.0)"),
        "o = pl.assemble(o, y, [lane * 16, 0])",
    )
    want = A @ B + 1
    want[16:] += 1
    check_stages(program(PARAMS, f"m = pl.matmul(a, b)\n{body}"), inputs(), {"o": want}, platform)


@PLATFORMS
@pytest.mark.parametrize("mode", ["NONE", "UP_DOWN"])
def test_vector_core_alone_runs_both_lanes(platform: str, mode: str, tmp_path: Path) -> None:
    x = randn(128, 64)
    body = region(mode, "t = pl.slice(x, [64, 64], [lane * 64, 0])", "o = pl.assemble(o, pl.exp(t), [lane * 64, 0])")
    text = program("x: [128, 64] FP32\no: [128, 64] FP32 Out", body)
    args = {"x": x, "o": out(128, 64)}
    found = check_stages(text, args, {"o": x.exp()}, platform)
    assert "dual_aiv_dispatch" in str(list(found.values())[-1])
    check_device(text, args, {"o": x.exp()}, platform, tmp_path)


@PLATFORMS
def test_launch_of_lanes(platform: str, tmp_path: Path) -> None:
    """Every block runs both lanes."""
    x = randn(256, 64)
    text = (
        f"{HEAD}    def main(self, x: pl.Tensor[[256, 64], pl.FP32], o: pl.Out[pl.Tensor[[256, 64], pl.FP32]])"
        " -> pl.Tensor[[256, 64], pl.FP32]:\n        for blk in pl.spmd(2, name_hint='w'):\n"
        "            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
        "                t = pl.slice(x, [64, 64], [blk * 128 + lane * 64, 0])\n"
        "                o = pl.assemble(o, pl.exp(t), [blk * 128 + lane * 64, 0])\n        return o\n"
    )
    args = {"x": x, "o": out(256, 64)}
    check_stages(text, args, {"o": x.exp()}, platform)
    check_device(text, args, {"o": x.exp()}, platform, tmp_path)


def refused(body: str, params: str = PARAMS, split: str = "NONE") -> str:
    with pytest.raises((ValueError, ParserError)) as caught:
        stages(program(params, body, split), "a2a3sim")
    return str(caught.value)


def test_vector_work_outside_a_region() -> None:
    body = region("UP_DOWN", "t = pl.aiv_shard(m)", "o = pl.assemble(o, pl.add(t, 1.0), [lane * 16, 0])")
    error = refused(f"m = pl.matmul(a, b)\nz = pl.add(m, 1.0)\n{body}")
    assert "'m' is used on the vector core outside every pl.split_aiv region" in error
    assert "<string>:9:" in error


def test_result_of_a_region_used_by_the_cube_without_gather() -> None:
    body = region("UP_DOWN", "g = pl.mul(m, 2.0)")
    error = refused(f"m = pl.matmul(a, b)\n{body}\no = pl.assemble(o, pl.matmul(g, b), [0, 0])")
    assert "pl.aic_gather" in error


def test_region_and_split_exclude_each_other() -> None:
    body = region("UP_DOWN", "t = pl.aiv_shard(m)", "o = pl.assemble(o, pl.add(t, 1.0), [lane * 16, 0])")
    assert "split" in refused(f"m = pl.matmul(a, b)\n{body}", split="UP_DOWN")
