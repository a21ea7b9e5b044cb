"""Random kernels and host programs, and what they mean: their text is Python, so running it gives the expected numbers.

A program is made from a list of numbers, the choices, so that hypothesis can shrink it. All values are small integers
in FP32, so that every order of computing gives the same numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

ROWS, COLS = 16, 16
SHAPE = (ROWS, COLS)


class Choices:
    """Numbers from a list; zeros when it is used up."""

    def __init__(self, tape: Sequence[int]) -> None:
        self.tape = list(tape)
        self.at = 0

    def pick(self, n: int) -> int:
        """A number below n."""
        self.at += 1
        return self.tape[self.at - 1] % n if self.at <= len(self.tape) else 0

    def of(self, items: Sequence[Any]) -> Any:
        """One of some items; the first is the simplest."""
        return items[self.pick(len(items))]


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 2

    def __call__(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextlib.contextmanager
    def block(self, head: str) -> Any:
        self(head)
        self.depth += 1
        yield
        self.depth -= 1


class _Body:
    """What device bodies of both families share: scalars, conditions, loops, branches."""

    def __init__(self, choices: Choices, budget: int) -> None:
        self.c = choices
        self.w = _Writer()
        self.budget = budget
        self.count = 0
        self.scalars = ["n"]
        self.fixed: set[str] = {"n"}
        self.tiles: list[str] = []
        self.loops = 0
        self.in_loop = False

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    # expressions

    def scalar(self, depth: int = 1) -> str:
        """A scalar expression with values that stay small."""
        kind = self.c.pick(8 if depth else 2)
        if kind == 0:
            return self.c.of(self.scalars)
        if kind == 1:
            return str(self.c.pick(5))
        a, b = self.scalar(depth - 1), self.scalar(depth - 1)
        match kind:
            case 2:
                return f"({a} + {b})"
            case 3:
                return f"({a} - {b})"
            case 4:
                return f"({a} * {self.c.of(('2', '3', '-1'))})"
            case 5:
                return f"({a} // {self.c.of(('2', '3', '4'))})"
            case 6:
                return f"({a} % {self.c.of(('2', '3', '5'))})"
            case _:
                return f"pl.{self.c.of(('min', 'max'))}({a}, {b})"

    def bounded(self) -> str:
        """A scalar between 0 and 3."""
        return f"pl.max(pl.min({self.scalar()}, 3), 0)"

    def condition(self) -> str:
        return f"{self.scalar()} {self.c.of(('<', '>', '==', '!=', '<=', '>='))} {self.scalar()}"

    # statements

    def statements(self, n: int) -> None:
        for _ in range(n):
            if self.budget > 0:
                self.budget -= 1
                self.statement()

    def statement(self) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def scope(self, head: str) -> Any:
        """A block whose new names end with it."""
        tiles, scalars = list(self.tiles), list(self.scalars)
        with self.w.block(head):
            yield
        self.tiles, self.scalars = tiles, scalars

    def assign_scalar(self) -> None:
        value = f"pl.max(pl.min({self.scalar(2)}, 9), -9)"
        free = [v for v in self.scalars if v not in self.fixed]
        if free and self.c.pick(2):
            self.w(f"{self.c.of(free)} = {value}")
            return
        name = self.name("s")
        self.w(f"{name}: pl.Scalar[pl.INDEX] = {value}")
        self.scalars.append(name)

    def branch(self) -> None:
        with self.scope(f"if {self.condition()}:"):
            self.statements(1 + self.c.pick(2))
            self.filler()
        if self.c.pick(2):
            with self.scope("else:"):
                self.statements(1 + self.c.pick(2))
                self.filler()

    def filler(self) -> None:
        """Something that makes a block that may be empty valid."""
        self.update()

    def update(self) -> None:
        raise NotImplementedError

    def for_loop(self) -> None:
        var = self.name("i")
        kind = self.c.pick(4)
        head = {
            0: f"for {var} in pl.range({1 + self.c.pick(3)}):",
            1: f"for {var} in pl.range({self.bounded()}):",
            2: f"for {var} in pl.range({self.c.pick(2)}, {3 + self.c.pick(3)}, {1 + self.c.pick(2)}):",
            3: f"for {var} in pl.unroll({1 + self.c.pick(2)}):",
        }[kind]
        outer, self.in_loop = self.in_loop, kind != 3
        with self.scope(head):
            self.scalars.append(var)
            self.fixed.add(var)
            self.statements(1 + self.c.pick(2))
            if kind != 3:
                self.jump()
            self.filler()
        self.in_loop = outer

    def while_loop(self) -> None:
        var = self.name("w")
        self.w(f"{var}: pl.Scalar[pl.INDEX] = 0")
        outer, self.in_loop = self.in_loop, True
        with self.scope(
            f"while {var} < {self.bounded()}:" if self.c.pick(2) else f"while {var} < {1 + self.c.pick(3)}:"
        ):
            self.fixed.add(var)
            self.scalars.append(var)
            self.w(f"{var} = {var} + 1")
            self.statements(1 + self.c.pick(2))
            self.jump()
            self.filler()
        self.in_loop = outer

    def jump(self) -> None:
        if self.c.pick(3):
            with self.scope(f"if {self.condition()}:"):
                if self.c.pick(2):
                    self.update()
                self.w(self.c.of(("break", "continue")))

    def loop(self) -> None:
        if self.loops >= 3:
            return self.update()
        self.loops += 1
        self.for_loop() if self.c.pick(3) else self.while_loop()
        self.loops -= 1


class _Kernel(_Body):
    """Tile code of one kernel."""

    def tile(self) -> str:
        """A tile expression; values stay within -64..64."""
        a, b = self.c.of(self.tiles), self.c.of(self.tiles)
        match self.c.pick(8):
            case 0:
                value = f"pl.add({a}, {b})"
            case 1:
                value = f"pl.sub({a}, {b})"
            case 2:
                return f"pl.maximum({a}, {b})"
            case 3:
                value = f"pl.add({a}, {float(self.c.pick(5))})"
            case 4:
                value = f"pl.mul({a}, {self.c.of(('2.0', '-1.0', '0.5'))})"
                if value.endswith("0.5)"):
                    value = f"pl.mul({a}, 1.0)"
            case 5:
                return f"pl.neg({a})"
            case 6:
                return f"pl.abs({a})"
            case _:
                return f"pl.minimum({a}, {b})"
        return f"pl.minimum(pl.maximum({value}, low), high)"

    def update(self) -> None:
        self.w(f"{self.c.of([t for t in self.tiles if t not in ('low', 'high')])} = {self.tile()}")

    def statement(self) -> None:
        match self.c.pick(7):
            case 0 | 1:
                self.update()
            case 2:
                name = self.name("t")
                self.w(f"{name} = {self.tile()}")
                self.tiles.append(name)
            case 3:
                self.assign_scalar()
            case 4:
                self.branch()
            case 5:
                self.loop()
            case _:
                self.w(f"o = pl.store({self.c.of(self.tiles)}, [{self.c.pick(2)} * {ROWS}, 0], o)")


def kernel_program(tape: Sequence[int], size: int = 10) -> str:
    """A program with one kernel and a host that calls it."""
    k = _Kernel(Choices(tape), size)
    k.w(f"x = pl.load(a, [0, 0], [{ROWS}, {COLS}])")
    k.w(f"y = pl.load(b, [0, 0], [{ROWS}, {COLS}])")
    k.w(f"low = pl.tile.full([{ROWS}, {COLS}], dtype=pl.FP32, value=-64.0)")
    k.w(f"high = pl.tile.full([{ROWS}, {COLS}], dtype=pl.FP32, value=64.0)")
    k.tiles = ["x", "y"]
    k.statements(size)
    k.w(f"o = pl.store({k.tiles[-1]}, [{ROWS}, 0], o)")
    k.w("return o")
    head = f"""    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: {_SMALL}, b: {_SMALL}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{_LARGE}]) -> {_LARGE}:
"""
    return _program(head + "\n".join(k.w.lines), "        o = self.k(a, b, n, o)\n        return o")


_SMALL = f"pl.Tensor[[{ROWS}, {COLS}], pl.FP32]"
_LARGE = f"pl.Tensor[[{2 * ROWS}, {COLS}], pl.FP32]"
_MAIN = f"""
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: {_SMALL}, b: {_SMALL}, n: pl.Scalar[pl.INDEX], o: pl.InOut[{_LARGE}]) -> {_LARGE}:
"""


def _program(kernel: str, host: str) -> str:
    return f"import pypto.language as pl\n\n\n@pl.program\nclass P:\n{kernel}\n{_MAIN}{host}\n"


class _Host(_Body):
    """Host code with tensor-level regions."""

    def __init__(self, choices: Choices, budget: int) -> None:
        super().__init__(choices, budget)
        self.tiles = ["a", "b"]
        self.own = ["x"]
        """Tensors the program made: they may be rebound."""
        self.in_core = False

    def value(self) -> str:
        """A tensor expression of shape SHAPE; values stay within -64..64."""
        a, b = self.c.of(self.tiles + self.own), self.c.of(self.tiles + self.own)
        match self.c.pick(8):
            case 0:
                value = f"pl.add({a}, {b})"
            case 1:
                value = f"pl.sub({a}, {b})"
            case 2:
                return f"pl.maximum({a}, {b})"
            case 3:
                value = f"pl.add({a}, {float(self.c.pick(5))})"
            case 4:
                value = f"pl.mul({a}, {self.c.of(('2.0', '-1.0'))})"
            case 5:
                return f"pl.neg({a})"
            case 6:
                return f"pl.abs({a})"
            case _:
                value = f"pl.add({a}, pl.slice(o, [{ROWS}, {COLS}], [{self.c.of((0, ROWS, 8))}, 0]))"
        return f"pl.minimum(pl.maximum({value}, -64.0), 64.0)"

    def update(self) -> None:
        if self.in_core:
            self.w(f"{self.c.of(self.own)} = {self.value()}")
        else:
            self.region()

    def region(self) -> None:
        """A core-group region."""
        fixed = set(self.fixed)
        own = list(self.own)
        outer, self.in_loop = self.in_loop, False
        with self.scope("with pl.at(level=pl.Level.CORE_GROUP):"):
            self.in_core = True
            self.fixed |= set(self.scalars)
            for _ in range(1 + self.c.pick(3)):
                self.statement()
            self.update()
            self.in_core = False
        self.in_loop = outer
        self.fixed, self.own = fixed, own

    def statement(self) -> None:
        if self.in_core:
            self.core_statement()
        else:
            self.host_statement()

    def core_statement(self) -> None:
        match self.c.pick(9):
            case 0 | 1 | 2:
                self.update()
            case 3:
                name = self.name("t")
                self.w(f"{name} = {self.value()}")
                self.tiles.append(name)
            case 4:
                self.assign_scalar()
            case 5:
                self.branch()
            case 6:
                self.loop()
            case 7:
                self.half(self.c.of(self.own), self.c.of(self.tiles + self.own))
            case _:
                source = self.c.of(self.tiles + self.own)
                self.w(f"o = pl.assemble(o, {source}, [{self.c.of((0, ROWS, 8))}, 0])")

    def half(self, target: str, source: str) -> None:
        """Eight rows of one tensor into another."""
        part = self.name("p")
        row, to = self.c.pick(2) * 8, self.c.pick(2) * 8
        self.w(f"{part} = pl.mul(pl.slice({source}, [8, {COLS}], [{row}, 0]), -1.0)")
        self.w(f"{target} = pl.assemble({target}, {part}, [{to}, 0])")

    def host_statement(self) -> None:
        match self.c.pick(12):
            case 0 | 1 | 2:
                self.region()
            case 3:
                self.assign_scalar()
            case 4:
                self.branch()
            case 5:
                self.loop()
            case 6:
                self.call()
            case 7:
                self.w(f"o = pl.assemble(o, {self.c.of(self.own)}, [{self.c.of((0, ROWS, 8))}, 0])")
            case 8:
                name = self.name("v")
                self.w(f"{name} = pl.slice(o, [{ROWS}, {COLS}], [{self.c.of((0, ROWS, 8))}, 0])")
                self.w(f"{name} = self.nine({self.c.of(self.tiles + self.own)}, {name})")
            case 9:
                self.submit()
            case 10:
                self.parallel()
            case _:
                self.blocks()

    def call(self) -> None:
        """A kernel fills a new tensor, which goes into the output or is used later."""
        name = self.name("c")
        self.w(f"{name} = pl.create_tensor([{ROWS}, {COLS}], dtype=pl.FP32)")
        self.w(f"{name} = self.nine({self.c.of(self.tiles + self.own)}, {name})")
        if self.c.pick(2):
            self.w(f"o = pl.assemble(o, {name}, [{self.c.of((0, ROWS, 8))}, 0])")
        else:
            self.tiles.append(name)

    def submit(self) -> None:
        """Two tasks, the second after the first."""
        name, first, second = self.name("c"), self.name("d"), self.name("d")
        self.w(f"{name} = pl.create_tensor([{ROWS}, {COLS}], dtype=pl.FP32)")
        self.w(f"{name}, {first} = pl.submit(self.nine, {self.c.of(self.tiles + self.own)}, {name})")
        self.w(f"{self.c.of(self.own)}, {second} = pl.submit(self.nine, {name}, {self.fresh()}, deps=[{first}])")
        self.tiles.append(name)

    def fresh(self) -> str:
        name = self.name("c")
        self.w(f"{name} = pl.create_tensor([{ROWS}, {COLS}], dtype=pl.FP32)")
        return name

    def parallel(self) -> None:
        var = self.name("i")
        source = self.c.of(self.tiles + self.own)
        with self.w.block(f"for {var} in pl.parallel(2):"), self.w.block("with pl.at(level=pl.Level.CORE_GROUP):"):
            self.w(f"o = pl.assemble(o, pl.neg({source}), [{var} * {ROWS}, 0])")

    def blocks(self) -> None:
        var, part = self.name("i"), self.name("p")
        source = self.c.of(self.tiles + self.own)
        with self.w.block(f"for {var} in pl.spmd(2):"):
            self.w(f"{part} = pl.mul(pl.slice({source}, [8, {COLS}], [{var} * 8, 0]), -1.0)")
            self.w(f"o = pl.assemble(o, {part}, [{var} * 8 + {self.c.of((0, 8, ROWS))}, 0])")


def host_program(tape: Sequence[int], size: int = 10) -> str:
    """A host with tensor-level regions, loops, branches, windows and calls of a kernel."""
    h = _Host(Choices(tape), size)
    with h.w.block("with pl.at(level=pl.Level.CORE_GROUP):"):
        h.w("x = pl.add(a, b)")
    h.statements(size)
    with h.w.block("with pl.at(level=pl.Level.CORE_GROUP):"):
        h.w(f"o = pl.assemble(o, {h.own[-1]}, [{ROWS}, 0])")
    h.w("return o")
    kernel = f"""    @pl.function(type=pl.FunctionType.InCore)
    def nine(self, x: {_SMALL}, y: pl.Out[{_SMALL}]) -> {_SMALL}:
        nine = pl.tile.full([{ROWS}, {COLS}], dtype=pl.FP32, value=9.0)
        y = pl.store(pl.minimum(pl.load(x, [0, 0], [{ROWS}, {COLS}]), nine), [0, 0], y)
        return y"""
    return _program(kernel, "\n".join(h.w.lines))


class _Any:
    """Stands for types and other names that do not matter when the text is run."""

    def __getattr__(self, name: str) -> _Any:
        return self

    def __getitem__(self, item: Any) -> _Any:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self


def _window(tensor: torch.Tensor, offset: Sequence[int], shape: Sequence[int]) -> torch.Tensor:
    return tensor[tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=True))]


def _put(value: torch.Tensor, offset: Sequence[int], target: torch.Tensor) -> torch.Tensor:
    _window(target, offset, value.shape).copy_(value)
    return target


def _either(torch_op: Callable[..., Any]) -> Callable[..., Any]:
    def op(a: torch.Tensor, b: Any) -> torch.Tensor:
        return torch_op(a, b if torch.is_tensor(b) else torch.tensor(float(b)))

    return op


def _functions() -> SimpleNamespace:
    any_ = _Any()
    words = ("Tensor", "Tile", "Scalar", "Out", "InOut", "FP32", "INDEX", "FunctionType", "Level")
    names: dict[str, Any] = dict.fromkeys(words, any_)
    return SimpleNamespace(
        program=lambda cls: cls,
        function=lambda **_: lambda f: f,
        at=lambda **_: contextlib.nullcontext(),
        range=range,
        unroll=range,
        parallel=range,
        spmd=range,
        submit=lambda kernel, *args, deps=(): (kernel(*args), None),
        pipeline=lambda *a, stage=1: range(*a),
        min=min,
        max=max,
        load=lambda t, offset, shape: _window(t, offset, shape).clone(),
        store=_put,
        assemble=lambda target, value, offset: _put(value, offset, target),
        slice=lambda t, shape, offset: _window(t, offset, shape),
        tile=SimpleNamespace(full=lambda shape, dtype, value: torch.full(shape, value)),
        full=lambda shape, dtype, value: torch.full(shape, value),
        create_tensor=lambda shape, dtype: torch.zeros(shape),
        add=_either(torch.add),
        sub=_either(torch.sub),
        mul=_either(torch.mul),
        maximum=_either(torch.maximum),
        minimum=_either(torch.minimum),
        neg=torch.neg,
        abs=torch.abs,
        **names,
    )


def expected(text: str, *args: Any) -> Any:
    """What `main` of a program gives when its text is run as Python; tensors that it writes are changed in place."""
    space: dict[str, Any] = {"pl": _functions()}
    exec(text.replace("import pypto.language as pl\n", ""), space)
    return space["P"]().main(*args)


def arguments(n: int, seed: int = 0) -> list[Any]:
    """Arguments for `main` of both families."""
    g = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(-9, 10, SHAPE, generator=g).float() for _ in range(2))
    return [a, b, n, torch.full((2 * ROWS, COLS), -7.0)]
