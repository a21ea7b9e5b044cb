"""Conversions: rounding modes, saturation, wrapping, small floats; expected values from Python and ml_dtypes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import CAST_MODES

from .arrays import INTS, NUMPY, close, padded, sample, to_numpy, to_torch
from .build import region, run_op, tensor, tile, valid_part

MODES = CAST_MODES


def whole(x: float, mode: str) -> int:
    """The whole number a mode rounds to, by definition."""
    low, frac = math.floor(x), Fraction(x) - math.floor(x)
    if frac == 0:
        return low
    if mode in ("none", "rint"):
        return low + (frac > Fraction(1, 2) or (frac == Fraction(1, 2) and low % 2 == 1))
    if mode == "round":
        return low + (frac > Fraction(1, 2) or (frac == Fraction(1, 2) and x > 0))
    if mode == "floor":
        return low
    if mode == "ceil":
        return low + 1
    if mode == "trunc":
        return low if x > 0 else low + 1
    return low if low % 2 else low + 1


def cast(space: str, a: np.ndarray, source: DataType, target: DataType, mode: str) -> torch.Tensor:
    made = (tensor if space == "tensor" else tile)(a.shape, source)
    result, type_ = run_op(
        f"{space}.cast", [(to_torch(a, source), made)], {"target_type": target, "mode": MODES.index(mode)}
    )
    assert type_.dtype is target  # type: ignore[attr-defined]
    return result


HALVES = np.array([[2.5, -2.5, 0.5, -0.5, 1.5, -1.5, 0.49999997, 2.3, -2.3, 7.0, -0.0, 3.7]], np.float32)


@pytest.mark.parametrize("space", ["tensor", "tile"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", [DataType.INT32, DataType.INT16, DataType.INT64, DataType.INT8], ids=str)
@pytest.mark.parametrize("source", [DataType.FP32, DataType.FP16], ids=str)
def test_float_to_integer_modes(space: str, source: DataType, target: DataType, mode: str) -> None:
    a = HALVES.astype(NUMPY[source])
    result = cast(space, a, source, target, mode)
    assert result.tolist() == [[whole(float(x), mode) for x in a[0]]]


@pytest.mark.parametrize("target", [t for t in INTS if t is not DataType.UINT64], ids=str)
def test_float_to_integer_saturates(target: DataType) -> None:
    info = np.iinfo(NUMPY[target])
    a = np.array([[1e30, -1e30, np.inf, -np.inf, np.nan, 300.7]], np.float32)
    result = to_numpy(cast("tile", a, DataType.FP32, target, "round"), target)
    last = min(301, info.max)
    assert result.tolist() == [[info.max, info.min, info.max, info.min, 0, last]]


def test_float_to_uint64_saturates_and_keeps_the_upper_half() -> None:
    a = np.array([[1e30, -5.0, 2.0**63 + 2.0**42, 7.5]], np.float32)
    result = to_numpy(cast("tile", a, DataType.FP32, DataType.UINT64, "round"), DataType.UINT64)
    assert result.tolist() == [[2**64 - 1, 0, 2**63 + 2**42, 8]]


GRIDS: dict[DataType, Any] = {DataType.FP16: np.float16, DataType.BF16: ml_dtypes.bfloat16}


def neighbours(x: float, kind: Any) -> tuple[float, float]:
    """The values of a float type just below and above `x` (equal when `x` is one)."""
    near = float(np.float32(x).astype(kind))
    if near == x or not math.isfinite(near):
        return near, near
    step = np.nextafter(np.float16(near), np.float16(np.inf if x > near else -np.inf)) if kind is np.float16 else None
    other = float(step) if step is not None else _bf16_next(near, x > near)
    return (near, other) if near < x else (other, near)


def _bf16_next(value: float, up: bool) -> float:
    bits = int(np.array(value, np.float32).astype(ml_dtypes.bfloat16).view(np.int16))
    away = up == (value > 0 or (value == 0 and up))
    if value == 0:
        bits = 1 if up else -32767
    else:
        bits += 1 if away else -1
    return float(np.array(bits, np.int16).view(ml_dtypes.bfloat16).astype(np.float32))


def narrowed(x: float, kind: Any, mode: str) -> float:
    """`x` rounded to a float type by the definition of the mode."""
    low, high = neighbours(x, kind)
    if low == high:
        return low
    below, above = Fraction(x) - Fraction(low), Fraction(high) - Fraction(x)
    if mode in ("none", "rint"):
        return float(np.float32(x).astype(kind))
    if mode == "round" and below != above:
        return low if below < above else high
    if mode == "round":
        return high if x > 0 else low
    if mode == "odd":
        odd = int(np.array(low, np.float32).astype(kind).view(np.int16)) % 2 == 1
        return low if odd else high
    return {"floor": low, "ceil": high, "trunc": low if x > 0 else high}[mode]


@pytest.mark.parametrize("space", ["tensor", "tile"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", [DataType.FP16, DataType.BF16], ids=str)
def test_float_to_narrower_float_modes(space: str, target: DataType, mode: str) -> None:
    kind = GRIDS[target]
    g = np.random.default_rng(1)
    values = g.uniform(-3, 3, 40).astype(np.float32)
    ties = (np.array([1.0, -1.0, 1.5, 0.001, -0.002]).astype(kind).astype(np.float32)).tolist()
    halves = [(t + neighbours(t * (1 + 1e-4), kind)[t > 0]) / 2 for t in ties]
    a = np.array([[*values, *halves]], np.float32)
    result = to_numpy(cast(space, a, DataType.FP32, target, mode), target)
    assert result.astype(np.float64).tolist() == [[narrowed(float(x), kind, mode) for x in a[0]]]


def test_ties_of_the_default_mode_go_away_from_zero() -> None:
    a = np.array([[1.00390625, -1.00390625, 1.01171875]], np.float32)
    assert cast("tile", a, DataType.FP32, DataType.BF16, "round").tolist() == [[1.0078125, -1.0078125, 1.015625]]
    assert cast("tile", a, DataType.FP32, DataType.BF16, "rint").tolist() == [[1.0, -1.0, 1.015625]]
    h = np.array([[1 + 2**-11, -(1 + 2**-11), 2**-25, 3 * 2**-25]], np.float32)
    assert cast("tile", h, DataType.FP32, DataType.FP16, "round").tolist() == [
        [1 + 2**-10, -1 - 2**-10, 2**-24, 2**-23]
    ]


@pytest.mark.parametrize("mode", ["round", "rint"])
@pytest.mark.parametrize("target", [DataType.FP16, DataType.BF16], ids=str)
def test_special_floats_survive(target: DataType, mode: str) -> None:
    a = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0]], np.float32)
    a = np.concatenate([a, np.array([[0xFFFFFFFF, 0x7FFFFFFF]], np.uint32).view(np.float32)], axis=1)
    have = cast("tile", a, DataType.FP32, target, mode).float().numpy()
    np.testing.assert_array_equal(have[0, :5], a[0, :5])
    assert np.isnan(have[0, 5:]).all()
    assert math.copysign(1, have[0, 4]) == -1


@pytest.mark.parametrize("target", [DataType.FP32, DataType.BF16, DataType.INT32], ids=str)
def test_casts_keep_the_region(target: DataType) -> None:
    a = sample((3, 5), DataType.FP16, 1)
    x = (to_torch(padded(a, (4, 6), DataType.FP16), DataType.FP16), tile((4, 6), DataType.FP16, (3, 5)))
    result, _ = run_op("tile.cast", [x], {"target_type": target, "mode": 1})
    assert region(result) == (3, 5)
    want = np.rint(a.astype(np.float32)) if target is DataType.INT32 else a.astype(np.float32)
    close(to_numpy(valid_part(result), target), want.astype(NUMPY[target]), target)


@pytest.mark.parametrize("target", [t for t in INTS if t not in (DataType.INT32, DataType.UINT64)], ids=str)
def test_integers_keep_their_low_bits(target: DataType) -> None:
    a = np.array([[300, -300, 70000, -1, 2**31 - 1, -(2**31)]], np.int32)
    result = to_numpy(cast("tile", a, DataType.INT32, target, "round"), target)
    np.testing.assert_array_equal(result, a.astype(NUMPY[target]))


def test_unsigned_words_become_floats_as_unsigned_numbers() -> None:
    a = np.array([[2**63 + 2**40, 5]], np.uint64)
    assert cast("tile", a, DataType.UINT64, DataType.FP32, "round").tolist() == [[float(2**63 + 2**40), 5.0]]


SMALL = {
    DataType.FP8E4M3FN: ml_dtypes.float8_e4m3fn,
    DataType.FP8E5M2: ml_dtypes.float8_e5m2,
    DataType.FP4: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("target", SMALL, ids=str)
def test_small_floats_are_rounded_to_their_grid(target: DataType) -> None:
    a = np.concatenate([np.linspace(-5, 5, 41), [0.0, 0.07, 1e-3, 3e-3, -0.07]]).astype(np.float32)[None]
    have = cast("tile", a, DataType.FP32, target, "rint")
    assert have.dtype == torch.float32
    np.testing.assert_array_equal(have.numpy(), a.astype(SMALL[target]).astype(np.float32))


def test_small_floats_round_ties_away_when_asked() -> None:
    a = np.array([[1.0625, -1.0625, 1.1875]], np.float32)
    assert cast("tile", a, DataType.FP32, DataType.FP8E4M3FN, "round").tolist() == [[1.125, -1.125, 1.25]]
    assert cast("tile", a, DataType.FP32, DataType.FP8E4M3FN, "rint").tolist() == [[1.0, -1.0, 1.25]]


def test_hf8_has_fewer_bits_the_larger_the_exponent() -> None:
    """HiFloat8: three bits of mantissa to 2**3, two to 2**7, one to 2**15; single powers below 2**-15."""
    a = np.array([[1.0625, 17.0, 18.0, 19.0, 300.0, 40000.0, 2.0**-20, 2.0**-20 * 1.4]], np.float32)
    have = cast("tile", a, DataType.FP32, DataType.HF8, "rint").tolist()[0]
    assert have == [1.0, 16.0, 18.0 - 2.0, 20.0, 256.0, 32768.0, 2.0**-20, 2.0**-20]


def test_int4_saturates_and_wraps() -> None:
    a = np.array([[9.0, -9.0, 2.5]], np.float32).astype(np.float16)
    assert cast("tile", a, DataType.FP16, DataType.INT4, "round").tolist() == [[7.0, -8.0, 3.0]]


def test_hf4_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="hf4"):
        cast("tile", np.zeros((1, 2), np.float32), DataType.FP32, DataType.HF4, "round")
