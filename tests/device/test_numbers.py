"""The number rules: conversions with every mode and type, integer division, remainders, shifts, accumulation."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_pypto.pypto.device.machine import numbers as num
from pytest_pypto.pypto.device.machine.dtypes import NUMPY

from .texts import Kernel, run, single

Array = np.ndarray[Any, Any]
MODES = num.ROUND_MODES
BF16 = np.dtype(ml_dtypes.bfloat16)


def whole(x: float, mode: str) -> int:
    """Rounding to a whole number, in exact arithmetic."""
    value = Fraction(x)
    low = math.floor(value)
    rest = value - low
    if mode in ("NONE", "RINT"):
        return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))
    if mode == "ROUND":
        return math.floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)
    if mode == "FLOOR":
        return low
    if mode == "CEIL":
        return math.ceil(value)
    if mode == "TRUNC":
        return math.trunc(value)
    return low if rest == 0 or low % 2 == 1 else low + 1


@pytest.mark.parametrize("mode", MODES)
def test_modes_on_the_documented_ties(mode: str) -> None:
    table = {"NONE": (2, -2), "RINT": (2, -2), "ROUND": (3, -3), "FLOOR": (2, -3)}
    table |= {"CEIL": (3, -2), "TRUNC": (2, -2), "ODD": (3, -3)}
    change = num.converter(np.dtype(np.float32), np.dtype(np.int32), mode)
    assert tuple(change(np.array([2.5, -2.5], np.float32))) == table[mode]


@pytest.mark.parametrize("mode", MODES)
@given(x=st.floats(-300, 300, width=32))
def test_float_to_int(mode: str, x: float) -> None:
    change = num.converter(np.dtype(np.float32), np.dtype(np.int8), mode)
    assert int(change(np.array([x], np.float32))[0]) == max(-128, min(127, whole(x, mode)))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_saturation_and_nan() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 300.7], np.float32)
    to32 = num.converter(x.dtype, np.dtype(np.int32), "TRUNC")
    assert to32(x).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 300]
    assert num.converter(x.dtype, np.dtype(np.int8), "ROUND")(x).tolist() == [0, 127, -128, 127, -128, 127]
    assert num.converter(x.dtype, np.dtype(np.uint8), "ROUND")(x).tolist() == [0, 255, 0, 255, 0, 255]
    to64 = num.converter(x.dtype, np.dtype(np.int64), "TRUNC")
    assert to64(np.array([1e30, -1e30], np.float32)).tolist() == [2**63 - 1, -(2**63)]


def test_int_to_narrower_int_keeps_the_low_bits() -> None:
    change = num.converter(np.dtype(np.int32), np.dtype(np.int8))
    assert change(np.array([300, -129, 127], np.int32)).tolist() == [44, 127, 127]


def neighbours(x: float, dtype: Any) -> tuple[float, float]:
    """The values of `dtype` at or below and at or above x."""
    near = np.asarray(x, np.float32).astype(dtype)
    below = near if float(near) <= x else np.nextafter(near, np.asarray(-np.inf, dtype))
    above = near if float(near) >= x else np.nextafter(near, np.asarray(np.inf, dtype))
    return float(below), float(above)


def last_bit(x: float, dtype: Any) -> int:
    return int(np.asarray(x, np.float32).astype(dtype).view(np.uint16)) & 1


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
@given(x=st.floats(-1000, 1000, width=32))
def test_float_to_narrower_float(mode: str, dtype: Any, x: float) -> None:
    got = float(num.converter(np.dtype(np.float32), dtype, mode)(np.array([x], np.float32))[0])
    low, high = neighbours(x, dtype)
    if low == high:
        assert got == low
        return
    down, up = Fraction(x) - Fraction(low), Fraction(high) - Fraction(x)
    even = low if last_bit(low, dtype) == 0 else high
    wanted = {
        "NONE": low if down < up else high if up < down else even,
        "ROUND": low if down < up else high if up < down else (high if x > 0 else low),
        "FLOOR": low,
        "CEIL": high,
        "TRUNC": low if x > 0 else high,
        "ODD": low if last_bit(low, dtype) else high,
    }
    wanted["RINT"] = wanted["NONE"]
    assert got == wanted[mode]


def test_tie_of_the_documented_number() -> None:
    """1.01953125 lies between two bfloat16 numbers: even is 1.015625, away from zero is 1.0234375."""
    x = np.array([1.01953125, np.nan, np.inf, -np.inf], np.float32)
    assert num.converter(x.dtype, BF16, "RINT")(x).astype(float).tolist()[0] == 1.015625
    got = num.converter(x.dtype, BF16, "ROUND")(x).astype(float)
    assert got[0] == 1.0234375
    assert np.isnan(got[1])
    assert got[2:].tolist() == [np.inf, -np.inf]


def test_integer_division_and_remainders() -> None:
    a, b = np.array([7, -7, 7, -7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)
    assert num.int_div(a, b).tolist() == [3, -3, -3, 3, 0]
    assert num.int_rem(a, b).tolist() == [1, 1, -1, -1, 0]
    assert num.int_fmod(a, b).tolist() == [1, -1, 1, -1, 0]


def test_shifts() -> None:
    a, b = np.array([1, -8, 1, -8], np.int32), np.array([3, 1, 32, 40], np.int32)
    assert num.shift_left(a, b).tolist() == [8, -16, 0, 0]
    assert num.shift_right(a, b).tolist() == [0, -4, 0, -1]
    assert num.shift_right(np.array([0xFFFFFFFF], np.uint32), np.array([4], np.uint32)).tolist() == [0x0FFFFFFF]


def test_scalars_take_the_element_type() -> None:
    assert int(num.scalar_of(300, np.dtype(np.int8))) == 44
    assert int(num.scalar_of(2.9, np.dtype(np.int32))) == 2
    assert float(num.scalar_of(0.1, np.dtype(np.float16))) == float(np.float16(0.1))


def test_pad_values() -> None:
    assert num.pad_value(NUMPY["f32"], 2) == np.inf
    assert num.pad_value(NUMPY["bf16"], 3) == -np.inf
    assert num.pad_value(NUMPY["i8"], 2) == 127
    assert num.pad_value(NUMPY["i16"], 3) == -(2**15)
    assert num.pad_value(NUMPY["ui8"], 3) == 0
    assert float(num.pad_value(NUMPY["f8e4m3fn"], 2)) == 448


def unary(op: str, dtype: str, out: str | None = None, inside: str = "") -> Kernel:
    k = Kernel("k", [("a", dtype, (16, 32)), ("o", out or dtype, (16, 32))])
    k.tile("t", 16, 32, 0, dtype=dtype)
    k.load("a", "t", (0, 0), (16, 32))
    k.tile("u", 16, 32, 8192, dtype=out or dtype)
    k.op(op, ["t"], ["u"], inside=inside)
    k.store("u", "o", (0, 0), (16, 32))
    return k


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("op", "fn"), [("texp", np.exp), ("trecip", np.reciprocal), ("tsqrt", np.sqrt), ("tneg", np.negative)]
)
def test_small_floats_are_computed_in_fp32_and_rounded_once(op: str, fn: Any, dtype: str, tmp_path: Path) -> None:
    a = np.random.default_rng(1).uniform(0.1, 4, (16, 32)).astype(NUMPY[dtype])
    o = np.zeros_like(a)
    run(single(tmp_path, unary(op, dtype), ["o"]), a, o)
    np.testing.assert_array_equal(o.astype(float), fn(a.astype(np.float32)).astype(a.dtype).astype(float))


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32"])
def test_integer_arithmetic_wraps(dtype: str, tmp_path: Path) -> None:
    kind = NUMPY[dtype]
    k = Kernel("k", [("a", dtype, (16, 32)), ("o", dtype, (16, 32))])
    k.tile("t", 16, 32, 0, dtype=dtype)
    k.load("a", "t", (0, 0), (16, 32))
    k.tile("u", 16, 32, 8192, dtype=dtype)
    k.op("tmul", ["t", "t"], ["u"])
    k.op("tadds", ["u", (k.c(100, dtype), dtype)], ["u"])
    k.store("u", "o", (0, 0), (16, 32))
    info = np.iinfo(kind)
    a = np.random.default_rng(2).integers(info.min, info.max, (16, 32), dtype=kind, endpoint=True)
    o = np.zeros_like(a)
    run(single(tmp_path, k, ["o"]), a, o)
    wanted = (a.astype(object) ** 2 + 100) % (1 << info.bits)
    np.testing.assert_array_equal(o, np.vectorize(lambda v: v - (1 << info.bits) if v > info.max else v)(wanted))


def test_converting_store_rounds_to_even(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "bf16", (16, 32))])
    k.tile("t", 16, 32, 0)
    k.load("a", "t", (0, 0), (16, 32))
    k.store("t", "o", (0, 0), (16, 32))
    a = np.full((16, 32), 1.01953125, np.float32)
    o = np.zeros((16, 32), BF16)
    run(single(tmp_path, k, ["o"]), a, o)
    assert set(o.astype(float).reshape(-1)) == {1.015625}


def test_default_cast_mode_is_away_from_zero(tmp_path: Path) -> None:
    k = unary("tcvt", "f32", "bf16", " {rmode = #pto<round_mode ROUND>}")
    o = np.zeros((16, 32), BF16)
    run(single(tmp_path, k, ["o"]), np.full((16, 32), -1.01953125, np.float32), o)
    assert set(o.astype(float).reshape(-1)) == {-1.0234375}


def test_fp8_travels_through_a_cast(tmp_path: Path) -> None:
    kind = np.dtype(ml_dtypes.float8_e4m3fn)
    k = unary("tcvt", "f8e4m3fn", "f32", " {rmode = #pto<round_mode NONE>}")
    a = np.random.default_rng(4).uniform(-8, 8, (16, 32)).astype(kind)
    o = np.zeros((16, 32), np.float32)
    run(single(tmp_path, k, ["o"]), a, o)
    np.testing.assert_array_equal(o, a.astype(np.float32))


def valid_only(op: str, valid: tuple[int, int], scratch: bool, out: tuple[int, int]) -> Kernel:
    """A reduction of the valid box of an 8x64 tile."""
    k = Kernel("k", [("a", "f32", (8, 64)), ("o", "f32", out)])
    k.tile("t", 8, 64, 0, valid=valid)
    k.load("a", "t", (0, 0), valid)
    k.tile("s", 8, 64, 4096)
    layout = ("col_major", "none_box", 512) if out[1] == 1 else None
    k.tile("r", *out, 8192, layout=layout)
    k.op(op, ["t", "s"] if scratch else ["t"], ["r"])
    k.store("r", "o", (0, 0), out)
    return k


@pytest.mark.parametrize(
    ("op", "fn"), [("trowmax", np.max), ("trowmin", np.min), ("trowsum", np.sum), ("trowprod", np.prod)]
)
def test_row_reductions_see_valid_elements_only(op: str, fn: Any, tmp_path: Path) -> None:
    """All values are negative, so a zero from the padding would win."""
    a = -1 - np.abs(np.random.default_rng(5).standard_normal((8, 64))).astype(np.float32)
    o = np.zeros((8, 1), np.float32)
    result = run(single(tmp_path, valid_only(op, (8, 50), True, (8, 1)), ["o"]), a, o)
    assert result.findings == ()
    np.testing.assert_allclose(o[:, 0], fn(a[:, :50].astype(np.float64), axis=1), rtol=1e-5)


def test_column_reductions_see_valid_elements_only(tmp_path: Path) -> None:
    a = -1 - np.abs(np.random.default_rng(6).standard_normal((8, 64))).astype(np.float32)
    o = np.zeros((1, 64), np.float32)
    assert run(single(tmp_path, valid_only("tcolmax", (5, 64), False, (1, 64)), ["o"]), a, o).findings == ()
    np.testing.assert_array_equal(o[0], a[:5].max(axis=0))
