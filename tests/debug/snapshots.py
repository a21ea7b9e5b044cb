"""Random kernels that keep reading old values after new ones were written over parts of them.

In the program a value is what it was when it was made, whatever storage it shares; the numpy side copies everything.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

N = 4
Array = np.ndarray[Any, Any]
Env = dict[str, Array]


def assembled(target: Array, source: Array, at: tuple[int, int]) -> Array:
    out = target.copy()
    out[at[0] : at[0] + source.shape[0], at[1] : at[1] + source.shape[1]] = source
    return out


@dataclass
class Kernel:
    """Writes one kernel on `[4, 4]` tiles or tensors, as text and as steps that numpy runs."""

    seed: int
    space: str
    lines: list[str] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.space}{self.seed}")

    def name(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def block(self, known: list[str], depth: int, size: int, pad: str) -> list[Any]:
        """Steps of a block; `known` are the names it may read, to which it adds its own."""
        steps = []
        for _ in range(size):
            kind = self.random.random()
            if depth < 3 and kind < 0.12:
                steps.append(self.loop(known, depth, pad))
            elif depth < 3 and kind < 0.22:
                steps.append(self.branch(known, depth, pad))
            else:
                steps += self.value(known, pad)
        return steps

    def put(self, pad: str, text: str) -> None:
        self.lines.append(pad + text)

    def value(self, known: list[str], pad: str) -> list[Any]:
        """One assignment."""
        r, new = self.random, self.name()
        a, b = r.choice(known), r.choice(known)
        row, col = r.randrange(N), r.randrange(N)
        rows, cols = r.randint(1, N - row), r.randint(1, N - col)
        number = float(r.randint(-9, 9))
        wide = max(2, cols) if col + max(2, cols) <= N else cols
        window = f"pl.{self.space}.slice({b}, [{rows}, {wide}], [{row}, {col}])"
        forms: list[tuple[str, Any]] = [
            (f"pl.add({a}, {b})", lambda e: e[a] + e[b]),
            (f"pl.maximum({a}, {b})", lambda e: np.maximum(e[a], e[b])),
            (f"{a}", lambda e: e[a]),
            (
                f"pl.{self.space}.assemble({a}, {window}, [{N - rows}, {N - wide}])",
                lambda e: assembled(e[a], e[b][row : row + rows, col : col + wide], (N - rows, N - wide)),
            ),
            (
                f"pl.{self.space}.assemble({a}, {window}, [{row}, {col}])",
                lambda e: assembled(e[a], e[b][row : row + rows, col : col + wide], (row, col)),
            ),
            (
                f"pl.{self.space}.write({a}, [{row}, {col}], {number})",
                lambda e: assembled(e[a], np.full((1, 1), number, np.float32), (row, col)),
            ),
            (f"pl.transpose({a}, 0, 1)", lambda e: e[a].T),
            (f"pl.reshape(pl.reshape({a}, [2, 8]), [4, 4])", lambda e: e[a]),
        ]
        if self.space == "tile":
            forms.append((f"pl.tile.transpose_view(pl.tile.transpose_view({a}))", lambda e: e[a]))
        text, fn = r.choice(forms)
        self.put(pad, f"{new} = {text}")
        known.append(new)
        if "assemble" not in text and "write" not in text:
            return [("let", new, fn)]
        used = self.name()  # a write whose result nobody reads is meant for the storage
        self.put(pad, f"{used} = pl.mul({new}, 1.0)")
        known.append(used)
        return [("let", new, fn), ("let", used, lambda e: e[new])]

    def loop(self, known: list[str], depth: int, pad: str) -> Any:
        """A loop that carries one or two values."""
        r = self.random
        count, trips = r.choice([1, 2]), r.randint(0, 3)
        inits = [r.choice(known) for _ in range(count)]
        carried, results = [self.name() for _ in inits], [self.name() for _ in inits]
        self.made += 1
        head = f"for i{self.made}, ({', '.join(carried)},) in pl.range({trips}, init_values=({', '.join(inits)},)):"
        self.put(pad, head)
        inner = [*known, *carried]
        steps = self.block(inner, depth + 1, r.randint(1, 4), pad + "    ")
        yields = [r.choice(inner) for _ in inits]
        self.put(pad + "    ", f"{', '.join(results)} = pl.yield_({', '.join(yields)})")
        known += results
        return ("for", trips, inits, carried, steps, yields, results)

    def branch(self, known: list[str], depth: int, pad: str) -> Any:
        """A branch on the number `k` that gives one value."""
        r, result = self.random, self.name()
        test = r.randint(0, 2)
        arms = []
        for word in (f"if k == {test}:", "else:"):
            self.put(pad, word)
            inner = list(known)
            steps = self.block(inner, depth + 1, r.randint(1, 3), pad + "    ")
            out = r.choice(inner)
            self.put(pad + "    ", f"{result} = pl.yield_({out})")
            arms.append((steps, out))
        known.append(result)
        return ("if", test, arms, result)

    def text(self) -> str:
        """The program; `run` gives what it computes."""
        t = "pl.Tensor[[4, 4], pl.FP32]"
        kind = "InCore" if self.space == "tile" else "Opaque"
        self.lines = [
            "import pypto.language as pl",
            "",
            "@pl.program",
            "class P:",
            f"    @pl.function(type=pl.FunctionType.{kind})",
            f"    def main(self, a: {t}, b: {t}, k: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[12, 4], pl.FP32]]):",
        ]
        pad = "        "
        known = ["x", "y"]
        if self.space == "tile":
            self.put(pad, "x = pl.load(a, [0, 0], [4, 4])")
            self.put(pad, "y = pl.load(b, [0, 0], [4, 4])")
        else:
            self.put(pad, "x = pl.neg(a)")
            self.put(pad, "y = pl.neg(b)")
        self.steps = self.block(known, 0, self.random.randint(4, 12), pad)
        self.outputs = [self.random.choice(known) for _ in range(3)]
        for n, name in enumerate(self.outputs):
            put = "store({0}, [{1}, 0], o)" if self.space == "tile" else "assemble(o, {0}, [{1}, 0])"
            self.put(pad, f"o = pl.{put.format(name, 4 * n)}")
        self.put(pad, "return o")
        return "\n".join(self.lines) + "\n"

    def run(self, a: Array, b: Array, k: int) -> Array:
        """The output, computed on copies."""
        sign = 1 if self.space == "tile" else -1
        env = {"x": sign * a, "y": sign * b}
        walk(self.steps, env, k)
        return np.concatenate([env[n] for n in self.outputs])


def walk(steps: list[Any], env: Env, k: int) -> None:
    for step in steps:
        if step[0] == "let":
            env[step[1]] = step[2](env).copy()
        elif step[0] == "for":
            _, trips, inits, carried, inner, yields, results = step
            values = [env[n] for n in inits]
            for _ in range(trips):
                env.update(zip(carried, values, strict=True))
                walk(inner, env, k)
                values = [env[n] for n in yields]
            env.update(zip(results, values, strict=True))
        else:
            _, test, arms, result = step
            inner, out = arms[0] if k == test else arms[1]
            walk(inner, env, k)
            env[result] = env[out]
