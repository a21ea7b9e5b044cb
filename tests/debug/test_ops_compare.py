"""Comparison, packed masks and selection."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir import stmt as s
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.program import Function

from .arrays import CLASSES, FLOATS, close, padded, sample, to_numpy, to_torch
from .build import Body, function, region, run, run_op, tensor, tile

SIGNS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
U8 = DataType.UINT8


def bits_of(mask: np.ndarray) -> np.ndarray:
    """Packed bytes, lowest bit first, rows padded to 32 bytes."""
    packed = np.packbits(mask, axis=-1, bitorder="little")
    width = -(-packed.shape[-1] // 32) * 32
    return np.pad(packed, [(0, 0), (0, width - packed.shape[-1])])


def with_equal(dtype: DataType) -> tuple[np.ndarray, np.ndarray]:
    a, b = sample((3, 7), dtype, 1), sample((3, 7), dtype, 2)
    b[:, ::2] = a[:, ::2]
    return a, b


@pytest.mark.parametrize("code", range(6))
@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_tensor_comparison_gives_numbers(dtype: DataType, code: int) -> None:
    a, b = with_equal(dtype)
    x, y = (to_torch(a, dtype), tensor(a.shape, dtype)), (to_torch(b, dtype), tensor(b.shape, dtype))
    result, made = run_op("tensor.cmp", [x, y], {"cmp_type": code})
    assert made.dtype is dtype  # type: ignore[attr-defined]
    np.testing.assert_array_equal(to_numpy(result, dtype).astype(np.float32), SIGNS[code](a, b).astype(np.float32))
    value: Any = a.flat[3]
    const = e.ConstFloat(float(value), dtype) if dtype in FLOATS else e.ConstInt(int(value), dtype)
    result, _ = run_op("tensor.cmp", [x, const], {"cmp_type": code})
    np.testing.assert_array_equal(to_numpy(result, dtype).astype(np.float32), SIGNS[code](a, value).astype(np.float32))


@pytest.mark.parametrize("code", range(6))
@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_tile_masks_are_packed_when_they_leave_the_selections(dtype: DataType, code: int) -> None:
    a, b = with_equal(dtype)
    x, y = (to_torch(a, dtype), tile(a.shape, dtype)), (to_torch(b, dtype), tile(b.shape, dtype))
    result, made = run_op("tile.cmp", [x, y], {"cmp_type": code})
    assert made.dtype is U8  # type: ignore[attr-defined]
    assert region(result) == (3, 1)
    np.testing.assert_array_equal(result.numpy(), bits_of(SIGNS[code](a, b)))
    value: Any = a.flat[3]
    const = e.ConstFloat(float(value), dtype) if dtype in FLOATS else e.ConstInt(int(value), dtype)
    result, _ = run_op("tile.cmps", [x, const], {"cmp_type": code})
    np.testing.assert_array_equal(result.numpy(), bits_of(SIGNS[code](a, value)))


@pytest.mark.parametrize(("cols", "width", "valid"), [(7, 32, 1), (64, 32, 8), (300, 64, 38)])
def test_mask_widths(cols: int, width: int, valid: int) -> None:
    a = sample((1, cols), DataType.FP32)
    result, _ = run_op("tile.cmps", [(to_torch(a, DataType.FP32), tile((1, cols))), 0.0], {"cmp_type": 4})
    assert result.shape == (1, width)
    assert region(result) == (1, valid)


def test_the_bits_of_a_mask() -> None:
    a = np.arange(10, dtype=np.float32)[None]
    result, _ = run_op("tile.cmps", [(to_torch(a, DataType.FP32), tile((1, 10))), 4.0], {"cmp_type": 2})
    assert result[0, :2].tolist() == [0x0F, 0x00]


def selecting(kind: str, dtype: DataType, shape: tuple[int, int], valid: tuple[int, int] | None) -> Function:
    """cmp of two tiles, then sel or sels with the mask."""

    def body(b: Body, x: e.Var, y: e.Var, tmp: e.Var) -> None:
        m = b.op("m", "tile.cmp", x, y, cmp_type=2)
        if kind == "sel":
            r = b.op("r", "tile.sel", m, x, y, tmp)
        else:
            const = e.ConstFloat(-1.0, dtype) if dtype in FLOATS else e.ConstInt(7, dtype)
            r = b.op("r", "tile.sels", m, x, tmp, const)
        b.ret(r)

    params = [("x", tile(shape, dtype, valid)), ("y", tile(shape, dtype, valid)), ("tmp", tile((1, 32), U8))]
    return function("f", params, body)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("kind", ["sel", "sels"])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.INT32, DataType.INT16], ids=str)
def test_selection_by_a_comparison(dtype: DataType, kind: str, ragged: bool) -> None:
    shape, valid = (4, 9), (3, 5) if ragged else (4, 9)
    a, b = sample(valid, dtype, 1), sample(valid, dtype, 2)
    f = selecting(kind, dtype, shape, valid if ragged else None)
    args = [to_torch(padded(v, shape, dtype), dtype) for v in (a, b)]
    result = run(f, *args, torch.zeros(1, 32, dtype=torch.uint8))
    fallback: Any = b if kind == "sel" else (-1.0 if dtype in FLOATS else 7)
    want = np.where(a < b, a, np.asarray(fallback, a.dtype))
    assert region(result) == valid
    close(to_numpy(result[: valid[0], : valid[1]], dtype), want, dtype)


def test_selection_by_bits_from_memory() -> None:
    """A mask that a program loads as UINT8 is unpacked, lowest bit first."""
    mask = np.random.default_rng(1).integers(0, 2, (2, 20)).astype(bool)
    a, b = sample((2, 20), DataType.FP32, 1), sample((2, 20), DataType.FP32, 2)
    packed = torch.from_numpy(bits_of(mask))
    operands = [
        (packed, tile((2, 32), U8)),
        (to_torch(a, DataType.FP32), tile((2, 20))),
        (to_torch(b, DataType.FP32), tile((2, 20))),
        (torch.zeros(1, 32, dtype=torch.uint8), tile((1, 32), U8)),
    ]
    result, _ = run_op("tile.sel", operands)
    close(to_numpy(result, DataType.FP32), np.where(mask, a, b), DataType.FP32)


def test_a_mask_that_is_stored_and_selected_with() -> None:
    """The mask goes to memory packed, and the selection reads the same bits."""
    a = sample((2, 9), DataType.FP32, 1)

    def body(b: Body, x: e.Var, out: e.Var, tmp: e.Var) -> None:
        m = b.op("m", "tile.cmps", x, 0.0, cmp_type=4)
        b.op("o", "tile.store", m, (0, 0), out)
        b.ret(b.op("r", "tile.sels", m, x, tmp, e.ConstFloat(0.0, DataType.FP32)))

    f = function("f", [("x", tile((2, 9))), ("out", tensor((2, 32), U8)), ("tmp", tile((1, 32), U8))], body)
    out = torch.full((2, 32), 9, dtype=torch.uint8)
    result = run(f, to_torch(a, DataType.FP32), out, torch.zeros(1, 32, dtype=torch.uint8))
    np.testing.assert_array_equal(out.numpy()[:, :2], bits_of(a > 0)[:, :2])
    assert (out[:, 2:] == 9).all()
    close(to_numpy(result, DataType.FP32), np.maximum(a, 0), DataType.FP32)


def test_nan_compares_as_ieee() -> None:
    a = np.array([[np.nan, 1.0]], np.float32)
    x = (to_torch(a, DataType.FP32), tensor((1, 2)))
    for code, want in enumerate(([0, 1], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1])):
        result, _ = run_op(
            "tensor.cmp", [x, (to_torch(np.ones_like(a), DataType.FP32), tensor((1, 2)))], {"cmp_type": code}
        )
        assert result.tolist() == [[float(v) for v in want]]


def test_a_mask_under_another_name_is_packed() -> None:
    def body(b: Body, x: e.Var, tmp: e.Var) -> None:
        m = b.op("m", "tile.cmps", x, 0.0, cmp_type=4)
        n = b.let("n", m)
        b.ret(b.op("r", "tile.sels", n, x, tmp, e.ConstFloat(5.0, DataType.FP32)))

    f = function("f", [("x", tile((1, 9))), ("tmp", tile((1, 32), U8))], body)
    a = sample((1, 9), DataType.FP32, 3)
    result = run(f, to_torch(a, DataType.FP32), torch.zeros(1, 32, dtype=torch.uint8))
    close(to_numpy(result, DataType.FP32), np.where(a > 0, a, 5).astype(np.float32), DataType.FP32)
    assert isinstance(f.body, s.SeqStmts)
