"""Products: wide accumulation, valid K, accumulators and biases."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from pytest_pypto.pypto.ir.dtypes import DataType as D
from pytest_pypto.pypto.ir.enums import MemorySpace

from ..arrays import NUMPY, padded, to_torch
from ..build import tensor, tile
from .kit import ACC, FULL, LEFT, RAGGED, RIGHT, Array, Example, Kit, case

TYPES = (D.FP32, D.FP16, D.BF16, D.INT8)
BIAS = MemorySpace.Bias
_OTHER = "the cube has no such type; the rule does not say so"


def wide_of(k: Kit) -> D:
    return D.FP32 if k.is_float else D.INT32


def near(want: Array, k: Kit) -> Any:
    """A check against an exact product: floats within the rounding of an FP32 sum."""

    def check(result: torch.Tensor) -> None:
        have = result[tuple(slice(0, n) for n in want.shape)]
        if k.is_float:
            np.testing.assert_allclose(have.float().numpy(), want.astype(np.float64), rtol=1e-5, atol=1e-4)
        else:
            np.testing.assert_array_equal(have.numpy(), want)

    return check


def product(a: Array, b: Array, k: Kit) -> Array:
    kind = np.float64 if k.is_float else np.int64
    return a.astype(kind) @ b.astype(kind)


def pair(k: Kit, rows: int = 3) -> tuple[Array, Array, Any, Any]:
    """Both factors and their operands; ragged ones lie in poisoned boxes."""
    a, b = k.array(1, (rows, 5)), k.array(2, (5, 4))
    if k.ragged:
        x = (to_torch(padded(a, (rows, 8), k.dtype), k.dtype), tile((rows, 8), k.dtype, (rows, 5), LEFT))
        y = (to_torch(padded(b, (8, 6), k.dtype), k.dtype), tile((8, 6), k.dtype, (5, 4), RIGHT))
        return a, b, x, y
    return (
        a,
        b,
        (to_torch(a, k.dtype), tile(a.shape, k.dtype, None, LEFT)),
        (
            to_torch(b, k.dtype),
            tile(b.shape, k.dtype, None, RIGHT),
        ),
    )


def acc_of(k: Kit, rows: int, seed: int, space: MemorySpace, height: int | None = None) -> tuple[Array, Any]:
    """An accumulator or bias of `rows` rows that fits the product."""
    wide = wide_of(k)
    a = np.random.default_rng(seed).integers(-50, 50, (rows, 4)).astype(NUMPY[wide])
    box = (height or rows, 6 if k.ragged else 4)
    valid = (rows, 4) if box != (rows, 4) else None
    return a, (to_torch(padded(a, box, wide), wide), tile(box, wide, valid, space))


@case("tile.matmul", dtypes=TYPES, forms=(FULL, RAGGED), unsaid=_OTHER)
def matmul(k: Kit) -> Example:
    a, b, x, y = pair(k)
    return Example([x, y], near(product(a, b, k), k))


@case("tile.matmul_acc", dtypes=TYPES, forms=(FULL, RAGGED), unsaid=_OTHER)
def matmul_acc(k: Kit) -> Example:
    a, b, x, y = pair(k)
    c, z = acc_of(k, 3, 3, ACC)
    return Example([z, x, y], near(product(a, b, k) + c, k))


@case("tile.matmul_bias", dtypes=TYPES, forms=(FULL, RAGGED), unsaid=_OTHER)
def matmul_bias(k: Kit) -> Example:
    a, b, x, y = pair(k)
    c, z = acc_of(k, 1, 3, BIAS)
    return Example([x, y, z], near(product(a, b, k) + c, k))


@case("tile.gemv", "tile.gemv_acc", "tile.gemv_bias", dtypes=TYPES, forms=(FULL, RAGGED), unsaid=_OTHER)
def gemv(k: Kit) -> Example:
    a, b, x, y = pair(k, 1)
    if k.name == "gemv":
        return Example([x, y], near(product(a, b, k), k))
    c, z = acc_of(k, 1, 3, BIAS if k.name.endswith("bias") else ACC, None if k.name.endswith("bias") else 16)
    return Example([x, y, z] if k.name.endswith("bias") else [z, x, y], near(product(a, b, k) + c, k))


def batches(k: Kit) -> tuple[Array, list[Any]]:
    a, b = k.array(1, (2, 3, 5)), k.array(2, (1, 5, 4))
    return product(a, b, k), [k.plain(a), k.plain(b)]


@case("tile.batch_matmul", "tile.batch_matmul_acc", dtypes=TYPES, forms=(FULL,), unsaid=_OTHER)
def batch(k: Kit) -> Example:
    want, operands = batches(k)
    if k.name == "batch_matmul":
        return Example(operands, near(want, k))
    acc = np.random.default_rng(4).integers(-50, 50, want.shape).astype(NUMPY[wide_of(k)])
    return Example([k.plain(acc, wide_of(k)), *operands], near(want + acc, k))


@case("tensor.matmul", dtypes=TYPES, forms=(FULL, RAGGED), unsaid=_OTHER)
def tensor_matmul(k: Kit) -> Example:
    """Both factors transposed in the ragged form, where the type must be the wide one."""
    a, b = k.array(1, (3, 5)), k.array(2, (5, 4))
    turned = k.ragged
    x, y = ((to_torch(v.T.copy() if turned else v, k.dtype), _type(v, turned, k)) for v in (a, b))
    kwargs = {"a_trans": turned, "b_trans": turned, "out_dtype": wide_of(k)}
    return Example([x, y], near(product(a, b, k), k), kwargs)


def _type(a: Array, turned: bool, k: Kit) -> Any:
    return tensor(a.shape[::-1] if turned else a.shape, k.dtype)


@case("tensor.matmul_acc", dtypes=TYPES, forms=(FULL,), unsaid=_OTHER)
def tensor_matmul_acc(k: Kit) -> Example:
    a, b = k.array(1, (3, 5)), k.array(2, (5, 4))
    acc = np.random.default_rng(4).integers(-50, 50, (3, 4)).astype(NUMPY[wide_of(k)])
    operands = [k.plain(acc, wide_of(k)), k.plain(a), k.plain(b)]
    return Example(operands, near(product(a, b, k) + acc, k))


@case(
    *("tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias"),
    dtypes=(D.FP32,),
    forms=(FULL,),
    unsaid="operands are FP8E4M3FN with FP8E8M0 scales, whatever the element type of the case",
)
def block_scaled(k: Kit) -> Example:
    """Random FP8 values with a power of two per 32 of K."""
    g = np.random.default_rng(3)
    a, b = (torch.from_numpy(g.normal(size=s)).to(torch.float8_e4m3fn).double().numpy() for s in ((16, 64), (64, 32)))
    sa, sb = (2.0 ** g.integers(-3, 4, s) for s in ((16, 2), (2, 32)))
    fp8, e8 = D.FP8E4M3FN, D.FP8E8M0
    spaces = (LEFT, MemorySpace.LeftScale, RIGHT, MemorySpace.RightScale)
    operands: list[Any] = [
        (torch.from_numpy(v).float(), tile(v.shape, t, None, space))
        for v, t, space in zip((a, sa, b, sb), (fp8, e8, fp8, e8), spaces, strict=True)
    ]
    want = (a * np.repeat(sa, 32, axis=1)) @ (b * np.repeat(sb, 32, axis=0))
    if k.name.endswith("acc"):
        operands.insert(0, (torch.full((16, 32), 3.0), tile((16, 32), D.FP32, None, ACC)))
        want = want + 3
    if k.name.endswith("bias"):
        bias = g.normal(size=(1, 32)).astype(np.float32)
        operands.append((torch.from_numpy(bias), tile((1, 32), D.FP32, None, BIAS)))
        want = want + bias
    return Example(operands, near(want, k))


@case("tile.tget_scale_addr", dtypes=(D.FP32,), forms=(FULL,), unsaid="the scale is FP8E8M0")
def scale_address(k: Kit) -> Example:
    scale = (torch.tensor([[2.0, 4.0]]), tile((1, 2), D.FP8E8M0, None, MemorySpace.LeftScale))
    data = (torch.zeros(1, 64), tile((1, 64), D.FP8E4M3FN, None, LEFT))
    return Example([scale, data], near(np.array([[2.0, 4.0]]), k))
