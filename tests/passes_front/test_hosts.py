"""Host programs: assembles and windows, strides, valid extents, directions, task edges, scopes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from pypto import ir
from pypto.runtime import device_settings

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.program import Program
from pytest_pypto.pypto.ir.visitor import calls_in
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes._util import PassError
from pytest_pypto.pypto.passes.context import PassContext
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager
from tests.passes_back.support import PLATFORMS as BACKENDS
from tests.passes_back.whole import check_stages, execute, out, randn, stages

PLATFORMS = pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
KERNELS = """
    @pl.function(type=pl.FunctionType.InCore)
    def inc(self, x: S, o: pl.Out[S]) -> S:
        o = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def total(self, x: S, y: S, o: pl.Out[S]) -> S:
        o = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), pl.load(y, [0, 0], [16, 16])), [0, 0], o)
        return o
"""


def host(body: str, params: str = "a: S, o: pl.Out[L]", kernels: str = KERNELS, head: str = "") -> str:
    """A program whose `main` has this body; S is a 16 x 16 tensor, L one of 32 x 32."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    text = (
        f"import pypto.language as pl\n{head}\n\n@pl.program\nclass P:{kernels}\n"
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def main(self, {params}) -> L:\n{lines}\n"
    )
    text = re.sub(r"\bS\b", "pl.Tensor[[16, 16], pl.FP32]", text)
    return re.sub(r"\bL\b", "pl.Tensor[[32, 32], pl.FP32]", text)


def calls(node: Program, name: str = "main") -> list[e.Call | e.Submit]:
    func = node.get_function(name)
    assert func is not None
    return [c for c in calls_in(func.body) if isinstance(c.op, e.GlobalVar)]


def last(found: dict[str, Program]) -> Program:
    return list(found.values())[-1]


# assembles ------------------------------------------------------------------------------------------------------


@PLATFORMS
def test_a_tensor_put_into_the_output_becomes_a_window(platform: str) -> None:
    text = host(
        "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\no = pl.assemble(o, c, [16, 0])\nreturn o"
    )
    a, want = randn(16, 16), out(32, 32)
    want[16:, :16] = a + 1
    found = check_stages(text, {"a": a, "o": out(32, 32)}, {"o": want}, platform)
    assert "assemble" not in str(last(found))
    assert "pl.tensor.slice(o__ssa_v0, [16, 16], [16, 0])" in str(last(found))


@PLATFORMS
@pytest.mark.parametrize(
    ("body", "places"),
    [
        pytest.param("o = pl.assemble(o, a, [0, 16])\nreturn o", [(0, 16, 0)], id="an argument"),
        pytest.param(
            "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\no = pl.assemble(o, c, [0, 0])\n"
            "o = pl.assemble(o, c, [16, 16])\nreturn o",
            [(0, 0, 1), (16, 16, 1)],
            id="one tensor twice",
        ),
        pytest.param(
            "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\no = pl.assemble(o, c, [0, 0])\n"
            "d = pl.create_tensor([16, 16], dtype=pl.FP32)\nd = self.inc(c, d)\n"
            "o = pl.assemble(o, d, [16, 0])\nreturn o",
            [(0, 0, 1), (16, 0, 2)],
            id="a tensor used after it was put there",
        ),
        pytest.param(
            "for i in pl.range(2):\n    c = pl.create_tensor([16, 16], dtype=pl.FP32)\n    c = self.inc(a, c)\n"
            "    o = pl.assemble(o, c, [i * 16, i * 16])\nreturn o",
            [(0, 0, 1), (16, 16, 1)],
            id="in a loop",
        ),
        pytest.param(
            "for i in pl.range(2):\n    o = pl.assemble(o, a, [i * 16, 0])\nreturn o",
            [(0, 0, 0), (16, 0, 0)],
            id="an argument in a loop",
        ),
        pytest.param(
            "w = pl.slice(o, [16, 16], [16, 16])\nw = self.inc(a, w)\no = pl.assemble(o, w, [0, 0])\nreturn o",
            [(16, 16, 1), (0, 0, 1)],
            id="a window of the same tensor",
        ),
    ],
)
def test_assembles_of_the_host_always_happen(platform: str, body: str, places: list[tuple[int, int, int]]) -> None:
    a, want = randn(16, 16), out(32, 32)
    for row, column, plus in places:
        want[row : row + 16, column : column + 16] = a + plus
    check_stages(host(body), {"a": a, "o": out(32, 32)}, {"o": want}, platform)


def test_a_large_tensor_is_copied_in_pieces() -> None:
    text = host(
        "o = pl.assemble(o, a, [0, 0])\nreturn o",
        "a: pl.Tensor[[700, 200], pl.FP32], o: pl.Out[pl.Tensor[[700, 256], pl.FP32]]",
    ).replace("-> pl.Tensor[[32, 32], pl.FP32]", "-> pl.Tensor[[700, 256], pl.FP32]")
    a, want = randn(700, 200), out(700, 256)
    want[:, :200] = a
    check_stages(text, {"a": a, "o": out(700, 256)}, {"o": want}, "a2a3sim")


# windows as arguments -------------------------------------------------------------------------------------------


@PLATFORMS
def test_kernels_are_cloned_for_different_strides(platform: str) -> None:
    text = host(
        "w = pl.slice(o, [16, 16], [0, 16])\nw = self.inc(a, w)\nc = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
        "c = self.inc(a, c)\nv = pl.slice(o, [16, 16], [16, 0])\nv = self.total(c, w, v)\nreturn o"
    )
    a, want = randn(16, 16), out(32, 32)
    want[:16, 16:] = a + 1
    want[16:, :16] = 2 * (a + 1)
    found = check_stages(text, {"a": a, "o": out(32, 32)}, {"o": want}, platform)
    names = {c.op.name for c in calls(found["OptimizeOrchTensors"])}
    assert names == {"inc", "inc_s1", "total"}
    texts = {n: str(found["OptimizeOrchTensors"].get_function(n)).split("\n")[1] for n in ("inc", "inc_s1")}
    assert sorted("stride=[32, 1]" in t for t in texts.values()) == [False, True]


def test_a_window_that_depends_on_a_branch_is_refused() -> None:
    text = host(
        "w = pl.slice(o, [16, 16], [0, 16])\nc = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
        "if n > 0:\n    w = self.inc(a, w)\nelse:\n    w = self.inc(a, c)\nc = self.inc(w, c)\nreturn o",
        "a: S, n: pl.Scalar[pl.INDEX], o: pl.Out[L]",
    )
    with pytest.raises(PassError, match=r"<string>:\d+:\d+: 'w' is a window of tensors of different strides"):
        stages(text, "a2a3sim")


# valid extents --------------------------------------------------------------------------------------------------

VALID_KERNEL = """
    @pl.function(type=pl.FunctionType.InCore)
    def inc(self, x: pl.Tensor[[16, 16], pl.FP32, pl.TensorView(valid_shape=[ROWS, COLS], layout=pl.TensorLayout.ND)],
            o: pl.Out[S]) -> S:
        o = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], o)
        return o
"""


def valid_host(body: str, valid: tuple[str, str], params: str = "a: S, n: pl.Scalar[pl.INDEX], o: pl.Out[S]") -> str:
    kernels = VALID_KERNEL.replace("ROWS", valid[0]).replace("COLS", valid[1])
    head = 'R = pl.dynamic("R")\nC = pl.dynamic("C")'
    return host(body, params, kernels, head).replace("-> pl.Tensor[[32, 32], pl.FP32]:\n        w", "-> S:\n        w")


@PLATFORMS
@pytest.mark.parametrize("n", [0, 5, 16])
def test_kernels_get_the_valid_extents_of_their_arguments(platform: str, n: int) -> None:
    body = "w = pl.slice(a, [16, 16], [0, 0], valid_shape=[n, 8])\no = self.inc(w, o)\nreturn o"
    text = valid_host(body, ("R", "C")).replace("-> S", "-> pl.Tensor[[16, 16], pl.FP32]")
    a, want = randn(16, 16), out(16, 16)
    want[:n, :8] = a[:n, :8] + 1
    found = check_stages(text, {"a": a, "n": n, "o": out(16, 16)}, {"o": want}, platform)
    (call,) = calls(last(found))
    assert [str(x) for x in call.args][:2] == ["n__ssa_v0", "8"]
    assert [d.name for d in call.attrs["arg_directions"]] == ["Scalar", "Scalar", "Input", "OutputExisting"]
    kernel = last(found).get_function("inc")
    assert kernel is not None
    assert [p.name_hint for p in kernel.params[:2]] == ["R", "C"]


@pytest.mark.parametrize(
    ("valid", "body", "message"),
    [
        (
            ("R", "R"),
            "w = pl.slice(a, [16, 16], [0, 0], valid_shape=[n, 8])\no = self.inc(w, o)\nreturn o",
            r"one symbol 'R' for the valid extents \[n\] and \[8\] of this call; use two symbols",
        ),
        (
            ("R * 2", "16"),
            "w = pl.slice(a, [16, 16], [0, 0], valid_shape=[n, 16])\no = self.inc(w, o)\nreturn o",
            r"'x' has the extent \[R \* 2\], from which 'R' cannot be told; give the extent a symbol",
        ),
    ],
)
def test_extents_that_cannot_be_told(valid: tuple[str, str], body: str, message: str) -> None:
    text = valid_host(body, valid).replace("-> S", "-> pl.Tensor[[16, 16], pl.FP32]")
    with pytest.raises(PassError, match=rf"^<string>:\d+:\d+: .*{message}"):
        stages(text, "a2a3sim")


# edges, scopes --------------------------------------------------------------------------------------------------

CHAIN = (
    "p = pl.create_tensor([16, 16], dtype=pl.FP32)\np = self.inc(a, p)\nq = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
    "q = self.inc(p, q)\nw = pl.slice(o, [16, 16], [0, 0])\nw = self.total(p, q, w)\nreturn o"
)


def derived(text: str) -> Program:
    with selected_backend(BACKENDS["a2a3sim"]), PassContext():
        manager = PassManager.get_strategy(OptimizationStrategy.Default, analyze_auto_scopes_for_deps=True)
        return manager.run_passes(parse(text))


def test_edges_of_a_straight_program_are_written_down() -> None:
    found = derived(host(CHAIN))
    edges = [[v.name_hint for v in c.attrs.get("compiler_manual_dep_edges", ())] for c in calls(found)]
    assert edges == [[], ["p__ssa_v1"], ["p__ssa_v1", "q__ssa_v1"]]
    assert "pl.scope(mode=pl.ScopeMode.MANUAL)" in str(found)
    a, want = randn(16, 16), out(32, 32)
    want[:16, :16] = (a + 1) + (a + 2)
    assert torch.allclose(execute(found, {"a": a, "o": out(32, 32)})["o"], want)


def test_programs_with_loops_leave_the_edges_to_the_runtime() -> None:
    text = host(
        "p = pl.create_tensor([16, 16], dtype=pl.FP32)\nfor i in pl.range(2):\n    p = self.inc(a, p)\n"
        "w = pl.slice(o, [16, 16], [0, 0])\nw = self.inc(p, w)\nreturn o"
    )
    found = derived(text)
    assert not [c for c in calls(found) if "compiler_manual_dep_edges" in c.attrs]
    assert "MANUAL" not in str(found)


@pytest.mark.parametrize(
    ("body", "directions"),
    [
        ("w = pl.slice(o, [16, 16], [0, 0])\nw = self.inc(a, w)\nreturn o", ["Input OutputExisting"]),
        (
            "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\nc = self.inc(a, c)\nreturn o",
            ["Input OutputExisting", "Input InOut"],
        ),
        (
            "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nfor i in pl.range(2):\n    c = self.inc(a, c)\nreturn o",
            ["Input InOut"],
        ),
        (
            "for i in pl.parallel(2):\n    w = pl.slice(o, [16, 16], [i * 16, 0])\n    w = self.inc(a, w)\nreturn o",
            ["Input OutputExisting"],
        ),
    ],
    ids=["first writer", "second writer", "sequential loop", "parallel loop"],
)
def test_directions(body: str, directions: list[str]) -> None:
    found = last(stages(host(body), "a2a3sim"))
    assert [" ".join(d.name for d in c.attrs["arg_directions"]) for c in calls(found)] == directions


ORDERED = {
    "a writer after a reader": (
        "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\nv = pl.slice(o, [16, 16], [0, 0])\n"
        "v = self.inc(c, v)\nc = self.inc(v, c)\nw = pl.slice(o, [16, 16], [16, 0])\nw = self.inc(c, w)\n"
        "d = pl.create_tensor([16, 16], dtype=pl.FP32)\nd = self.inc(a, d)\nc = self.inc(d, c)\nreturn o",
        [(0, 0, 2), (16, 0, 4)],
        [
            *("Input OutputExisting", "Input OutputExisting", "Input InOut"),
            *("InOut OutputExisting", "Input OutputExisting", "Input InOut"),
        ],
    ),
    "two windows that meet": (
        "v = pl.slice(o, [16, 16], [0, 0])\nv = self.inc(a, v)\nw = pl.slice(o, [16, 16], [8, 0])\n"
        "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\nw = self.inc(c, w)\nreturn o",
        [(0, 0, 1), (8, 0, 2)],
        ["Input OutputExisting", "Input OutputExisting", "Input InOut"],
    ),
    "two windows apart": (
        "v = pl.slice(o, [16, 16], [0, 0])\nv = self.inc(a, v)\nw = pl.slice(o, [16, 16], [16, 0])\n"
        "w = self.inc(a, w)\nreturn o",
        [(0, 0, 1), (16, 0, 1)],
        ["Input OutputExisting", "Input OutputExisting"],
    ),
    "a copied tensor that is written again": (
        "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\no = pl.assemble(o, c, [0, 0])\n"
        "d = pl.create_tensor([16, 16], dtype=pl.FP32)\nd = self.inc(a, d)\nc = self.inc(d, c)\n"
        "o = pl.assemble(o, c, [16, 0])\nreturn o",
        [(0, 0, 1), (16, 0, 2)],
        None,
    ),
    "in a loop": (
        "c = pl.create_tensor([16, 16], dtype=pl.FP32)\nc = self.inc(a, c)\nfor i in pl.range(2):\n"
        "    v = pl.slice(o, [16, 16], [i * 16, 0])\n    v = self.inc(c, v)\n"
        "    d = pl.create_tensor([16, 16], dtype=pl.FP32)\n    d = self.inc(a, d)\n    c = self.inc(d, c)\nreturn o",
        [(0, 0, 2), (16, 0, 3)],
        ["Input OutputExisting", "InOut InOut", "Input InOut", "Input InOut"],
    ),
}


@pytest.mark.parametrize("order", ["program", "late", "random"])
@pytest.mark.parametrize("case", ORDERED)
def test_uses_of_one_tensor_keep_their_order(case: str, order: str, tmp_path: Path) -> None:
    body, places, directions = ORDERED[case]
    compiled = ir.compile(
        parse(host(body)), platform="a2a3sim", output_dir=tmp_path, dump_passes=False, skip_ptoas=True
    )
    a, want, have = randn(16, 16), out(32, 32), out(32, 32)
    for row, column, plus in places:
        want[row : row + 16, column : column + 16] = a + plus
    for seed in range(3 if order == "random" else 1):
        with device_settings(order=order, seed=seed, sanitize={"race"}):
            compiled(a, have)
        assert torch.allclose(have, want)
    if directions is not None:
        found = last(stages(host(body), "a2a3sim"))
        assert [" ".join(d.name for d in c.attrs["arg_directions"]) for c in calls(found)] == directions


def test_an_edge_to_a_task_started_by_a_helper_survives() -> None:
    text = host(
        "p = pl.create_tensor([16, 16], dtype=pl.FP32)\np, first = start(self, a, p)\nmark = first\n"
        "w = pl.slice(o, [16, 16], [0, 0])\nw, _t = pl.submit(self.inc, p, w, deps=[mark])\nreturn o"
    ).replace("p, first = start(self, a, p)", "p, first = pl.submit(self.inc, a, p)")
    found = last(stages(text, "a2a3sim"))
    second: Any = calls(found)[1]
    assert [v.name_hint.split("__")[0] for v in second.deps] in (["mark"], ["first"])
    a, want = randn(16, 16), out(32, 32)
    want[:16, :16] = a + 2
    assert torch.allclose(execute(found, {"a": a, "o": out(32, 32)})["o"], want)
