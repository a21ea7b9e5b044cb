"""Names that authors use again: numbered, in sibling blocks, around loops, and swapped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for kernel, _, _ in CASES.values():
        kernel.cache_clear()


@pl.jit
def numbered(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t_v1 = pl.add(a, 1.0)
        t = pl.mul(a, 2.0)
        t = pl.add(t, t_v1)
        tmp_0 = pl.add(a, 1.0)
        tmp_1 = pl.mul(a, 2.0)
        t = pl.add(t, pl.add(tmp_1, tmp_0))
        o[:] = t
    return o


@pl.jit
def siblings(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = a[i * 16 : (i + 1) * 16, :]
            o[i * 16 : (i + 1) * 16, :] = pl.add(t, 1.0)
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = a[32 + i * 8 : 40 + i * 8, :]
            o[32 + i * 8 : 40 + i * 8, :] = pl.add(t, 2.0)
    return o


@pl.jit
def peeled(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = a[:, 0:16]
        right = b[0:16, :]
        acc = pl.matmul(left, right, out_dtype=pl.FP32)
        for k in pl.range(1, 4):
            left = a[:, k * 16 : (k + 1) * 16]
            right = b[k * 16 : (k + 1) * 16, :]
            acc = pl.matmul_acc(acc, left, right)
        o[:] = acc
    return o


@pl.jit
def two_sums(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        gate = pl.full([16, 64], dtype=pl.FP32, value=0.0)
        up = pl.full([16, 64], dtype=pl.FP32, value=0.0)
        for i in pl.range(3):
            t = a[i * 16 : (i + 1) * 16, :]
            gate = pl.add(gate, t)
            up = pl.sub(up, pl.mul(t, 2.0))
        o[0:16, :] = gate
        o[16:32, :] = up
    return o


@pl.jit
def swapped(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x = pl.mul(a, 1.0)
        y = pl.mul(a, -2.0)
        for _i in pl.range(5):
            t = pl.add(x, y)
            x = y
            y = t
        o[:] = y
    return o


def _fibonacci(x: Any, y: Any) -> Any:
    for _ in range(5):
        x, y = y, x + y
    return y


A = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
LEFT, RIGHT = A[:32].half().contiguous(), A[:, :32].half().contiguous()
SUM = A[:16] + A[16:32] + A[32:48]
CASES: dict[str, tuple[Any, list[Any], Any]] = {
    "numbered, pypto#179": (numbered, [A], 6 * A + 2),
    "siblings, pypto#659": (siblings, [A], torch.cat([A[:32] + 1, A[32:] + 2])),
    "peeled, pypto-lib#567": (peeled, [LEFT, RIGHT], LEFT.float() @ RIGHT.float()),
    "two sums, pypto#598": (two_sums, [A], torch.cat([SUM, -2 * SUM])),
    "swapped": (swapped, [A], _fibonacci(A, -2 * A)),
}


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", CASES)
def test_names(name: str, platform: str) -> None:
    kernel, given, wanted = CASES[name]
    out = torch.full_like(wanted, -7.0)
    kernel(*given, out, config=RunConfig(platform=platform))
    assert torch.allclose(out, wanted, rtol=1e-3 if given[0].dtype is torch.float16 else 1e-5, atol=1e-4)
