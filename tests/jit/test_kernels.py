"""Kernels as authors write them, as jit functions, on both platforms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.language.parser.diagnostics import ParserTypeError
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

TM, TN, TK = 32, 64, 64
EPS = 1e-5
HEADS, DIM, SCALE = 4, 16, 0.25
M = pl.dynamic("M")


class Config:
    """Sizes an author keeps in a class."""

    rows = 16
    tile = (16, 64)


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for kernel in (matmul, rms_norm, attention, ragged, accumulate, fused, window, padded, defaulted):
        kernel.cache_clear()


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    M, K = a.shape
    N = b.shape[1]
    for i in pl.parallel(0, M // TM):
        for j in pl.range(N // TN):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="mm"):
                acc = pl.matmul(a[i * TM : (i + 1) * TM, 0:TK], b[0:TK, j * TN : (j + 1) * TN], out_dtype=pl.FP32)
                for k in pl.range(1, K // TK):
                    left = pl.slice(a, [TM, TK], [i * TM, k * TK])
                    right = pl.slice(b, [TK, TN], [k * TK, j * TN])
                    acc = pl.matmul_acc(acc, left, right)
                c = pl.assemble(c, acc, [i * TM, j * TN])
    return c


@pl.jit
def rms_norm(x: pl.Tensor, w: pl.Tensor, y: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.range(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = x[r : r + 16, :]
            squares = pl.row_sum(pl.mul(t, t))
            inverse = pl.rsqrt(pl.add(pl.mul(squares, 1.0 / cols), EPS))
            y[r : r + 16, :] = pl.col_expand_mul(pl.row_expand_mul(t, inverse), w)
    return y


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, o: pl.Out[pl.Tensor]):
    for h in pl.parallel(HEADS):
        with pl.at(level=pl.Level.CORE_GROUP):
            s = pl.matmul(q[:, h * DIM : (h + 1) * DIM], k[:, h * DIM : (h + 1) * DIM], b_trans=True, out_dtype=pl.FP32)
            s = pl.mul(s, SCALE)
            e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
            p = pl.cast(pl.row_expand_div(e, pl.row_sum(e)), pl.FP16)
            r = pl.matmul(p, v[:, h * DIM : (h + 1) * DIM], out_dtype=pl.FP32)
            o[:, h * DIM : (h + 1) * DIM] = r
    return o


@pl.jit.incore
def ragged_kernel(a: pl.Tensor[[M, 64], pl.FP32], o: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    m = a.shape[0]
    for i in pl.range(0, m, 16):
        t = pl.load(a, [i, 0], [16, 64], valid_shape=[pl.min(m - i, 16), 64])
        o = pl.store(pl.exp(t), [i, 0], o)
    return o


@pl.jit
def ragged(a: pl.Tensor[[M, 64], pl.FP32], o: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    o = ragged_kernel(a, o)
    return o


@pl.jit
def accumulate(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.full([16, 64], dtype=pl.FP32, value=0.0)
        for i in pl.range(4):
            t = a[i * 16 : (i + 1) * 16, :]
            if i == 2:
                acc = pl.sub(acc, t)
            else:
                acc = pl.add(acc, t)
        o[:] = acc
    return o


@pl.jit
def fused(a: pl.Tensor, b: pl.Tensor, c: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
        p = pl.matmul(a, b, out_dtype=pl.FP32)
        c[:] = pl.add(c, p)
    return c


@pl.jit
def window(a: pl.Tensor, at: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        row = pl.cast(pl.read(at, [0]), pl.INDEX)
        o[:] = pl.slice(a, Config.tile, [row, 0])
    return o


@pl.jit
def padded(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.slice(a, [8, 64], [a.shape[0] - 2, 0], valid_shape=[2, 64], pad_value=pl.PadValue.min)
        o[:] = pl.col_max(pl.fillpad(t, pad_value=pl.PadValue.min))
    return o


@pl.jit.incore
def weighted(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], alpha: pl.Scalar[pl.FP32] = 2.0):
    rows, cols = a.shape
    for i in pl.range(0, rows, Config.rows):
        ta = pl.load(a, [i, 0], [16, cols])
        tb = pl.load(b, [i, 0], [16, cols])
        o = pl.store(pl.add(ta, pl.mul(tb, alpha)), [i, 0], o)
    return o


@pl.jit
def defaulted(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    t = pl.create_tensor([64, 64], dtype=pl.FP32)
    t = weighted(a, b, t)
    o = weighted(t, o=o, b=a, alpha=-1.0)
    return o


def r(*shape: int) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _attention(q: Any, k: Any, v: Any) -> Any:
    parts = []
    for h in range(HEADS):
        s = slice(h * DIM, (h + 1) * DIM)
        p = ((q[:, s].float() @ k[:, s].float().T) * SCALE).softmax(-1).half()
        parts.append(p.float() @ v[:, s].float())
    return torch.cat(parts, 1)


A, B = r(64, 64), r(64, 65)[:, :64].contiguous()
H = A.half(), B.half(), r(64, 66)[:, :64].half().contiguous()
WEIGHT, LONG, NEGATIVE = r(1, 64), r(40, 64), -1 - r(10, 64).abs()
CASES = {
    "matmul": (
        matmul,
        [r(64, 128).half(), r(128, 64).half(), torch.zeros(64, 64)],
        lambda a, b, c: a.float() @ b.float(),
    ),
    "rms_norm": (
        rms_norm,
        [A, WEIGHT, torch.zeros(64, 64)],
        lambda x, w, y: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w,
    ),
    "attention": (attention, [*H, torch.zeros(64, 64)], lambda q, k, v, o: _attention(q, k, v)),
    "ragged": (ragged, [LONG, torch.zeros(40, 64)], lambda a, o: a.exp()),
    "accumulate": (accumulate, [A, torch.zeros(16, 64)], lambda a, o: a[:16] + a[16:32] - a[32:48] + a[48:]),
    "fused": (fused, [*H[:2], A], lambda a, b, c: c + a.float() @ b.float()),
    "window": (
        window,
        [A, torch.tensor([32] + [0] * 7, dtype=torch.int32), torch.zeros(16, 64)],
        lambda a, at, o: a[32:48],
    ),
    "padded": (padded, [NEGATIVE, torch.zeros(1, 64)], lambda a, o: a[8:].max(0, keepdim=True).values),
    "defaulted": (defaulted, [A, B, torch.zeros(64, 64)], lambda a, b, o: a + 2 * b - a),
}


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str, platform: str) -> None:
    kernel, given, golden = CASES[name]
    args = [a.clone() for a in given]
    kernel(*args, config=RunConfig(platform=platform))
    tolerance = 2e-3 if given[0].dtype is torch.float16 else 1e-5
    assert torch.allclose(args[-1], golden(*given), rtol=tolerance, atol=tolerance)


@pl.jit
def too_few(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = weighted(a, b)
    return o


@pl.jit
def too_many(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = weighted(a, b, o, 1.0, 2)
    return o


@pl.jit
def given_twice(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = weighted(a, b, o, a=b)
    return o


@pl.jit
def starred(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor]):
    args = (a, b, o)
    o = weighted(*args)
    return o


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_few, "weighted() missing argument 'o'"),
        (too_many, "weighted() takes 4 arguments but 5 were given"),
        (given_twice, "weighted() got multiple values for argument 'a'"),
        (starred, "weighted() takes no starred arguments"),
    ],
)
def test_calls_that_do_not_fit_the_helper(kernel: Any, message: str) -> None:
    with pytest.raises(ParserTypeError) as caught:
        kernel.specialize(A, B, torch.zeros(64, 64))
    assert caught.value.message == message
    assert caught.value.span is not None
    assert caught.value.span["begin_line"] == kernel.func.__code__.co_firstlineno + (3 if kernel is starred else 2)
