"""Element-wise operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_pypto.pypto.ir.dtypes import DataType as D

from ..arrays import CLASSES, FLOATS, INTS, NUMPY, padded, to_torch
from ..build import region, tensor, tile
from .kit import EDGES, FULL, RAGGED, Array, Example, Kit, both, case, lift, settle

Fn = Callable[..., Any]
SIGNED_MATH = (D.FP32, D.FP16, D.INT16, D.INT32)


def each(fn: Fn) -> Fn:
    """A function of Python numbers on arrays."""
    made: Fn = np.frompyfunc(fn, fn.__code__.co_argcount, 1)
    return made


def whole_quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def whole_rest(a: int, b: int) -> int:
    return 0 if b == 0 else a - b * whole_quotient(a, b)


def quotient(a: Array, b: Any) -> Any:
    return each(whole_quotient)(a, b) if a.dtype == object else a / b


def c_rest(a: Array, b: Any) -> Any:
    return each(whole_rest)(a, b) if a.dtype == object else np.fmod(a, b)


def python_rest(a: Array, b: Any) -> Any:
    return each(lambda x, y: 0 if y == 0 else x % y)(a, b) if a.dtype == object else np.mod(a, b)


def real(fn: Fn) -> Fn:
    """A function of real numbers, for operands of any type."""
    return lambda a: fn(np.asarray(a, np.float64))


BINARY: dict[str, tuple[Fn, tuple[D, ...]]] = {
    "add": (lambda a, b: a + b, CLASSES),
    "sub": (lambda a, b: a - b, CLASSES),
    "mul": (lambda a, b: a * b, CLASSES),
    "maximum": (np.maximum, CLASSES),
    "minimum": (np.minimum, CLASSES),
    "fmod": (c_rest, CLASSES),
    "and": (lambda a, b: a & b, INTS),
    "or": (lambda a, b: a | b, INTS),
    "xor": (lambda a, b: a ^ b, INTS),
}
TWICE = {"tile.xor", "tile.xors"}
"""Operators with a scratch operand behind the others."""


def binary(k: Kit) -> Example:
    fn = DIVISIONS[k.name] if k.name in DIVISIONS else BINARY[k.name][0]
    a, b = k.array(1), k.array(2)
    with np.errstate(all="ignore"):
        want = settle(fn(lift(a), lift(b)), k.dtype)
    extra = [k.scratch()] if k.op in TWICE or k.name == "rem" else []
    return Example([k.give(a), k.give(b), *extra], want, ulps=1 if k.name in ("rem", "fmod") else 0)


DIVISIONS: dict[str, Fn] = {"div": quotient, "rem": python_rest}
for _name, (_, _types) in BINARY.items():
    case(*both(_name), dtypes=_types)(binary)
case(*both("div"), dtypes=SIGNED_MATH)(binary)
case("tile.rem")(binary)

SCALAR: dict[str, tuple[Fn, tuple[D, ...]]] = {
    "adds": (lambda a, s: a + s, CLASSES),
    "muls": (lambda a, s: a * s, CLASSES),
    "divs": (quotient, CLASSES),
    "fmods": (c_rest, CLASSES),
    "ands": (lambda a, s: a & s, INTS),
    "ors": (lambda a, s: a | s, INTS),
    "xors": (lambda a, s: a ^ s, INTS),
}
MORE_SCALAR: dict[str, Fn] = {
    "subs": lambda a, s: a - s,
    "rems": python_rest,
    "maximums": np.maximum,
    "minimums": np.minimum,
    "lrelu": lambda a, s: np.where(a > 0, a, a * s),
}


def number_of(k: Kit) -> float:
    """One number per form; with edge values zero for divisions, else the largest."""
    if k.form == EDGES:
        if k.name in ("divs", "fmods", "rems"):
            return 0
        return math.inf if k.is_float else int(np.iinfo(NUMPY[k.dtype]).max)
    return (0.7 if k.form == FULL else -2.5) if k.is_float else (5 if k.form == FULL else 3)


def scalar(k: Kit) -> Example:
    fn = SCALAR[k.name][0] if k.name in SCALAR else MORE_SCALAR[k.name]
    a, s = k.array(1), number_of(k)
    with np.errstate(all="ignore"):
        want = settle(fn(lift(a), k.held(s)), k.dtype)
    extra = [k.scratch()] if k.op in TWICE or k.name == "rems" else []
    return Example([k.give(a), k.number(s), *extra], want, ulps=1 if k.name in ("rems", "fmods") else 0)


for _name, (_, _types) in SCALAR.items():
    case(*both(_name), dtypes=_types)(scalar)
case(*both("subs"), dtypes=(*FLOATS, D.INT8, D.INT16, D.INT32))(scalar)
case("tile.rems", "tile.maximums", "tile.minimums")(scalar)
case("tile.lrelu", dtypes=FLOATS, unsaid="slopes of integers are not described")(scalar)

UNARY: dict[str, tuple[Fn, tuple[D, ...], int]] = {
    "neg": (lambda a: -a, CLASSES, 0),
    "abs": (lambda a: abs(a), CLASSES, 0),
    "exp": (real(np.exp), FLOATS, 2),
    "sqrt": (real(np.sqrt), FLOATS, 1),
    "rsqrt": (real(lambda a: 1 / np.sqrt(a)), FLOATS, 2),
    "recip": (real(lambda a: 1 / a), FLOATS, 1),
    "log": (real(np.log), (D.FP32, D.FP16), 2),
    "sin": (real(np.sin), (D.FP32,), 4),
    "cos": (real(np.cos), (D.FP32,), 4),
    "relu": (lambda a: np.maximum(a, 0), CLASSES, 0),
    "not": (lambda a: ~a, (D.INT16, D.UINT16), 0),
}
BECOME_REAL = ("exp", "sqrt", "rsqrt", "recip")
"""Tensor forms that make FP32 of integers."""


def unary(k: Kit) -> Example:
    fn, _, ulps = UNARY[k.name]
    bounds = {"low": 0.1} if k.name in ("sqrt", "rsqrt", "recip", "log") and k.is_float and k.form != EDGES else {}
    a = k.array(1, **bounds)
    if k.name in ("sin", "cos"):
        a[np.isfinite(a) & (np.abs(a.astype(np.float64)) > 1e6)] = 3.25
    kind = D.FP32 if k.name in BECOME_REAL and not k.is_float else k.dtype
    with np.errstate(all="ignore"):
        want = settle(fn(lift(a)), kind)
    return Example([k.give(a)], want, ulps=ulps)


_REAL = "integers stay integers in the tile form; what they become is not described"
for _name, (_, _types, _) in UNARY.items():
    if _name in BECOME_REAL:
        case(f"tensor.{_name}", dtypes=CLASSES)(unary)
        case(f"tile.{_name}", dtypes=_types, unsaid=_REAL)(unary)
    else:
        _spaces = [f"tile.{_name}"] if _name == "relu" else both(_name)
        case(*_spaces, dtypes=_types)(unary)


@case(*both("shl", "shr"), dtypes=INTS)
def shift(k: Kit) -> Example:
    bits = k.dtype.get_bit()
    a = k.array(1)
    n = (np.arange(a.size).reshape(a.shape) % (bits + 2)).astype(NUMPY[k.dtype])
    return Example([k.give(a), k.give(n)], settle(shifted(k.name, a, n.astype(object), bits), k.dtype))


def shifted(name: str, a: Array, n: Any, bits: int) -> Any:
    left = each(lambda x, c: x << c if c < bits else 0)
    right = each(lambda x, c: x >> c)
    return (left if name.startswith("shl") else right)(a.astype(object), n)


@case(*both("shls", "shrs"), dtypes=INTS)
def shift_by_a_number(k: Kit) -> Example:
    bits = k.dtype.get_bit()
    count = {FULL: 3, RAGGED: bits - 1, EDGES: bits}[k.form]
    a = k.array(1)
    return Example([k.give(a), k.number(count)], settle(shifted(k.name, a, count, bits), k.dtype))


TERNARY: dict[str, Fn] = {
    "addc": lambda a, b, c: a + b + c,
    "subc": lambda a, b, c: a - b - c,
    "addsc": lambda a, b, c: a + b + c,
    "subsc": lambda a, b, c: a - b - c,
}


@case("tile.addc", "tile.subc", "tile.addsc", "tile.subsc")
def three(k: Kit) -> Example:
    by_number = k.name.endswith("sc")
    a, b, c = k.array(1), k.array(2), k.array(3)
    x, y, z = k.give(a), k.number(number_of(k)) if by_number else k.give(b), k.give(c)
    middle = k.held(number_of(k)) if by_number else lift(b)
    with np.errstate(all="ignore"):
        if k.dtype is D.FP32:
            first = settle(TERNARY[k.name](lift(a), middle, 0), k.dtype)
            want = settle(TERNARY[k.name](lift(first), lift(c), 0), k.dtype)
        else:
            want = settle(TERNARY[k.name](lift(a), middle, lift(c)), k.dtype)
    return Example([x, y, z], want)


@case("tile.prelu", dtypes=(D.FP32, D.FP16))
def prelu(k: Kit) -> Example:
    a, slope = k.array(1), k.array(2)
    with np.errstate(all="ignore"):
        want = settle(np.where(lift(a) > 0, lift(a), lift(a) * lift(slope)), k.dtype)
    return Example([k.give(a), k.give(slope), k.scratch(dtype=D.UINT8)], want)


@case(*both("part_add", "part_mul", "part_max", "part_min"), forms=(FULL,))
def partial(k: Kit) -> Example:
    """Operands of unequal regions: the operation where both are valid, the one valid element elsewhere."""
    fn: Fn = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[k.name[5:]]
    a, b = k.array(1, (3, 6)), k.array(2, (2, 4))
    want = a.copy()
    with np.errstate(all="ignore"):
        want[:2, :4] = settle(fn(lift(a[:2, :4]), lift(b)), k.dtype)
    types = tensor if k.space == "tensor" else tile
    x, y = ((to_torch(padded(v, (4, 6), k.dtype), k.dtype), types((4, 6), k.dtype, v.shape)) for v in (a, b))
    return Example([x, y], want)


SIGNS: list[Fn] = [
    lambda a, b: lift(a) == b,
    lambda a, b: lift(a) != b,
    lambda a, b: lift(a) < b,
    lambda a, b: lift(a) <= b,
    lambda a, b: lift(a) > b,
    lambda a, b: lift(a) >= b,
]


@case("tensor.cmp")
def compare(k: Kit) -> Example:
    a, b = k.array(1), k.array(2)
    b[:, ::2] = a[:, ::2]
    code = {FULL: 2, RAGGED: 0, EDGES: 5}[k.form]
    return Example(
        [k.give(a), k.give(b)], settle(SIGNS[code](a, lift(b)).astype(np.int64), k.dtype), {"cmp_type": code}
    )


def bits_of(mask: Array) -> Array:
    """Packed bytes, lowest bit first."""
    return np.packbits(mask, axis=-1, bitorder="little")


def same_bits(mask: Array) -> Callable[[Any], None]:
    """A check of the valid bits of a packed mask, and of its region in bytes."""

    def check(result: Any) -> None:
        rows, cols = mask.shape
        have = np.unpackbits(result.numpy()[:rows], axis=-1, bitorder="little")[:, :cols]
        np.testing.assert_array_equal(have.astype(bool), mask)
        assert region(result) == (rows, -(-cols // 8))

    return check


@case("tile.cmp")
def mask_of_two(k: Kit) -> Example:
    a, b = k.array(1), k.array(2)
    b[:, ::2] = a[:, ::2]
    code = {FULL: 4, RAGGED: 1, EDGES: 3}[k.form]
    return Example([k.give(a), k.give(b)], same_bits(SIGNS[code](a, lift(b)).astype(bool)), {"cmp_type": code})


@case("tile.cmps")
def mask_of_one(k: Kit) -> Example:
    a = k.array(1)
    code = {FULL: 2, RAGGED: 5, EDGES: 0}[k.form]
    s = number_of(k)
    want = same_bits(SIGNS[code](a, k.held(s)).astype(bool))
    return Example([k.give(a), k.number(s)], want, {"cmp_type": code})


def chosen(k: Kit) -> tuple[Array, Any]:
    """A mask, and the bytes that a program would load for it."""
    mask = np.random.default_rng(5).integers(0, 2, k.valid).astype(bool)
    packed = np.zeros((k.valid[0], 32), np.uint8)
    packed[:, : -(-k.valid[1] // 8)] = bits_of(mask)
    rows = np.zeros((k.box[0], 32), np.uint8)
    rows[: k.valid[0]] = packed
    return mask, k.plain(rows, D.UINT8)


@case("tile.sel")
def select(k: Kit) -> Example:
    mask, bits = chosen(k)
    a, b = k.array(1), k.array(2)
    return Example([bits, k.give(a), k.give(b), k.scratch((1, 32), D.UINT8)], np.where(mask, a, b))


@case("tile.sels")
def select_or_number(k: Kit) -> Example:
    from pytest_pypto.pypto.ir import expr as e

    mask, bits = chosen(k)
    a = k.array(1)
    twin = {D.UINT8: D.INT8, D.UINT16: D.INT16, D.UINT32: D.INT32}.get(k.dtype, k.dtype)
    value = -3.5 if k.is_float else -3
    const = e.ConstFloat(value, twin) if k.is_float else e.ConstInt(int(value), twin)
    other = settle(np.full(k.valid, value), k.dtype)
    return Example([bits, k.give(a), k.scratch((1, 32), D.UINT8), const], np.where(mask, a, other))
