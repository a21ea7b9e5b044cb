"""Programs around kernels whose results were once wrong: run-time extents, captured values, tasks, kinds of loops."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto import ir
from pytest_pypto.pypto.debug.torch_codegen import torch_codegen

from .whole import SENTINEL, check_device, check_stages, out, program, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
X = randn(4, 64)

RUN_TIME_ROWS = """
import pypto.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[M, 16], pl.FP32], o: pl.Out[pl.Tensor[[M, 16], pl.FP32]]
    ) -> pl.Tensor[[M, 16], pl.FP32]:
        rows = pl.tensor.dim(x, 0)
        t = pl.create_tensor([rows, 16], dtype=pl.FP32)
        for i in pl.range(rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.assemble(t, pl.mul(pl.slice(x, [1, 16], [i, 0]), 2.0), [i, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.assemble(t, pl.add(pl.slice(t, [1, 16], [i, 0]), 1.0), [i, 0])
        for i in pl.range(rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.neg(pl.slice(t, [1, 16], [i, 0])), [i, 0])
        return o
"""


@PLATFORMS
def test_a_temporary_of_run_time_size_rewritten_in_a_loop(platform: str, tmp_path: Path) -> None:
    """One artifact serves every number of rows, in the oracle and on the device."""
    compiled = ir.compile(pl.parse(RUN_TIME_ROWS), output_dir=str(tmp_path), platform=platform, skip_ptoas=True)
    for rows in (7, 16):
        x, o = randn(rows, 16, seed=rows), out(rows, 16)
        compiled.validate_ir({"x": x, "o": o}, {"o": -(2 * x + 1)}, rtol=1e-5, atol=1e-5)
        assert (o == SENTINEL).all()
        compiled(x, o)
        torch.testing.assert_close(o, -(2 * x + 1))


@PLATFORMS
def test_an_operator_inside_a_yield_is_lowered_with_its_operands(platform: str) -> None:
    text = program(
        "x: [4, 64] FP32\no: [1, 64] FP32 Out",
        "a = pl.slice(x, [1, 64], [0, 0])\nfor i, (acc,) in pl.range(1, 4, init_values=(a,)):\n"
        "    r = pl.yield_(pl.add(acc, pl.slice(x, [1, 64], [i, 0])))\no = pl.assemble(o, r, [0, 0])",
    )
    check_stages(text, {"x": X, "o": out(1, 64)}, {"o": X.sum(0, keepdim=True)}, platform)


@PLATFORMS
def test_unrolled_loops_are_gone_and_parallel_ones_stay(platform: str) -> None:
    body = (
        "for i in pl.parallel(2):\n    for j in pl.unroll(2):\n"
        "        with pl.at(level=pl.Level.CORE_GROUP):\n"
        "            row = pl.slice(x, [1, 64], [i * 2 + j, 0])\n"
        "            o = pl.assemble(o, pl.add(row, 1.0), [i * 2 + j, 0])"
    )
    text = program("x: [4, 64] FP32\no: [4, 64] FP32 Out", body, plain=True)
    found = check_stages(text, {"x": X, "o": out(4, 64)}, {"o": X + 1}, platform)
    last = str(list(found.values())[-1])
    assert "pl.unroll" in str(found["frontend"])
    assert "pl.unroll" not in last
    assert "pl.parallel(2" in last


@PLATFORMS
def test_two_turns_that_write_one_row_stay_in_order(platform: str, tmp_path: Path) -> None:
    text = program(
        "x: [1, 64] FP32\no: [2, 64] FP32 Out",
        "for i in pl.range(4):\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        o = pl.assemble(o, pl.add(x, pl.cast(i, pl.FP32)), [i // 2, 0])",
        plain=True,
    )
    args = {"x": torch.zeros(1, 64), "o": out(2, 64)}
    want = {"o": torch.tensor([[1.0], [3.0]]).expand(2, 64)}
    check_stages(text, args, want, platform)
    check_device(text, args, want, platform, tmp_path)


@PLATFORMS
def test_a_variable_that_a_region_reads_and_rewrites_is_its_parameter(platform: str) -> None:
    text = program(
        "a: [4, 64] FP32\nc: [4, 64] FP32 InOut",
        "with pl.at(level=pl.Level.CORE_GROUP, name_hint='grow'):\n"
        "    c = pl.assemble(c, pl.add(pl.exp(a), c), [0, 0])",
        plain=True,
    )
    c = randn(4, 64, seed=1)
    found = check_stages(text, {"a": X, "c": c}, {"c": X.exp() + c}, platform)
    kernel = next(f for f in list(found.values())[-1].functions.values() if f.name == "grow")
    pairs = zip(kernel.params, kernel.param_directions, strict=True)
    directions = {p.name_hint.partition("__")[0]: d.name for p, d in pairs}
    assert directions == {"a": "In", "c": "InOut"}


@PLATFORMS
def test_a_peeled_first_step_may_use_the_names_of_the_loop(platform: str) -> None:
    text = program(
        "a: [32, 256] FP32\nb: [256, 32] FP32\no: [32, 32] FP32 Out",
        "ta = pl.slice(a, [32, 64], [0, 0])\ntb = pl.slice(b, [64, 32], [0, 0])\nacc = pl.matmul(ta, tb)\n"
        "for k in pl.range(1, 4):\n    ta = pl.slice(a, [32, 64], [0, k * 64])\n"
        "    tb = pl.slice(b, [64, 32], [k * 64, 0])\n    acc = pl.matmul_acc(acc, ta, tb)\n"
        "o = pl.assemble(o, acc, [0, 0])",
    )
    a, b = randn(32, 256), randn(256, 32, seed=1)
    check_stages(text, {"a": a, "b": b, "o": out(32, 32)}, {"o": a @ b}, platform)


TENSOR = "pl.Tensor[[16, 16], pl.FP32]"
TASKS = f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def inc(self, a: {TENSOR}, o: pl.Out[{TENSOR}]) -> {TENSOR}:
        return pl.store(pl.add(pl.load(a, [0, 0], [16, 16]), 1.0), [0, 0], o)
    @pl.function(type=pl.FunctionType.Inline)
    def start(self, a: {TENSOR}, m: pl.Out[{TENSOR}]) -> tuple[{TENSOR}, pl.Scalar[pl.TASK_ID]]:
        m, t = pl.submit(self.inc, a, m)
        return m, t
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: {TENSOR}, m: pl.Out[{TENSOR}], o: pl.Out[{TENSOR}]) -> {TENSOR}:
        with pl.manual_scope():
            m, tid = self.start(a, m)
            after = tid
            o, last = pl.submit(self.inc, m, o, deps=[after])
        return o
"""


@PLATFORMS
def test_an_alias_that_only_a_dependency_names_is_kept(platform: str, tmp_path: Path) -> None:
    a = randn(16, 16)
    args = {"a": a, "m": out(16, 16), "o": out(16, 16)}
    found = check_stages(TASKS, args, {"m": a + 1, "o": a + 2}, platform)
    text = str(list(found.values())[-1])
    assert text.count("pl.submit(self.inc") == 2
    (name,) = (line.partition("deps=[")[2].partition("]")[0] for line in text.splitlines() if "deps=[" in line)
    assert f"{name}: pl.Scalar[pl.TASK_ID] = " in text
    check_device(TASKS, args, {"m": a + 1, "o": a + 2}, platform, tmp_path)


@PLATFORMS
def test_a_packed_mask_selects_at_every_stage(platform: str) -> None:
    """The scripts check the shape of the mask, which has one bit per column."""
    text = f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: {TENSOR}, b: {TENSOR}, o: pl.Out[{TENSOR}]) -> {TENSOR}:
        x = pl.load(a, [0, 0], [16, 16])
        y = pl.load(b, [0, 0], [16, 16])
        tmp = pl.create_tile([1, 32], dtype=pl.UINT8)
        o = pl.store(pl.sel(pl.cmp(x, y, cmp_type=2), x, y, tmp), [0, 0], o)
        return o
"""
    a, b = randn(16, 16), randn(16, 16, seed=1)
    for name, node in stages(text, platform).items():
        space: dict[str, object] = {}
        exec(torch_codegen(node, check_shapes=True), space)
        o = out(16, 16)
        space["main"](a.clone(), b.clone(), o)  # type: ignore[operator]
        assert torch.equal(o, torch.minimum(a, b)), name


@PLATFORMS
@pytest.mark.parametrize("guarded", [False, True])
def test_lanes_written_inside_a_kernel_function(platform: str, guarded: bool, tmp_path: Path) -> None:
    """A region behind a branch is lowered like one at the top."""
    wide = "pl.Tensor[[64, 64], pl.FP32]"
    lines = [
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):",
        "    t = pl.load(x, [lane * 32, 0], [32, 64])",
        "    o = pl.store(pl.exp(t), [lane * 32, 0], o)",
    ]
    body = ("if 1 < 2:\n" + "\n".join(f"    {line}" for line in lines)) if guarded else "\n".join(lines)
    inner = "\n".join(f"        {line}" for line in body.split("\n"))
    text = (
        "import pypto.language as pl\n@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, x: {wide}, o: pl.Out[{wide}]) -> {wide}:\n{inner}\n        return o\n"
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, x: {wide}, o: pl.Out[{wide}]) -> {wide}:\n        o = self.k(x, o)\n        return o\n"
    )
    x = randn(64, 64)
    check_device(text, {"x": x, "o": out(64, 64)}, {"o": x.exp()}, platform, tmp_path)
