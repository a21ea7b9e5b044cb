"""Dynamic extents that pass between entries and helpers, in every combination; one artifact serves every length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

M, D = pl.dynamic("M"), pl.dynamic("D")


@pl.jit.incore
def double(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    m = x.shape[0]
    for i in pl.range(0, m, 8):
        t = pl.load(x, [i, 0], [8, 32])
        y = pl.store(pl.add(t, t), [i, 0], y)
    return y


@pl.jit.incore
def triple(x: pl.Tensor[[M, 32], pl.FP32], y: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    m = x.shape[0]
    for i in pl.range(0, m, 8):
        y = pl.store(pl.mul(pl.load(x, [i, 0], [8, 32]), 3.0), [i, 0], y)
    return y


@pl.jit.inline
def through(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = double(x, y)
    return y


@pl.jit
def declared(a: pl.Tensor[[D, 32], pl.FP32], b: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor]):
    o = double(a, o)
    p = triple(b, p)
    return o, p


@pl.jit
def nested(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor]):
    o = through(a, o)
    p = triple(b, p)
    return o, p


@pl.jit
def submitted(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor]):
    o, first = pl.submit(double, a, o)
    p, _second = pl.submit(triple, b, p, deps=[first])
    return o, p


@pl.jit
def with_temporaries(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor]):
    t = pl.create_tensor(a.shape, dtype=a.dtype)
    t = triple(a, t)
    o = double(t, o)
    s = pl.create_tensor([b.shape[0], b.shape[1]], dtype=b.dtype)
    s = triple(b, s)
    p = double(s, p)
    return o, p


@pl.jit
def bound(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], p: pl.Out[pl.Tensor]):
    rows = pl.dynamic("rows")
    a.bind_dynamic(0, rows)
    o.bind_dynamic(0, rows)
    n = a.shape[0]
    for i in pl.range(0, n, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = a[i : i + 8, :]
            if t.shape[0] == 8:
                o[i : i + t.shape[0], :] = pl.mul(t, 2.0)
    p = triple(b, p)
    return o, p


KERNELS = {"declared": (2, 3), "nested": (2, 3), "submitted": (2, 3), "with_temporaries": (6, 6), "bound": (2, 3)}


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for name in KERNELS:
        globals()[name].cache_clear()


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", KERNELS)
def test_lengths(name: str, platform: str) -> None:
    kernel: Any = globals()[name]
    for m, n in ((8, 16), (24, 8), (16, 40)):
        a, b = torch.randn(m, 32), torch.randn(n, 32)
        o, p = torch.full((m, 32), -7.0), torch.full((n, 32), -7.0)
        kernel(a, b, o, p, config=RunConfig(platform=platform))
        assert torch.allclose(o, a * KERNELS[name][0])
        assert torch.allclose(p, b * KERNELS[name][1])
    assert kernel.cache_info().entries == 1
