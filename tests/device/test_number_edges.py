"""Numbers at the edges of their types, against exact arithmetic: overflow, ties, infinities, NaN, wrapping."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device.machine import numbers as num
from pytest_pypto.pypto.device.machine.dtypes import NUMPY

from .calculation import Array, Calc
from .texts import Kernel, run, single

SMALL = ["f16", "bf16", "f8e4m3fn", "f8e5m2"]
INF, NAN = math.inf, math.nan
EDGES = [0.0, 1.0, 1.5, 2.5, 2.0000002, 2.5000002, 127.0, 127.5, 300.7, 447.0, 448.0, 449.0, 463.9, 464.0, 465.0, 480.0]
EDGES += [500.0, 57344.0, 61439.0, 61440.0, 61441.0, 65504.0, 65519.0, 65520.0, 65521.0, 65536.0, 70000.0, 3.3e38]
EDGES += [3.4028234e38, 0.1, 1e-3, 6e-8, 2**-24, 2**-25, 2**-25 * 1.0001, 2**-9, 2**-10, 2**-10 * 1.5, 2**-16, 2**-17]
EDGES += [2**-17 * 1.1, 1e-38, 1e-45, INF]
SIGNED = [*EDGES, *(-x for x in EDGES), NAN]


@cache
def finite(dtype: str) -> dict[Fraction, int]:
    """Every finite number of a small type with its bits, in order; one zero."""
    kind = NUMPY[dtype]
    bits = np.arange(1 << 8 * kind.itemsize, dtype=f"u{kind.itemsize}")
    with np.errstate(all="ignore"):
        values = bits.view(kind).astype(np.float64)
    found = {Fraction(float(v)): int(b) for v, b in zip(values, bits, strict=True) if np.isfinite(v) and v != 0}
    return dict(sorted({**found, Fraction(0): 0}.items()))


def rounded(x: float, dtype: str, mode: str) -> float:
    """`x` as a small float under `mode`, by looking for its neighbours."""
    if x != x:
        return NAN
    table, saturates = finite(dtype), dtype == "f8e4m3fn"
    keys = list(table)
    top, half = keys[-1], (keys[-1] - keys[-2]) / 2
    if saturates:
        x = max(-float(top), min(float(top), x))
    if math.isinf(x):
        return x
    v, sign = Fraction(x), math.copysign(1, x)
    if abs(v) > top:
        away = {"FLOOR": sign < 0, "CEIL": sign > 0, "TRUNC": False, "ODD": False}.get(mode, abs(v) >= top + half)
        return sign * (INF if away else float(top))
    at = bisect_left(keys, v)
    if keys[at] == v:
        return float(v)
    low, high = keys[at - 1], keys[at]
    odd = low if table[low] & 1 else high
    even = high if odd is low else low
    near = low if v - low < high - v else high if high - v < v - low else None
    outer, inner = (high, low) if v > 0 else (low, high)
    nearest = {"NONE": near if near is not None else even, "ROUND": near if near is not None else outer}
    return float({**nearest, "RINT": nearest["NONE"], "FLOOR": low, "CEIL": high, "TRUNC": inner, "ODD": odd}[mode])


def same(got: Array, wanted: list[Any]) -> None:
    np.testing.assert_array_equal(got.astype(np.float64), np.array(wanted, np.float64))


@pytest.mark.parametrize("mode", num.ROUND_MODES)
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_floats_to_small_floats(dtype: str, mode: str) -> None:
    x = np.array(SIGNED, np.float32)
    got = num.converter(x.dtype, NUMPY[dtype], mode)(x)
    same(got, [rounded(float(v), dtype, mode) for v in x])
    assert np.signbit(got[len(EDGES)].astype(np.float32)), "the sign of zero is lost"


@pytest.mark.parametrize("mode", num.ROUND_MODES)
@pytest.mark.parametrize(("source", "dtype"), [("f16", "f8e4m3fn"), ("bf16", "f16"), ("f8e5m2", "f8e4m3fn")])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_small_floats_to_others(source: str, dtype: str, mode: str) -> None:
    x = np.array([float(v) for v in finite(source)][:: 1 if source.startswith("f8") else 37], np.float32)
    got = num.converter(NUMPY[source], NUMPY[dtype], mode)(x.astype(NUMPY[source]))
    same(got, [rounded(float(v), dtype, mode) for v in x])


@pytest.mark.parametrize("dtype", ["f8e4m3fn", "f8e5m2"])
def test_scales_are_powers_of_two(dtype: str) -> None:
    """The scale type has no direct way to and from the other 8-bit floats in numpy."""
    there = num.converter(NUMPY[dtype], NUMPY["f8e8m0"])(np.array([1, 2, 0.5], np.float32).astype(NUMPY[dtype]))
    same(there, [1, 2, 0.5])
    same(num.converter(NUMPY["f8e8m0"], NUMPY[dtype])(there), [1, 2, 0.5])


@pytest.mark.parametrize(("mode", "wanted"), [("ROUND", [2, 4, 1]), ("FLOOR", [2, 2, 1]), ("CEIL", [4, 4, 1])])
def test_floats_to_scales(mode: str, wanted: list[float]) -> None:
    x = np.array([2.9, 3.0, 1.0], np.float32)
    same(num.converter(x.dtype, NUMPY["f8e8m0"], mode)(x), wanted)


@pytest.mark.parametrize("mode", num.ROUND_MODES)
@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_floats_to_integers(dtype: str, mode: str) -> None:
    more = [2.0**31 - 128, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 1e20, 32767.5, 255.5, 0.5, 3.5]
    x = np.array([*SIGNED, *more, *(-v for v in more)], np.float32)
    info = np.iinfo(NUMPY[dtype])
    got = num.converter(x.dtype, NUMPY[dtype], mode)(x)
    for v, g in zip(x.tolist(), got.tolist(), strict=True):
        assert g == whole(v, mode, info), (v, mode)


def whole(x: float, mode: str, info: Any) -> int:
    if x != x:
        return 0
    if math.isinf(x):
        return int(info.max if x > 0 else info.min)
    v = Fraction(x)
    low, rest = math.floor(v), v - math.floor(v)
    half = Fraction(1, 2)
    made = {
        "NONE": low + (rest > half or (rest == half and low % 2 == 1)),
        "ROUND": math.floor(abs(v) + half) * (1 if v >= 0 else -1),
        "FLOOR": low,
        "CEIL": math.ceil(v),
        "TRUNC": math.trunc(v),
        "ODD": low if rest == 0 or low % 2 == 1 else low + 1,
    }
    return max(int(info.min), min(int(info.max), made["NONE" if mode == "RINT" else mode]))


# ---- whole kernels


def grid(values: list[Any], dtype: str) -> tuple[Array, Array]:
    """Every value against every other."""
    line = np.array((values * 32)[:32]).astype(NUMPY[dtype])
    return np.repeat(line[:, None], 32, 1), np.repeat(line[None, :], 32, 0)


def wrapped(v: int, info: Any) -> int:
    v &= (1 << info.bits) - 1
    return v - (1 << info.bits) if v > info.max else v


def divided(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_right(a: int, b: int, info: Any) -> int:
    return a >> (b if 0 <= b < info.bits else info.bits)


Exact = Callable[[int, int, Any], int]
INTEGER: dict[str, Exact] = {
    "tadd": lambda a, b, _: a + b,
    "tsub": lambda a, b, _: a - b,
    "tmul": lambda a, b, _: a * b,
    "tdiv": lambda a, b, _: divided(a, b),
    "tfmod": lambda a, b, _: a - b * divided(a, b) if b else 0,
    "tmax": lambda a, b, _: max(a, b),
    "tmin": lambda a, b, _: min(a, b),
    "tand": lambda a, b, _: operator.and_(a, b),
    "tor": lambda a, b, _: operator.or_(a, b),
    "tshl": lambda a, b, info: a << b if 0 <= b < info.bits else 0,
    "tshr": shifted_right,
}


@pytest.mark.parametrize("op", list(INTEGER))
@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "ui8", "ui16", "ui32"])
def test_integer_pairs(dtype: str, op: str, tmp_path: Path) -> None:
    info = np.iinfo(NUMPY[dtype])
    candidates = [0, 1, -1, 2, -2, 3, -3, 7, -7, 8, 15, 16, 31, 32, 33, 100, -100, info.max, info.max - 1, info.min]
    values = [v for v in [*candidates, info.min + 1, info.max // 2] if info.min <= v <= info.max]
    a, b = grid(values, dtype)
    got = Calc(tmp_path, lambda k: k.op(op, ["ta", "tb"], ["d"]))(np.zeros_like(a), a=a, b=b)
    wanted = [
        wrapped(INTEGER[op](x, y, info), info) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    ]
    assert got.ravel().tolist() == wanted


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, INF, -INF, NAN, 1e-8, 6e4, -6e4, 1e5, 3e38, -3e38, 1e-38, 89.0, -104.0]
PAIRS: dict[str, Callable[[Array, Array], Array]] = {
    "tadd": np.add,
    "tsub": np.subtract,
    "tmul": np.multiply,
    "tdiv": np.divide,
    "tfmod": np.fmod,
    "tmax": np.maximum,
    "tmin": np.minimum,
}


@pytest.mark.parametrize("op", list(PAIRS))
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_pairs(dtype: str, op: str, tmp_path: Path) -> None:
    """Computed in FP32, rounded once; the sign of a zero counts, except where both zeros are as large."""
    a, b = grid(FLOATS, dtype)
    got = Calc(tmp_path, lambda k: k.op(op, ["ta", "tb"], ["d"]))(np.zeros_like(a), a=a, b=b).astype(np.float32)
    wanted = PAIRS[op](a.astype(np.float32), b.astype(np.float32)).astype(NUMPY[dtype]).astype(np.float32)
    np.testing.assert_array_equal(got, wanted)
    if op not in ("tmax", "tmin"):
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(wanted[numbers]))


SINGLE: dict[str, Callable[[Array], Array]] = {
    "texp": np.exp,
    "tlog": np.log,
    "tsqrt": np.sqrt,
    "trsqrt": lambda x: 1 / np.sqrt(x),
    "trecip": lambda x: 1 / x,
    "tneg": np.negative,
    "tabs": np.abs,
    "trelu": lambda x: np.maximum(x, 0),
}


@pytest.mark.parametrize("op", list(SINGLE))
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_single_floats(dtype: str, op: str, tmp_path: Path) -> None:
    a, _ = grid(FLOATS, dtype)
    got = Calc(tmp_path, lambda k: k.op(op, ["ta"], ["d"]))(np.zeros_like(a), a=a).astype(np.float32)
    wanted = SINGLE[op](a.astype(np.float32)).astype(NUMPY[dtype]).astype(np.float32)
    np.testing.assert_allclose(got, wanted, rtol=1e-6 if dtype == "f32" else 0)


@pytest.mark.parametrize("way", ["cast", "store"])
@pytest.mark.parametrize("dtype", ["f8e4m3fn", "f8e5m2", "f16"])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_overflow_on_the_way_to_memory(dtype: str, way: str, tmp_path: Path) -> None:
    """A type without infinities saturates, in a cast as in a store that converts."""
    a = np.array((SIGNED * 12)[: 16 * 32], np.float32).reshape(16, 32)
    wanted = [rounded(float(v), dtype, "RINT" if way == "store" else "ROUND") for v in a.ravel()]
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", dtype, (16, 32))])
    k.tile("t", 16, 32, 0)
    k.load("a", "t", (0, 0), (16, 32))
    if way == "cast":
        k.tile("u", 16, 32, 4096, dtype=dtype)
        k.op("tcvt", ["t"], ["u"], inside=" {rmode = #pto<round_mode ROUND>}")
    k.store("u" if way == "cast" else "t", "o", (0, 0), (16, 32))
    o = np.zeros((16, 32), NUMPY[dtype])
    assert run(single(tmp_path, k, ["o"], arch="a5"), a, o).findings == ()
    same(o.ravel(), wanted)


@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e4m3fn", "i8", "f16"])
def test_factors_of_every_type_move_to_the_cube(dtype: str, tmp_path: Path) -> None:
    """A boxed move between layouts whose boxes differ."""
    kind = NUMPY[dtype]
    a, b = (np.random.default_rng(s).integers(-4, 5, (64, 64)).astype(np.float32).astype(kind) for s in (1, 2))
    out = "i32" if dtype == "i8" else "f32"
    k = Kernel("k", [("a", dtype, (64, 64)), ("b", dtype, (64, 64)), ("o", out, (64, 64))], kind="cube")
    for i, (name, space) in enumerate((("a", "left"), ("b", "right"))):
        k.tile(f"m{name}", 64, 64, i * 8192, dtype=dtype, space="mat")
        k.load(name, f"m{name}", (0, 0), (64, 64))
        k.tile(f"l{name}", 64, 64, 0, dtype=dtype, space=space)
        k.op("tmov", [f"m{name}"], [f"l{name}"])
    k.tile("c", 64, 64, 0, dtype=out, space="acc")
    k.op("tmatmul", ["la", "lb"], ["c"])
    k.store("c", "o", (0, 0), (64, 64))
    o = np.zeros((64, 64), NUMPY[out])
    assert run(single(tmp_path, k, ["o"], arch="a5"), a, b, o).findings == ()
    np.testing.assert_array_equal(o, a.astype(np.float32) @ b.astype(np.float32))
