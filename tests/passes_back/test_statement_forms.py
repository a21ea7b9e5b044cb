"""Loops that fall, `elif` with results, tuples of values: every stage and the device against torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pytest_pypto.pypto.codegen.errors import CodegenError
from pytest_pypto.pypto.passes._util import PassError

from .whole import check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
Inputs = dict[str, torch.Tensor]


def check(text: str, inputs: Inputs, want: torch.Tensor, platform: str, folder: Path) -> None:
    inputs = inputs | {"o": out(*want.shape)}
    check_stages(text, inputs, {"o": want}, platform)
    check_device(text, inputs, {"o": want}, platform, folder)


def number(n: int) -> torch.Tensor:
    return torch.tensor([n], dtype=torch.int32)


# loops ---------------------------------------------------------------------------------------------------------------


@PLATFORMS
@pytest.mark.parametrize("kind", ["range(5, -1, -1)", "range(5, -1, -2)", "range(5, 0, -3)", "range(2, 5, -1)"])
def test_falling_loop(kind: str, platform: str, tmp_path: Path) -> None:
    body = f"""
for i in pl.{kind}:
    o = pl.assemble(o, pl.add(pl.slice(x, [1, 16], [i, 0]), pl.cast(i, pl.FP32)), [5 - i, 0])"""
    x, want = randn(6, 16), out(6, 16)
    for i in eval(kind):
        want[5 - i] = x[i] + i
    check(program("x: [6, 16] FP32\no: [6, 16] FP32 Out", body), {"x": x}, want, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("start", [5, 4, 0, -1])
def test_falling_loop_from_a_run_time_start(start: int, platform: str, tmp_path: Path) -> None:
    body = """
s = pl.read(c, [0])
for i in pl.range(s, -1, -2):
    o = pl.assemble(o, pl.add(pl.slice(x, [1, 16], [i, 0]), 1.0), [i, 0])"""
    x, want = randn(6, 16), out(6, 16)
    for i in range(start, -1, -2):
        want[i] = x[i] + 1
    text = program("x: [6, 16] FP32\nc: [1] INT32\no: [6, 16] FP32 Out", body)
    check(text, {"x": x, "c": number(start)}, want, platform, tmp_path)


@PLATFORMS
def test_falling_loop_with_carried_values(platform: str, tmp_path: Path) -> None:
    body = """
acc = pl.slice(x, [1, 16], [5, 0])
k = pl.const(0, pl.INDEX)
for i in pl.range(4, -1, -1):
    acc = pl.sub(pl.slice(x, [1, 16], [i, 0]), acc)
    k = k + i
o = pl.assemble(o, pl.add(acc, pl.cast(k, pl.FP32)), [0, 0])"""
    x = randn(6, 16)
    acc = x[5:6]
    for i in range(4, -1, -1):
        acc = x[i : i + 1] - acc
    check(program("x: [6, 16] FP32\no: [1, 16] FP32 Out", body), {"x": x}, acc + 10, platform, tmp_path)


@PLATFORMS
@pytest.mark.parametrize("step", [1, 2, 7, -1, -2, -7])
def test_loop_with_a_run_time_step(step: int, platform: str, tmp_path: Path) -> None:
    """Both directions with one text: the bounds are run-time values too."""
    body = """
s = pl.read(c, [0])
first = pl.max(s * -5, 0) // pl.max(s * -1, 1)
last = pl.max(pl.min(s * 6, 6), -1)
acc = pl.slice(x, [1, 16], [0, 0])
for i in pl.range(first, last, s):
    acc = pl.add(acc, pl.slice(x, [1, 16], [i, 0]))
    o = pl.assemble(o, pl.add(acc, pl.cast(i, pl.FP32)), [i, 0])"""
    x, want = randn(6, 16), out(6, 16)
    first, last = max(-5 * step, 0) // max(-step, 1), max(min(6 * step, 6), -1)
    acc = x[0]
    for i in range(first, last, step):
        acc = acc + x[i]
        want[i] = acc + i
    text = program("x: [6, 16] FP32\nc: [1] INT32\no: [6, 16] FP32 Out", body)
    check(text, {"x": x, "c": number(step)}, want, platform, tmp_path)


def test_step_that_is_zero_at_run_time(tmp_path: Path) -> None:
    text = program(
        "c: [1] INT32\no: [1, 16] FP32 Out",
        "s = pl.read(c, [0])\nfor i in pl.range(0, 3, s):\n    "
        "o = pl.assemble(o, pl.full([1, 16], dtype=pl.FP32, value=1.0), [0, 0])",
    )
    with pytest.raises(Exception, match="step of a loop must be positive, got 0"):
        check_device(text, {"c": number(0), "o": out(1, 16)}, {}, "a2a3sim", tmp_path)


# branches ------------------------------------------------------------------------------------------------------------


@PLATFORMS
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_elif_with_results(n: int, platform: str, tmp_path: Path) -> None:
    body = """
n = pl.read(c, [0])
if n > 3:
    y = pl.yield_(pl.add(x, 1.0))
elif n > 2:
    y = pl.yield_(pl.add(x, 2.0))
elif n > 1:
    y = pl.yield_(pl.add(x, 3.0))
else:
    y = pl.yield_(pl.add(x, 4.0))
o = pl.assemble(o, y, [0, 0])"""
    x = randn(8, 16)
    text = program("x: [8, 16] FP32\nc: [1] INT32\no: [8, 16] FP32 Out", body)
    check(text, {"x": x, "c": number(n)}, x + 5 - n, platform, tmp_path)


@PLATFORMS
def test_elif_with_two_results(platform: str, tmp_path: Path) -> None:
    body = """
n = pl.read(c, [0])
if n > 2:
    y, k = pl.yield_(pl.add(x, 1.0), n)
elif n > 1:
    y, k = pl.yield_(pl.add(x, 2.0), n + 1)
else:
    y, k = pl.yield_(pl.add(x, 3.0), n + 2)
o = pl.assemble(o, pl.add(y, pl.cast(k, pl.FP32)), [0, 0])"""
    x = randn(8, 16)
    text = program("x: [8, 16] FP32\nc: [1] INT32\no: [8, 16] FP32 Out", body)
    for n in (1, 2, 3):
        check(text, {"x": x, "c": number(n)}, x + (4 - n) + 3, platform, tmp_path / str(n))


def test_different_names() -> None:
    body = """
n = pl.read(c, [0])
if n > 2:
    y = pl.yield_(pl.add(x, 1.0))
else:
    z = pl.yield_(pl.add(x, 3.0))
o = pl.assemble(o, y, [0, 0])"""
    text = program("x: [8, 16] FP32\nc: [1] INT32\no: [8, 16] FP32 Out", body)
    with pytest.raises(PassError, match=r":10:.*results y, z.*first branch yields 1"):
        stages(text, "a2a3sim")


def test_branch_without_a_yield() -> None:
    body = "n = pl.read(c, [0])\nif n > 2:\n    y = pl.yield_(pl.add(x, 1.0))\no = pl.assemble(o, y, [0, 0])"
    text = program("x: [8, 16] FP32\nc: [1] INT32\no: [8, 16] FP32 Out", body)
    with pytest.raises(PassError, match=r":9:.*results y.*else branch yields nothing"):
        stages(text, "a2a3sim")


KERNEL = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INT32], x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        t = pl.load(x, [0, 0], [8, 16])
        if n > 2:
            return pl.store(t, [0, 0], o)
        {rest}

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INT32], x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        o = self.k(n, x, o)
        return o
"""


def test_early_return_of_a_kernel(tmp_path: Path) -> None:
    """What stands behind it would run all the same."""
    text = KERNEL.format(rest="return pl.store(pl.add(t, 1.0), [0, 0], o)")
    with pytest.raises(CodegenError, match=r":9:.*return is only possible at the end"):
        check_device(text, {"n": 3, "x": randn(8, 16), "o": out(8, 16)}, {}, "a2a3sim", tmp_path)


# extents -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "body", "line"),
    [
        ("[0, 16]", "o = pl.assemble(o, pl.add(x, 1.0), [0, 0])", 6),
        ("[8, 16]", "t = pl.slice(x, [0, 16], [0, 0])\no = pl.assemble(o, pl.add(t, 1.0), [0, 0])", 8),
        ("[8, 16]", "t = pl.load(x, [0, 0], [0, 16])\no = pl.store(pl.add(t, 1.0), [0, 0], o)", 8),
        ("[8, 16]", "t = pl.full([0, 16], dtype=pl.FP32, value=0.0)\no = pl.assemble(o, t, [0, 0])", 8),
        ("[8, 16]", "t = pl.create_tensor([8, 0], dtype=pl.FP32)\no = pl.assemble(o, t, [0, 0])", 8),
    ],
)
def test_extent_zero(shape: str, body: str, line: int) -> None:
    with pytest.raises(PassError, match=rf":{line}:.*\[(0, 16|8, 0)\].*extent 0"):
        stages(program(f"x: {shape} FP32\no: [8, 16] FP32 Out", body), "a2a3sim")


# tuples --------------------------------------------------------------------------------------------------------------


PAIR = "x: [8, 16] FP32\nz: [8, 16] FP32\no: [8, 16] FP32 Out"


@PLATFORMS
def test_several_values_at_once(platform: str, tmp_path: Path) -> None:
    body = """
ta, tb = pl.load(x, [0, 0], [8, 16]), pl.load(z, [0, 0], [8, 16])
o = pl.store(pl.sub(ta, tb), [0, 0], o)"""
    x, z = randn(8, 16), randn(8, 16, seed=1)
    found = stages(program(PAIR, body), platform)
    assert "_tuple_tmp" not in str(found["FlattenCallExpr"])
    check(program(PAIR, body), {"x": x, "z": z}, x - z, platform, tmp_path)


@PLATFORMS
def test_exchange(platform: str, tmp_path: Path) -> None:
    body = """
ta, tb = pl.add(x, 1.0), pl.add(z, 2.0)
for i in pl.range(3):
    ta, tb = tb, pl.add(ta, tb)
ta, tb = tb, ta
o = pl.assemble(o, pl.sub(ta, tb), [0, 0])"""
    x, z = randn(8, 16), randn(8, 16, seed=1)
    a, b = x + 1, z + 2
    for _ in range(3):
        a, b = b, a + b
    check(program(PAIR, body), {"x": x, "z": z}, b - a, platform, tmp_path)


@PLATFORMS
def test_items_used_later(platform: str, tmp_path: Path) -> None:
    body = """
t = (pl.add(x, 1.0), pl.add(z, 2.0))
u = pl.mul(x, 3.0)
o = pl.assemble(o, pl.sub(pl.add(t[0], t[0]), pl.add(t[1], u)), [0, 0])"""
    x, z = randn(8, 16), randn(8, 16, seed=1)
    check(program(PAIR, body), {"x": x, "z": z}, 2 * (x + 1) - (z + 2 + 3 * x), platform, tmp_path)


# scalars on the right ------------------------------------------------------------------------------------------------


@PLATFORMS
@pytest.mark.parametrize(
    ("call", "want"),
    [
        ("div(t, 2.5)", lambda x: x / 2.5),
        ("div(t, 2.5, high_precision=False)", lambda x: x / 2.5),
        ("add(t, 2.5)", lambda x: x + 2.5),
        ("sub(t, 2.5)", lambda x: x - 2.5),
        ("mul(t, 2.5)", lambda x: x * 2.5),
        ("maximum(t, 0.1)", lambda x: x.clamp(min=0.1)),
        ("minimum(t, 0.1)", lambda x: x.clamp(max=0.1)),
        ("fmod(t, 0.3)", lambda x: torch.fmod(x, 0.3)),
    ],
)
@pytest.mark.parametrize("where", ["", "tensor.", "tile."])
def test_scalar_on_the_right(where: str, call: str, want: object, platform: str, tmp_path: Path) -> None:
    head = "t = pl.load(x, [0, 0], [8, 16])" if where == "tile." else "t = x"
    put = f"pl.store(pl.{where}{call}, [0, 0], o)" if where == "tile." else f"pl.assemble(o, pl.{where}{call}, [0, 0])"
    x = randn(8, 16)
    text = program("x: [8, 16] FP32\no: [8, 16] FP32 Out", f"{head}\no = {put}")
    check(text, {"x": x}, want(x), platform, tmp_path)  # type: ignore[operator]
