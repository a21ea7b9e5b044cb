"""Reductions: only valid cells count."""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_pypto.pypto.ir.dtypes import DataType as D

from .kit import EDGES, FULL, RAGGED, Array, Example, Kit, case, edge_array, lift, settle

NARROW = (D.FP32, D.FP16, D.INT16, D.INT32)
"""Types that have a row_min."""
FNS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def data(k: Kit, kind: str) -> Array:
    """With edge values one of them per row (or column), between ordinary numbers."""
    if k.form != EDGES:
        return k.array(1, low=0.25 if k.name.endswith("sum") else -4.0) if k.is_float else k.array(1)
    values = edge_array(k.dtype)
    rows = np.stack([np.full_like(values, 2), values, np.full_like(values, 1)], axis=1)
    return rows if kind == "row" else np.ascontiguousarray(rows.T)


def operands(k: Kit, kind: str, a: Array) -> list[Any]:
    needs = k.space == "tile" and (kind == "row" or "arg" in k.name)
    x = k.give(a)
    return [x, k.scratch(x[1].shape and tuple(x[0].shape))] if needs else [x]


def reduction(k: Kit) -> Example:
    kind, op = k.name.split("_")
    a = data(k, kind)
    axis = 1 if kind == "row" else 0
    with np.errstate(all="ignore"):
        if op.startswith("arg"):
            best = getattr(np, op)(lift(a) if k.is_float else a, axis=axis)
            want = np.expand_dims(best, axis).astype(np.int32)
        else:
            want = settle(FNS[op](lift(a), axis=axis, keepdims=True), k.dtype)
    return Example(operands(k, kind, a), want, ulps=2 if op in ("sum", "prod") else 0)


for _space in ("tensor", "tile"):
    for _kind in ("row", "col"):
        for _op in FNS:
            _facts: dict[str, Any] = {"dtypes": NARROW} if (_kind, _op) == ("row", "min") else {}
            case(f"{_space}.{_kind}_{_op}", **_facts)(reduction)
        for _op in ("argmax", "argmin"):
            case(f"{_space}.{_kind}_{_op}", forms=(FULL, RAGGED))(reduction)
