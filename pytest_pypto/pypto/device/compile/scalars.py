"""Scalar arithmetic of kernels as Python source. Index values are Python integers; sized integers wrap."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..machine.dtypes import numpy_type
from ..text.nodes import Op
from ..text.types import PtoType, ScalarT, itemsize

Number = int | float | bool


def width(typ: PtoType) -> int | None:
    """Bits of a sized integer; None for index and floats."""
    match = re.fullmatch(r"(?:ui|i)(\d+)", typ.dtype) if isinstance(typ, ScalarT) else None
    return int(match[1]) if match else None


def is_float_type(typ: PtoType) -> bool:
    """True for f32, f16, bf16, ..."""
    return isinstance(typ, ScalarT) and typ.dtype.startswith(("f", "bf"))


def is_whole_type(typ: PtoType) -> bool:
    """True for index and the sized integers; a truth value (i1) is no number."""
    return typ == ScalarT("index") or (width(typ) or 0) > 1


def misfit(op: Op) -> str | None:
    """What is wrong with the types of a scalar operation, None when nothing is."""
    name, types = op.name.rsplit(".", 1)[1], (*op.types, *op.out_types)
    if not all(isinstance(t, ScalarT) for t in types):
        return f"works on numbers, not on {' and '.join(sorted({str(t) for t in types}))}"
    if name == "select":
        return None
    if name in _CASTS:
        return _cast_misfit(name, op.types[0], op.out_types[0])
    floats = name.endswith("f")
    if all(is_float_type(t) == floats for t in op.types):
        return None
    return f"works on {'floating' if floats else 'integer'} operands, not on {op.types[0]}"


_CASTS = {
    "index_cast": ("integer", "integer"),
    "index_castui": ("integer", "integer"),
    "trunci": ("integer", "integer"),
    "extsi": ("integer", "integer"),
    "extui": ("integer", "integer"),
    "sitofp": ("integer", "floating"),
    "uitofp": ("integer", "floating"),
    "fptosi": ("floating", "integer"),
    "fptoui": ("floating", "integer"),
    "extf": ("floating", "floating"),
    "truncf": ("floating", "floating"),
    "bitcast": (None, None),
}
"""Kinds of the operand and the result; None stands for any."""


def _cast_misfit(name: str, src: PtoType, dst: PtoType) -> str | None:
    for typ, kind, what in zip((src, dst), _CASTS[name], ("takes", "gives"), strict=True):
        if kind is not None and is_float_type(typ) != (kind == "floating"):
            return f"{what} a {kind} number, not {typ}"
    a, b = _bits(src), _bits(dst)
    if name.startswith("index_cast"):
        return None if (a is None) != (b is None) else f"casts between index and a sized integer, not {src} to {dst}"
    if name == "bitcast" and (a is None or a != b):
        return f"needs two types of the same width, not {src} and {dst}"
    if a is None or b is None:
        return f"takes no index; cast {src} to {dst} with arith.index_cast"
    if (name.startswith("ext") and a >= b) or (name.startswith("trunc") and a <= b):
        return f"cannot turn {src} into {dst}"
    return None


def _bits(typ: PtoType) -> int | None:
    """Bits of a number; None for index."""
    if not isinstance(typ, ScalarT) or typ.dtype == "index":
        return None
    return 1 if typ.dtype == "i1" else 8 * itemsize(typ.dtype)


def wrapped(value: int, bits: int, unsigned: bool) -> int:
    """The low `bits` bits of `value` as a signed or unsigned number."""
    value &= (1 << bits) - 1
    return value if unsigned or value < 1 << (bits - 1) else value - (1 << bits)


def quotient(a: int, b: int) -> int:
    """Truncated quotient; 0 for a divisor of 0."""
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def remainder(a: int, b: int) -> int:
    """Remainder with the sign of the dividend; 0 for a divisor of 0."""
    return a - b * quotient(a, b) if b else 0


def float_quotient(a: float, b: float) -> float:
    """IEEE quotient."""
    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


def to_whole(x: float, bits: int, unsigned: bool) -> int:
    """Truncated, saturated; NaN gives 0."""
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    if math.isnan(x):
        return 0
    return max(low, min(high, int(x) if math.isfinite(x) else (high if x > 0 else low)))


def rounded(dtype: str) -> Callable[[float], float]:
    """Rounding of a Python float to a floating type."""
    target = numpy_type(dtype)

    def run(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(np.asarray(x, np.float64).astype(np.float32).astype(target))

    return run


_PLAIN = {"addi": "+", "subi": "-", "muli": "*", "andi": "&", "ori": "|", "xori": "^"}
_PLAIN |= {"addf": "+", "subf": "-", "mulf": "*"}
_CALLS: dict[str, Callable[..., Any]] = {
    "divsi": quotient,
    "remsi": remainder,
    "divui": lambda a, b: a // b if b else 0,
    "remui": lambda a, b: a % b if b else 0,
    "floordivsi": lambda a, b: a // b if b else 0,
    "ceildivsi": lambda a, b: -(-a // b) if b else 0,
    "minsi": min,
    "maxsi": max,
    "minui": min,
    "maxui": max,
    "divf": float_quotient,
    "remf": lambda a, b: math.fmod(a, b) if b and math.isfinite(a) else math.nan,
    "minimumf": lambda a, b: math.nan if a != a or b != b else min(a, b),
    "maximumf": lambda a, b: math.nan if a != a or b != b else max(a, b),
    "minnumf": lambda a, b: b if a != a else a if b != b else min(a, b),
    "maxnumf": lambda a, b: b if a != a else a if b != b else max(a, b),
}
_WRAPS = frozenset(["addi", "subi", "muli", "shli"])
_GROWS = frozenset(["muli", "shli"])
"""Operations that double the digits of an index; the others make them longer by one."""


def bounded(value: int) -> int:
    """An index as a 64-bit number."""
    return value if -(1 << 63) <= value < 1 << 63 else wrapped(value, 64, False)


def shift(name: str, bits: int) -> Callable[[int, int], int]:
    """`shli`, `shrsi`, `shrui` on `bits` bits; counts beyond the width give 0 (or the sign)."""
    mask = (1 << bits) - 1

    def run(a: int, b: int) -> int:
        if name == "shrsi":
            return a >> min(max(b, 0), bits)
        if not 0 <= b < bits:
            return 0
        return (a << b) & mask if name == "shli" else (a & mask) >> b

    return run


def binary(op: Op, bind: Callable[[str, Any], str], a: str, b: str) -> str:
    """Source of a binary operation on the sources `a` and `b`."""
    name, typ = op.name.removeprefix("arith."), op.types[0]
    bits = width(typ)
    if name in _PLAIN:
        code = f"{a} {_PLAIN[name]} {b}"
    elif name.startswith("sh"):
        code = f"{bind('f', shift(name, bits or 64))}({a}, {b})"
    elif name in ("minsi", "maxsi"):
        code = f"{name[:3]}({a}, {b})"
    else:
        if name in ("divui", "remui", "minui", "maxui"):
            mask = (1 << (bits or 64)) - 1
            a, b = f"({a}) & {mask}", f"({b}) & {mask}"
        code = f"{bind('f', _CALLS[name])}({a}, {b})"
    if is_float_type(typ) and isinstance(typ, ScalarT):
        return f"{bind('f', rounded(typ.dtype))}({code})"
    if bits is not None and bits > 1 and name in _WRAPS and isinstance(typ, ScalarT):
        return f"{bind('f', wrapped)}({code}, {bits}, {typ.dtype.startswith('u')})"
    if name in _GROWS and typ == ScalarT("index"):
        return f"{bind('f', bounded)}({code})"
    return code


_SIGNED = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_UNSIGNED = {"ult": "<", "ule": "<=", "ugt": ">", "uge": ">="}
_ORDERED = {"oeq": "==", "olt": "<", "ole": "<=", "ogt": ">", "oge": ">="}


def compare(op: Op, a: str, b: str) -> str:
    """Source of a comparison."""
    predicate, typ = op.attrs["predicate"], op.types[0]
    if op.name == "arith.cmpi":
        if predicate in _SIGNED:
            return f"{a} {_SIGNED[predicate]} {b}"
        mask = (1 << (width(typ) or 64)) - 1
        return f"({a}) & {mask} {_UNSIGNED[predicate]} ({b}) & {mask}"
    nan = f"({a} != {a} or {b} != {b})"
    if predicate in _ORDERED:
        return f"{a} {_ORDERED[predicate]} {b}"
    table = {"one": f"not {nan} and {a} != {b}", "une": f"{a} != {b}", "ord": f"not {nan}", "uno": nan}
    table |= {f"u{k[1:]}": f"{nan} or {a} {v} {b}" for k, v in _ORDERED.items()}
    return table[predicate]


def cast(op: Op, bind: Callable[[str, Any], str], a: str) -> str:
    """Source of a conversion."""
    src, dst = op.types[0], op.out_types[0]
    name = op.name.rsplit(".", 1)[1]
    bits, target = width(dst), dst.dtype if isinstance(dst, ScalarT) else ""
    if name in ("extf",):
        return a
    if name in ("sitofp", "uitofp", "truncf"):
        if name == "uitofp" and width(src):
            a = f"({a}) & {(1 << (width(src) or 64)) - 1}"
        return f"{bind('f', rounded(target))}({a})"
    if name in ("fptosi", "fptoui"):
        return f"{bind('f', to_whole)}({a}, {bits or 64}, {name == 'fptoui'})"
    if name in ("extui", "index_castui") and width(src):
        return f"int({a}) & {(1 << (width(src) or 64)) - 1}"
    if name == "bitcast":
        return f"{bind('f', _bitcast(src, dst))}({a})"
    if bits == 1:
        return f"bool(({a}) & 1)"
    if bits is not None and (width(src) or 64) >= bits:
        return f"{bind('f', wrapped)}({a}, {bits}, {target.startswith('u')})"
    return f"int({a})" if width(src) == 1 else a


def _bitcast(src: PtoType, dst: PtoType) -> Callable[[Number], Number]:
    assert isinstance(src, ScalarT)
    assert isinstance(dst, ScalarT)
    from ..machine.numbers import scalar_of

    a, b = numpy_type(src.dtype), numpy_type(dst.dtype)
    kind = float if is_float_type(dst) else int
    return lambda x: kind(np.asarray(scalar_of(x, a)).reshape(1).view(b)[0])
