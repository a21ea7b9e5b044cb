"""What the front passes refuse: the text begins with the author's line, names the thing and says what to do."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto.backend import selected_backend
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes._util import PassError
from pytest_pypto.pypto.passes.manager import OptimizationStrategy, PassManager
from tests.passes_back.support import PLATFORMS

TYPES = {
    "S": "pl.Tensor[[16, 16], pl.FP32]",
    "L": "pl.Tensor[[32, 32], pl.FP32]",
    "T3": "pl.Tensor[[4, 16, 16], pl.FP32]",
    "N": "pl.Scalar[pl.INDEX]",
}
REGION = "with pl.at(level=pl.Level.CORE_GROUP):"
KERNEL = """    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: S, o: pl.Out[S]) -> S:
        o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
        return o
"""


def source(params: str, body: str, before: str = "") -> str:
    """A program; the marked line (`# here`) is the one that the error must name."""
    for name, type_ in TYPES.items():
        params = params.replace(f": {name}", f": {type_}").replace(f"[{name}]", f"[{type_}]")
        before = before.replace(f": {name}", f": {type_}").replace(f"[{name}]", f"[{type_}]")
        before = before.replace(f"-> {name}", f"-> {type_}")
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    head = "import pypto.language as pl\n\nM = pl.dynamic('M')\n\n@pl.program\nclass P:\n"
    kind = "(type=pl.FunctionType.Orchestration)" if "pl.submit" in body else ""
    return f"{head}{before}    @pl.function{kind}\n    def main(self, {params}):\n{lines}\n"


def region(params: str, body: str, after: str = "return o") -> str:
    inner = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return source(params, f"{REGION}\n{inner}\n{after}")


CASES = {
    "inline cycle": (
        source(
            "x: S, o: pl.Out[S]",
            "y = self.f(x)\nreturn y",
            "    @pl.function(type=pl.FunctionType.Inline)\n    def f(self, x: S) -> S:\n        y = self.g(x)\n"
            "        return y\n"
            "    @pl.function(type=pl.FunctionType.Inline)\n    def g(self, x: S) -> S:\n"
            "        y = self.f(x)  # here\n        return y\n",
        ),
        "call each other in a cycle: .*break the cycle",
    ),
    "break out of a region": (
        source(
            "x: S, n: N, o: pl.Out[S]",
            f"for i in pl.range(4):\n    {REGION}\n        o = pl.assemble(o, x, [0, 0])\n        if i > n:\n"
            "            break  # here\nreturn o",
        ),
        "'break' leaves the device region it stands in; decide in the host loop",
    ),
    "a loop with break and a step from outside": (
        region(
            "x: S, n: N, o: pl.Out[S]",
            "for i in pl.range(0, 9, n):  # here\n    if i > 4:\n        break\n    o = pl.assemble(o, x, [0, 0])",
        ),
        "a loop with break needs a constant step that is not 0, got n; write the number",
    ),
    "no value": (
        region("x: S, n: N, o: pl.Out[S]", "if n > 0:\n    t = pl.exp(x)\no = pl.assemble(o, t, [0, 0])  # here"),
        "'t' has no value here: .*give it a value before the branch",
    ),
    "a tile leaves its region": (
        source(
            "x: S, o: pl.Out[S]",
            f"{REGION}\n    t = pl.load(x, [0, 0], [16, 16])  # here\n"
            f"{REGION}\n    o = pl.store(t, [0, 0], o)\nreturn o",
        ),
        "tile 't' is made in a device region and used outside of it; store it to a tensor",
    ),
    "a value computed on the core leaves its region": (
        source(
            "x: S, o: pl.Out[S]",
            f"{REGION}\n    v = pl.read(x, [0, 0])  # here\n    o = pl.assemble(o, x, [0, 0])\nw = v\n{REGION}\n"
            "    o = pl.assemble(o, pl.add(x, w), [0, 0])\nreturn o",
        ),
        "'v' is computed in a device region and used outside of it; .*compute it before the region",
    ),
    "a level of several chips": (
        source(
            "x: S, o: pl.Out[S]",
            "with pl.at(level=pl.Level.CLUSTER_0):  # here\n    o = self.k(x, o)\nreturn o",
            KERNEL,
        ),
        "level CLUSTER_0 needs several chips, which this compiler does not drive; use pl.Level.CHIP or below",
    ),
    "a tile parameter": (
        source(
            "x: S, o: pl.Out[S]",
            "return o",
            "    @pl.function(type=pl.FunctionType.InCore)\n"
            "    def k(self, t: pl.Tile[[16, 16], pl.FP32], o: pl.Out[S]) -> S:  # here\n"
            "        o = pl.store(t, [0, 0], o)\n        return o\n",
        ),
        "parameter 't' of kernel 'k' is a tile; kernels take tensors and scalars: pass the tensor and load it",
    ),
    "a dynamic tile": (
        region("x: pl.Tensor[[M, 16], pl.FP32], o: pl.Out[S]", "t = pl.exp(x)  # here\no = pl.assemble(o, t, [0, 0])"),
        r"a kernel cannot load 'x' as a tile of shape \[M, 16\]: a tile needs constant extents; cut it with pl.slice",
    ),
    "a reduction of an outer axis": (
        region(
            "x: T3, o: pl.Out[pl.Tensor[[1, 16, 16], pl.FP32]]",
            "t = pl.tensor.row_sum(x, axis=0)  # here\no = pl.assemble(o, t, [0, 0, 0])",
        ),
        "tensor.row_sum reduces axis 0 of rank 3; kernels reduce one of the last two axes",
    ),
    "rows and columns repeated at once": (
        region(
            "x: pl.Tensor[[1, 16, 1], pl.FP32], y: T3, o: pl.Out[T3]",
            "o = pl.assemble(o, pl.add(x, y), [0, 0, 0])  # here",
        ),
        r"tensor.add cannot repeat .*; reshape the operands or loop over the outer axis",
    ),
    "a transpose of the batch": (
        region(
            "x: T3, o: pl.Out[pl.Tensor[[16, 4, 16], pl.FP32]]",
            "t = pl.transpose(pl.exp(x), 0, 1)  # here\no = pl.assemble(o, t, [0, 0, 0])",
        ),
        "swaps axes 0 and 1 of .*; in a kernel only the last two axes can be swapped",
    ),
    "elements and tiles of one tensor": (
        region("x: S, o: pl.Out[S]", "o = pl.assemble(o, x, [0, 0])\npl.write(o, [0, 0], 1.0)  # here"),
        "'o' is written by whole tiles and by pl.write in one kernel; .*before it is stored",
    ),
    "a task id in a parallel loop": (
        source(
            "x: S, n: N, o: pl.Out[S]",
            "last = pl.system.task_invalid()\nfor i in pl.parallel(n):  # here\n"
            "    o, last = pl.submit(self.k, x, o, deps=[last])\nreturn o",
            KERNEL,
        ),
        "a pl.parallel loop that carries task ids needs constant bounds",
    ),
    "a factor that is too large": (
        source(
            "x: S, o: pl.Out[S]",
            "return o",
            "    @pl.function(type=pl.FunctionType.InCore)\n"
            "    def k(self, x: pl.Tensor[[256, 256], pl.FP32], o: pl.Out[pl.Tensor[[256, 256], pl.FP32]]):\n"
            "        m = pl.load(x, [0, 0], [256, 256], target_memory=pl.Mem.Mat)\n"
            "        a = pl.move(m, target_memory=pl.Mem.Left)\n"
            "        o = pl.store(pl.matmul(a, m), [0, 0], o)  # here\n        return o\n",
        ),
        r"left operand 'a' is already in Left \(L0A\) with shape \[256, 256\]",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refusals_name_the_line_and_the_way_out(case: str) -> None:
    text, message = CASES[case]
    program = parse(text)
    (line,) = (i for i, content in enumerate(text.split("\n"), 1) if "# here" in content)
    with selected_backend(PLATFORMS["a2a3sim"]), pytest.raises(PassError, match=message) as caught:
        PassManager.get_strategy(OptimizationStrategy.Default).run_passes(program)
    assert str(caught.value).startswith(f"<string>:{line}:")
    assert caught.value.span.begin_line == line
    assert "__" not in str(caught.value).replace("__init__", "")
