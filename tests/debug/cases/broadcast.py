"""Row and column vectors, fills and repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_pypto.pypto.ir.dtypes import DataType as D

from ..arrays import FLOATS
from .elementwise import quotient
from .kit import EDGES, FULL, RAGGED, Array, Example, Kit, both, case, lift, settle

FNS: dict[str, Any] = {
    "add": lambda a, v: a + v,
    "sub": lambda a, v: a - v,
    "mul": lambda a, v: a * v,
    "div": quotient,
    "max": np.maximum,
    "min": np.minimum,
    "expdif": lambda a, v: np.exp(a - v),
}


def vector(k: Kit, kind: str) -> tuple[Array, Any]:
    rows, cols = k.valid
    if k.form == EDGES:
        whole = k.array(1 if kind == "row" else 2)
        v = whole[:, :1].copy() if kind == "row" else whole[:1].copy()
    else:
        v = k.array(2, (rows, 1) if kind == "row" else (1, cols), **({"low": 0.5} if k.is_float else {}))
    box = (k.box[0], 1) if kind == "row" else (1, k.box[1])
    return v, k.give(v, box=box)


def with_vector(k: Kit) -> Example:
    kind, _, op = k.name.split("_")
    a = k.array(2 if kind == "row" else 1)
    v, given = vector(k, kind)
    with np.errstate(all="ignore"):
        want = settle(FNS[op](lift(a), lift(np.broadcast_to(v, a.shape))), k.dtype)
    return Example([k.give(a), given], want, ulps=8 if op == "expdif" else 0)


_REAL = "the exponential of integers is not described"
for _kind in ("row", "col"):
    for _op in FNS:
        _facts: dict[str, Any] = {"dtypes": FLOATS, "unsaid": _REAL} if _op == "expdif" else {}
        if (_kind, _op) == ("row", "add"):
            _facts = {"dtypes": (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32)}
        case(*both(f"{_kind}_expand_{_op}"), **_facts)(with_vector)


@case(*both("row_expand", "col_expand"))
def repeat(k: Kit) -> Example:
    kind = k.name.split("_")[0]
    target = k.array(2 if kind == "row" else 1)
    v, given = vector(k, kind)
    return Example([k.give(target), given], np.broadcast_to(v, target.shape))


@case(*both("expands"), forms=(FULL, RAGGED))
def fill(k: Kit) -> Example:
    value = 2.5 if k.is_float else 7
    return Example([k.give(k.array(1)), k.number(value)], settle(np.full(k.valid, value), k.dtype))


@case("tensor.expand_clone", forms=(FULL,))
def clone(k: Kit) -> Example:
    v, target = k.array(1, (2, 1, 3)), k.array(2, (2, 4, 3))
    return Example([k.plain(v), k.plain(target)], np.broadcast_to(v, (2, 4, 3)))
