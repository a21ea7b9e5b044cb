"""Loads, stores, creation, element access and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import PadValue

from .arrays import CLASSES, FLOATS, NUMPY, close, padded, sample, to_numpy, to_torch
from .build import Body, function, region, run, run_op, tensor, tile, valid_part

F32, I32, INDEX = DataType.FP32, DataType.INT32, DataType.INDEX


def kernel(
    shape: tuple[int, ...], offsets: tuple[Any, ...], window: tuple[int, ...], valid: tuple[int, ...], **kwargs: Any
) -> Any:
    """load a window, add nothing, store it back at the same place."""

    def body(b: Body, x: e.Var, out: e.Var) -> None:
        t = b.op("t", "tile.load", x, offsets, window, valid, **kwargs)
        b.ret(b.op("o", "tile.store", t, offsets, out))

    return function("f", [("x", tensor(shape)), ("out", tensor(shape))], body)


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_load_copies_the_valid_part_and_zeroes_the_rest(dtype: DataType) -> None:
    a = sample((8, 10), dtype, 1)
    result, _ = run_op("tile.load", [(to_torch(a, dtype), tensor((8, 10), dtype)), (2, 3), (4, 6), (3, 5)])
    assert region(result) == (3, 5)
    want = np.zeros((4, 6), NUMPY[dtype])
    want[:3, :5] = a[2:5, 3:8]
    close(to_numpy(result, dtype), want, dtype)


def test_load_over_the_edge() -> None:
    a = sample((64, 64), F32, 1)
    result, _ = run_op(
        "tile.load", [(to_torch(a, F32), tensor((64, 64))), (60, 0), (16, 16), (16, 16)], {"clamp": True}
    )
    assert region(result) == (4, 16)
    close(to_numpy(result[:4], F32), a[60:, :16], F32)
    assert (result[4:] == 0).all()


def test_load_respects_the_region_of_its_source() -> None:
    a = sample((20, 64), F32, 1)
    x = (to_torch(padded(a, (64, 64), F32), F32), tensor((64, 64), F32, (20, 64)))
    result, _ = run_op("tile.load", [x, (16, 0), (16, 16), (16, 16)])
    assert region(result) == (4, 16)
    close(to_numpy(valid_part(result), F32), a[16:20, :16], F32)


def test_load_of_a_slab_and_of_unit_axes() -> None:
    a = sample((3, 8, 16), F32, 1)
    x = (to_torch(a, F32), tensor((3, 8, 16)))
    result, made = run_op("tile.load", [x, (2, 1, 0), (1, 4, 16), (1, 4, 16)])
    assert result.shape == (1, 4, 16)
    close(to_numpy(result, F32), a[2:3, 1:5], F32)
    assert made is not None


def test_load_into_a_flattened_tile() -> None:
    """After flattening the tile is 2-D while the window keeps the tensor's rank; regions fold with it."""
    a = sample((3, 8, 16), F32, 1)

    def body(b: Body, x: e.Var, out: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0, 0), (3, 8, 16), (3, 8, 16), type=tile((24, 16)))
        r = b.op("r", "tile.neg", t)
        b.ret(b.op("o", "tile.store", r, (0, 0, 0), out, (3, 8, 16), type=tensor((3, 8, 16))))

    f = function("f", [("x", tensor((3, 8, 16))), ("out", tensor((3, 8, 16)))], body)
    out = torch.zeros(3, 8, 16)
    close(to_numpy(run(f, to_torch(a, F32), out), F32), -a, F32)


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_store_writes_only_the_valid_part(dtype: DataType) -> None:
    a = sample((5, 7), dtype, 1)
    x = (to_torch(padded(a, (8, 8), dtype), dtype), tile((8, 8), dtype, (5, 7)))
    out = to_torch(np.full((16, 16), 9, NUMPY[dtype]), dtype)
    result, _ = run_op("tile.store", [x, (2, 4), (out, tensor((16, 16), dtype))])
    assert result is out
    want = np.full((16, 16), 9, NUMPY[dtype])
    want[2:7, 4:11] = a
    close(to_numpy(out, dtype), want, dtype)


def test_store_converts_to_the_type_of_the_tensor() -> None:
    a = np.array([[1.00390625, 1.01171875, -2.5]], np.float32)
    out = torch.zeros(1, 3, dtype=torch.bfloat16)
    run_op("tile.store", [(to_torch(a, F32), tile((1, 3))), (0, 0), (out, tensor((1, 3), DataType.BF16))])
    assert out.tolist() == [[1.0, 1.015625, -2.5]]
    ints = torch.zeros(1, 3, dtype=torch.int8)
    b = torch.tensor([[300, -5, 7]], dtype=torch.int32)
    run_op("tile.store", [(b, tile((1, 3), I32)), (0, 0), (ints, tensor((1, 3), DataType.INT8))])
    assert ints.tolist() == [[44, -5, 7]]


@pytest.mark.parametrize("dtype", [F32, DataType.FP16, DataType.BF16, I32, DataType.INT16, DataType.INT8], ids=str)
def test_atomic_store_adds(dtype: DataType) -> None:
    a = np.full((2, 3), 3, np.float32).astype(NUMPY[dtype])
    out = to_torch(np.full((4, 4), 2, np.float32).astype(NUMPY[dtype]), dtype)
    run_op(
        "tile.store", [(to_torch(a, dtype), tile((2, 3), dtype)), (1, 1), (out, tensor((4, 4), dtype))], {"atomic": 1}
    )
    want = np.full((4, 4), 2.0)
    want[1:3, 1:4] += 3
    assert out.tolist() == want.tolist()


def test_store_of_a_tile_of_lower_rank_uses_the_trailing_axes() -> None:
    a = sample((4, 5), F32, 1)
    out = torch.zeros(3, 8, 5)
    run_op("tile.store", [(to_torch(a, F32), tile((4, 5))), (1, 2, 0), (out, tensor((3, 8, 5)))])
    close(to_numpy(out[1, 2:6], F32), a, F32)
    out[1, 2:6] = 0
    assert (out == 0).all()


def test_a_store_that_leaves_the_tensor_is_an_error() -> None:
    out = torch.zeros(4, 4)
    x = (torch.ones(4, 4), tile((4, 4)))

    def body(b: Body, t: e.Var, o: e.Var, at: e.Var) -> None:
        b.ret(b.op("r", "tile.store", t, (at, 0), o))

    f = function("f", [("t", tile((4, 4))), ("o", tensor((4, 4))), ("at", e.ConstInt(0, INDEX).type)], body)
    with pytest.raises(IndexError, match=r"tile.store: box \(4, 4\) at \(2, 0\) leaves the shape \(4, 4\)"):
        run(f, x[0], out, 2)
    with pytest.raises(IndexError, match="negative offset"):
        run(f, x[0], out, -1)
    assert (out == 0).all()


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_read_and_write(dtype: DataType) -> None:
    a = sample((3, 4), dtype, 1)
    value: Any = float(a[2, 1]) if dtype in FLOATS else int(a[2, 1])
    for space, types in (("tensor", tensor), ("tile", tile)):
        result, _ = run_op(f"{space}.read", [(to_torch(a, dtype), types((3, 4), dtype)), (2, 1)])
        assert result == value or (dtype is DataType.UINT64 and result % 2**64 == value)
        const = e.ConstFloat(value, dtype) if dtype in FLOATS else e.ConstInt(value, dtype)
        target = to_torch(np.zeros((3, 4), NUMPY[dtype]), dtype)
        result, _ = run_op(f"{space}.write", [(target, types((3, 4), dtype)), (0, 3), const])
        assert result is target
        want = np.zeros((3, 4), NUMPY[dtype])
        want[0, 3] = a[2, 1]
        close(to_numpy(target, dtype), want, dtype)


def test_a_value_that_was_read_does_not_change_with_a_later_write() -> None:
    def body(b: Body, t: e.Var) -> None:
        v = b.op("v", "tile.read", t, (0, 0))
        w = b.op("w", "tile.write", t, (0, 0), e.ConstFloat(5.0, F32))
        b.ret(b.op("r", "tile.write", w, (0, 1), v))

    assert run(function("f", [("t", tile((1, 2)))], body), torch.tensor([[1.0, 2.0]])).tolist() == [[5.0, 1.0]]


@pytest.mark.parametrize("index", [(3, 0), (0, 4), (-1, 0)])
def test_reading_outside_is_an_error(index: tuple[int, int]) -> None:
    def body(b: Body, t: e.Var, i: e.Var, j: e.Var) -> None:
        b.ret(b.op("v", "tile.read", t, (i, j)))

    params = [("t", tile((3, 4))), ("i", e.index(0).type), ("j", e.index(0).type)]
    with pytest.raises(IndexError, match="lies outside the shape"):
        run(function("f", params, body), torch.zeros(3, 4), *index)


@pytest.mark.parametrize("dtype", CLASSES, ids=str)
def test_create_full_and_dim(dtype: DataType) -> None:
    for space in ("tensor", "tile"):
        made, _ = run_op(f"{space}.create", [(2, 3)], {"dtype": dtype})
        close(to_numpy(made, dtype), np.zeros((2, 3), NUMPY[dtype]), dtype)
        value = e.ConstFloat(2.5, dtype) if dtype in FLOATS else e.ConstInt(7, dtype)
        made, _ = run_op(f"{space}.full", [(2, 3), value], {"dtype": dtype})
        close(to_numpy(made, dtype), np.full((2, 3), 2.5 if dtype in FLOATS else 7, NUMPY[dtype]), dtype)
    made, _ = run_op("tensor.create", [(2, 3)], {"dtype": dtype, "init_value": 3.0})
    close(to_numpy(made, dtype), np.full((2, 3), 3, NUMPY[dtype]), dtype)
    made, _ = run_op("tensor.create_l1", [(2, 3)], {"dtype": F32})
    assert made.shape == (2, 3)
    for axis, want in ((0, 5), (-1, 6)):
        assert run_op("tensor.dim", [(torch.zeros(5, 6), tensor((5, 6))), axis])[0] == want


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_infinite_constants(value: float) -> None:
    made, _ = run_op("tile.full", [(1, 2), e.ConstFloat(value, F32)], {"dtype": F32})
    np.testing.assert_array_equal(made.numpy(), np.full((1, 2), value, np.float32))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [DataType.INT16, I32, DataType.UINT16, DataType.UINT32], ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_ramp(space: str, dtype: DataType, descending: bool) -> None:
    made, _ = run_op(f"{space}.ci", [e.ConstInt(20, dtype), (1, 6)], {"dtype": dtype, "descending": descending})
    want = 20 + np.arange(6) * (-1 if descending else 1)
    close(to_numpy(made, dtype), want.astype(NUMPY[dtype])[None], dtype)


def test_ramp_from_a_run_time_number() -> None:
    def body(b: Body, start: e.Var) -> None:
        b.ret(b.op("r", "tile.ci", start, (1, 4), dtype=I32))

    f = function("f", [("start", e.ConstInt(0, I32).type)], body)
    assert run(f, 7).tolist() == [[7, 8, 9, 10]]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("diagonal", [-2, 0, 1])
def test_triangles(diagonal: int, upper: bool) -> None:
    const = e.ConstInt(diagonal, I32)
    made, _ = run_op("tile.tri", [const, (4, 6)], {"dtype": F32, "upper": upper})
    full = np.ones((4, 6), np.float32)
    want = np.triu(full, diagonal) if upper else np.tril(full, diagonal)
    close(to_numpy(made, F32), want, F32)
    made, _ = run_op("tile.tri", [const, (4, 6), (3, 5)], {"dtype": F32, "upper": upper})
    assert region(made) == (3, 5)
    close(to_numpy(valid_part(made), F32), want[:3, :5], F32)


def philox(key: tuple[int, int], counter: int, rounds: int) -> list[int]:
    """Philox4x32 of one block, written down again from its definition."""
    x = [(counter >> (32 * n)) & 0xFFFFFFFF for n in range(4)]
    k0, k1 = key
    for _ in range(rounds):
        p0, p1 = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(p1 >> 32) ^ x[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ x[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return x


@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_random_words_depend_on_key_and_counter_only(space: str, rounds: int) -> None:
    seeds = [e.ConstInt(v, I32) for v in (3, -1, 5, 0, 0, -2)]
    made, _ = run_op(f"{space}.random", [*seeds, (2, 6)], {"dtype": DataType.UINT32, "rounds": rounds})
    start = 5 + ((2**32 - 2) << 96)
    want = [w for n in range(3) for w in philox((3, 0xFFFFFFFF), start + n, rounds)]
    assert made.flatten().tolist() == want
    again, _ = run_op(f"{space}.random", [*seeds, (2, 6)], {"dtype": I32, "rounds": rounds})
    assert (again.to(torch.int64) & 0xFFFFFFFF).flatten().tolist() == want


def test_the_published_answer_of_the_generator() -> None:
    """The known-answer test of Philox4x32-10: all ones."""
    ones = e.ConstInt(-1, I32)
    made, _ = run_op("tile.random", [ones] * 6 + [(1, 4)], {"dtype": DataType.UINT32, "rounds": 10})
    assert made.tolist() == [[0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]]


LIMITS = {
    DataType.FP32: (torch.finfo(torch.float32).min, torch.finfo(torch.float32).max),
    DataType.FP16: (-65504.0, 65504.0),
    I32: (-(2**31), 2**31 - 1),
    DataType.INT8: (-128, 127),
    DataType.UINT8: (0, 255),
    DataType.UINT16: (0, 65535),
    DataType.UINT32: (0, 2**32 - 1),
}


@pytest.mark.parametrize("pad", [PadValue.zero, PadValue.min, PadValue.max])
@pytest.mark.parametrize("dtype", LIMITS, ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_fillpad(space: str, dtype: DataType, pad: PadValue) -> None:
    a = sample((3, 5), dtype, 1)
    low, high = LIMITS[dtype]
    fill = {PadValue.zero: 0, PadValue.min: low, PadValue.max: high}[pad]
    types = tensor if space == "tensor" else tile
    x = (to_torch(padded(a, (4, 6), dtype), dtype), types((4, 6), dtype, (3, 5)))
    result, _ = run_op(f"{space}.fillpad", [x], {"pad_value": pad})
    want = np.full((4, 6), fill, NUMPY[dtype])
    want[:3, :5] = a
    assert region(result) == (4, 6)
    close(to_numpy(result, dtype), want, dtype)
    result, _ = run_op(f"{space}.fillpad_expand", [x, (5, 8)], {"pad_value": pad})
    want = np.full((5, 8), fill, NUMPY[dtype])
    want[:3, :5] = a
    close(to_numpy(result, dtype), want, dtype)


def test_fillpad_in_place_writes_its_own_storage() -> None:
    x = torch.tensor([[1.0, 9.0], [9.0, 9.0]])
    result, _ = run_op("tile.fillpad_inplace", [(x, tile((2, 2), valid=(1, 1)))], {"pad_value": PadValue.zero})
    assert result.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    assert x.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_allocations_leave_no_trace() -> None:
    def body(b: Body, x: e.Var) -> None:
        b.op("mem", "tile.alloc", 1, 4096)
        b.op("ddr", "tensor.alloc", 0, 64)
        b.ret(b.op("y", "tile.neg", x))

    from .build import code_of

    f = function("f", [("x", tile((2, 2)))], body)
    assert "mem" not in code_of(f)
    assert run(f, torch.ones(2, 2)).tolist() == [[-1.0, -1.0]] * 2


@pytest.mark.parametrize("kind", [torch.int64, torch.uint32, torch.int32])
def test_unsigned_arguments_may_come_in_three_torch_types(kind: torch.dtype) -> None:
    """UINT32 as int64, as torch's own type, or as the signed type of the same width; outputs are written in place."""
    values = [1, 2**31 + 5, 2**32 - 1]
    signed = [v - 2**32 if v >= 2**31 and kind is torch.int32 else v for v in values]

    def body(b: Body, x: e.Var, out: e.Var) -> None:
        t = b.op("t", "tile.load", x, (0, 0), (1, 3), (1, 3))
        u = b.op("u", "tile.shrs", t, e.ConstInt(1, DataType.UINT32))
        b.ret(b.op("o", "tile.store", u, (0, 0), out))

    f = function("f", [("x", tensor((1, 3), DataType.UINT32)), ("out", tensor((1, 3), DataType.UINT32))], body)
    out = torch.zeros(1, 3, dtype=kind)
    run(f, torch.tensor([signed], dtype=torch.int64).to(kind), out)
    assert (out.to(torch.int64) & 0xFFFFFFFF).tolist() == [[v >> 1 for v in values]]


def test_small_float_arguments_may_come_in_their_own_type() -> None:
    x = torch.tensor([[1.06, -3.3]]).to(torch.float8_e4m3fn)

    def body(b: Body, t: e.Var, out: e.Var) -> None:
        v = b.op("v", "tile.load", t, (0, 0), (1, 2), (1, 2))
        b.ret(b.op("o", "tile.store", b.op("w", "tile.cast", v, target_type=F32, mode=1), (0, 0), out))

    f = function("f", [("t", tensor((1, 2), DataType.FP8E4M3FN)), ("out", tensor((1, 2)))], body)
    assert run(f, x, torch.zeros(1, 2)).tolist() == x.float().tolist()
