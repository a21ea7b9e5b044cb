"""Windows, reshapes, transposes, layouts, element types and regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import MemorySpace, TensorLayout

from .arrays import CLASSES, close, padded, sample, to_numpy, to_torch
from .build import Body, function, region, run, run_op, tensor, tile, valid_part

F32 = DataType.FP32


def given(space: str, a: np.ndarray, dtype: DataType = F32, valid: Any = None, shape: Any = None) -> Any:
    types = tensor if space == "tensor" else tile
    box = a if shape is None else padded(a, shape, dtype)
    return to_torch(box, dtype), types(box.shape, dtype, valid)


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_slice(space: str, dtype: DataType) -> None:
    a = sample((8, 10), dtype, 1)
    result, _ = run_op(f"{space}.slice", [given(space, a, dtype), (4, 5), (2, 3)])
    close(to_numpy(result, dtype), a[2:6, 3:8], dtype)
    result, _ = run_op(f"{space}.slice", [given(space, a, dtype), (4, 5), (2, 3), (3, 2)])
    assert region(result) == (3, 2)
    close(to_numpy(valid_part(result), dtype), a[2:5, 3:5], dtype)


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_slice_of_a_ragged_source(space: str) -> None:
    a = sample((20, 64), F32, 1)
    for source, at, want in (((20, 64), (8, 8), (12, 16)), ((10, 64), (8, 8), (2, 16))):
        x = given(space, a[: source[0]], F32, source, (64, 64))
        result, _ = run_op(f"{space}.slice", [x, (16, 16), at])
        assert region(result) == want
        close(to_numpy(valid_part(result), F32), a[at[0] : at[0] + want[0], at[1] : at[1] + want[1]], F32)


def test_slice_beyond_the_end_is_filled_with_zeros() -> None:
    a = sample((32, 64), F32, 1)

    def body(b: Body, x: e.Var, row: e.Var) -> None:
        b.ret(b.op("y", "tensor.slice", x, (64, 64), (row, 0), type=tensor((64, 64))))

    f = function("f", [("x", tensor((32, 64))), ("row", e.index(0).type)], body)
    result = run(f, to_torch(a, F32), 0)
    assert region(result) == (32, 64)
    close(to_numpy(result[:32], F32), a, F32)
    assert (result[32:] == 0).all()


def test_slice_drops_axes() -> None:
    a = sample((3, 8, 16), F32, 1)
    x = given("tensor", a)
    result, _ = run_op("tensor.slice", [x, (1, 4, 16), (2, 1, 0), (), (0,)])
    close(to_numpy(result, F32), a[2, 1:5], F32)
    b = sample((4, 6), F32, 2)
    result, made = run_op("tile.slice", [given("tile", b), (1, 6), (2, 0), (), (0,)])
    assert tuple(result.shape) == tuple(int(d.value) for d in made.shape)  # type: ignore[attr-defined]
    close(to_numpy(result, F32).reshape(-1), b[2], F32)


def test_slice_of_lower_rank_takes_the_trailing_axes() -> None:
    a = sample((3, 8, 16), F32, 1)

    def body(b: Body, x: e.Var) -> None:
        b.ret(b.op("y", "tensor.slice", x, (4, 8), (1, 2, 8), type=tensor((4, 8))))

    close(to_numpy(run(function("f", [("x", tensor((3, 8, 16)))], body), to_torch(a, F32)), F32), a[1, 2:6, 8:], F32)


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_extract(dtype: DataType) -> None:
    a = sample((8, 10), dtype, 1)
    result, made = run_op("tile.extract", [given("tile", a, dtype), 2, 3, (4, 5)], {"target_memory": MemorySpace.Left})
    assert made.memory_space is MemorySpace.Left  # type: ignore[attr-defined]
    close(to_numpy(result, dtype), a[2:6, 3:8], dtype)
    x = given("tile", a[:5, :6], dtype, (5, 6), (8, 10))
    result, _ = run_op("tile.extract", [x, 2, 3, (4, 5)], {"target_memory": MemorySpace.Vec})
    assert region(result) == (3, 3)
    close(to_numpy(valid_part(result), dtype), a[2:5, 3:6], dtype)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("dtype", CLASSES, ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_assemble(space: str, dtype: DataType, ragged: bool) -> None:
    """The tensor form moves the valid part, the tile form the whole source."""
    a, s = sample((8, 8), dtype, 1), sample((3, 4), dtype, 2)
    source = given(space, s[:2, :3], dtype, (2, 3), (3, 4)) if ragged else given(space, s, dtype)
    result, _ = run_op(f"{space}.assemble", [given(space, a, dtype), source, (2, 4)])
    want = a.copy()
    if ragged:
        want[2:4, 4:7] = s[:2, :3]
        rest = result if space == "tensor" else None
    else:
        want[2:5, 4:8] = s
        rest = result
    if rest is not None:
        close(to_numpy(rest, dtype), want, dtype)
    else:
        close(to_numpy(result[2:4, 4:7], dtype), s[:2, :3], dtype)


def test_assemble_narrows_and_adds() -> None:
    target = torch.full((2, 2), 1.0, dtype=torch.bfloat16)
    x, s = (target, tensor((2, 2), DataType.BF16)), (torch.tensor([[1.00390625, 3.0]]), tensor((1, 2)))
    result, _ = run_op("tensor.assemble", [x, s, (1, 0)])
    assert result.tolist() == [[1.0, 1.0], [1.0, 3.0]]
    acc = (torch.ones(2, 2), tensor((2, 2)))
    result, _ = run_op("tensor.assemble", [acc, (torch.full((1, 2), 2.0), tensor((1, 2))), (0, 0)], {"atomic": 1})
    assert result.tolist() == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    ("shape", "valid", "target", "want"),
    [
        ((8, 16), None, (16, 8), None),
        ((8, 16), (5, 16), (16, 8), (10, 8)),
        ((8, 16), (5, 16), (128,), (80,)),
        ((8, 16), (5, 7), (1, 8, 16), (1, 5, 7)),
        ((2, 4, 16), (1, 3, 16), (8, 16), (3, 16)),
        ((16, 1), (5, 1), (1, 16), (1, 5)),
        ((1, 8, 16), (1, 5, 16), (8, 16), (5, 16)),
    ],
)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_reshape(space: str, shape: Any, valid: Any, target: Any, want: Any) -> None:
    a = sample(shape, F32, 1)
    types = tensor if space == "tensor" else tile
    result, _ = run_op(f"{space}.reshape", [(to_torch(a, F32), types(shape, F32, valid)), target])
    assert region(result) == (want or target)
    close(to_numpy(result, F32), a.reshape(target), F32)


def test_reshape_can_narrow_the_region() -> None:
    a = sample((4, 8), F32, 1)
    result, _ = run_op("tensor.reshape", [given("tensor", a), (8, 4), (5, 4)])
    assert region(result) == (5, 4)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("axes", [(0, 1), (-1, -2)])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_transpose(space: str, axes: tuple[int, int], ragged: bool) -> None:
    a = sample((3, 5), F32, 1)
    x = given(space, a, F32, (3, 5), (4, 6)) if ragged else given(space, a)
    result, _ = run_op(f"{space}.transpose", [x, *axes])
    assert result.shape == ((6, 4) if ragged else (5, 3))
    close(to_numpy(result[:5, :3], F32), a.T, F32)


def test_transpose_of_other_axes() -> None:
    a = sample((2, 3, 4), F32, 1)
    result, _ = run_op("tensor.transpose", [given("tensor", a), 0, 2])
    close(to_numpy(result, F32), a.transpose(2, 1, 0), F32)


@pytest.mark.parametrize("ragged", [False, True])
def test_transpose_view(ragged: bool) -> None:
    a = sample((3, 5), F32, 1)
    x = given("tile", a, F32, (3, 5), (4, 6)) if ragged else given("tile", a)
    result, _ = run_op("tile.transpose_view", [x])
    assert region(result) == (5, 3)
    close(to_numpy(valid_part(result), F32), a.T, F32)


def test_views() -> None:
    a = sample((2, 4), F32, 1)
    result, _ = run_op("tensor.view", [given("tensor", a), (4, 2)])
    close(to_numpy(result, F32), a.reshape(4, 2), F32)
    result, _ = run_op("tensor.view", [given("tensor", a), (4, 2)], {"layout": TensorLayout.DN})
    assert result.stride() == (1, 4)
    close(to_numpy(result, F32), a.reshape(2, 4).T, F32)
    result, _ = run_op("tensor.view", [given("tensor", a)], {"layout": TensorLayout.DN})
    close(to_numpy(result, F32), a.T, F32)
    result, _ = run_op("tensor.view", [given("tensor", a)], {"layout": TensorLayout.ND})
    close(to_numpy(result, F32), a, F32)
    result, _ = run_op("tensor.view", [given("tensor", sample((16, 256), F32, 2)), (32, 128), (16, 128)])
    assert (region(result), result.stride()) == ((16, 128), (128, 1))
    assert result._pypto_full_shape == (32, 128)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (F32, DataType.INT32),
        (F32, DataType.INT8),
        (DataType.INT8, F32),
        (DataType.FP16, DataType.UINT16),
        (DataType.UINT32, F32),
        (F32, DataType.UINT32),
        (DataType.BF16, DataType.UINT8),
        (DataType.INT16, DataType.BF16),
    ],
    ids=str,
)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_reinterpret_keeps_the_bytes(space: str, source: DataType, target: DataType) -> None:
    from .arrays import NUMPY

    a = sample((4, 16), source, 1)
    result, made = run_op(f"{space}.reinterpret_view", [given(space, a, source)], {"dtype": target})
    want = np.ascontiguousarray(a).view(NUMPY[target])
    assert tuple(result.shape) == want.shape == tuple(int(d.value) for d in made.shape)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(to_numpy(result, target).view(np.uint8), want.view(np.uint8))


def test_reinterpret_with_a_shape_and_a_region() -> None:
    a = sample((8, 16), F32, 1)
    result, _ = run_op("tile.reinterpret_view", [given("tile", a), (16, 8)], {"dtype": DataType.INT32})
    np.testing.assert_array_equal(result.numpy(), a.reshape(16, 8).view(np.int32))
    x = given("tile", a[:, :5], F32, (8, 5), (8, 16))
    result, _ = run_op("tile.reinterpret_view", [x], {"dtype": DataType.INT8})
    assert region(result) == (8, 20)


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_concat(space: str) -> None:
    a, b = sample((4, 3), F32, 1), sample((4, 5), F32, 2)
    result, _ = run_op(f"{space}.concat", [given(space, a), given(space, b)])
    close(to_numpy(result, F32), np.concatenate([a, b], axis=1), F32)
    x, y = given(space, a[:, :2], F32, (4, 2), (4, 3)), given(space, b[:, :4], F32, (4, 4), (4, 5))
    result, _ = run_op(f"{space}.concat", [x, y])
    close(to_numpy(result[:, :6], F32), np.concatenate([a[:, :2], b[:, :4]], axis=1), F32)


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_set_validshape_retags_without_moving_data(space: str) -> None:
    a = sample((4, 6), F32, 1)
    x = given(space, a)
    result, _ = run_op(f"{space}.set_validshape", [x, 3, 2])
    assert region(result) == (3, 2)
    assert region(x[0]) == (4, 6)
    assert result.data_ptr() == x[0].data_ptr()
    wider, _ = run_op(f"{space}.set_validshape", [given(space, a[:2], F32, (2, 6), (4, 6)), 4, 6])
    assert region(wider) == (4, 6)


def test_move_keeps_values_and_region() -> None:
    a = sample((3, 5), DataType.BF16, 1)
    x = given("tile", a, DataType.BF16, (3, 5), (4, 6))
    result, made = run_op("tile.move", [x], {"target_memory": MemorySpace.Mat})
    assert made.memory_space is MemorySpace.Mat  # type: ignore[attr-defined]
    assert region(result) == (3, 5)
    close(to_numpy(valid_part(result), DataType.BF16), a, DataType.BF16)


def test_bytes_moved_into_a_scale_space_are_powers_of_two() -> None:
    x = (torch.tensor([[127, 128, 120]], dtype=torch.uint8), tile((1, 3), DataType.UINT8, None, MemorySpace.Mat))
    result, made = run_op("tile.move", [x], {"target_memory": MemorySpace.LeftScale})
    assert made.dtype is DataType.FP8E8M0  # type: ignore[attr-defined]
    assert result.tolist() == [[1.0, 2.0, 2.0**-7]]
