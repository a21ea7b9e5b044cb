"""Jit functions called with tensors: compiled, run on the simulated device, compared with torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

M = pl.dynamic("M")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for function in (rows, cached, banded, scaled, two, loop):
        function.cache_clear()


@pl.jit
def rows(a: pl.Tensor[[M, 32], pl.FP32], o: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    n = a.shape[0]
    for i in pl.range(n // 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.exp(pl.slice(a, [4, 32], [i * 4, 0])), [i * 4, 0])
    return o


def test_a_dynamic_extent_runs_for_every_size() -> None:
    """pypto#1515: the annotation was specialised to the size of the first call."""
    for n in (8, 16, 4):
        a, o = torch.randn(n, 32), torch.full((n, 32), -7.0)
        rows(a, o)
        assert torch.allclose(o, a.exp(), rtol=1e-5)
    assert len(rows._cache.entries) == 1


@pl.jit.inline
def accumulate(cache: pl.InOut[pl.Tensor], x: pl.Tensor):
    cache = pl.assemble(cache, pl.add(cache, x), [0, 0])
    return cache


@pl.jit
def cached(cache: pl.InOut[pl.Tensor], x: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = accumulate(cache, x)
    return cache


def test_in_and_out_parameters_of_helpers_accumulate_in_place() -> None:
    """pypto#1918: the helper's parameter lost its direction."""
    cache, x = torch.full((16, 32), 5.0), torch.randn(16, 32)
    wanted = cache + x + x
    cached(cache, x)
    cached(cache, x)
    assert torch.allclose(cache, wanted)


@pl.jit.inline
def doubled(src: pl.Tensor):
    r = pl.add(src, src)
    return r


@pl.jit
def banded(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        part = a[16:32, :]
        d = doubled(part)
        part = pl.reshape(part, [32, 16])
        o[:] = pl.add(d, pl.reshape(part, [16, 32]))
    return o


def test_a_later_rebinding_does_not_change_an_earlier_call() -> None:
    """pypto#1335."""
    a, o = torch.randn(64, 32), torch.zeros(16, 32)
    banded(a, o)
    assert torch.allclose(o, 3 * a[16:32])


@pl.jit
def scaled(a: pl.Tensor, o: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, s)
    return o


def test_scalars_are_part_of_the_specialisation() -> None:
    a = torch.randn(16, 32)
    for value in (2.0, -0.5, 3):
        o = torch.zeros(16, 32)
        scaled(a, o, value)
        assert torch.allclose(o, a * value)
    assert len(scaled._cache.entries) == 3


@pl.jit.incore
def upper(a: pl.Tensor, x: pl.Out[pl.Tensor]):
    x = pl.store(pl.mul(pl.load(a, [0, 0], [16, 32]), 2.0), [0, 0], x)
    return x


@pl.jit.incore
def lower(a: pl.Tensor, y: pl.Out[pl.Tensor]):
    y = pl.store(pl.add(pl.load(a, [16, 0], [16, 32]), 1.0), [0, 0], y)
    return y


@pl.jit
def two(a: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
    x = upper(a, x)
    y = lower(a, y)
    return x, y


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_two_kernels_and_two_outputs(platform: str) -> None:
    a, x, y = torch.randn(32, 32), torch.zeros(16, 32), torch.zeros(16, 32)
    two(a, x, y=y, config=RunConfig(platform=platform))
    assert torch.allclose(x, 2 * a[:16])
    assert torch.allclose(y, a[16:] + 1)


@pl.jit
def loop(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.slice(a, [16, 64], [i * 16, 0])
            x = pl.sub(x, pl.row_max(x))
            x = pl.exp(x)
            x = pl.div(x, pl.row_sum(x))
            o = pl.assemble(o, x, [i * 16, 0])
    return o


def test_names_used_again_for_other_types() -> None:
    a, o = torch.randn(64, 64), torch.zeros(64, 64)
    loop(a, o)
    assert torch.allclose(o, a.softmax(-1), rtol=1e-5, atol=1e-6)


def test_what_is_not_a_tensor_is_refused_before_anything_is_compiled(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="tensor"):
        scaled([1.0], torch.zeros(1), 2.0)
    assert not (tmp_path / "build").exists()
