"""Operators that create, move, reshape and address data; conversions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType as D
from pytest_pypto.pypto.ir.enums import PadValue, TensorLayout

from ..arrays import INTS, NUMPY, padded, to_numpy, to_torch
from ..build import tensor, tile
from .kit import EDGES, FULL, LEFT, MAT, RAGGED, Array, Example, Kit, both, case, edge_values, lift, settle

TWO = (FULL, RAGGED)


@case("tile.load")
def load(k: Kit) -> Example:
    a = k.array(2)
    window = tuple(a.shape)
    valid = (window[0] - 1, window[1] - 2)
    x = k.give(a, space="tensor")
    start = (1, 1) if k.ragged else (0, 0)
    box = (2, 3) if k.ragged else window
    valid = (2, 3) if k.ragged else valid
    want = a[start[0] : start[0] + valid[0], start[1] : start[1] + valid[1]]
    return Example([x, start, box, valid], want)


@case("tile.store")
def store(k: Kit) -> Example:
    a = k.array(2)
    out = k.array(1, (12, 12))
    want = out.copy()
    want[1 : 1 + a.shape[0], 2 : 2 + a.shape[1]] = a
    return Example([k.give(a), (1, 2), k.plain(out, space="tensor")], want)


@case("tensor.create", forms=(FULL,))
def create(k: Kit) -> Example:
    return Example([(2, 3)], np.full((2, 3), 3, NUMPY[k.dtype]), {"dtype": k.dtype, "init_value": 3.0})


@case("tile.create", "tensor.create_l1", forms=(FULL,))
def create_empty(k: Kit) -> Example:
    """What is not defined is zero here, so that runs repeat."""
    return Example([(2, 3)], np.zeros((2, 3), NUMPY[k.dtype]), {"dtype": k.dtype})


@case(*both("full"), forms=(FULL, EDGES))
def full(k: Kit) -> Example:
    value = edge_values(k.dtype)[0] if k.form == EDGES else (2.5 if k.is_float else 7)
    return Example([(2, 3), k.number(value)], settle(np.full((2, 3), value), k.dtype), {"dtype": k.dtype})


@case(*both("ci"), dtypes=(D.INT16, D.INT32, D.UINT16, D.UINT32), forms=TWO)
def ramp(k: Kit) -> Example:
    down = k.ragged
    want = settle(20 + np.arange(30) * (-1 if down else 1), k.dtype)[None]
    return Example([k.number(20), (1, 30)], want, {"dtype": k.dtype, "descending": down})


@case("tile.tri", forms=TWO)
def triangle(k: Kit) -> Example:
    upper = k.ragged
    ones = np.ones((4, 6), np.int64)
    whole = np.triu(ones, 1) if upper else np.tril(ones, -1)
    rows, cols = k.valid
    operands: list[Any] = [e.ConstInt(1 if upper else -1, D.INT32), (4, 6)]
    operands += [(rows, cols)] if k.ragged else []
    return Example(operands, settle(whole[:rows, :cols], k.dtype), {"dtype": k.dtype, "upper": upper})


def philox(key: tuple[int, int], counter: int, rounds: int) -> list[int]:
    x = [(counter >> (32 * n)) & 0xFFFFFFFF for n in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(p1 >> 32) ^ x[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ x[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x


@case(*both("random"), dtypes=(D.INT32, D.UINT32), forms=(FULL,))
def random(k: Kit) -> Example:
    seeds = [e.ConstInt(v, D.INT32) for v in (3, -1, 5, 0, 0, -2)]
    words = [w for n in range(3) for w in philox((3, 0xFFFFFFFF), 5 + ((2**32 - 2) << 96) + n, 7)]
    want = np.array(words, np.uint32).view(NUMPY[k.dtype]).reshape(2, 6)
    return Example([*seeds, (2, 6)], want, {"dtype": k.dtype, "rounds": 7})


@case(*both("read"), forms=(FULL, EDGES))
def read(k: Kit) -> Example:
    a = k.array(2)

    def check(result: Any) -> None:
        have = NUMPY[k.dtype](result) if k.is_float else result
        np.testing.assert_equal(np.asarray(have, a.dtype), a[1, 2])

    return Example([k.give(a), (1, 2)], check)


@case(*both("write"), forms=(FULL, RAGGED))
def write(k: Kit) -> Example:
    a = k.array(2)
    want = a.copy()
    want[1, 2] = settle(-3.5 if k.is_float else 3, k.dtype)
    return Example([k.give(a), (1, 2), k.number(-3.5 if k.is_float else 3)], want)


@case("tensor.dim", forms=TWO)
def dim(k: Kit) -> Example:
    def check(result: Any) -> None:
        assert result == k.box[1]

    return Example([k.give(k.array(1)), -1], check)


PADS = {FULL: PadValue.zero, RAGGED: PadValue.min, EDGES: PadValue.max}


def pad_number(k: Kit) -> Any:
    if PADS[k.form] is PadValue.zero:
        return 0
    info = np.finfo(np.float32) if k.is_float else np.iinfo(NUMPY[k.dtype])
    if k.is_float:
        import ml_dtypes

        info = ml_dtypes.finfo(NUMPY[k.dtype])
    return info.min if PADS[k.form] is PadValue.min else info.max


@case(*both("fillpad"), "tile.fillpad_inplace", *both("fillpad_expand"))
def fillpad(k: Kit) -> Example:
    a = k.array(1, (3, 5))
    types = tensor if k.space == "tensor" else tile
    x = (to_torch(padded(a, (4, 6), k.dtype), k.dtype), types((4, 6), k.dtype, (3, 5)))
    box = (5, 8) if k.name.endswith("expand") else (4, 6)
    want = np.full(box, pad_number(k), NUMPY[k.dtype])
    want[:3, :5] = a
    return Example([x, box] if k.name.endswith("expand") else [x], want, {"pad_value": PADS[k.form]})


# shapes --------------------------------------------------------------------------------------------------------------


@case(*both("slice"))
def window(k: Kit) -> Example:
    a = k.array(2)
    if k.ragged:
        return Example([k.give(a), (2, 4), (1, 1)], a[1:3, 1:5])
    return Example([k.give(a), (3, 4), (1, 2), (2, 3)], a[1:3, 2:5])


@case("tile.extract")
def extract(k: Kit) -> Example:
    a = k.array(2)
    kwargs = {"target_memory": LEFT}
    if k.ragged:
        return Example([k.give(a), 1, 1, (2, 5)], a[1:3, 1:5], kwargs)
    return Example([k.give(a), 1, 2, (3, 4)], a[1:4, 2:6], kwargs)


@case(*both("assemble"))
def assemble(k: Kit) -> Example:
    a, s = k.array(1, (6, 8)), k.array(2, (2, 3))
    want = a.copy()
    want[3:5, 4:7] = s
    source = k.plain(s) if k.space == "tile" else k.give(s, box=(3, 4))
    return Example([k.plain(a), source, (3, 4)], want)


@case(*both("reshape"))
def reshape(k: Kit) -> Example:
    if k.ragged:
        a = k.array(2, (3, 8))
        return Example([k.give(a, box=(4, 8)), (8, 4)], a.reshape(6, 4))
    a = k.array(2)
    return Example([k.give(a), (a.shape[1], a.shape[0])], a.reshape(a.shape[::-1]))


@case(*both("transpose"))
def transpose(k: Kit) -> Example:
    a = k.array(2)
    return Example([k.give(a), 0, 1], a.T)


@case("tile.transpose_view")
def transpose_view(k: Kit) -> Example:
    a = k.array(2)
    return Example([k.give(a)], a.T)


@case("tensor.view", forms=(FULL, EDGES))
def view(k: Kit) -> Example:
    a = k.array(2)
    if k.form == FULL:
        return Example([k.give(a)], a.T, {"layout": TensorLayout.DN})
    a = np.concatenate([a, a])
    return Example([k.give(a), (a.size // 2, 2)], a.reshape(2, -1).T, {"layout": TensorLayout.DN})


@case(*both("reinterpret_view"), forms=(FULL, EDGES))
def reinterpret(k: Kit) -> Example:
    a = k.array(2, (4, 16)) if k.form == FULL else k.array(2)
    target = D.UINT8 if k.dtype is not D.UINT8 else D.INT8
    return Example([k.give(a)], np.ascontiguousarray(a).view(NUMPY[target]), {"dtype": target})


@case(*both("concat"))
def concat(k: Kit) -> Example:
    a, b = k.array(1), k.array(2)
    return Example([k.give(a), k.give(b)], np.concatenate([a, b], axis=1))


@case(*both("set_validshape"), forms=(FULL, RAGGED))
def set_validshape(k: Kit) -> Example:
    a = k.array(1)
    return Example([k.give(a), 2, 3], a[:2, :3])


@case("tile.move")
def move(k: Kit) -> Example:
    a = k.array(2)
    return Example([k.give(a)], a, {"target_memory": MAT})


@case(*both("alloc"), forms=(FULL,), dtypes=(D.UINT8,), unsaid="it takes a number of bytes")
def alloc(k: Kit) -> Example | None:
    from ..build import Body, call, code_of, function, run

    def body(b: Body, x: e.Var) -> None:
        b.let("mem", call(k.op, [1, 4096]))
        b.ret(b.op("y", "tile.add", x, x))

    f = function("f", [("x", tile((2, 2)))], body)
    assert "mem" not in code_of(f)
    assert run(f, torch.ones(2, 2)).tolist() == [[2.0, 2.0]] * 2
    return None


# conversions ---------------------------------------------------------------------------------------------------------


def rounded_half_even(x: float) -> int:
    """The nearest whole number, ties to even, from exact fractions."""
    low = math.floor(x)
    rest = Fraction(x) - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def whole(x: float, target: D) -> int:
    """A float as an integer: rounded, saturated, NaN as 0."""
    info = np.iinfo(NUMPY[target])
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return int(info.max if x > 0 else info.min)
    return max(int(info.min), min(int(info.max), rounded_half_even(x)))


@case(*both("cast"))
def cast(k: Kit) -> Example | None:
    """To every other element type, by rounding to nearest."""
    from ..arrays import CLASSES
    from ..build import run_op, valid_part

    a = k.array(2)
    for target in CLASSES:
        if target is k.dtype:
            continue
        if k.is_float and target in INTS:
            want = np.array([whole(float(x), target) for x in a.flat], object).astype(NUMPY[target]).reshape(a.shape)
        else:
            want = settle(lift(a).astype(np.float64) if not k.is_float and target not in INTS else lift(a), target)
        result, made = run_op(k.op, [k.give(a)], {"target_type": target, "mode": 1})
        assert made.dtype is target  # type: ignore[attr-defined]
        np.testing.assert_array_equal(_wide(to_numpy(valid_part(result), target)), _wide(want), str(target))
    return None


def _wide(a: Array) -> Array:
    return a if a.dtype.kind in "iub" else a.astype(np.float64)
