"""Small artifacts written by hand: `.pto` kernels and a host program, for the tests of the simulated device."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pytest_pypto.pypto.device import DeviceResult, DeviceSettings, run_artifact

LAYOUTS = {
    "vec": ("row_major", "none_box", 512),
    "mat": ("col_major", "row_major", 512),
    "left": ("col_major", "row_major", 512),
    "right": ("row_major", "col_major", 512),
    "acc": ("col_major", "row_major", 1024),
    "bias": ("row_major", "none_box", 512),
}
LANGUAGE = {"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i32": "INT32", "i16": "INT16", "i8": "INT8", "ui8": "UINT8"}
LANGUAGE |= {
    "index": "INDEX",
    "ui32": "UINT32",
    "i64": "INT64",
    "ui16": "UINT16",
    "f8e4m3fn": "FP8E4M3FN",
    "f8e5m2": "FP8E5M2",
    "f8e8m0": "FP8E8M0",
}


def tile_type(
    space: str,
    dtype: str,
    rows: int,
    cols: int,
    layout: tuple[str, str, int] | None = None,
    pad: int = 0,
    valid: str = "?",
) -> str:
    """The text of a tile type."""
    blayout, slayout, fractal = layout or LAYOUTS[space]
    v_row, v_col = (valid, valid) if valid == "?" else valid.split("x")
    return (
        f"!pto.tile_buf<loc={space}, dtype={dtype}, rows={rows}, cols={cols}, v_row={v_row}, v_col={v_col}, "
        f"blayout={blayout}, slayout={slayout}, fractal={fractal}, pad={pad}>"
    )


class Kernel:
    """Writes one kernel function. Names are used without `%`.

    `tensors` are (name, element type, shape), `scalars` (name, type); `lane`/`block` add the launch parameters.
    """

    def __init__(
        self,
        name: str,
        tensors: Sequence[tuple[str, str, Sequence[int]]],
        scalars: Sequence[tuple[str, str]] = (),
        kind: str = "vector",
        lane: bool = False,
        block: bool = False,
    ) -> None:
        self.name, self.kind, self.lane, self.block = name, kind, lane, block
        self.tensors = [(n, d, tuple(s)) for n, d, s in tensors]
        self.scalars = list(scalars)
        self.lines: list[str] = []
        self.types: dict[str, str] = {}
        self.consts: dict[str, str] = {}
        self.count = 0
        for n, dtype, shape in self.tensors:
            sizes = [self.c(x) for x in shape]
            steps = [self.c(int(np.prod(shape[i + 1 :]))) for i in range(len(shape))]
            self.line(
                f"%{n}_view = pto.make_tensor_view %{n}, shape = [{', '.join(sizes)}], strides = [{', '.join(steps)}] "
                f"{{layout = #pto.layout<nd>}} : !pto.tensor_view<{'?x' * len(shape)}{dtype}>"
            )

    def line(self, text: str) -> None:
        """One line as it is."""
        self.lines.append("  " + text)

    def c(self, value: float, typ: str = "index") -> str:
        """A constant, with `%`."""
        name = f"%c{len(self.consts)}"
        text = f"arith.constant {value!r} : {typ}"
        return self.consts.setdefault(text, name)

    def _value(self, x: Any) -> str:
        return self.c(x) if isinstance(x, int) else f"%{x}"

    def fresh(self, hint: str = "x") -> str:
        """An unused name."""
        self.count += 1
        return f"{hint}_{self.count}"

    def tile(
        self,
        name: str,
        rows: int,
        cols: int,
        addr: int,
        dtype: str = "f32",
        space: str = "vec",
        valid: Any = None,
        **more: Any,
    ) -> str:
        """Allocate a tile."""
        vr, vc = valid or (rows, cols)
        self.types[name] = tile_type(space, dtype, rows, cols, **more)
        at = self.c(addr, "i64")
        self.line(
            f"%{name} = pto.alloc_tile addr = {at} valid_row = {self._value(vr)} valid_col = {self._value(vc)} : "
            f"{self.types[name]}"
        )
        return name

    def part(self, tensor: str, offsets: Sequence[Any], sizes: Sequence[Any]) -> tuple[str, str]:
        """A window of a tensor: name and type."""
        dtype = next(d for n, d, _ in self.tensors if n == tensor)
        name, rank = self.fresh(tensor), len(offsets)
        extents = "x".join(str(s) if isinstance(s, int) else "?" for s in sizes)
        typ = f"!pto.partition_tensor_view<{extents}x{dtype}>"
        at = ", ".join(self._value(o) for o in offsets)
        size = ", ".join(self._value(s) for s in sizes)
        self.line(
            f"%{name} = pto.partition_view %{tensor}_view, offsets = [{at}], sizes = [{size}] : "
            f"!pto.tensor_view<{'?x' * rank}{dtype}> -> {typ}"
        )
        return name, typ

    def load(self, tensor: str, tile: str, offsets: Sequence[Any], sizes: Sequence[Any]) -> None:
        """Copy a window into a tile."""
        name, typ = self.part(tensor, offsets, sizes)
        self.line(f"pto.tload ins(%{name} : {typ}) outs(%{tile} : {self.types[tile]})")

    def store(self, tile: str, tensor: str, offsets: Sequence[Any], sizes: Sequence[Any], attrs: str = "") -> None:
        """Copy a tile into a window."""
        name, typ = self.part(tensor, offsets, sizes)
        self.line(f"pto.tstore ins(%{tile} : {self.types[tile]}) outs(%{name} : {typ}){attrs}")

    def op(self, name: str, ins: Sequence[Any], outs: Sequence[str], attrs: str = "", inside: str = "") -> None:
        """`pto.<name> ins(...) outs(...)`; a scalar operand is (name or constant text, type)."""
        names = [x if isinstance(x, str) else x[0] for x in ins]
        types = [self.types[x] if isinstance(x, str) else x[1] for x in ins]
        texts = [n if n.startswith("%") else f"%{n}" for n in names]
        self.line(
            f"pto.{name} ins({', '.join(texts)}{inside} : {', '.join(types)}) "
            f"outs({', '.join('%' + o for o in outs)} : {', '.join(self.types[o] for o in outs)}){attrs}"
        )

    def view(self, name: str, parent: str, offsets: Sequence[Any], rows: int, cols: int) -> str:
        """A window of a tile."""
        space, dtype = (self.types[parent].split(f"{k}=")[1].split(",")[0] for k in ("loc", "dtype"))
        layout = [self.types[parent].split(f"{k}=")[1].split(",")[0] for k in ("blayout", "slayout")]
        fractal = int(self.types[parent].split("fractal=")[1].split(",")[0])
        self.types[name] = tile_type(space, dtype, rows, cols, (layout[0], layout[1], fractal), valid=f"{rows}x{cols}")
        at = ", ".join(self._value(o) for o in offsets)
        self.line(
            f"%{name} = pto.subview %{parent}[{at}] sizes [{rows}, {cols}] : {self.types[parent]} -> {self.types[name]}"
        )
        return name

    def valid(self, tile: str, rows: Any, cols: Any) -> None:
        """Change the valid extents of a handle."""
        self.line(f"pto.set_validshape %{tile}, {self._value(rows)}, {self._value(cols)} : {self.types[tile]}")

    def pipe(self, mask: int, slot_size: int, slots: int, base: int = 0) -> None:
        """Reserve the slots and initialise pipe 0."""
        cube = self.kind == "cube"
        mine, space = ("v2c", "mat") if cube else ("c2v", "vec")
        self.line(
            f'%ring = pto.reserve_buffer {{name = "r", size = {slot_size * slots}, location = '
            f"#pto.address_space<{space}>, auto = false, base = {base}}} -> i32"
        )
        zero = self.c(0, "i32")
        bufs = {"c2v": zero, "v2c": zero} | {mine: "%ring"}
        ends = f"(c2v_consumer_buf = {bufs['c2v']} : i32, v2c_consumer_buf = {bufs['v2c']} : i32)"
        sizes = f"dir_mask = {mask}, slot_size = {slot_size}, slot_num = {slots}"
        self.line(f"pto.{'aic' if cube else 'aiv'}_initialize_pipe {{{sizes}}} {ends}")

    def push(self, tile: str, split: int) -> None:
        """Send a tile."""
        to = "aiv" if self.kind == "cube" else "aic"
        self.line(f"pto.tpush_to_{to}(%{tile} : {self.types[tile]}) {{split = {split}}}")

    def pop(self, name: str, rows: int, cols: int, split: int, dtype: str = "f32", valid: Any = None) -> str:
        """Receive a tile."""
        source, space = ("aiv", "mat") if self.kind == "cube" else ("aic", "vec")
        self.types[name] = tile_type(space, dtype, rows, cols)
        extents = f"({self._value(valid[0])}, {self._value(valid[1])})" if valid else ""
        self.line(f"%{name} = pto.tpop_from_{source}{extents} {{split = {split}}} -> {self.types[name]}")
        return name

    def free(self, split: int) -> None:
        """Give the slot back."""
        self.line(f"pto.tfree_from_{'aiv' if self.kind == 'cube' else 'aic'} {{split = {split}}}")

    def text(self) -> str:
        """The function."""
        params = [f"%{n}: !pto.ptr<{d}>" for n, d, _ in self.tensors] + [f"%{n}: {t}" for n, t in self.scalars]
        params += ["%__pypto_spmd_block_idx: i32", "%__pypto_spmd_block_num: i32"] if self.block else []
        params += ["%__pypto_spmd_subblock_idx: i32"] if self.lane else []
        kind = f"attributes {{pto.kernel_kind = #pto.kernel_kind<{self.kind}>}}"
        head = f"  func.func @{self.name}({', '.join(params)}) {kind} {{"
        consts = [f"  {name} = {text}" for text, name in self.consts.items()]
        return "\n".join([head, *consts, *self.lines, "  return", "  }"])

    def declaration(self, outs: Sequence[str], inouts: Sequence[str] = ()) -> str:
        """The kernel in the host program."""
        kind = "AIC" if self.kind == "cube" else "AIV"
        params = []
        for n, d, shape in self.tensors:
            typ = f"pl.Tensor[{list(shape)}, pl.{LANGUAGE[d]}]"
            params.append(f"{n}: " + (f"pl.Out[{typ}]" if n in outs else f"pl.InOut[{typ}]" if n in inouts else typ))
        params += [f"{n}: pl.Scalar[pl.{LANGUAGE[t]}]" for n, t in self.scalars]
        made = [f"pl.Tensor[{list(s)}, pl.{LANGUAGE[d]}]" for n, d, s in self.tensors if n in (*outs, *inouts)]
        result = "" if not made else f" -> {made[0]}" if len(made) == 1 else f" -> tuple[{', '.join(made)}]"
        return (
            f"    @pl.function(type=pl.FunctionType.{kind}, level=pl.Level.{kind}, role=pl.Role.SubWorker)\n"
            f"    def {self.name}({', '.join(params)}){result}:\n        ...\n"
        )


def module(*kernels: Kernel, arch: str = "a2a3") -> str:
    """A `.pto` module."""
    body = "\n".join(k.text() for k in kernels)
    return f'module attributes {{pto.target_arch = "{arch}"}} {{\n{body}\n}}\n'


def typ(dtype: str, shape: Sequence[int]) -> str:
    """A tensor type in the host program."""
    return f"pl.Tensor[{list(shape)}, pl.{LANGUAGE[dtype]}]"


def dirs(*names: str, more: str = "") -> str:
    """`attrs={...}` of a call: the directions of the arguments, and other entries."""
    listed = ", ".join(f"pl.adir.{n}" for n in names)
    return f'attrs={{"arg_directions": [{listed}]{more}}}'


def host(params: str, body: str, *functions: str, result: str = "") -> str:
    """A host program: the entry `main` with the given parameters and body, and other functions."""
    entry = (
        "    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator, "
        f"auto_scope=False)\n    def main(self, {params}){' -> ' + result if result else ''}:\n"
    )
    text = "# pypto.program: P\nimport pypto.language as pl\n\n@pl.program\nclass P:\n\n"
    return (
        text + "\n".join(functions) + "\n" + entry + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"
    )


def group(name: str, cube: Kernel, vector: Kernel, outs: Sequence[str], attrs: str = "") -> str:
    """A group function of two kernels with equal parameters."""
    params, made = [], []
    for n, d, shape in vector.tensors:
        t = typ(d, shape)
        params.append(f"{n}: " + (f"pl.Out[{t}]" if n in outs else t))
        made += [t] if n in outs else []
    names = [n for n, _, _ in vector.tensors]
    ways = dirs(*("output_existing" if n in outs else "input" for n in names))
    calls = "\n".join(f"        self.{k.name}({', '.join(names)}, {ways})" for k in (cube, vector))
    mark = f"        pl.func_attr({attrs})\n" if attrs else ""
    result = f" -> {made[0]}" if made else ""
    back = f"\n        return {outs[0]}" if outs else ""
    return (
        "    @pl.function(type=pl.FunctionType.Group, level=pl.Level.CORE_GROUP, role=pl.Role.SubWorker)\n"
        f"    def {name}({', '.join(params)}){result}:\n{mark}{calls}{back}\n"
    )


def write(folder: Path, host_text: str, **modules: str) -> Path:
    """An artifact directory."""
    (folder / "kernels").mkdir(parents=True, exist_ok=True)
    (folder / "orchestration").mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / "kernels" / f"{name}.pto").write_text(text, encoding="utf-8")
    (folder / "orchestration" / "main.py").write_text(host_text, encoding="utf-8")
    return folder


def single(folder: Path, kernel: Kernel, outs: Sequence[str], arch: str = "a2a3", inouts: Sequence[str] = ()) -> Path:
    """An artifact whose entry calls one kernel once, with the kernel's own parameters."""
    params, ways = [], []
    for n, d, shape in kernel.tensors:
        t = typ(d, shape)
        params.append(f"{n}: " + (f"pl.Out[{t}]" if n in outs else f"pl.InOut[{t}]" if n in inouts else t))
        ways.append("output_existing" if n in outs else "inout" if n in inouts else "input")
    params += [f"{n}: pl.Scalar[pl.{LANGUAGE[t]}]" for n, t in kernel.scalars]
    ways += ["scalar"] * len(kernel.scalars)
    names = ", ".join([n for n, _, _ in kernel.tensors] + [n for n, _ in kernel.scalars])
    body = f"with pl.scope():\n    self.{kernel.name}({names}, {dirs(*ways)})"
    text = host(", ".join(params), body, kernel.declaration(outs, inouts))
    return write(folder, text, k=module(kernel, arch=arch))


def mixed(folder: Path, cube: Kernel, vector: Kernel, outs: Sequence[str], attrs: str = "", arch: str = "a2a3") -> Path:
    """An artifact whose entry calls one group once."""
    params = [f"{n}: " + (f"pl.Out[{typ(d, s)}]" if n in outs else typ(d, s)) for n, d, s in vector.tensors]
    names = [n for n, _, _ in vector.tensors]
    ways = dirs(*("output_existing" if n in outs else "input" for n in names))
    body = f"with pl.scope():\n    self.g({', '.join(names)}, {ways})"
    text = host(
        ", ".join(params), body, cube.declaration(outs), vector.declaration(outs), group("g", cube, vector, outs, attrs)
    )
    return write(folder, text, g=module(cube, vector, arch=arch))


def run(folder: Path, *args: Any, **settings: Any) -> DeviceResult:
    """Run with every sanitizer on."""
    return run_artifact(folder, list(args), DeviceSettings.strict(**settings))


def plain(folder: Path, *args: Any, **settings: Any) -> DeviceResult:
    """Run without sanitizers."""
    return run_artifact(folder, list(args), DeviceSettings(**settings))


def kinds(result: DeviceResult, severity: str | None = None) -> list[str]:
    """Kinds of the findings, in order."""
    return [f.kind.value for f in result.findings if severity in (None, f.severity)]


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    """FP32 random numbers."""
    return rng.standard_normal(shape).astype(np.float32)
