"""Function names that cannot name files and symbols are refused at the function; other names of any script work."""

from __future__ import annotations

from pathlib import Path

import pypto.language as pl
import pytest
from pypto import ir

TEXT = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def {name}(
        self, {x}: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add({x}, 1.0), [0, 0])
        return o
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [("grün", "'grün' has 'ü'"), ("行", "'行' has '行'"), ("g" * 300, f"'{'g' * 180}' has 300 characters")],
    ids=["umlaut", "script", "long"],
)
def test_refused(tmp_path: Path, name: str, reason: str) -> None:
    program = pl.parse(TEXT.format(name=name, x="x"), "user.py")
    with pytest.raises(Exception, match="function name " + reason) as caught:
        ir.compile(program, output_dir=tmp_path, platform="a2a3sim")
    assert "user.py:7:" in str(caught.value)
    assert "use ASCII letters, digits and '_', at most 180" in str(caught.value)


@pytest.mark.parametrize(("name", "x"), [("main", "größe"), ("main", "x" * 300), ("m" * 180, "x")])
def test_accepted(tmp_path: Path, name: str, x: str) -> None:
    torch = pytest.importorskip("torch")
    compiled = ir.compile(pl.parse(TEXT.format(name=name, x=x)), output_dir=tmp_path, platform="a2a3sim")
    out = torch.zeros(16, 64)
    compiled(torch.ones(16, 64), out)
    assert bool((out == 2.0).all())
