"""What one lane of a split kernel stores and the other lane touches is refused; the same cells in both places work."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir

from pytest_pypto.pypto.device import DeviceSettings, run_artifact

TEXT = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(
        self,
        a: pl.Tensor[[64, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        p: pl.InOut[pl.Tensor[[128, 32], pl.FP32]],
        o: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.{mode})]):
            m = pl.matmul(a, b, out_dtype=pl.FP32)
{body}
        return o
"""
STORE = "p = pl.assemble(p, pl.add(m, 1.0), [{at}, 0])"
LOAD = "s = pl.slice(p, [{rows}, 32], [{at}, 0])"
USE = "o = pl.assemble(o, pl.mul(s, 2.0), [{at}, 0])"


def program(*lines: str, mode: str = "UP_DOWN") -> ir.Program:
    return pl.parse(TEXT.format(body="\n".join(f"            {line}" for line in lines), mode=mode), "user.py")


REFUSED = {
    "loaded after the store": [STORE.format(at=0), LOAD.format(rows=32, at=24), USE.format(at=0)],
    "half a lane further": [STORE.format(at=0), LOAD.format(rows=64, at=16), USE.format(at=0)],
    "stored after the load": [LOAD.format(rows=32, at=24), USE.format(at=0), STORE.format(at=0)],
    "stored twice": [STORE.format(at=0), STORE.format(at=16), "s = m", USE.format(at=0)],
    "in one turn of a loop": [
        "for i in pl.range(2):",
        "    " + STORE.format(at="i * 64"),
        "    " + LOAD.format(rows=32, at="i * 64 + 24"),
        "    " + USE.format(at="i * 32"),
    ],
    "at a run-time place": [STORE.format(at="n"), LOAD.format(rows=32, at="n + 24"), USE.format(at=0)],
}
ACCEPTED = {
    "the same cells": [STORE.format(at=0), LOAD.format(rows=64, at=0), USE.format(at=0)],
    "inside of one lane": [STORE.format(at=0), LOAD.format(rows=32, at=16), USE.format(at=0)],
    "elsewhere": [STORE.format(at=0), LOAD.format(rows=64, at=64), USE.format(at=0)],
    "stored side by side": [STORE.format(at=0), STORE.format(at=64), "s = m", USE.format(at=0)],
    "in different arms": [
        "if n > 0:",
        "    " + STORE.format(at=0),
        "else:",
        "    " + LOAD.format(rows=32, at=24),
        "    " + USE.format(at=0),
    ],
    "met on the cube core": [
        STORE.format(at=0),
        "k = pl.matmul(pl.mul(m, 0.5), b, out_dtype=pl.FP32)",
        "o = pl.assemble(o, pl.add(k, 1.0), [64, 0])",
        LOAD.format(rows=32, at=24),
        USE.format(at=0),
    ],
    "only loaded": [
        LOAD.format(rows=64, at=0),
        USE.format(at=0),
        "t = pl.slice(p, [32, 32], [24, 0])",
        "o = pl.assemble(o, pl.mul(t, 2.0), [64, 0])",
    ],
}


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, platform: str, tmp_path: Path) -> None:
    with pytest.raises(
        Exception, match=r"vector lane [01] (loads|stores) a part of 'p' that lane [01] (stor|load)ed"
    ) as caught:
        ir.compile(program(*REFUSED[name]), output_dir=tmp_path, platform=platform)
    assert "user.py:" in str(caught.value)
    assert "take the split off this scope" in str(caught.value)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", [*ACCEPTED, *REFUSED])
def test_accepted(name: str, platform: str, tmp_path: Path) -> None:
    """The same numbers in every order, and no race; what is refused above works without the split."""
    lines = ACCEPTED.get(name) or REFUSED[name]
    mode = "UP_DOWN" if name in ACCEPTED else "NONE"
    compiled = ir.compile(program(*lines, mode=mode), output_dir=tmp_path, platform=platform)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((64, 32), (32, 32)))
    found = []
    for order, seed in (("program", 0), ("late", 0), ("random", 1), ("random", 2), ("random", 3)):
        p, o = np.ones((128, 32), np.float32), np.zeros((128, 32), np.float32)
        settings = dataclasses.replace(DeviceSettings.strict(), order=order, seed=seed)
        result = run_artifact(Path(compiled.output_dir), [a, b, 0, p, o], settings)
        assert [f for f in result.findings if f.kind.value == "race" and f.severity == "error"] == []
        found.append(np.concatenate([p, o]))
    assert all(np.array_equal(found[0], each) for each in found)
