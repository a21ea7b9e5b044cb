"""Kernels and host programs into which the tests of the sanitizers put faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pytest_pypto.pypto.device import DeviceResult, FindingKind

from .texts import Kernel, host, kinds, typ

F = np.float32


def line_of(folder: Path, words: str, which: int = 0) -> int:
    """Line of the which-th line of the kernel file that contains `words`."""
    (file,) = (folder / "kernels").glob("*.pto")
    return [i for i, x in enumerate(file.read_text().splitlines(), 1) if words in x][which]


def only(result: DeviceResult, kind: FindingKind) -> Any:
    """The one finding of `kind`; there is no error of another kind."""
    found = [f for f in result.findings if f.kind is kind]
    assert len(found) == 1, [str(f) for f in result.findings]
    assert set(kinds(result, "error")) <= {kind.value}
    return found[0]


def zeros(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, F)


def unary(load: tuple[int, int] = (16, 16), **tile: Any) -> Kernel:
    """o = exp(a) on one 16x16 tile, of which `load` elements are loaded."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), load)
    k.tile("u", 16, 16, 1024)
    k.op("texp", ["t"], ["u"])
    k.store("u", "o", (0, 0), (16, 16))
    return k


def two_tasks(second_first: bool) -> str:
    """fill(t); use(t, o) - or the other way round - with a created tensor t."""
    t, used = typ("f32", (16, 16)), "t0" if second_first else "t1"
    calls = [
        f't1: {t} = self.fill(a, t0, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})',
        f'o1: {t} = self.use({used}, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})',
    ]
    body = [f"    t0: {t} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)"]
    body += [f"    {c}" for c in (reversed(calls) if second_first else calls)]
    kernels = [named(n).declaration(["o"]) for n in ("fill", "use")]
    return host(f"a: {t}, o: pl.Out[{t}]", "with pl.scope():\n" + "\n".join(body), *kernels)


def named(name: str) -> Kernel:
    """unary() under another name."""
    k = unary()
    k.name = name
    return k


def windowed(row: int) -> Kernel:
    k = Kernel("k", [("a", "f32", (20, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (row, 0), (16, 16))
    k.store("t", "o", (0, 0), (16, 16))
    return k


def c2v(
    load_cols: int = 32,
    pops: int = 1,
    frees: int = 1,
    split: int = 1,
    pop_split: int | None = None,
    store_row: int = 16,
) -> tuple[Kernel, Kernel]:
    """o = a @ a on the cube; the lanes store their rows, or with split 0 all rows each."""
    tensors = [("a", "f32", (32, 32)), ("o", "f32", (32, 32))]
    cube = Kernel("k_aic", tensors, kind="cube")
    cube.pipe(1, 4096, 2)
    cube.tile("m", 32, 32, 0, space="mat")
    cube.load("a", "m", (0, 0), (32, load_cols))
    cube.tile("l", 32, 32, 0, space="left")
    cube.op("tmov", ["m"], ["l"])
    cube.tile("r", 32, 32, 0, space="right")
    cube.op("tmov", ["m"], ["r"])
    cube.tile("c", 32, 32, 0, space="acc")
    cube.op("tmatmul", ["l", "r"], ["c"])
    cube.push("c", split)
    vector = Kernel("k_aiv", tensors, lane=True)
    vector.pipe(1, 4096, 2)
    vector.line("%lane = arith.index_cast %__pypto_spmd_subblock_idx : i32 to index")
    vector.line(f"%row = arith.muli %lane, {vector.c(store_row)} : index")
    code, rows = split if pop_split is None else pop_split, 16 if split else 32
    for i in range(pops):
        vector.pop(f"p{i}", rows, 32, code)
    vector.tile("y", rows, 32, SCRATCH)
    vector.op("tadds", ["p0", (vector.c(0.0, "f32"), "f32")], ["y"])
    for _ in range(frees):
        vector.free(code)
    vector.store("y", "o", ("row", 0), (rows, 32))
    return cube, vector


SCRATCH = 16384
"""Where the lanes of `c2v` keep their result."""

UP_DOWN = '{"split": pl.SplitMode.UP_DOWN}'


def eye() -> np.ndarray[Any, Any]:
    return np.arange(1024, dtype=F).reshape(32, 32) / 1024


def tasks(ordered: bool) -> str:
    """Two tasks write o: with or without an edge between them."""
    t = typ("f32", (16, 16))
    kind = "inout" if ordered else "output_existing"
    body = f"""
    with pl.scope():
        o1: {t} = self.fill(a, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})
        o2: {t} = self.use(b, o1, attrs={{"arg_directions": [pl.adir.input, pl.adir.{kind}]}})
    """
    kernels = [named(n).declaration(["o"]) for n in ("fill", "use")]
    return host(f"a: {t}, b: {t}, o: pl.Out[{t}]", body, *kernels)
