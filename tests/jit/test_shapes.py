"""`.shape` and `.dtype` of local variables, whatever operation made them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.language.parser.diagnostics import ParserError
from pytest_pypto.pypto.runtime.config import RunConfig
from tests.kit import shown

torch = pytest.importorskip("torch")

M = pl.dynamic("M")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for function in [f for f in globals().values() if isinstance(f, pl.JITFunction)]:
        function.cache_clear()


@pl.jit.inline
def half(a: pl.Tensor):
    t = pl.add(a, a)
    rows = t.shape[0] // 2
    r = pl.slice(t, [rows, t.shape[1]], [0, 0])
    return r


@pl.jit
def operations(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        h = half(a)
        m, n = h.shape
        u = h[0:4, 0 : n // 2]
        p, q = u.shape
        pl.static_assert(p * q == 64 and len(u.shape) == 2)
        o = pl.assemble(o, pl.mul(h, 1.0 * m), [0, 0])
        for i in pl.range(min(p, m) // 4):
            o[m + i : m + i + max(p, 2), 0:q] = u
    return o


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.matmul(a, b, out_dtype=pl.FP32)
        m, n = c.shape
        o[0:m, 0:n] = c
    return o


@pl.jit
def element_types(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.add(a, a)
        if s.dtype == pl.FP16:
            t = pl.cast(s, pl.FP32)
        else:
            t = s
        if a.dtype != o.dtype:
            r = pl.mul(t, 3.0)
        else:
            r = pl.mul(t, 5.0)
        o[:] = r
    return o


@pl.jit
def rows_at_run_time(a: pl.Tensor[[M, 32], pl.FP32], o: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    m, _n = a.shape
    for i in pl.range(0, m, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = a[i : i + 8, :]
            p, q = t.shape
            o[i : i + p, 0:q] = pl.mul(t, 1.0 * p)
    return o


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_locals_run(platform: str) -> None:
    config = RunConfig(platform=platform)
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    operations(a, o, config=config)
    wanted = torch.full((16, 32), -7.0)
    wanted[:8] = a[:8] * 16
    wanted[8:12, :16] = a[:4, :16] * 2
    assert torch.allclose(o, wanted)
    x, y, z = torch.randn(32, 64).half(), torch.randn(64, 16).half(), torch.zeros(32, 16)
    product(x, y, z, config=config)
    assert torch.allclose(z, x.float() @ y.float(), rtol=1e-3, atol=1e-3)


def test_types_decide_a_branch_when_they_are_compared() -> None:
    single, double = torch.randn(16, 32), torch.randn(16, 32).half()
    o = torch.zeros(16, 32)
    element_types(single, o)
    assert torch.allclose(o, single * 10)
    element_types(double, o)
    assert torch.allclose(o, (double + double).float() * 3)
    assert " if " not in python_print(element_types.specialize(single, o), format=False)


def test_slices_of_dynamic_tensors() -> None:
    for n in (8, 24):
        a, o = torch.randn(n, 32), torch.full((n, 32), -7.0)
        rows_at_run_time(a, o)
        assert torch.allclose(o, a * 8)
    assert len(rows_at_run_time._cache.entries) == 1


@pl.jit
def lists(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    s = a.shape
    n = min(s[0], 8)
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.reshape(pl.slice(a, s, [0, 0]), [1, *s])
        u = pl.reshape(pl.mul(t, 1.0 * len(s)), t.shape[1:2] + [s[1]])  # noqa: RUF005
        o[0:n, :] = u[0:n, :]
        o[n : max(n, a.shape[0]), :] = pl.mul(u[n:16, :], 2.0)
    return o


def test_lists_of_extents_and_functions_of_numbers() -> None:
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    lists(a, o)
    assert torch.allclose(o[:8], a[:8] * 2)
    assert torch.allclose(o[8:], a[8:] * 4)


@pl.jit
def printed(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    pl.static_print(f"a {a.shape} {a.dtype}")
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(a, a)
        pl.static_print(f"t {t.shape[1]} {t.dtype}")
        o[:] = t
    return o


def test_shapes_and_element_types_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    printed.specialize(torch.zeros(16, 32), torch.zeros(16, 32))
    lines = [line.partition("]: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["a [16, 32] pl.FP32", "t 32 pl.FP32"]


@pl.jit
def annotated(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    m, n = a.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        t: pl.Tensor[[m // 2, n], pl.FP32] = pl.slice(a, [m // 2, n], [0, 0])
        p, q = t.shape
        u: pl.Tensor[[p, q], t.dtype] = pl.mul(t, 2.0)
        o[0:p, :] = u
    return o


def test_annotations_of_locals_use_extents() -> None:
    a, o = torch.randn(16, 32), torch.full((16, 32), -7.0)
    annotated(a, o)
    assert torch.allclose(o[:8], a[:8] * 2)
    assert "u: pl.Tensor[[8, 32], pl.FP32] =" in python_print(annotated.specialize(a, o), format=False)


@pl.jit
def annotated_wrong(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    m, n = a.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        t: pl.Tensor[[n, m], pl.FP32] = pl.add(a, a)
        o[:] = t
    return o


@pl.jit
def annotated_wrong_late(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.add(a, a)
        m, n = s.shape
        t: pl.Tensor[[n, m], pl.FP32] = pl.add(s, a)
        o[:] = t
    return o


@pl.jit
def too_many_names(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    _m, _n, _k = a.shape
    return o


@pl.jit
def too_few_names(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.reshape(a, [2, 8, 32])
        _m, _n = t.shape
        o[:] = a
    return o


@pl.jit
def of_nothing(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        k = pl.read(a, [0, 0])
        o[:] = pl.mul(a, 1.0 * k.shape[0])
    return o


@pl.jit
def out_of_range(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(a, a)
        n = t.shape[2]
        o[:] = pl.mul(a, 1.0 * n)
    return o


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (of_nothing, "k.shape"),
        (out_of_range, "t.shape[2]"),
        (annotated_wrong, "Type annotation for 't' has shape dimension 0 = 32 but expression has shape dimension 0"),
        (annotated_wrong_late, "Type annotation for 't' has shape dimension 0 = 32 but expression has shape dim"),
        (too_many_names, "3 names take 2 extents"),
        (too_few_names, "2 names take 3 extents"),
    ],
)
def test_wrong_uses_are_refused_at_their_place(kernel: Any, text: str) -> None:
    with pytest.raises(ParserError) as caught:
        kernel.specialize(torch.zeros(16, 32), torch.zeros(16, 32))
    assert text in shown(caught.value)
