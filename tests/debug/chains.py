"""Random chains of operators on partly valid values, and what they mean in numpy.

The numpy side keeps the valid part of each value only, so that padding cannot take part in anything.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType as D
from pytest_pypto.pypto.ir.enums import PadValue
from pytest_pypto.pypto.ir.program import Function

from .arrays import FLOATS, padded, sample, to_torch
from .build import Body, function, tensor, tile
from .cases.kit import Array, lift, settle

TYPES = (D.FP32, D.INT32, D.FP16, D.INT16, D.UINT8, D.BF16)


@dataclass
class Value:
    """A variable of the program, its box, and its valid part in numpy."""

    var: e.Var
    box: tuple[int, int]
    part: Array


class Chain:
    """One random chain; the same seed gives the same one."""

    def __init__(self, seed: int, space: str) -> None:
        self.random = random.Random(f"{space}{seed}")
        self.space = space
        self.dtype = self.random.choice(TYPES)
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.args: list[Any] = []

    def build(self) -> Function:
        """The function; `args` are its arguments and `values[-1]` what it returns."""
        types = tensor if self.space == "tensor" else tile
        box = (self.random.choice([4, 8]), self.random.choice([4, 6, 8]))
        valid = tuple(self.random.choice([n, self.random.randint(1, n)]) for n in box)
        params = []
        for k in range(2):
            part = sample(valid, self.dtype, self.random.randrange(1000))
            self.args.append(to_torch(padded(part, box, self.dtype), self.dtype))
            params.append((f"p{k}", types(box, self.dtype, valid), part, box))

        def body(b: Body, *variables: e.Var) -> None:
            for v, (_, _, part, size) in zip(variables, params, strict=True):
                self.values.append(Value(v, size, part))
            for _ in range(self.random.randint(2, 9)):
                self.random.choice(STEPS)(self, b)
            b.ret(self.values[-1].var)

        return function("f", [(n, t) for n, t, _, _ in params], body)

    def some(self) -> Value:
        """One of the values so far, rather a late one."""
        return self.values[max(self.random.randrange(len(self.values)) for _ in range(2))]

    def like(self, x: Value) -> Value:
        """A value with the box and the region of `x`."""
        fits = [v for v in self.values if v.box == x.box and v.part.shape == x.part.shape]
        return self.random.choice(fits)

    def op(self, b: Body, name: str, *args: Any, part: Any, box: tuple[int, int], **kwargs: Any) -> None:
        """A call, and the valid part of its result."""
        given = [a.var if isinstance(a, Value) else a for a in args]
        made = b.op(f"v{len(self.values)}", f"{self.space}.{name}", *given, **kwargs)
        self.lines.append(f"{made.name_hint} = {name}({', '.join(str(a) for a in given)}, {kwargs})")
        self.values.append(Value(made, box, settle(part, self.dtype)))

    def number(self, value: float) -> e.Expr:
        """A constant of the element type."""
        return e.ConstFloat(value, self.dtype) if self.dtype in FLOATS else e.ConstInt(int(value), self.dtype)

    def scratch(self, b: Body, box: tuple[int, int]) -> e.Var:
        """A tile whose content does not count."""
        return b.op(f"tmp{len(b.stmts)}", "tile.create", box, dtype=self.dtype)


def _binary(c: Chain, b: Body) -> None:
    name, fn = c.random.choice(
        [("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("maximum", np.maximum), ("minimum", np.minimum)]
    )
    x = c.some()
    y = c.like(x)
    with np.errstate(all="ignore"):
        c.op(b, name, x, y, part=fn(lift(x.part), lift(y.part)), box=x.box)


def _scalar(c: Chain, b: Body) -> None:
    name, fn = c.random.choice([("adds", np.add), ("muls", np.multiply)])
    x, number = c.some(), c.random.choice([1, 2, 3])
    with np.errstate(all="ignore"):
        c.op(b, name, x, c.number(number), part=fn(lift(x.part), number), box=x.box)


def _unary(c: Chain, b: Body) -> None:
    name, fn = c.random.choice([("neg", np.negative), ("abs", np.abs)])
    x = c.some()
    c.op(b, name, x, part=fn(lift(x.part)), box=x.box)


def _transpose(c: Chain, b: Body) -> None:
    x = c.some()
    c.op(b, "transpose", x, 0, 1, part=lift(x.part.T), box=x.box[::-1])


def _slice(c: Chain, b: Body) -> None:
    x = c.some()
    at = tuple(c.random.randrange(n) for n in x.box)
    size = tuple(c.random.randint(1, n - o) for n, o in zip(x.box, at, strict=True))
    part = x.part[tuple(slice(o, o + s) for o, s in zip(at, size, strict=True))]
    if part.size and size[1] > 1:
        c.op(b, "slice", x, size, at, part=lift(part), box=size)  # type: ignore[arg-type]


def _fillpad(c: Chain, b: Body) -> None:
    x = c.some()
    part = np.zeros(x.box, x.part.dtype)
    part[: x.part.shape[0], : x.part.shape[1]] = x.part
    c.op(b, "fillpad", x, part=lift(part), box=x.box, pad_value=PadValue.zero)


def _narrow(c: Chain, b: Body) -> None:
    x = c.some()
    rows, cols = (c.random.randint(1, n) for n in x.part.shape)
    c.op(b, "set_validshape", x, rows, cols, part=lift(x.part[:rows, :cols]), box=x.box)


def _reduce_and_spread(c: Chain, b: Body) -> None:
    """A row or column maximum, repeated beside what it was taken of."""
    kind = c.random.choice(["row", "col"])
    x = c.some()
    axis = 1 if kind == "row" else 0
    best = x.part.max(axis=axis, keepdims=True)
    box = (x.box[0], 1) if kind == "row" else (1, x.box[1])
    more = [c.scratch(b, x.box)] if c.space == "tile" and kind == "row" else []
    c.op(b, f"{kind}_max", x, *more, part=lift(best), box=box)
    peak = c.values.pop()
    with np.errstate(all="ignore"):
        c.op(b, f"{kind}_expand_sub", x, peak, part=lift(x.part) - lift(best), box=x.box)
    if c.space == "tensor" and x.part.shape != x.box:
        c.values.pop()  # counts as valid in full; what lies outside the operands' region is not defined


def _concat(c: Chain, b: Body) -> None:
    x = c.some()
    y = c.like(x)
    if x.part.shape == x.box and x.box[1] < 32:
        box = (x.box[0], 2 * x.box[1])
        c.op(b, "concat", x, y, part=lift(np.concatenate([x.part, y.part], axis=1)), box=box)


def _reshape(c: Chain, b: Body) -> None:
    x = c.some()
    if x.part.shape == x.box and x.box[0] > 1 and x.box[1] % 2 == 0 and x.box[1] > 2:
        box = (x.box[0] * 2, x.box[1] // 2)
        c.op(b, "reshape", x, box, part=lift(x.part.reshape(box)), box=box)


STEPS: tuple[Callable[[Chain, Body], None], ...] = (
    *(_binary, _binary, _scalar, _unary, _transpose, _slice, _fillpad, _narrow, _reduce_and_spread, _concat, _reshape),
)
