"""Element-wise operators against numpy, over element types, with and without padding, and on edge values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType

from .arrays import CLASSES, FLOATS, INTS, NUMPY, close, padded, sample, to_numpy, to_torch, wide
from .build import region, run_op, tensor, tile, valid_part

SHAPE, VALID = (4, 6), (3, 5)
Fn = Callable[..., Any]


def rounded(value: Any, dtype: DataType) -> np.ndarray:
    """A wide result in the element type (floats: nearest even)."""
    with np.errstate(all="ignore"):
        made: np.ndarray = np.asarray(value).astype(np.float32).astype(NUMPY[dtype])
    return made if dtype in FLOATS else np.asarray(value).astype(NUMPY[dtype])


def trunc_div(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Division that truncates."""
    if a.dtype.kind == "f" or a.dtype.kind == "V":
        return wide(a) / wide(b)
    q = [
        int(abs(int(x)) // abs(int(y))) * (1 if (int(x) < 0) == (int(y) < 0) else -1)
        for x, y in zip(a.flat, b.flat, strict=False)
    ]
    return np.array(q, dtype=object).reshape(a.shape).astype(a.dtype)


def python_mod(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.mod(wide(a), wide(b))


BINARY: dict[str, tuple[Fn, tuple[DataType, ...]]] = {
    "add": (lambda a, b: wide(a) + wide(b), CLASSES),
    "sub": (lambda a, b: wide(a) - wide(b), CLASSES),
    "mul": (lambda a, b: wide(a) * wide(b), CLASSES),
    "maximum": (lambda a, b: np.maximum(wide(a), wide(b)), CLASSES),
    "minimum": (lambda a, b: np.minimum(wide(a), wide(b)), CLASSES),
    "div": (trunc_div, (DataType.FP32, DataType.FP16, DataType.INT16, DataType.INT32)),
    "fmod": (lambda a, b: np.fmod(wide(a), wide(b)), (DataType.FP32, DataType.FP16, DataType.INT16, DataType.INT32)),
    "and": (np.bitwise_and, INTS),
    "or": (np.bitwise_or, INTS),
    "xor": (np.bitwise_xor, INTS),
}
SCALAR: dict[str, tuple[Fn, tuple[DataType, ...]]] = {
    "adds": (lambda a, s: wide(a) + s, CLASSES),
    "subs": (lambda a, s: wide(a) - s, (*FLOATS, DataType.INT8, DataType.INT16, DataType.INT32)),
    "muls": (lambda a, s: wide(a) * s, CLASSES),
    "divs": (lambda a, s: trunc_div(a, np.full_like(a, s)), CLASSES),
    "fmods": (lambda a, s: np.fmod(wide(a), s), (DataType.FP32, DataType.FP16, DataType.INT16, DataType.INT32)),
    "ands": (lambda a, s: a & s, INTS),
    "ors": (lambda a, s: a | s, INTS),
    "xors": (lambda a, s: a ^ s, INTS),
}
UNARY: dict[str, tuple[Fn, tuple[DataType, ...], int]] = {
    "neg": (lambda a: -wide(a), CLASSES, 0),
    "abs": (lambda a: np.abs(wide(a)), CLASSES, 0),
    "exp": (lambda a: np.exp(wide(a)), FLOATS, 2),
    "log": (lambda a: np.log(wide(a)), (DataType.FP32, DataType.FP16), 2),
    "sqrt": (lambda a: np.sqrt(wide(a)), FLOATS, 1),
    "rsqrt": (lambda a: 1 / np.sqrt(wide(a)), FLOATS, 2),
    "recip": (lambda a: 1 / wide(a), FLOATS, 1),
    "sin": (lambda a: np.sin(wide(a)), (DataType.FP32,), 4),
    "cos": (lambda a: np.cos(wide(a)), (DataType.FP32,), 4),
    "relu": (lambda a: np.maximum(wide(a), 0), (*FLOATS, DataType.INT32), 0),
    "not": (np.bitwise_not, (DataType.INT16, DataType.UINT16), 0),
}
EXTRA = {"tile.xor": 1, "tile.xors": 1}
"""Scratch operands that follow."""


def both_spaces(name: str) -> list[str]:
    return (
        [f"tile.{name}"]
        if name in ("relu", "rem", "rems", "maximums", "minimums")
        else [f"tensor.{name}", f"tile.{name}"]
    )


def of_type(space: str, shape: tuple[int, ...], dtype: DataType, valid: tuple[int, ...] | None) -> Any:
    return (tensor if space.startswith("tensor") else tile)(shape, dtype, valid)


def operand(op: str, a: np.ndarray, dtype: DataType, ragged: bool) -> Any:
    """An operand of SHAPE: `a` itself, or `a` as the valid part of a poisoned box."""
    box = padded(a, SHAPE, dtype) if ragged else a
    return to_torch(box, dtype), of_type(op, SHAPE, dtype, VALID if ragged else None)


def checked(op: str, operands: list[Any], want: np.ndarray, dtype: DataType, ragged: bool, ulps: int = 0) -> None:
    result, made = run_op(op, operands)
    assert made.dtype is dtype  # type: ignore[attr-defined]
    assert region(result) == (VALID if ragged else SHAPE)
    close(to_numpy(valid_part(result), dtype), want, dtype, ulps)


def rows(table: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(op, dtype, ragged, id=f"{op}-{dtype}{'-ragged' if ragged else ''}")
        for name, entry in table.items()
        for op in both_spaces(name)
        for dtype in entry[1]
        for ragged in (False, True)
    ]


@pytest.mark.parametrize(("op", "dtype", "ragged"), rows(BINARY))
def test_binary(op: str, dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a, b = sample(shape, dtype, 1), sample(shape, dtype, 2)
    with np.errstate(all="ignore"):
        want = rounded(BINARY[op.split(".")[1]][0](a, b), dtype)
    operands = [operand(op, a, dtype, ragged), operand(op, b, dtype, ragged)]
    operands += [operand(op, b, dtype, ragged)] * EXTRA.get(op, 0)
    checked(op, operands, want, dtype, ragged)


@pytest.mark.parametrize(("op", "dtype", "ragged"), rows(SCALAR))
def test_scalar(op: str, dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a = sample(shape, dtype, 3)
    value: Any = 0.7 if dtype in FLOATS else 5
    const = e.ConstFloat(value, dtype) if dtype in FLOATS else e.ConstInt(value, dtype)
    as_held = NUMPY[dtype](value) if dtype is not DataType.BF16 else np.float32(value).astype(NUMPY[dtype])
    with np.errstate(all="ignore"):
        want = rounded(SCALAR[op.split(".")[1]][0](a, np.float64(as_held) if dtype in FLOATS else as_held), dtype)
    operands = [operand(op, a, dtype, ragged), const] + [operand(op, a, dtype, ragged)] * EXTRA.get(op, 0)
    checked(op, operands, want, dtype, ragged)


@pytest.mark.parametrize(("op", "dtype", "ragged"), rows(UNARY))
def test_unary(op: str, dtype: DataType, ragged: bool) -> None:
    name = op.split(".")[1]
    fn, _, ulps = UNARY[name]
    positive = name in ("log", "sqrt", "rsqrt", "recip")
    a = sample(VALID if ragged else SHAPE, dtype, 4, low=0.1 if positive else -4.0)
    with np.errstate(all="ignore"):
        want = rounded(fn(a), dtype)
    checked(op, [operand(op, a, dtype, ragged)], want, dtype, ragged, ulps)


REMAINDERS = (DataType.FP32, DataType.FP16, DataType.INT16, DataType.INT32)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", REMAINDERS, ids=str)
def test_remainder_has_the_sign_of_the_divisor(dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a, b = sample(shape, dtype, 5), sample(shape, dtype, 6)
    want = rounded(python_mod(a, b), dtype)
    x, y = operand("tile.rem", a, dtype, ragged), operand("tile.rem", b, dtype, ragged)
    checked("tile.rem", [x, y, y], want, dtype, ragged, ulps=1)
    three = e.ConstFloat(3.0, dtype) if dtype in FLOATS else e.ConstInt(3, dtype)
    want = rounded(python_mod(a, np.full_like(a, 3)), dtype)
    checked("tile.rems", [x, three, x], want, dtype, ragged, ulps=1)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", CLASSES, ids=str)
@pytest.mark.parametrize(("op", "fn"), [("maximum", np.maximum), ("minimum", np.minimum)])
def test_extremes_with_a_number(op: str, fn: Fn, dtype: DataType, ragged: bool) -> None:
    a = sample(VALID if ragged else SHAPE, dtype, 7)
    const = e.ConstFloat(0.5, dtype) if dtype in FLOATS else e.ConstInt(3, dtype)
    want = rounded(fn(wide(a), wide(np.full_like(a, 0.5 if dtype in FLOATS else 3))), dtype)
    checked(f"tensor.{op}", [operand("tensor", a, dtype, ragged), const], want, dtype, ragged)
    checked(f"tile.{op}s", [operand("tile", a, dtype, ragged), const], want, dtype, ragged)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_shifts(space: str, dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    bits = dtype.get_bit()
    a = sample(shape, dtype, 8)
    n = (np.arange(int(np.prod(shape))).reshape(shape) % (bits + 2)).astype(NUMPY[dtype])
    left = np.array(
        [(int(x) << int(k)) % (1 << bits) if k < bits else 0 for x, k in zip(a.flat, n.flat, strict=False)], object
    )
    right = np.array([int(x) >> int(k) for x, k in zip(a.flat, n.flat, strict=False)], object)
    unsigned = np.dtype(f"uint{bits}")
    for op, want in (("shl", left.astype(unsigned).view(NUMPY[dtype])), ("shr", right.astype(NUMPY[dtype]))):
        operands = [operand(space, a, dtype, ragged), operand(space, n, dtype, ragged)]
        checked(f"{space}.{op}", operands, want.reshape(shape), dtype, ragged)
    three = e.ConstInt(3, dtype)
    low = np.array([(int(x) << 3) % (1 << bits) for x in a.flat], object).astype(unsigned).view(NUMPY[dtype])
    checked(f"{space}.shls", [operand(space, a, dtype, ragged), three], low.reshape(shape), dtype, ragged)
    high = np.array([int(x) >> 3 for x in a.flat], object).astype(NUMPY[dtype]).reshape(shape)
    checked(f"{space}.shrs", [operand(space, a, dtype, ragged), three], high, dtype, ragged)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.INT32], ids=str)
def test_three_operands(dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a, b, c = (sample(shape, dtype, 9 + k) for k in range(3))
    x, y, z = (operand("tile", v, dtype, ragged) for v in (a, b, c))
    two = e.ConstFloat(2.0, dtype) if dtype in FLOATS else e.ConstInt(2, dtype)
    with np.errstate(all="ignore"):
        checked("tile.addc", [x, y, z], (a + b) + c, dtype, ragged)
        checked("tile.subc", [x, y, z], (a - b) - c, dtype, ragged)
        checked("tile.addsc", [x, two, z], (a + NUMPY[dtype](2)) + c, dtype, ragged)
        checked("tile.subsc", [x, two, z], (a - NUMPY[dtype](2)) - c, dtype, ragged)


@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16], ids=str)
def test_three_narrow_operands_are_rounded_once(dtype: DataType) -> None:
    a, b, c = (sample(SHAPE, dtype, 19 + k) for k in range(3))
    x, y, z = (operand("tile", v, dtype, False) for v in (a, b, c))
    with np.errstate(all="ignore"):
        checked("tile.subc", [x, y, z], rounded(wide(a) - wide(b) - wide(c), dtype), dtype, False)
        checked("tile.addsc", [x, e.ConstFloat(2.0, dtype), z], rounded(wide(a) + 2 + wide(c), dtype), dtype, False)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16], ids=str)
def test_activations(dtype: DataType, ragged: bool) -> None:
    shape = VALID if ragged else SHAPE
    a, slope = sample(shape, dtype, 12), sample(shape, dtype, 13)
    x, y = operand("tile", a, dtype, ragged), operand("tile", slope, dtype, ragged)
    want = rounded(np.where(wide(a) > 0, wide(a), wide(a) * wide(slope)), dtype)
    checked(
        "tile.prelu",
        [x, y, (to_torch(np.zeros(SHAPE, np.uint8), DataType.UINT8), tile(SHAPE, DataType.UINT8))],
        want,
        dtype,
        ragged,
    )
    want = rounded(np.where(wide(a) > 0, wide(a), wide(a) * np.float64(NUMPY[dtype](0.3))), dtype)
    checked("tile.lrelu", [x, e.ConstFloat(0.3, dtype)], want, dtype, ragged)


@pytest.mark.parametrize("space", ["tensor", "tile"])
@pytest.mark.parametrize("op", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT8], ids=str)
def test_partial_operands(space: str, op: str, dtype: DataType) -> None:
    """The operation where both are valid, the one valid element elsewhere."""
    a, b = sample((3, 6), dtype, 14), sample((2, 4), dtype, 15)
    fn: Fn = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    want = a.copy()
    with np.errstate(all="ignore"):
        want[:2, :4] = rounded(fn(wide(a[:2, :4]), wide(b)), dtype)
    x = (to_torch(padded(a, SHAPE, dtype), dtype), of_type(space, SHAPE, dtype, (3, 6)))
    y = (to_torch(padded(b, SHAPE, dtype), dtype), of_type(space, SHAPE, dtype, (2, 4)))
    result, _ = run_op(f"{space}.part_{op}", [x, y])
    close(to_numpy(result[:3, :6], dtype), want, dtype)
    if space == "tile":
        assert region(result) == (3, 6)


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "rsqrt", "recip"])
def test_edge_values(op: str) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38, -1.0]], np.float32)
    with np.errstate(all="ignore"):
        want = np.asarray(UNARY[op][0](values)).astype(np.float32)
    x = (to_torch(values, DataType.FP32), tile((1, 8)))
    result, _ = run_op(f"tile.{op}", [x])
    have = to_numpy(result, DataType.FP32)
    np.testing.assert_array_equal(np.isnan(have), np.isnan(want))
    np.testing.assert_allclose(have, want, rtol=1e-6, equal_nan=True)
    np.testing.assert_array_equal(np.signbit(have[~np.isnan(want)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_limits_wrap(dtype: DataType) -> None:
    info = np.iinfo(NUMPY[dtype])
    a = np.array([[info.max, info.min, info.max]], NUMPY[dtype])
    b = np.array([[1, 1, info.max]], NUMPY[dtype])
    shape = (1, 3)
    x, y = (to_torch(a, dtype), tile(shape, dtype)), (to_torch(b, dtype), tile(shape, dtype))
    with np.errstate(all="ignore"):
        for op, want in (("add", a + b), ("sub", a - b), ("mul", a * b), ("neg", -a)):
            result, _ = run_op(f"tile.{op}", [x, y] if op != "neg" else [x])
            close(to_numpy(result, dtype), want, dtype)


def test_division_of_integers_by_zero_gives_zero() -> None:
    a = np.array([[7, -7, 0]], np.int32)
    x, zero = (
        (to_torch(a, DataType.INT32), tile((1, 3), DataType.INT32)),
        (to_torch(a * 0, DataType.INT32), tile((1, 3), DataType.INT32)),
    )
    for op, operands in (("div", [x, zero]), ("fmod", [x, zero]), ("rem", [x, zero, x])):
        result, _ = run_op(f"tile.{op}", operands)
        assert result.tolist() == [[0, 0, 0]]


def test_the_least_number_divided_by_minus_one_wraps() -> None:
    """The processor traps on this pair; the script must not hand it on."""
    for dtype in (DataType.INT16, DataType.INT32):
        low = np.iinfo(NUMPY[dtype]).min
        x = (to_torch(np.array([[low, 7]], NUMPY[dtype]), dtype), tile((1, 2), dtype))
        y = (to_torch(np.array([[-1, -1]], NUMPY[dtype]), dtype), tile((1, 2), dtype))
        for op, want in (("div", [low, -7]), ("fmod", [0, 0]), ("rem", [0, 0])):
            result, _ = run_op(f"tile.{op}", [x, y, x] if op == "rem" else [x, y])
            assert result.tolist() == [want]


@pytest.mark.parametrize(("op", "want"), [("adds", 4), ("maximums", 2**32 - 1), ("minimums", 5), ("ands", 5)])
def test_a_run_time_number_becomes_unsigned_first(op: str, want: int) -> None:
    """INT32 -1 beside UINT32 elements is 2**32 - 1."""
    from .build import Body, function, run

    def body(b: Body, x: e.Var, n: e.Var) -> None:
        b.ret(b.op("y", f"tile.{op}", x, n, type=x.type))

    f = function("f", [("x", tile((1, 1), DataType.UINT32)), ("n", e.ConstInt(0, DataType.INT32).type)], body)
    assert run(f, to_torch(np.array([[5]], np.uint32), DataType.UINT32), -1).tolist() == [[want]]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", ["fmod", "rem"])
def test_remainders_of_huge_quotients_are_exact(op: str, dtype: DataType) -> None:
    info = ml_dtypes.finfo(NUMPY[dtype])
    a = np.full((1, 16), float(info.max)).astype(NUMPY[dtype])
    b = np.full((1, 16), float(info.smallest_subnormal) * 3).astype(NUMPY[dtype])
    operands = [(to_torch(v, dtype), tile((1, 16), dtype)) for v in (a, b)]
    result, _ = run_op(f"tile.{op}", operands + [operands[0]] * (op == "rem"))
    close(to_numpy(result, dtype), np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(NUMPY[dtype]), dtype)


def test_mixed_types_are_promoted_first() -> None:
    """int32 with fp16 is fp16 whatever the widths; a float literal lifts an int tensor to FP32."""
    a, b = np.array([[2049, -3]], np.int32), np.array([[0.5, 0.25]], np.float16)
    x = (to_torch(a, DataType.INT32), tensor((1, 2), DataType.INT32))
    y = (to_torch(b, DataType.FP16), tensor((1, 2), DataType.FP16))
    result, made = run_op("tensor.add", [x, y])
    assert made.dtype is DataType.FP16  # type: ignore[attr-defined]
    close(to_numpy(result, DataType.FP16), a.astype(np.float16) + b, DataType.FP16)
    result, made = run_op("tensor.adds", [x, e.ConstFloat(0.5, DataType.FP32)])
    assert made.dtype is DataType.FP32  # type: ignore[attr-defined]
    assert result.tolist() == [[2049.5, -2.5]]


def test_tile_scalars_are_converted_to_the_element_type_first() -> None:
    a = (
        to_torch(np.array([[1.0, 2.0]], np.float32).astype(NUMPY[DataType.BF16]), DataType.BF16),
        tile((1, 2), DataType.BF16),
    )
    result, _ = run_op("tile.muls", [a, e.ConstFloat(0.1, DataType.FP32)])
    tenth = float(np.float32(0.1).astype(NUMPY[DataType.BF16]))
    assert result.tolist() == [[tenth, 2 * tenth]]
    b = (to_torch(np.array([[5, -5]], np.int32), DataType.INT32), tile((1, 2), DataType.INT32))
    result, _ = run_op("tile.adds", [b, e.ConstFloat(1.9, DataType.FP32)])
    assert result.tolist() == [[6, -4]]


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_broadcasting(space: str) -> None:
    a, b = sample((3, 4), DataType.FP32, 1), sample((1, 4), DataType.FP32, 2)
    x = (to_torch(a, DataType.FP32), of_type(space, (3, 4), DataType.FP32, None))
    y = (to_torch(b, DataType.FP32), of_type(space, (1, 4), DataType.FP32, None))
    result, _ = run_op(f"{space}.sub", [x, y])
    close(to_numpy(result, DataType.FP32), a - b, DataType.FP32)
