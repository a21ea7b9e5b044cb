"""Small kernels written as finished IR text, and their `.pto` bodies."""

from __future__ import annotations

import textwrap

from pytest_pypto.pypto.backend import BackendType
from pytest_pypto.pypto.backend.handler import handler_for
from pytest_pypto.pypto.codegen import CodegenOptions
from pytest_pypto.pypto.codegen.pto.function import module_text
from pytest_pypto.pypto.ir.program import Function, Program
from pytest_pypto.pypto.language.parser.modules import parse

HEAD = """\
import pypto.language as pl

{symbols}
@pl.program
class P:
"""
TENSOR = 'pl.Tensor[[16, 32], pl.FP32, pl.MemRef("{name}", pl.const(0, pl.INT64), 2048)]'


def program(functions: str, symbols: str = "") -> Program:
    """A program from the text of its member functions."""
    return parse(HEAD.format(symbols=symbols) + textwrap.indent(textwrap.dedent(functions).strip() + "\n", "    "))


def kernel(body: str, params: str = "", core: str = "AIV", symbols: str = "") -> Function:
    """A kernel `k` with parameters `x`, further ones, and `o`, all [16, 32] FP32 tensors unless written out."""
    more = f", {params}" if params else ""
    text = (
        f"@pl.function(type=pl.FunctionType.{core}, level=pl.Level.{core}, role=pl.Role.SubWorker)\n"
        f"def k(x: {TENSOR.format(name='mem_ddr_0')}{more}, o: pl.Out[{TENSOR.format(name='mem_ddr_1')}]):\n"
        + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    )
    found = program(text, symbols).get_function("k")
    assert found is not None
    return found


def tile(number: int, address: int, shape: str = "[16, 32]", dtype: str = "FP32", space: str = "Vec") -> str:
    """A tile annotation with a buffer and an address."""
    base = f"mem_{space.lower()}_{number}"
    return f"pl.Tile[{shape}, pl.{dtype}, pl.MemRef({base}, pl.const({address}, pl.INT64), 2048), pl.Mem.{space}]"


def allocs(*numbers: int, space: str = "Vec") -> str:
    """The `tile.alloc` lines of buffers."""
    lines = [f"mem_{space.lower()}_{n}: pl.Ptr = pl.tile.alloc(pl.Mem.{space}, 2048)" for n in numbers]
    return "\n".join(lines)


def text(func: Function, arch: BackendType = BackendType.Ascend910B, **options: bool) -> str:
    """The module of one kernel."""
    chosen = CodegenOptions(**{"emit_source_loc": False, **options})
    return module_text([func], handler_for(arch), chosen)


def lines(func: Function, arch: BackendType = BackendType.Ascend910B, **options: bool) -> list[str]:
    """The stripped lines of a kernel's module, with tile types shortened to T."""
    import re

    short = re.sub(r"!pto\.tile_buf<[^>]*>", "T", text(func, arch, **options))
    return [line.strip() for line in short.splitlines()]
