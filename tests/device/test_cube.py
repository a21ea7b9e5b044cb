"""Products: layouts, accumulation, odd sizes, valid contraction, transposed views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, FindingKind
from pytest_pypto.pypto.device.machine.dtypes import NUMPY
from pytest_pypto.pypto.device.machine.tiles import Tile
from pytest_pypto.pypto.device.text.types import TileT, parse_type

from .texts import Kernel, kinds, run, single, tile_type

Array = np.ndarray[Any, Any]
TRANSPOSED = ("row_major", "col_major", 512)


def product(
    m: int, k_: int, n: int, dtype: str, acc: str = "f32", valid_k: int | None = None, steps: int = 1
) -> Kernel:
    """o = a @ b in `steps` chunks of the contraction axis."""
    k = Kernel("k", [("a", dtype, (m, k_)), ("b", dtype, (k_, n)), ("o", acc, (m, n))], kind="cube")
    size = {"f32": 4, "bf16": 2, "f16": 2, "i8": 1, "f8e4m3fn": 1}[dtype]
    depth = k_ // steps
    used = depth if valid_k is None else valid_k
    k.tile("ma", m, depth, 0, dtype=dtype, space="mat", valid=(m, used))
    k.tile("mb", depth, n, 1 << 17, dtype=dtype, space="mat", valid=(used, n))
    k.tile("l", m, depth, 0, dtype=dtype, space="left", valid=(m, used))
    k.tile("r", depth, n, 0, dtype=dtype, space="right", valid=(used, n))
    k.tile("c", m, n, 0, dtype=acc, space="acc")
    for step in range(steps):
        k.load("a", "ma", (0, step * depth), (m, used))
        k.load("b", "mb", (step * depth, 0), (used, n))
        k.op("tmov", ["ma"], ["l"])
        k.op("tmov", ["mb"], ["r"])
        k.op("tmatmul" if step == 0 else "tmatmul.acc", ["l", "r"] if step == 0 else ["c", "l", "r"], ["c"])
    k.store("c", "o", (0, 0), (m, n))
    assert m * depth * size <= 65536
    return k


def operands(m: int, k_: int, n: int, dtype: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    if dtype == "i8":
        return rng.integers(-128, 127, (m, k_), dtype=np.int8), rng.integers(-128, 127, (k_, n), dtype=np.int8)
    kind = NUMPY[dtype]
    return rng.standard_normal((m, k_)).astype(kind), rng.standard_normal((k_, n)).astype(kind)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "f8e4m3fn"])
@pytest.mark.parametrize(
    ("m", "k_", "n", "steps"), [(32, 64, 48, 1), (16, 128, 64, 4), (10, 20, 12, 1), (17, 64, 64, 1)]
)
def test_float_products(m: int, k_: int, n: int, steps: int, dtype: str, tmp_path: Path) -> None:
    a, b = operands(m, k_, n, dtype)
    o = np.zeros((m, n), np.float32)
    assert run(single(tmp_path, product(m, k_, n, dtype, steps=steps), ["o"]), a, b, o).findings == ()
    np.testing.assert_allclose(o, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("steps", [1, 2])
def test_integer_products_are_exact(steps: int, tmp_path: Path) -> None:
    a, b = operands(32, 128, 32, "i8")
    o = np.zeros((32, 32), np.int32)
    assert run(single(tmp_path, product(32, 128, 32, "i8", "i32", steps=steps), ["o"]), a, b, o).findings == ()
    np.testing.assert_array_equal(o, a.astype(np.int64) @ b.astype(np.int64))


def test_int8_of_all_fives(tmp_path: Path) -> None:
    """1600, where an 8-bit accumulator would give 64."""
    o = np.zeros((16, 32), np.int32)
    a, b = np.full((16, 64), 5, np.int8), np.full((64, 32), 5, np.int8)
    run(single(tmp_path, product(16, 64, 32, "i8", "i32"), ["o"]), a, b, o)
    assert set(o.reshape(-1)) == {1600}


def test_contraction_over_valid_columns_only(tmp_path: Path) -> None:
    """Columns beyond the valid ones hold NaN in memory and must not matter."""
    a, b = operands(16, 32, 16, "f32")
    o = np.zeros((16, 16), np.float32)
    result = run(single(tmp_path, product(16, 32, 16, "f32", valid_k=20), ["o"]), a, b, o, poison=0xFF)
    assert result.findings == ()
    np.testing.assert_allclose(o, a[:, :20].astype(np.float64) @ b[:20].astype(np.float64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("m", "n"), [(32, 64), (48, 16)])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_transposed_view_aliases_the_bytes(dtype: str, m: int, n: int) -> None:
    """Swapping both layouts is a transpose without a copy: element (r, c) and (c, r) share their address."""
    memory = np.zeros(1 << 16, np.uint8)
    straight, turned = (parse_type(tile_type("mat", dtype, *s)) for s in ((m, n), (n, m)))
    turned = parse_type(tile_type("mat", dtype, n, m, TRANSPOSED))
    assert isinstance(straight, TileT)
    assert isinstance(turned, TileT)
    a, b = Tile.at(memory, 0, straight, m, n), Tile.at(memory, 0, turned, n, m)
    np.testing.assert_array_equal(a.addresses(), b.addresses().T)
    x = np.arange(m * n).reshape(m, n).astype(NUMPY[dtype])
    a.writer(m, n)(x)
    np.testing.assert_array_equal(b.reader(n, m)().astype(float), x.T.astype(float))


def test_product_with_a_transposed_view(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "bf16", (32, 64)), ("b", "bf16", (48, 64)), ("o", "f32", (32, 48))], kind="cube")
    k.tile("ma", 32, 64, 0, dtype="bf16", space="mat")
    k.tile("mb", 48, 64, 8192, dtype="bf16", space="mat")
    k.load("a", "ma", (0, 0), (32, 64))
    k.load("b", "mb", (0, 0), (48, 64))
    k.tile("mt", 64, 48, 8192, dtype="bf16", space="mat", layout=TRANSPOSED)
    k.tile("l", 32, 64, 0, dtype="bf16", space="left")
    k.tile("r", 64, 48, 0, dtype="bf16", space="right")
    k.tile("c", 32, 48, 0, space="acc")
    k.op("tmov", ["ma"], ["l"])
    k.op("tmov", ["mt"], ["r"])
    k.op("tmatmul", ["l", "r"], ["c"])
    k.store("c", "o", (0, 0), (32, 48))
    a = np.random.default_rng(1).standard_normal((32, 64)).astype(ml_dtypes.bfloat16)
    b = np.random.default_rng(2).standard_normal((48, 64)).astype(ml_dtypes.bfloat16)
    o = np.zeros((32, 48), np.float32)
    assert run(single(tmp_path, k, ["o"]), a, b, o).findings == ()
    np.testing.assert_allclose(o, a.astype(np.float64) @ b.astype(np.float64).T, rtol=1e-5, atol=1e-4)


def test_bias(tmp_path: Path) -> None:
    k = product(16, 32, 32, "f32")
    k.tensors.append(("z", "f32", (1, 32)))
    k.line(
        f"%z_view = pto.make_tensor_view %z, shape = [{k.c(1)}, {k.c(32)}], strides = [{k.c(32)}, {k.c(1)}] "
        "{layout = #pto.layout<nd>} : !pto.tensor_view<?x?xf32>"
    )
    k.tile("mz", 1, 32, 1 << 18, space="mat", layout=("row_major", "none_box", 512))
    k.load("z", "mz", (0, 0), (1, 32))
    k.tile("zb", 1, 32, 0, space="bias")
    k.op("tmov", ["mz"], ["zb"])
    k.op("tmatmul.bias", ["l", "r", "zb"], ["c"])
    k.store("c", "o", (0, 0), (16, 32))
    a, b = operands(16, 32, 32, "f32")
    z = np.arange(32, dtype=np.float32)[None, :]
    o = np.zeros((16, 32), np.float32)
    result = run(single(tmp_path, k, ["o"]), a, b, o, z)
    assert kinds(result, "error") == []
    np.testing.assert_allclose(o, a.astype(np.float64) @ b.astype(np.float64) + z, rtol=1e-5, atol=1e-4)


def test_extract_windows_of_a_boxed_tile(tmp_path: Path) -> None:
    """Windows on and off the boxes, into both operand memories."""
    k = Kernel("k", [("a", "bf16", (48, 96)), ("o", "f32", (16, 16))], [("r", "index"), ("c", "index")], kind="cube")
    k.tile("m", 48, 96, 0, dtype="bf16", space="mat")
    k.load("a", "m", (0, 0), (48, 96))
    k.tile("l", 16, 32, 0, dtype="bf16", space="left")
    k.tile("w", 32, 16, 0, dtype="bf16", space="right")
    k.op("textract", ["m", ("r", "index"), ("c", "index")], ["l"])
    k.op("textract", ["m", (k.c(16), "index"), (k.c(64), "index")], ["w"])
    k.tile("x", 16, 16, 0, space="acc")
    k.op("tmatmul", ["l", "w"], ["x"])
    k.store("x", "o", (0, 0), (16, 16))
    a = np.random.default_rng(9).standard_normal((48, 96)).astype(ml_dtypes.bfloat16)
    f = a.astype(np.float64)
    folder = single(tmp_path, k, ["o"])
    for r, c in ((0, 0), (32, 64), (5, 7), (16, 33)):
        o = np.zeros((16, 16), np.float32)
        assert run(folder, a, o, r, c).findings == ()
        np.testing.assert_allclose(o, f[r : r + 16, c : c + 32] @ f[16:48, 64:80], rtol=1e-5, atol=1e-4)
    for _ in range(2):
        result = run(folder, a, np.zeros((16, 16), np.float32), 40, 0)
        assert FindingKind.OUT_OF_BOUNDS.value in kinds(result, "error")


def test_insert_into_a_low_precision_tile(tmp_path: Path) -> None:
    """An accumulator is rounded into two places of a BF16 tile, which then is an operand."""
    k = product(16, 16, 16, "bf16")
    k.lines = [x for x in k.lines if "tstore" not in x and "partition_view %o" not in x]
    k.tile("s", 16, 32, 1 << 18, dtype="bf16", space="mat")
    for col in (0, 16):
        k.op("tinsert", ["c", (k.c(0), "index"), (k.c(col), "index")], ["s"])
    k.tile("l2", 16, 32, 4096, dtype="bf16", space="left")
    k.op("tmov", ["s"], ["l2"])
    k.tile("r2", 32, 16, 8192, dtype="bf16", space="right")
    k.tile("mb2", 32, 16, 1 << 16, dtype="bf16", space="mat")
    for row in (0, 16):
        k.view(f"half{row}", "mb2", (row, 0), 16, 16)
        k.load("b", f"half{row}", (0, 0), (16, 16))
    k.op("tmov", ["mb2"], ["r2"])
    k.tile("d", 16, 16, 4096, space="acc")
    k.op("tmatmul", ["l2", "r2"], ["d"])
    k.store("d", "o", (0, 0), (16, 16))
    a, b = operands(16, 16, 16, "bf16")
    o = np.zeros((16, 16), np.float32)
    assert run(single(tmp_path, k, ["o"]), a, b, o).findings == ()
    inner = (a.astype(np.float32) @ b.astype(np.float32)).astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_allclose(o, 2 * inner @ b.astype(np.float64), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("form", ["", ".acc", ".bias"])
def test_vector_times_matrix(form: str, tmp_path: Path) -> None:
    """One valid row in a box of sixteen."""
    k = Kernel("k", [("a", "f32", (1, 64)), ("b", "f32", (64, 32)), ("z", "f32", (1, 32)), ("o", "f32", (1, 32))])
    k.kind = "cube"
    k.tile("ma", 16, 64, 0, space="mat", valid=(1, 64))
    k.load("a", "ma", (0, 0), (1, 64))
    k.tile("mb", 64, 32, 1 << 16, space="mat")
    k.load("b", "mb", (0, 0), (64, 32))
    k.tile("l", 16, 64, 0, space="left", valid=(1, 64))
    k.op("tmov", ["ma"], ["l"])
    k.tile("r", 64, 32, 0, space="right")
    k.op("tmov", ["mb"], ["r"])
    k.tile("c", 16, 32, 0, space="acc", valid=(1, 32))
    if form == ".bias":
        k.tile("mz", 1, 32, 1 << 17, space="mat", layout=("row_major", "none_box", 512))
        k.load("z", "mz", (0, 0), (1, 32))
        k.tile("bias", 1, 32, 0, space="bias")
        k.op("tmov", ["mz"], ["bias"])
    if form == ".acc":
        k.op("tgemv", ["l", "r"], ["c"])
    extra = {"": ["l", "r"], ".acc": ["c", "l", "r"], ".bias": ["l", "r", "bias"]}[form]
    k.op(f"tgemv{form}", extra, ["c"])
    k.store("c", "o", (0, 0), (1, 32))
    a, b = operands(1, 64, 32, "f32")
    z, out = np.arange(32, dtype=np.float32)[None], np.zeros((1, 32), np.float32)
    assert kinds(run(single(tmp_path, k, ["o"]), a, b, z, out), "error") == []
    wanted = {"": a @ b, ".acc": 2 * (a @ b), ".bias": a @ b + z}[form]
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", ["", ".acc", ".bias"])
def test_block_scaled_product(form: str, tmp_path: Path) -> None:
    """Each run of 32 along the contraction axis has a power of two, on both sides."""
    m, depth, n = 16, 128, 32
    shapes = {"a": (m, depth), "s": (m, depth // 32), "b": (depth, n), "t": (depth // 32, n), "z": (1, n)}
    types = {"a": "f8e4m3fn", "s": "f8e8m0", "b": "f8e4m3fn", "t": "f8e8m0", "z": "f32"}
    k = Kernel("k", [*((x, types[x], shapes[x]) for x in shapes), ("o", "f32", (m, n))], kind="cube")
    places = {"a": "left", "b": "right", "s": "scaling", "t": "scaling", "z": "bias"}
    scales = {"s": ("row_major", "row_major", 32), "t": ("col_major", "col_major", 32)}
    for i, (x, shape) in enumerate(shapes.items()):
        plain_rows = ("row_major", "none_box", 512) if x == "z" else None
        k.tile(f"m{x}", *shape, i << 14, dtype=types[x], space="mat", layout=scales.get(x, plain_rows))
        k.load(x, f"m{x}", (0, 0), shape)
        k.tile(f"p{x}", *shape, 0, dtype=types[x], space=places[x], layout=scales.get(x))
        k.op("tmov", [f"m{x}"], [f"p{x}"])
    k.tile("c", m, n, 0, space="acc")
    data = ["pa", "ps", "pb", "pt"]
    if form == ".acc":
        k.op("tmatmul.mx", data, ["c"])
    k.op(f"tmatmul.mx{form}", {"": data, ".acc": ["c", *data], ".bias": [*data, "pz"]}[form], ["c"])
    k.store("c", "o", (0, 0), (m, n))
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shapes[x]).astype(ml_dtypes.float8_e4m3fn) for x in "ab")
    s, t = ((2.0 ** rng.integers(-3, 4, shapes[x])).astype(ml_dtypes.float8_e8m0fnu) for x in "st")
    z, out = np.arange(n, dtype=np.float32)[None], np.zeros((m, n), np.float32)
    assert kinds(run(single(tmp_path, k, ["o"], arch="a5"), a, s, b, t, z, out), "error") == []
    left = a.astype(np.float32) * np.repeat(s.astype(np.float32), 32, 1)
    right = b.astype(np.float32) * np.repeat(t.astype(np.float32), 32, 0)
    product_ = left.astype(np.float64) @ right
    wanted = {"": product_, ".acc": 2 * product_, ".bias": product_ + z}[form]
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    ("ins", "outs", "words"),
    [
        (["ps", "pa"], ["ps"], None),
        (["pa"], ["ps"], None),
        (["pt", "pb"], ["pt"], None),
        (["pb"], ["ps"], "the scale belongs to the left factor, %pb lies in right"),
        (["pa"], ["pt"], "the scale belongs to the right factor, %pa lies in left"),
        (["pa"], ["pb"], "binds a scale tile, %pb lies in right"),
        (["pt", "pa"], ["ps"], "%pt and %ps must be the same scale tile"),
    ],
)
def test_scales_are_bound_to_their_factor(ins: list[str], outs: list[str], words: str | None, tmp_path: Path) -> None:
    shapes = {"a": (16, 128), "s": (16, 4), "b": (128, 32), "t": (4, 32)}
    types = {"a": "f8e4m3fn", "s": "f8e8m0", "b": "f8e4m3fn", "t": "f8e8m0"}
    places = {"a": "left", "b": "right", "s": "scaling", "t": "scaling"}
    scales = {"s": ("row_major", "row_major", 32), "t": ("col_major", "col_major", 32)}
    k = Kernel("k", [("o", "f32", (16, 32))], kind="cube")
    for x, shape in shapes.items():
        k.tile(f"p{x}", *shape, 0, dtype=types[x], space=places[x], layout=scales.get(x))
    k.op("tget_scale_addr", ins, outs)
    folder, out = single(tmp_path, k, ["o"], arch="a5"), np.zeros((16, 32), np.float32)
    if words is None:
        run(folder, out)
        return
    with pytest.raises(DeviceError, match=words):
        run(folder, out)
