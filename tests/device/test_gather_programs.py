"""Programs that gather, scatter and sort, compiled and run on the device, for every class of element types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto import ir
from pytest_pypto.pypto.device import DeviceSettings, run_artifact
from pytest_pypto.pypto.device.machine.dtypes import NUMPY
from pytest_pypto.pypto.language.parser.modules import parse

Array = np.ndarray[Any, Any]
NAMES = {"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i8": "INT8", "i32": "INT32", "i16": "INT16", "ui32": "UINT32"}


def program(folder: Path, params: str, body: str) -> Path:
    """The artifact of a program with one kernel."""
    lines = "\n".join(f"            {line}" for line in body.strip().splitlines())
    source = (
        "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
        f"    def main(self, {params}):\n        with pl.at(level=pl.Level.CORE_GROUP):\n{lines}\n        return o\n"
    )
    ir.compile(parse(source), platform="a2a3sim", output_dir=str(folder), skip_ptoas=True, dump_passes=False)
    return folder


def execute(folder: Path, *args: Array) -> None:
    """Run with every sanitizer; nothing may be found but advice."""
    result = run_artifact(folder, list(args), DeviceSettings.strict())
    assert [str(f) for f in result.errors] == []


def whole(seed: int, dtype: str, *shape: int) -> Array:
    """Small whole numbers, so that products are exact in every type."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32).astype(NUMPY[dtype])


def tensor(name: str, shape: list[int], dtype: str, wrap: str = "") -> str:
    """A parameter."""
    text = f"pl.Tensor[{shape}, pl.{NAMES[dtype]}]"
    return f"{name}: pl.{wrap}[{text}]" if wrap else f"{name}: {text}"


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8"])
def test_pages_of_every_type(dtype: str, turned: bool, tmp_path: Path) -> None:
    """The rows that the indices select through the block table, multiplied with the identity."""
    total = "i32" if dtype == "i8" else "f32"
    rng = np.random.default_rng(1)
    table, indices, blocks = whole(1, dtype, 64, 32), rng.permutation(64)[:16], rng.permutation(8)
    rows = table[blocks[indices // 8] * 8 + indices % 8]
    more = ", is_trans=True" if turned else ""
    shape = [16, 32] if turned else [32, 32]
    params = [tensor("x", [64, 32], dtype), tensor("i", [16], "i32"), tensor("t", [8], "i32")]
    params += [tensor("w", shape, dtype), tensor("o", [16, 16] if turned else [16, 32], total, "Out")]
    product = "pl.matmul(w, k" if turned else "pl.matmul(k, w"
    body = f"k = pl.paged_gather(x, i, t, block_size=8, size=32, max_indices=16{more})\n"
    body += f"o[:] = {product}, out_dtype=pl.{NAMES[total]})"
    weight = whole(2, dtype, *shape)
    out = np.zeros((16, 16) if turned else (16, 32), NUMPY[total])
    folder = program(tmp_path, ", ".join(params), body)
    execute(folder, table, indices.astype(np.int32), blocks.astype(np.int32), weight, out)
    left, right = (weight, rows.T) if turned else (rows, weight)
    np.testing.assert_array_equal(out, left.astype(np.float32) @ right.astype(np.float32))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i8"])
def test_rows_into_an_accumulator(dtype: str, tmp_path: Path) -> None:
    """`gather_row` puts rows of a tensor into an on-chip buffer, in an order that the program computes."""
    total = "i32" if dtype == "i8" else "f32"
    table, weight = whole(3, dtype, 64, 32), whole(4, dtype, 32, 32)
    params = [tensor("x", [64, 32], dtype), tensor("w", [32, 32], dtype), tensor("o", [16, 32], total, "Out")]
    body = f"""
acc = pl.create_l1([16, 32], dtype=pl.{NAMES[dtype]})
for r, (a,) in pl.range(16, init_values=(acc,)):
    n = pl.gather_row(a, x, [r, 0], [63 - 3 * r, 0], [1, 32])
    k = pl.yield_(n)
o[:] = pl.matmul(k, w, out_dtype=pl.{NAMES[total]})
"""
    out = np.zeros((16, 32), NUMPY[total])
    execute(program(tmp_path, ", ".join(params), body), table, weight, out)
    rows = table[63 - 3 * np.arange(16)]
    np.testing.assert_array_equal(out, rows.astype(np.float32) @ weight.astype(np.float32))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_sorted_groups(dtype: str, tmp_path: Path) -> None:
    """Values of groups of 32 in descending order, equal ones in their order, infinities and both zeros among them."""
    kind = NUMPY[dtype]
    x = np.round(np.random.default_rng(5).standard_normal((8, 64)) * 2).astype(kind)
    x[0, :6] = [np.inf, -np.inf, 0.0, -0.0, np.inf, 1.5]
    index = np.arange(512, dtype=np.uint32).reshape(8, 64)
    params = [tensor("x", [8, 64], dtype), tensor("i", [8, 64], "ui32"), tensor("o", [8, 128], dtype, "Out")]
    out = np.zeros((8, 128), kind)
    execute(program(tmp_path, ", ".join(params), "o[:] = pl.sort32(x, i)"), x, index, out)
    order = np.argsort(-x.astype(np.float64).reshape(8, 2, 32), axis=2, kind="stable")
    order = (order + np.array([0, 32])[None, :, None]).reshape(8, 64)
    bits = np.dtype(f"u{kind.itemsize}")
    np.testing.assert_array_equal(out[:, ::2].view(bits), np.take_along_axis(x, order, 1).view(bits))
    labels = np.take_along_axis(index, order, 1).astype(bits)
    np.testing.assert_array_equal(np.ascontiguousarray(out[:, 1::2]).view(bits), labels)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i16"])
def test_gather_along_the_last_axis(dtype: str, tmp_path: Path) -> None:
    at = "i16" if dtype in ("f16", "i16") else "i32"
    x = whole(6, dtype, 16, 64)
    index = np.random.default_rng(7).integers(0, 64, (16, 32)).astype(NUMPY[at])
    params = [tensor("x", [16, 64], dtype), tensor("i", [16, 32], at), tensor("o", [16, 32], dtype, "Out")]
    out = np.zeros((16, 32), NUMPY[dtype])
    execute(program(tmp_path, ", ".join(params), "o[:] = pl.gather(x, dim=-1, index=i)"), x, index, out)
    np.testing.assert_array_equal(out, np.take_along_axis(x, index.astype(np.int64), 1))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32", "i16", "i8"])
def test_scatter_to_memory(dtype: str, tmp_path: Path) -> None:
    x = whole(8, dtype, 8, 32)
    index = np.random.default_rng(9).permutation(2048)[:256].reshape(8, 32).astype(np.int32)
    params = [tensor("x", [8, 32], dtype), tensor("i", [8, 32], "i32"), tensor("o", [32, 64], dtype, "InOut")]
    body = "tx = pl.load(x, [0, 0], [8, 32])\nti = pl.load(i, [0, 0], [8, 32])\no = pl.mscatter(tx, ti, o)"
    out = whole(10, dtype, 32, 64)
    wanted = out.copy()
    wanted.reshape(-1)[index] = x
    execute(program(tmp_path, ", ".join(params), body), x, index, out)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32", "i16", "i8"])
def test_gather_from_memory(dtype: str, tmp_path: Path) -> None:
    """Whole rows by their number."""
    x = whole(11, dtype, 64, 32)
    index = np.random.default_rng(12).integers(0, 64, (1, 16)).astype(np.int32)
    params = [tensor("x", [64, 32], dtype), tensor("i", [1, 16], "i32"), tensor("o", [16, 32], dtype, "Out")]
    body = "ti = pl.load(i, [0, 0], [1, 16])\nt = pl.mgather(x, ti)\no = pl.store(t, [0, 0], o)"
    out = np.zeros((16, 32), NUMPY[dtype])
    execute(program(tmp_path, ", ".join(params), body), x, index, out)
    np.testing.assert_array_equal(out, x[index[0]])
