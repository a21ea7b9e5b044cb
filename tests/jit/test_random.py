"""Random kernels with helpers, loops, branches and names used again: jit functions against the same text in torch."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

HEAD = """
import pytest_pypto.pypto.language as pl
C = 0.5

@pl.jit.inline
def plus(x: pl.Tensor, y: pl.Tensor):
    r = pl.add(x, y)
    return r

@pl.jit.inline
def scaled(x: pl.Tensor, s: pl.Scalar[pl.FP32] = 1.5):
    t = pl.mul(x, s)
    t = pl.add(t, C)
    return t

@pl.jit.inline
def deep(x: pl.Tensor):
    m, n = x.shape
    y = scaled(x)
    y = pl.sub(plus(y, x), 1.0 * (m - n) / 64)
    return y

@pl.jit.inline
def top(x: pl.Tensor):
    k = x.shape[0] // 2
    t = pl.slice(x, [k, x.shape[1]], [0, 0])
    u = pl.slice(scaled(t, 0.5), t.shape, [0, 0])
    z = pl.assemble(pl.add(x, 0.0), u, [0, 0])
    return z

@pl.jit
def kernel(a: pl.Tensor, b: pl.Tensor, o: pl.Out[pl.Tensor], n: pl.Scalar[pl.INT32], flag: pl.Scalar[pl.BOOL]):
    with pl.at(level=pl.Level.CORE_GROUP):
"""


class Torch:
    """What the kernels' text means in torch: `pl` and the helpers."""

    @staticmethod
    def names() -> dict[str, Any]:
        def plus(x: Any, y: Any) -> Any:
            return x + y

        def scaled(x: Any, s: float = 1.5) -> Any:
            return x * s + 0.5

        def deep(x: Any) -> Any:
            return scaled(x) + x - 1.0 * (x.shape[0] - x.shape[1]) / 64

        def top(x: Any) -> Any:
            half = x.shape[0] // 2
            return torch.cat([scaled(x[:half], 0.5), x[half:]])

        return {"pl": Torch, "plus": plus, "scaled": scaled, "deep": deep, "top": top}

    add, mul, range = staticmethod(torch.add), staticmethod(torch.mul), range


FORMS = (
    *("{n}", "pl.add({x}, {y})", "pl.mul({x}, -0.5)", "plus({x}, y={y})", "scaled({x}, 0.25)", "scaled(x={x})"),
    *("deep({x})", "top({x})", "pl.mul({n}, 1.0 / {n}.shape[1])"),
)


class Writer:
    """Writes the lines of one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def value(self, names: list[str], depth: int = 0) -> str:
        """An expression over `names`."""
        name = self.random.choice(names)
        if depth > 2:
            return name
        form = self.random.choice(FORMS)
        return form.format(n=name, x=self.value(names, depth + 1), y=self.value(names, depth + 1))

    def assign(self, target: str, value: str, depth: int) -> None:
        self.lines.append("    " * (depth + 2) + f"{target} = {value}")

    def inner(self, names: list[str], depth: int) -> None:
        """Assign again what is there before the block, by way of a name of the block's own."""
        own = self.fresh("t")
        self.assign(own, self.value(names), depth)
        target = self.random.choice([n for n in names if n not in ("a", "b")])
        self.assign(target, f"pl.mul({self.value([*names, own])}, 0.25)", depth)

    def body(self) -> list[str]:
        names = ["a", "b", "v"]
        self.assign("v", "pl.add(a, b)", 0)
        for _ in range(self.random.randint(2, 5)):
            kind = self.random.choice(["new", "again", "for", "if"])
            if kind in ("new", "again"):
                name = self.fresh("v") if kind == "new" else self.random.choice(names[2:])
                self.assign(name, self.value(names), 0)
                names += [name] if kind == "new" else []
                continue
            head = f"for {self.fresh('i')} in pl.range(3):" if kind == "for" else "if n > 2:"
            self.lines.append("    " * 2 + head)
            self.inner(names, 1)
            if kind == "if":
                self.lines.append("    " * 2 + "else:")
                self.inner(names, 1)
        self.lines.append("        o[:] = " + self.value(names))
        return self.lines


@pytest.mark.parametrize("seed", range(8))
def test_kernel(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    lines = Writer(seed).body()
    path = tmp_path / f"random_{seed}.py"
    path.write_text(HEAD + "\n".join(lines) + "\n    return o\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    golden = "def golden(a, b, o, n, flag):\n" + "\n".join(line[4:] for line in lines)
    scope = Torch.names()
    exec(golden, scope)
    for shape, n, platform in (((16, 32), 3, "a2a3sim"), ((32, 16), 1, "a5sim")):
        a, b = torch.randn(*shape), torch.randn(*shape)
        have, want = torch.full(shape, -7.0), torch.full(shape, -7.0)
        scope["golden"](a, b, want, n, True)
        module.kernel(a, b, have, n, True, config=RunConfig(platform=platform))
        assert torch.allclose(have, want, rtol=1e-4, atol=1e-4), path.read_text()
