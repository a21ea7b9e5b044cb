"""Random regions around a product: operands made by the vector core, results used by it, splits, valid shapes, types.

As in `random_programs` the text is Python, and running it gives the expected numbers. A tensor with a valid shape is
cut to it there: what is not valid takes part in nothing. (A product of tensors counts as valid altogether, so its rows
outside the valid rows of the left factor may be anything; compare `valid_rows` only.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from .random_programs import Choices, _Any

TYPES = {"FP32": torch.float32, "BF16": torch.bfloat16, "FP16": torch.float16}
SPLITS = ("", "pl.split(pl.SplitMode.UP_DOWN)", "pl.split(pl.SplitMode.LEFT_RIGHT)")


class _Region:
    """The body of one region, and the extents of its arguments."""

    def __init__(self, choices: Choices) -> None:
        c = self.c = choices
        self.m = c.of((16, 32, 48, 64, 128))
        self.k = c.of((16, 32, 64, 176, 304))
        self.n = c.of((16, 32, 64, 128))
        if self.k > 64 or self.m > 64:  # more does not fit beside the pipes between the cores
            self.m, self.n, self.k = min(self.m, 32), min(self.n, 64), self.k if self.m <= 64 else 64
        self.dtype = c.of(tuple(TYPES))
        self.split = c.of(SPLITS)
        self.rows = c.of((self.m, self.m, self.m // 2 if self.split else self.m - 3))
        self.lines: list[str] = []
        self.count = 0

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"t{self.count} = {text}")
        return f"t{self.count}"

    def left(self) -> str:
        """The left factor: loaded, or made by the vector core."""
        valid = f", valid_shape=[{self.rows}, {self.k}]" if self.rows != self.m else ""
        x = self.new(f"pl.slice(x, [{self.m}, {self.k}], [0, 0]{valid})")
        for _ in range(self.c.pick(3)):
            x = self.new(self.c.of((f"pl.mul({x}, -1.0)", f"pl.add({x}, 1.0)", f"pl.abs({x})", f"pl.neg({x})")))
        return x if self.dtype == "FP32" else self.new(f"pl.cast({x}, target_type=pl.{self.dtype})")

    def after(self, t: str) -> str:
        """Vector work on a product of shape [m, n]."""
        for _ in range(self.c.pick(4)):
            match self.c.pick(6):
                case 0:
                    t = self.new(f"pl.add({t}, y)")
                case 1:
                    t = self.new(f"pl.mul({t}, 2.0)")
                case 2:
                    t = self.new(f"pl.maximum({t}, 0.0)")
                case 3:
                    t = self.new(f"pl.add({t}, b)")
                case 4:
                    t = self.new(f"pl.row_expand_mul({t}, r)")
                case _:
                    t = self.new(f"pl.sub({t}, y)")
        return t

    def body(self) -> None:
        kind = self.c.pick(4)
        product = self.new(f"pl.matmul({self.left()}, w, out_dtype=pl.FP32)")
        if kind == 1:
            other = self.new(f"pl.matmul({self.left()}, w, out_dtype=pl.FP32)")
            product = self.new(f"pl.add({self.after(product)}, {self.after(other)})")
        elif kind == 2 and self.n == self.k:
            again = self.after(product)
            again = again if self.dtype == "FP32" else self.new(f"pl.cast({again}, target_type=pl.{self.dtype})")
            product = self.new(f"pl.matmul({again}, w, out_dtype=pl.FP32)")
        self.lines.append(f"o = pl.assemble(o, {self.after(product)}, [0, 0])")
        if kind == 3 and "LEFT_RIGHT" not in self.split:
            self.lines.append(f"s = pl.assemble(s, pl.row_max({self.after(product)}), [0, 0])")


def product_program(tape: Sequence[int], size: int = 0) -> str:
    """A program with one region, whose extents depend on the choices."""
    region = _Region(Choices(tape))
    region.body()
    m, k, n, dtype = region.m, region.k, region.n, region.dtype
    tensors = {
        "x": f"pl.Tensor[[{m}, {k}], pl.FP32]",
        "w": f"pl.Tensor[[{k}, {n}], pl.{dtype}]",
        "y": f"pl.Tensor[[{m}, {n}], pl.FP32]",
        "b": f"pl.Tensor[[1, {n}], pl.FP32]",
        "r": f"pl.Tensor[[{m}, 1], pl.FP32]",
        "o": f"pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]",
        "s": f"pl.InOut[pl.Tensor[[{m}, 1], pl.FP32]]",
    }
    params = ",\n             ".join(f"{name}: {type_}" for name, type_ in tensors.items())
    extra = f", optimizations=[{region.split}]" if region.split else ""
    body = "\n".join(f"            {line}" for line in region.lines)
    return f"""import pypto.language as pl


@pl.program
class P:
    @pl.function
    def main(self, {params}):
        with pl.at(level=pl.Level.CORE_GROUP{extra}):
{body}
        return o, s
"""


def arguments(tape: Sequence[int], seed: int = 0) -> dict[str, torch.Tensor]:
    """Arguments for the program of the same choices: small integers."""
    region = _Region(Choices(tape))
    m, k, n = region.m, region.k, region.n
    g = torch.Generator().manual_seed(seed)

    def small(*shape: int) -> torch.Tensor:
        return torch.randint(-2, 3, shape, generator=g).float()

    return {
        "x": small(m, k),
        "w": small(k, n).to(TYPES[region.dtype]),
        "y": small(m, n),
        "b": small(1, n),
        "r": small(m, 1),
        "o": torch.full((m, n), -7.0),
        "s": torch.full((m, 1), -7.0),
    }


def valid_rows(tape: Sequence[int]) -> int:
    """How many rows of the results are defined."""
    rows: int = _Region(Choices(tape)).rows
    return rows


def _cut(a: torch.Tensor, b: Any) -> tuple[torch.Tensor, Any]:
    """Two operands of the same valid rows."""
    if not torch.is_tensor(b):
        return a, torch.tensor(b, dtype=a.dtype)
    rows = min(a.shape[0], b.shape[0]) if 1 not in (a.shape[0], b.shape[0]) else None
    return (a, b) if rows is None else (a[:rows], b[:rows])


def _pair(op: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda a, b: op(*_cut(a, b))


def _slice(t: torch.Tensor, shape: list[int], offset: list[int], valid_shape: list[int] | None = None) -> torch.Tensor:
    rows, cols = valid_shape or shape
    return t[offset[0] : offset[0] + rows, offset[1] : offset[1] + cols]


def _assemble(target: torch.Tensor, value: torch.Tensor, offset: list[int]) -> torch.Tensor:
    target[offset[0] : offset[0] + value.shape[0], offset[1] : offset[1] + value.shape[1]] = value
    return target


def expected(text: str, values: dict[str, torch.Tensor]) -> None:
    """Run the text as Python; the outputs among `values` are written."""
    functions = SimpleNamespace(
        program=lambda cls: cls,
        function=lambda f: f,
        at=lambda **_: contextlib.nullcontext(),
        slice=_slice,
        assemble=_assemble,
        matmul=lambda a, b, out_dtype: a.float() @ b.float(),
        cast=lambda a, target_type: a.to(TYPES[target_type]),
        add=_pair(torch.add),
        sub=_pair(torch.sub),
        mul=_pair(torch.mul),
        maximum=_pair(torch.maximum),
        row_expand_mul=_pair(torch.mul),
        row_max=lambda a: a.max(1, keepdim=True).values,
        neg=torch.neg,
        abs=torch.abs,
        split=lambda mode: mode,
        **dict.fromkeys(("Tensor", "Out", "InOut", "Level", "SplitMode"), _Any()),
        **{name: name for name in TYPES},
    )
    space: dict[str, Any] = {"pl": functions}
    exec(text.replace("import pypto.language as pl\n", ""), space)
    space["P"]().main(*values.values())
