"""Arguments in torch types that have no arithmetic (unsigned words, 8-bit floats): operators on them, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from pytest_pypto.pypto.debug import run_oracle
from pytest_pypto.pypto.language.parser import parse

WORDS = {"UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64}
TEXT = """# pypto.program: P
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def main(
        self, x: pl.Tensor[[4, 32], pl.{dtype}], y: pl.Tensor[[4, 32], pl.{dtype}], o: pl.Out[pl.Tensor[[4, {columns}], pl.{out}]]
    ):
        o = pl.assemble(o, {call}, [0, 0])
        return o
"""  # noqa: E501
Array = Any
OPERATORS: dict[str, tuple[str, Callable[[Array, Array], Array]]] = {
    "add": ("pl.add(x, y)", lambda x, y: x + y),
    "sub": ("pl.sub(x, y)", lambda x, y: x - y),
    "mul": ("pl.mul(x, y)", lambda x, y: x * y),
    "maximum": ("pl.maximum(x, y)", np.maximum),
    "minimum": ("pl.minimum(x, y)", np.minimum),
    "scalar": ("pl.add(x, 3)", lambda x, y: x + x.dtype.type(3)),
    "shift left": ("pl.shls(x, 1)", lambda x, y: x << x.dtype.type(1)),
    "shift right": ("pl.shrs(x, 1)", lambda x, y: x >> x.dtype.type(1)),
    "row_max": ("pl.row_max(x)", lambda x, y: x.max(1, keepdims=True)),
    "nested": ("pl.maximum(pl.add(x, y), pl.slice(x, [4, 32], [0, 0]))", lambda x, y: np.maximum(x + y, x)),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", WORDS)
@pytest.mark.parametrize("native", [True, False], ids=["native", "signed"])
def test_unsigned_words(dtype: str, name: str, native: bool) -> None:
    call, expected = OPERATORS[name]
    kind = WORDS[dtype]
    text = TEXT.format(dtype=dtype, out=dtype, call=call, columns=1 if name.startswith("row") else 32)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, np.iinfo(kind).max, (4, 32), kind, endpoint=True) for _ in "xy")
    x[0, :2], y[y == 0] = (0, np.iinfo(kind).max), 1
    with np.errstate(over="ignore"):
        want = expected(x, y)
    signed = np.dtype(kind).name.removeprefix("u")
    args = [torch.from_numpy(a.view(signed).copy()) for a in (x, y, np.zeros_like(want))]
    if native:
        args = [a.view(getattr(torch, dtype.lower())) for a in args]
    before = args[0].clone()
    run_oracle(parse(text), args)
    np.testing.assert_array_equal(args[2].numpy().view(kind), want)
    assert args[0].view(torch.uint8).equal(before.view(torch.uint8)), "an input was changed"


@pytest.mark.parametrize(
    ("dtype", "kind"), [("FP8E4M3FN", ml_dtypes.float8_e4m3fn), ("FP8E5M2", ml_dtypes.float8_e5m2)]
)
def test_eight_bit_floats(dtype: str, kind: Any) -> None:
    text = TEXT.format(dtype=dtype, out="FP32", call="pl.add(pl.cast(x, pl.FP32), pl.cast(y, pl.FP32))", columns=32)
    x, y = (np.random.default_rng(k).standard_normal((4, 32)).astype(kind) for k in (0, 1))
    native = getattr(torch, np.dtype(kind).name)
    args = [torch.from_numpy(a.view(np.uint8).copy()).view(native) for a in (x, y)]
    out = torch.zeros(4, 32)
    run_oracle(parse(text), [*args, out])
    np.testing.assert_array_equal(out.numpy(), x.astype(np.float32) + y.astype(np.float32))
