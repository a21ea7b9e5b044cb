"""Random kernels on square tiles: products, vectors of rows and columns, loops, branches, global memory read back."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import torch

from .whole import program, randn

EXPRESSIONS = (
    "pl.mul(pl.matmul({a}, {b}), 0.05)",
    "pl.mul(pl.matmul({a}, {b}), 0.05)",
    "pl.matmul(pl.mul({a}, 0.05), {b})",
    "pl.mul(pl.matmul({a}, {b}, b_trans=True), 0.05)",
    "pl.add({a}, {b})",
    "pl.sub({a}, {b})",
    "pl.mul({a}, -0.5)",
    "pl.maximum({a}, {b})",
    "pl.exp(pl.mul({a}, 0.01))",
    "pl.col_expand_mul({a}, row)",
    "pl.row_expand_mul({a}, col)",
    "pl.add({a}, pl.slice(o, [{n}, {n}], [{at}, 0]))",
    "pl.mul(pl.matmul(pl.slice(o, [{n}, {n}], [{at}, 0]), {a}), 0.05)",
    "pl.matmul(pl.mul({a}, 0.05), {b})",
    "pl.add(pl.mul(pl.matmul({a}, {b}), 0.05), {a})",
    "pl.row_expand_mul({a}, pl.add(pl.mul(col, 0.5), col))",
    "pl.row_expand_sub({a}, pl.row_max({b}))",
    "pl.row_expand_mul({a}, pl.mul(pl.row_sum({b}), 0.05))",
    "pl.col_expand_add({a}, pl.mul(row, 0.5))",
    "pl.col_expand_mul({a}, pl.reshape(pl.mul(col, 2.0), [1, {n}]))",
)


@dataclass
class Kernel:
    """Writes one kernel; the same seed gives the same text."""

    seed: int
    n: int
    lines: list[str] = field(default_factory=list)
    names: int = 0
    depth: int = 0
    split: str = "NONE"

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def text(self, split: str) -> str:
        """The whole program."""
        self.split = split
        self.put("flag = pl.read(c, [0])")
        known = ["a", "b", self.assign("pl.mul(a, 1.0)"), self.assign("pl.mul(b, 1.0)")]
        self.block(known, [], self.random.choice([3, 4, 5]))
        self.store(known)
        n = self.n
        params = [f"{x}: [{n}, {n}] FP32" for x in "ab"]
        params += [f"row: [1, {n}] FP32", f"col: [{n}, 1] FP32", "c: [1] INT32", f"o: [{2 * n}, {n}] FP32 InOut"]
        return program("\n".join(params), "\n".join(self.lines), split)

    def inputs(self) -> dict[str, torch.Tensor]:
        """Arguments for it."""
        n = self.n
        shapes = {"a": (n, n), "b": (n, n), "row": (1, n), "col": (n, 1)}
        found = {name: randn(*shape, seed=i) for i, (name, shape) in enumerate(shapes.items())}
        return found | {"c": torch.tensor([self.seed % 4], dtype=torch.int32), "o": randn(2 * n, n, seed=9)}

    def put(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def assign(self, value: str, name: str = "") -> str:
        if not name:
            self.names += 1
            name = f"v{self.names}"
        self.put(f"{name} = {value}")
        return name

    def value(self, known: list[str]) -> str:
        pick = self.random.choice
        whole = self.n % 16 == 0
        usable = [x for x in EXPRESSIONS if whole or "b_trans" not in x]  # transposed, a tile needs whole boxes
        # what needs all rows or all columns of a tile that the split would cut
        cut = {"LEFT_RIGHT": ("row_max", "row_sum"), "UP_DOWN": ("reshape",)}.get(self.split, ())
        usable = [x for x in usable if not any(word in x for word in cut)]
        return pick(usable).format(a=pick(known), b=pick(known), n=self.n, at=pick([0, self.n]))

    def store(self, known: list[str]) -> None:
        self.put(f"o = pl.assemble(o, {self.random.choice(known)}, [{self.random.choice([0, self.n])}, 0])")

    def block(self, known: list[str], carried: list[str], count: int) -> None:
        """`count` statements; `carried` are names of outer statements that may be assigned anew."""
        for _ in range(count):
            what = self.random.random()
            if what < 0.6 or self.depth >= 2:
                again = carried and self.random.random() < 0.4
                name = self.assign(self.value(known), self.random.choice(carried) if again else "")
                known.append(name)
            elif what < 0.75:
                self.loop(known)
            elif what < 0.9:
                self.branch(known)
            else:
                self.store(known)

    def inner(self, known: list[str]) -> None:
        own = [x for x in known if x.startswith("v")]
        carried = self.random.sample(own, min(len(own), self.random.choice([1, 2, 3])))
        self.depth += 1
        self.block(list(known), carried, self.random.choice([1, 2, 3]))
        self.depth -= 1

    def loop(self, known: list[str]) -> None:
        turns, label = self.random.choice([1, 2, 3]), f"i{len(self.lines)}"
        kind = self.random.choice(["range", "pipeline", "while"])
        if kind != "while":
            stage = ", stage=2" if kind == "pipeline" else ""
            self.put(f"for {label} in pl.{kind}({turns}{stage}):")
            self.inner(known)
            return
        self.put(f"{label} = 0")
        self.put(f"while {label} < {turns}:")
        self.inner(known)
        self.put(f"    {label} = {label} + 1")

    def branch(self, known: list[str]) -> None:
        self.put(f"if flag {self.random.choice(['> 2', '> 0', '== 3'])}:")
        self.inner(known)
        if self.random.random() < 0.5:
            self.put("else:")
            self.inner(known)
