"""Vector operations that the kit's kernels do not cover, against numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device.machine.dtypes import NUMPY

from .calculation import Array, Calc, scratch
from .texts import Kernel, run, single

F = np.float32
INT = np.int32


def floats(seed: int, *shape: int, dtype: Any = F) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def ints(seed: int, *shape: int, low: int = -50, high: int = 50, dtype: Any = INT) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["i32", "i16", "ui16"])
def test_shift_by_a_tile(dtype: str, tmp_path: Path) -> None:
    kind = NUMPY[dtype]
    a, b = ints(1, 16, 32, low=0, dtype=kind), ints(2, 16, 32, low=0, high=9, dtype=kind)
    calc = Calc(tmp_path, lambda k: k.op("tshl", ["ta", "tb"], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a, b=b), np.left_shift(a, b))


def test_exclusive_or_has_a_scratch_operand(tmp_path: Path) -> None:
    a, b = ints(1, 16, 32), ints(2, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op("txor", ["ta", "tb", scratch(k, 16, 32, "i32")], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a, b=b), a ^ b)


@pytest.mark.parametrize("op", ["trem", "tfmod"])
def test_remainders_differ_in_sign(op: str, tmp_path: Path) -> None:
    a, b = floats(1, 16, 32), np.where(floats(2, 16, 32) > 0, 0.75, -0.75).astype(F)

    def body(k: Kernel) -> None:
        k.op(op, ["ta", "tb", scratch(k, 16, 32)] if op == "trem" else ["ta", "tb"], ["d"])

    got = Calc(tmp_path, body)(np.zeros_like(a), a=a, b=b)
    np.testing.assert_allclose(got, (np.mod if op == "trem" else np.fmod)(a, b), atol=1e-6)


def test_division_by_a_scalar(tmp_path: Path) -> None:
    a = floats(1, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op("tdivs", ["ta", (k.c(3.0, "f32"), "f32")], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a), a / F(3))


@pytest.mark.parametrize("op", ["tsubsc", "taddsc"])
def test_tile_scalar_tile(op: str, tmp_path: Path) -> None:
    a, b = floats(1, 16, 32), floats(2, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op(op, ["ta", (k.c(0.5, "f32"), "f32"), "tb"], ["d"]))
    wanted = a + F(0.5) + b if op == "taddsc" else a - F(0.5) - b
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a, b=b), wanted)


def test_prelu(tmp_path: Path) -> None:
    a, b = floats(1, 16, 32), floats(2, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op("tprelu", ["ta", "tb", scratch(k, 32, 32, "ui8")], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a, b=b), np.where(a > 0, a, a * b))


@pytest.mark.parametrize(
    ("op", "fn"), [("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)]
)
@pytest.mark.parametrize("box", [(8, 32), (16, 16), (5, 7), (16, 32)])
def test_partial_operations_keep_the_larger_operand(op: str, fn: Any, box: tuple[int, int], tmp_path: Path) -> None:
    a, b = floats(1, 16, 32), floats(2, 16, 32)
    wanted = a.copy()
    wanted[: box[0], : box[1]] = fn(a, b)[: box[0], : box[1]]
    calc = Calc(tmp_path, lambda k: k.op(f"tpart{op}", ["ta", "tb"], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), valid={"b": box}, a=a, b=b), wanted)


def test_partial_operation_of_crossing_boxes(tmp_path: Path) -> None:
    """Where neither operand is valid nothing is written; reading it would be reported."""
    a, b = floats(1, 16, 32), floats(2, 16, 32)
    boxes = {"a": (16, 16), "b": (8, 32)}
    calc = Calc(tmp_path, lambda k: k.op("tpartadd", ["ta", "tb"], ["d"]))
    wanted = np.zeros_like(a)
    wanted[:8] = b[:8]
    wanted[:, :16] = a[:, :16]
    wanted[:8, :16] += b[:8, :16]
    got = calc(np.zeros_like(a), valid=boxes, stored=(8, 32), checked=False, a=a, b=b)
    np.testing.assert_array_equal(got[:8], wanted[:8])
    result = calc.run(np.zeros_like(a), boxes, (16, 32), (), {"a": a, "b": b})
    assert "uninitialised" in {f.kind.value for f in result.findings}


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("op", ["sub", "expdif"])
def test_expansion_of_a_vector(axis: str, op: str, tmp_path: Path) -> None:
    a, v = floats(1, 16, 32), floats(2, *((16, 1) if axis == "row" else (1, 32)))

    k = Kernel("k", [("a", "f32", (16, 32)), ("v", "f32", v.shape), ("o", "f32", (16, 32))])
    k.tile("ta", 16, 32, 0)
    k.load("a", "ta", (0, 0), (16, 32))
    layout = ("col_major", "none_box", 512) if axis == "row" else None
    k.tile("tv", *v.shape, 4096, layout=layout)
    k.load("v", "tv", (0, 0), v.shape)
    k.tile("d", 16, 32, 8192)
    k.op(f"t{axis}expand{op}", ["ta", "tv"], ["d"])
    k.store("d", "o", (0, 0), (16, 32))
    out = np.zeros_like(a)
    assert run(single(tmp_path, k, ["o"]), a, v, out).findings == ()
    np.testing.assert_allclose(out, a - v if op == "sub" else np.exp(a - v), rtol=3e-6)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("which", ["max", "min"])
@pytest.mark.parametrize("case", ["ties", "nan", "random"])
def test_place_of_the_extreme_value(axis: int, which: str, case: str, tmp_path: Path) -> None:
    """The first of equal values, the first NaN."""
    a = floats(1, 16, 32)
    if case == "ties":
        a = np.round(a)
    if case == "nan":
        a[3, 4] = a[3, 9] = a[7, 4] = np.nan
    name = "row" if axis == 1 else "col"
    shape = (16, 1) if axis == 1 else (1, 32)
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "i32", shape)])
    k.tile("ta", 16, 32, 0)
    k.load("a", "ta", (0, 0), (16, 32))
    k.tile("s", 16, 32, 4096)
    k.tile("d", *shape, 8192, dtype="i32", layout=("col_major", "none_box", 512) if axis == 1 else None)
    k.op(f"t{name}arg{which}", ["ta", "s"], ["d"])
    k.store("d", "o", (0, 0), shape)
    out = np.zeros(shape, INT)
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    np.testing.assert_array_equal(out, (np.argmax if which == "max" else np.argmin)(a, axis=axis, keepdims=True))


@pytest.mark.parametrize(("pad", "value"), [(1, 0.0), (2, np.inf), (3, -np.inf)])
def test_fillpad_into_a_larger_tile(pad: int, value: float, tmp_path: Path) -> None:
    a = floats(1, 16, 32)
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "f32", (32, 64))])
    k.tile("ta", 16, 32, 0, valid=(13, 20))
    k.load("a", "ta", (0, 0), (13, 20))
    k.tile("d", 32, 64, 8192, pad=pad)
    k.op("tfillpad_expand", ["ta"], ["d"])
    k.store("d", "o", (0, 0), (32, 64))
    out, wanted = np.zeros((32, 64), F), np.full((32, 64), value, F)
    wanted[:13, :20] = a[:13, :20]
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [-3, 0, 5])
@pytest.mark.parametrize("dtype", ["i32", "f32", "ui8"])
def test_triangle(upper: int, diagonal: int, dtype: str, tmp_path: Path) -> None:
    kind = NUMPY[dtype]

    def body(k: Kernel) -> None:
        at = k.c(diagonal, "i32")
        k.line(f'"pto.ttri"({at}, %d) {{upperOrLower = {upper} : i32}} : (i32, {k.types["d"]}) -> ()')

    got = Calc(tmp_path, body)(np.full((16, 32), 7, kind))
    ones = np.ones((16, 32), kind)
    np.testing.assert_array_equal(got, np.triu(ones, diagonal) if upper else np.tril(ones, diagonal))


def test_random_words_depend_on_every_seed(tmp_path: Path) -> None:
    seen = []
    for changed in (None, *range(6)):
        words = [i + 1 + (i == changed) for i in range(6)]

        def body(k: Kernel, words: list[int] = words) -> None:
            k.op("trandom", [(k.c(w, "i32"), "i32") for w in words], ["d"])

        calc = Calc(tmp_path, body)
        first = calc(np.zeros((16, 32), np.uint32)).copy()
        np.testing.assert_array_equal(first, calc(np.zeros((16, 32), np.uint32)))
        seen.append(first.tobytes())
        assert len(np.unique(first)) > 500
    assert len(set(seen)) == 7
