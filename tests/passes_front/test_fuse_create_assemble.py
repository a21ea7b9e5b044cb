"""FuseCreateAssembleToSlice: what may become a window, and what must stay a copy."""

from __future__ import annotations

import pytest

from pytest_pypto.pypto import ir
from pytest_pypto.pypto.language.parser import parse
from pytest_pypto.pypto.passes._util import PassError
from pytest_pypto.pypto.passes.fuse_create_assemble_to_slice import FuseCreateAssembleToSlice

HEAD = """# pypto.program: Host
import pypto.language as pl

@pl.program
class Host:
    @pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)
    def k(x: pl.Tensor[[96, 64], pl.FP32], o: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]:
        return o
    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[96, 64], pl.FP32], o: pl.InOut[pl.Tensor[[96, 64], pl.FP32]]):
"""
CREATE = "c: pl.Tensor[[32, 64], pl.FP32] = pl.tensor.create([32, 64], dtype=pl.FP32, layout=pl.TensorLayout.ND)"
FILL = "c1: pl.Tensor[[32, 64], pl.FP32] = self.k({src}, {dst})"
PUT = "{name}: pl.Tensor[[96, 64], pl.FP32] = pl.tensor.assemble({into}, c1, [32, 0])"


def fused(*lines: str) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return ir.python_print(FuseCreateAssembleToSlice().apply(parse(HEAD + body)))


def test_a_filled_tensor_becomes_a_window():
    text = fused(CREATE, FILL.format(src="x", dst="c"), PUT.format(name="o1", into="o"), "return o1")
    assert "pl.tensor.slice(o, [32, 64], [32, 0])" in text
    assert "assemble" not in text
    assert "create" not in text
    assert text.rstrip().endswith("return o")


def test_a_carry_that_is_only_handed_through_disappears():
    text = fused(
        "for i, (oi,) in pl.range(3, init_values=(o,)):",
        f"    {CREATE}",
        f"    {FILL.format(src='x', dst='c')}",
        "    o2: pl.Tensor[[96, 64], pl.FP32] = pl.tensor.assemble(oi, c1, [i * 32, 0])",
        "    o3: pl.Tensor[[96, 64], pl.FP32] = pl.yield_(o2)",
        "return o3",
    )
    assert "pl.tensor.slice(o, [32, 64], [i * 32, 0])" in text
    assert "init_values" not in text
    assert text.rstrip().endswith("return o")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            (CREATE, FILL.format(src="o", dst="c"), PUT.format(name="o1", into="o"), "return o1"),
            id="the target is read by the kernel that fills the tensor",
        ),
        pytest.param(
            (
                CREATE,
                FILL.format(src="x", dst="c"),
                PUT.format(name="o1", into="o"),
                "s: pl.Scalar[pl.FP32] = pl.tensor.read(c1, [0, 0])",
                "return s",
            ),
            id="the tensor is read after the copy",
        ),
        pytest.param(
            (
                CREATE,
                FILL.format(src="x", dst="c"),
                PUT.format(name="o1", into="o"),
                "o2: pl.Tensor[[96, 64], pl.FP32] = pl.tensor.assemble(o1, c1, [64, 0])",
                "return o2",
            ),
            id="it is copied twice",
        ),
        pytest.param(
            (
                CREATE,
                FILL.format(src="x", dst="c"),
                "n: pl.Scalar[pl.INDEX] = pl.tensor.dim(x, 0)",
                "o1: pl.Tensor[[96, 64], pl.FP32] = pl.tensor.assemble(o, c1, [n - 32, 0])",
                "return o1",
            ),
            id="the offset is not known yet where the tensor is made",
        ),
    ],
)
def test_is_refused_unless_a_copy_was_made(lines):
    """What cannot be a window must have been copied by OptimizeOrchTensors; it is never dropped."""
    with pytest.raises(PassError, match=r"assembled in the host program .* run OptimizeOrchTensors before this pass"):
        fused(*lines)
