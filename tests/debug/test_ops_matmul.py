"""Products: wide accumulation, valid K, transposes, accumulators, one-row and block-scaled forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import MemorySpace

from .arrays import close, padded, sample, to_numpy, to_torch
from .build import Body, function, region, run, run_op, tensor, tile

F32, F16, BF16, I8, I32 = DataType.FP32, DataType.FP16, DataType.BF16, DataType.INT8, DataType.INT32
TYPES = (F32, F16, BF16, I8)
LEFT, RIGHT, ACC, BIAS = MemorySpace.Left, MemorySpace.Right, MemorySpace.Acc, MemorySpace.Bias


def wide_of(dtype: DataType) -> DataType:
    return F32 if dtype.is_float() else I32


def product(a: np.ndarray, b: np.ndarray, dtype: DataType) -> np.ndarray:
    if dtype.is_float():
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    return a.astype(np.int32) @ b.astype(np.int32)


def near(have: torch.Tensor, want: np.ndarray, dtype: DataType) -> None:
    if dtype.is_float():
        np.testing.assert_allclose(have.float().numpy(), want.astype(np.float32), rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(have.numpy(), want)


def pair(dtype: DataType, m: int = 5, k: int = 7, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    return sample((m, k), dtype, 1), sample((k, n), dtype, 2)


def left(a: np.ndarray, dtype: DataType, valid: Any = None) -> Any:
    return to_torch(a, dtype), tile(a.shape, dtype, valid, LEFT)


def right(b: np.ndarray, dtype: DataType, valid: Any = None) -> Any:
    return to_torch(b, dtype), tile(b.shape, dtype, valid, RIGHT)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_tile_matmul(dtype: DataType) -> None:
    a, b = pair(dtype)
    result, made = run_op("tile.matmul", [left(a, dtype), right(b, dtype)])
    assert made.dtype is wide_of(dtype)  # type: ignore[attr-defined]
    near(result, product(a, b, dtype), dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_tile_matmul_ignores_the_padding_of_k(dtype: DataType) -> None:
    """Columns beyond the valid K of the left operand do not count even when they hold NaN."""
    a, b = sample((3, 5), dtype, 1), sample((5, 4), dtype, 2)
    x, y = padded(a, (5, 8), dtype), padded(b, (8, 6), dtype)
    result, _ = run_op("tile.matmul", [left(x, dtype, (3, 5)), right(y, dtype, (5, 4))])
    assert region(result) == (3, 4)
    assert result.shape == (5, 6)
    near(result[:3, :4], product(a, b, dtype), dtype)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_tile_matmul_acc_and_bias(dtype: DataType, ragged: bool) -> None:
    a, b = sample((3, 5), dtype, 1), sample((5, 4), dtype, 2)
    acc, bias = sample((3, 4), wide_of(dtype), 3), sample((1, 4), wide_of(dtype), 4)
    if not dtype.is_float():
        acc, bias = acc % 1000, bias % 1000
    want = product(a, b, dtype)
    wide = wide_of(dtype)
    x = left(padded(a, (5, 8), dtype) if ragged else a, dtype, (3, 5) if ragged else None)
    y = right(padded(b, (8, 6), dtype) if ragged else b, dtype, (5, 4) if ragged else None)
    shape = (5, 6) if ragged else (3, 4)
    full = padded(acc, shape, wide) if ragged else acc
    c = (to_torch(full, wide), tile(shape, wide, (3, 4) if ragged else None, ACC))
    result, _ = run_op("tile.matmul_acc", [c, x, y])
    near(result[:3, :4], want + acc, dtype)
    wide_bias = padded(bias, (1, shape[1]), wide) if ragged else bias
    z = (to_torch(wide_bias, wide), tile((1, shape[1]), wide, (1, 4) if ragged else None, BIAS))
    result, _ = run_op("tile.matmul_bias", [x, y, z])
    near(result[:3, :4], want + bias, dtype)


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_accumulation_can_start_anew(space: str, start: bool) -> None:
    a, b = pair(F32)
    acc = sample((5, 6), F32, 3)
    types = tensor if space == "tensor" else tile
    if space == "tensor":
        operands: list[Any] = [(to_torch(v, F32), types(v.shape)) for v in (acc, a, b)]
    else:
        operands = [(to_torch(acc, F32), tile(acc.shape, F32, None, ACC)), left(a, F32), right(b, F32)]
    result, _ = run_op(f"{space}.matmul_acc", [*operands, e.ConstBool(start)])
    near(result, product(a, b, F32) + (0 if start else acc), F32)


def test_products_do_not_wrap_or_round_early() -> None:
    ones = np.full((1, 64), 5, np.int8)
    result, _ = run_op("tile.matmul", [left(ones, I8), right(ones.T.copy(), I8)])
    assert result.tolist() == [[1600]]
    a, b = sample((4, 512), BF16, 1), sample((512, 4), BF16, 2)
    result, _ = run_op("tile.matmul", [left(a, BF16), right(b, BF16)])
    np.testing.assert_allclose(result.numpy(), product(a, b, BF16), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("out", [None, F32, BF16], ids=str)
@pytest.mark.parametrize("dtype", [F32, F16, BF16], ids=str)
def test_tensor_matmul_rounds_once(dtype: DataType, out: DataType | None) -> None:
    a, b = sample((4, 300), dtype, 1), sample((300, 5), dtype, 2)
    operands = [(to_torch(v, dtype), tensor(v.shape, dtype)) for v in (a, b)]
    result, made = run_op("tensor.matmul", operands, {} if out is None else {"out_dtype": out})
    kind = out or dtype
    assert made.dtype is kind  # type: ignore[attr-defined]
    want = torch.from_numpy(product(a, b, dtype)).to(result.dtype)
    rtol = {F32: 1e-5, F16: 2**-10, BF16: 2**-7}[kind]
    torch.testing.assert_close(result, want, rtol=rtol, atol=1e-4)


@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_tensor_matmul_transposes(a_trans: bool, b_trans: bool, dtype: DataType) -> None:
    a, b = pair(dtype)
    x, y = a.T.copy() if a_trans else a, b.T.copy() if b_trans else b
    operands = [(to_torch(v, dtype), tensor(v.shape, dtype)) for v in (x, y)]
    kwargs = {"a_trans": a_trans, "b_trans": b_trans, "out_dtype": F32}
    result, _ = run_op("tensor.matmul", operands, kwargs)
    near(result, product(a, b, dtype), dtype)
    acc = (to_torch(sample((5, 6), F32, 3), F32), tensor((5, 6)))
    result, _ = run_op("tensor.matmul_acc", [acc, *operands], {"a_trans": a_trans, "b_trans": b_trans})
    near(result - acc[0], product(a, b, dtype), dtype)


def test_tensor_matmul_of_vectors_and_batches() -> None:
    a, b, v = sample((2, 3, 4), F32, 1), sample((4, 5), F32, 2), sample((4,), F32, 3)
    x, y, z = ((to_torch(t, F32), tensor(t.shape)) for t in (a, b, v))
    near(run_op("tensor.matmul", [x, y])[0], a @ b, F32)
    near(run_op("tensor.matmul", [x, z])[0], a @ v, F32)
    near(run_op("tensor.matmul", [z, y])[0], v @ b, F32)
    near(run_op("tensor.matmul", [z, z])[0], np.asarray(v @ v), F32)


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_batched_tiles(dtype: DataType) -> None:
    a, b, acc = sample((2, 3, 4), dtype, 1), sample((2, 4, 5), dtype, 2), sample((2, 3, 5), F32, 3)
    x, y = (to_torch(a, dtype), tile(a.shape, dtype)), (to_torch(b, dtype), tile(b.shape, dtype))
    result, _ = run_op("tile.batch_matmul", [x, y])
    want = a.astype(np.float64) @ b.astype(np.float64)
    near(result, want, dtype)
    c = (to_torch(acc, F32), tile(acc.shape, F32))
    result, _ = run_op("tile.batch_matmul_acc", [c, x, y])
    near(result, want + acc, dtype)


@pytest.mark.parametrize("dtype", [F32, F16, I8], ids=str)
def test_vector_times_matrix_fills_row_zero_of_sixteen(dtype: DataType) -> None:
    a, b = sample((1, 7), dtype, 1), sample((7, 6), dtype, 2)
    wide = wide_of(dtype)
    bias = sample((1, 6), wide, 3)
    bias = bias if dtype.is_float() else bias % 1000
    want = product(a, b, dtype)
    x, y = left(a, dtype), right(b, dtype)
    result, made = run_op("tile.gemv", [x, y])
    assert result.shape == (16, 6)
    assert region(result) == (1, 6)
    near(result[:1], want, dtype)
    acc = (padded(bias, (16, 6), wide), tile((16, 6), wide, (1, 6), ACC))
    result, _ = run_op("tile.gemv_acc", [(to_torch(acc[0], wide), acc[1]), x, y])
    near(result[:1], want + bias, dtype)
    result, _ = run_op("tile.gemv_bias", [x, y, (to_torch(bias, wide), tile((1, 6), wide, None, BIAS))])
    near(result[:1], want + bias, dtype)
    assert made is not None


def block_scaled(m: int, k: int, n: int) -> tuple[list[Any], np.ndarray]:
    g = np.random.default_rng(3)
    a, b = (g.integers(-8, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    sa, sb = (2.0 ** g.integers(-3, 4, s).astype(np.float32) for s in ((m, k // 32), (k // 32, n)))
    fp8, e8 = DataType.FP8E4M3FN, DataType.FP8E8M0
    spaces = (LEFT, MemorySpace.LeftScale, RIGHT, MemorySpace.RightScale)
    operands = [
        (torch.from_numpy(v), tile(v.shape, t, None, space))
        for v, t, space in zip((a, sa, b, sb), (fp8, e8, fp8, e8), spaces, strict=True)
    ]
    want = (a * np.repeat(sa, 32, axis=1)) @ (b * np.repeat(sb, 32, axis=0))
    return operands, want


def test_block_scaled_products() -> None:
    operands, want = block_scaled(16, 64, 32)
    near(run_op("tile.matmul_mx", operands)[0], want, F32)
    acc = (torch.ones(16, 32), tile((16, 32), F32, None, ACC))
    near(run_op("tile.matmul_mx_acc", [acc, *operands])[0], want + 1, F32)
    bias = (torch.full((1, 32), 2.0), tile((1, 32), F32, None, BIAS))
    near(run_op("tile.matmul_mx_bias", [*operands, bias])[0], want + 2, F32)


def test_scale_tiles_keep_their_values() -> None:
    scale = (torch.tensor([[2.0, 4.0]]), tile((1, 2), DataType.FP8E8M0, None, MemorySpace.LeftScale))
    data = (torch.zeros(1, 64), tile((1, 64), DataType.FP8E4M3FN, None, LEFT))
    assert run_op("tile.tget_scale_addr", [scale, data])[0].tolist() == [[2.0, 4.0]]


def test_a_window_of_an_accumulator_is_updated_in_place() -> None:
    """Both halves of one accumulator are filled through windows and read through the parent."""
    a, b = sample((4, 8), F32, 1), sample((8, 6), F32, 2)

    def body(k: Body, x: e.Var, y: e.Var, out: e.Var) -> None:
        acc = k.op("acc", "tile.create", (4, 12), dtype=F32, target_memory=ACC)
        for half in (0, 1):
            window = k.op(f"w{half}", "tile.slice", acc, (4, 6), (0, 6 * half))
            k.op(f"p{half}", "tile.matmul_acc", window, x, y, type=window.type)
        k.ret(k.op("r", "tile.store", acc, (0, 0), out))

    params = [("x", tile((4, 8), F32, None, LEFT)), ("y", tile((8, 6), F32, None, RIGHT)), ("out", tensor((4, 12)))]
    out = torch.full((4, 12), -7.0)
    result = run(function("f", params, body), to_torch(a, F32), to_torch(b, F32), out)
    near(result, np.tile(product(a, b, F32), (1, 2)), F32)


def test_an_accumulator_read_under_its_old_name_keeps_its_value() -> None:
    a, b = pair(F32)

    def body(k: Body, x: e.Var, y: e.Var, acc: e.Var) -> None:
        once = k.op("once", "tile.matmul_acc", acc, x, y)
        k.ret(k.op("twice", "tile.sub", once, acc))

    params = [
        ("x", tile((5, 7), F32, None, LEFT)),
        ("y", tile((7, 6), F32, None, RIGHT)),
        ("acc", tile((5, 6), F32, None, ACC)),
    ]
    acc = torch.full((5, 6), 3.0)
    near(run(function("f", params, body), to_torch(a, F32), to_torch(b, F32), acc), product(a, b, F32), F32)
    close(to_numpy(acc, F32), np.full((5, 6), 3, np.float32), F32)
