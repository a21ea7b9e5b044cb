"""Gather, scatter and sort against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from pytest_pypto.pypto.ir import expr as e
from pytest_pypto.pypto.ir.dtypes import DataType
from pytest_pypto.pypto.ir.enums import MemorySpace

from .arrays import NUMPY, close, padded, sample, to_numpy, to_torch
from .build import region, run_op, tensor, tile, valid_part

F32, F16, I16, I32, U32 = DataType.FP32, DataType.FP16, DataType.INT16, DataType.INT32, DataType.UINT32
DATA = [pytest.param(F32, I32, id="fp32"), pytest.param(I32, I32, id="int32"), pytest.param(F16, I16, id="fp16")]
MARKED = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


def numbers(shape: tuple[int, ...], top: int, dtype: DataType, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, top, shape).astype(NUMPY[dtype])


def given(space: str, a: np.ndarray, dtype: DataType, valid: Any = None) -> Any:
    return to_torch(a, dtype), (tensor if space == "tensor" else tile)(a.shape, dtype, valid)


@pytest.mark.parametrize(("dtype", "index"), DATA)
def test_gather_along_the_last_axis(dtype: DataType, index: DataType) -> None:
    a, i = sample((4, 9), dtype, 1), numbers((4, 5), 9, index)
    result, _ = run_op("tensor.gather", [given("tensor", a, dtype), given("tensor", i, index)], {"dim": -1})
    close(to_numpy(result, dtype), np.take_along_axis(a, i.astype(np.int64), axis=1), dtype)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize(("dtype", "index"), DATA)
def test_gather_from_the_flat_tile(dtype: DataType, index: DataType, ragged: bool) -> None:
    a, i = sample((4, 9), dtype, 1), numbers((3, 5), 36, index)
    box = padded(i, (4, 8), index) if ragged else i
    tmp = given("tile", np.zeros_like(box), index)
    operands = [given("tile", a, dtype), given("tile", box, index, (3, 5) if ragged else None), tmp]
    result, _ = run_op("tile.gather", operands)
    close(to_numpy(result[:3, :5], dtype), a.reshape(-1)[i.astype(np.int64)], dtype)


def test_an_index_outside_is_an_error() -> None:
    a, i = sample((1, 4), F32, 1), np.array([[4]], np.int32)
    with pytest.raises(IndexError, match=r"outside 0..3"):
        run_op("tensor.gather", [given("tensor", a, F32), given("tensor", i, I32)], {"dim": -1})


@pytest.mark.parametrize("pattern", MARKED)
@pytest.mark.parametrize("dtype", [F32, F16, I32], ids=str)
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_gather_and_scatter_by_mask(space: str, dtype: DataType, pattern: int) -> None:
    start, stride = MARKED[pattern]
    a = sample((3, 16), dtype, 1)
    result, _ = run_op(f"{space}.gather_mask", [given(space, a, dtype)], {"mask_pattern": pattern})
    close(to_numpy(result, dtype), a[:, start::stride], dtype)
    src = sample((3, 16 // stride), dtype, 2)
    operands = [given(space, src, dtype), given(space, a, dtype)]
    operands = operands if space == "tensor" else operands[::-1]
    result, _ = run_op(f"{space}.scatter_mask", operands, {"mask_pattern": pattern})
    want = a.copy()
    want[:, start::stride] = src
    close(to_numpy(result, dtype), want, dtype)


def test_gather_by_mask_reinterprets_bits_and_keeps_regions() -> None:
    a = sample((2, 8), F32, 1)
    result, made = run_op("tile.gather_mask", [given("tile", a, F32)], {"mask_pattern": 2, "output_dtype": U32})
    assert made.dtype is U32  # type: ignore[attr-defined]
    np.testing.assert_array_equal(result.numpy(), a[:, 1::2].copy().view(np.uint32).astype(np.int64))
    box = padded(a[:, :5], (2, 8), F32)
    result, _ = run_op("tile.gather_mask", [given("tile", box, F32, (2, 5))], {"mask_pattern": 2})
    assert region(result) == (2, 2)
    close(to_numpy(valid_part(result), F32), a[:, 1:5:2], F32)


BITS = [
    (DataType.UINT16, F16),
    (F16, DataType.UINT16),
    (DataType.BF16, DataType.UINT16),
    (DataType.UINT16, I16),
    (U32, F32),
    (U32, I32),
    (F32, U32),
    (I32, U32),
    (DataType.UINT64, DataType.INT64),
    (DataType.INT8, DataType.UINT8),
]


@pytest.mark.parametrize(("source", "target"), BITS, ids=str)
@pytest.mark.parametrize("op", ["tensor.gather_mask", "tile.gather_mask", "tile.gatherb"])
def test_bits_under_another_type(op: str, source: DataType, target: DataType) -> None:
    """Also where the script holds a type in a wider one."""
    a = sample((2, 512 // source.get_byte()), source, 1)
    operands, kwargs = [given(op.split(".")[0], a, source)], {"output_dtype": target}
    if op == "tile.gatherb":
        offsets = np.array([[32, 0, 96, 64, 480, 512, 544, 0]], np.uint32)
        operands.append(given("tile", offsets, U32))
        raw = a.view(np.uint8).reshape(-1)
        want = np.concatenate([raw[o : o + 32] for o in offsets[0]]).view(NUMPY[target])[None]
    else:
        kwargs["mask_pattern"] = 4
        want = np.ascontiguousarray(a[:, 1::4]).view(NUMPY[target])
    result, made = run_op(op, operands, kwargs)
    assert made.dtype is target  # type: ignore[attr-defined]
    np.testing.assert_array_equal(to_numpy(result, target).view(np.uint8), want.view(np.uint8))


def test_bytes_of_small_floats() -> None:
    """FP8 values are held in float32 and read back as the bytes of their own type."""
    import ml_dtypes

    a = np.array([[1.0, -2.5, 448.0, 0.0, 0.0625, 3.5, -0.0, 96.0]], np.float32)
    x = (to_torch(a, F32), tile((1, 8), DataType.FP8E4M3FN))
    result, _ = run_op("tile.gather_mask", [x], {"mask_pattern": 1, "output_dtype": DataType.UINT8})
    assert result.tolist() == a[:, ::2].astype(ml_dtypes.float8_e4m3fn).view(np.uint8).tolist()
    codes = np.array([[0x38, 0xC2, 0x7E, 0x01]], np.uint8)
    x = (to_torch(codes, DataType.UINT8), tile((1, 4), DataType.UINT8))
    result, _ = run_op("tile.gather_mask", [x], {"mask_pattern": 7, "output_dtype": DataType.FP8E4M3FN})
    assert result.tolist() == codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32).tolist()


def test_bits_that_torch_has_no_form_for_are_refused() -> None:
    x = (to_torch(np.zeros((1, 8), np.float32), F32), tile((1, 8), DataType.HF8))
    with pytest.raises(ValueError, match=r"the bits of hf8 are not supported .* pl\.cast"):
        run_op("tile.gather_mask", [x], {"mask_pattern": 1, "output_dtype": DataType.UINT8})


def test_words_beyond_63_bits_compare_as_unsigned_numbers() -> None:
    a = np.array([[2**63 + 1, 5, 2**64 - 1, 0]], np.uint64)
    operands = [given("tensor", a, DataType.UINT64), e.ConstInt(2**63, DataType.UINT64)]
    (positions, counts), _ = run_op("tensor.gather_compare", operands, {"cmp_mode": 4, "out_cols": 4})
    assert (positions[0, :2].tolist(), counts.tolist()) == ([0, 2], [[2]])


def test_padding_of_the_index_replaces_no_row() -> None:
    a, src = sample((6, 8), F32, 1), sample((6, 8), F32, 2)
    index = padded(np.array([[4], [1]], np.int32), (3, 2), I32)
    operands = [given("tile", a, F32), given("tile", index, I32, (2, 1)), given("tile", src, F32)]
    result, _ = run_op("tile.scatter_update", operands)
    want = a.copy()
    want[4], want[1] = src[0], src[2]
    close(to_numpy(result, F32), want, F32)


def test_an_unknown_pattern_is_refused() -> None:
    from pytest_pypto.pypto.debug.torch_codegen import _PREAMBLE

    space: dict[str, Any] = {}
    exec(_PREAMBLE, space)
    with pytest.raises(ValueError, match=r"1\.\.7, got 8"):
        space["_gather_mask"](torch.zeros(1, 8), 8)


@pytest.mark.parametrize("dtype", [F32, F16, I16], ids=str)
def test_gather_of_byte_blocks(dtype: DataType) -> None:
    a = sample((2, 64), dtype, 1)
    offsets = np.array([[0, 32, 96, 64, 0, 32, 64, 96], [96, 0, 0, 0, 32, 32, 64, 64]], np.uint32)
    result, _ = run_op("tile.gatherb", [given("tile", a, dtype), given("tile", offsets, U32)])
    raw = a.view(np.uint8).reshape(-1)
    want = np.stack([np.concatenate([raw[o : o + 32] for o in row]) for row in offsets]).view(NUMPY[dtype])
    close(to_numpy(result, dtype), want, dtype)


@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_gather_by_comparison(space: str, mode: int) -> None:
    import operator

    a = np.random.default_rng(1).integers(0, 4, (3, 10)).astype(np.int32)
    operands: list[Any] = [given(space, a, I32), e.ConstInt(2, I32)]
    if space == "tile":
        operands.append(given("tile", np.zeros((3, 10), np.int32), I32))
    (positions, counts), _ = run_op(
        f"{space}.gather_compare", operands, {"cmp_mode": mode, "out_cols": 8, "offset": 100}
    )
    signs = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    for row in range(3):
        hits = np.flatnonzero(signs[mode](a[row], 2))
        assert counts[0, row] == len(hits)
        found = hits[:8] + 100
        assert positions[row, : len(found)].tolist() == found.tolist()


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_gather_row(space: str, transpose: bool) -> None:
    src = sample((6, 8), F32, 1)
    dst = np.zeros((8, 8), np.float32)
    if space == "tensor":
        acc = (to_torch(dst, F32), tensor((8, 8)))
    else:
        acc = (to_torch(dst, F32), tile((8, 8), F32, None, MemorySpace.Mat))
    to = (0, 3) if transpose else (3, 0)
    operands = [acc, given("tensor", src, F32), to, (2, 0), (1, 8)]
    result, _ = run_op(f"{space}.gather_row", operands, {"transpose": True} if transpose else {})
    if transpose:
        dst[:, 3] = src[2]
    else:
        dst[3] = src[2]
    close(to_numpy(result, F32), dst, F32)
    assert result is acc[0]


@pytest.mark.parametrize("trans", [False, True])
def test_paged_gather(trans: bool) -> None:
    src = sample((12, 16), F32, 1)
    index, table = np.array([5, 0, 3], np.int32), np.array([2, 0, 1], np.int32)
    operands = [given("tensor", src, F32), given("tensor", index, I32), given("tensor", table, I32)]
    kwargs = {"block_size": 4, "size": 8, "col_off": 4, "max_indices": 5, "is_trans": trans}
    result, _ = run_op("tensor.paged_gather", operands, kwargs)
    want = np.zeros((5, 8), np.float32)
    for row, x in enumerate(index):
        want[row] = src[table[x // 4] * 4 + x % 4, 4:12]
    close(to_numpy(result, F32), want.T if trans else want, F32)


@pytest.mark.parametrize(("bounds", "want"), [(1, [2, 3, 3]), (2, [2, 1, 3]), (3, [2, None, None])])
def test_gather_from_memory_by_row(bounds: int, want: list[int | None]) -> None:
    mem = sample((4, 8), F32, 1)
    index = np.array([[2, 5, -1]], np.int32)
    operands = [given("tensor", mem, F32), given("tile", index, I32)]
    result, _ = run_op("tile.mgather", operands, {"gather_oob": bounds})
    rows = [np.zeros(8, np.float32) if k is None else mem[k] for k in want]
    close(to_numpy(result, F32), np.stack(rows), F32)


def test_gather_from_memory_by_element() -> None:
    mem, index = sample((4, 8), F32, 1), numbers((2, 8), 32, I32)
    result, _ = run_op("tile.mgather", [given("tensor", mem, F32), given("tile", index, I32)], {"coalesce": 1})
    close(to_numpy(result, F32), mem.reshape(-1)[index], F32)


@pytest.mark.parametrize("ragged", [False, True])
def test_scatter_into_memory(ragged: bool) -> None:
    out, src = sample((4, 8), F32, 1), sample((2, 4), F32, 2)
    index = np.random.default_rng(3).permutation(32)[:8].reshape(2, 4).astype(np.int32)
    index[1, 3] = index[0, 0]
    box = (2, 8)
    x = given("tile", padded(src, box, F32), F32, (2, 4)) if ragged else given("tile", src, F32)
    i = given("tile", padded(index, box, I32), I32, (2, 4)) if ragged else given("tile", index, I32)
    target = given("tensor", out, F32)
    result, _ = run_op("tile.mscatter", [x, i, target])
    want = out.copy()
    for k, v in zip(index.reshape(-1), src.reshape(-1), strict=False):
        want.reshape(-1)[k] = v
    assert result is target[0]
    close(to_numpy(result, F32), want, F32)


@pytest.mark.parametrize(("dtype", "index"), DATA)
def test_scatter(dtype: DataType, index: DataType) -> None:
    a, src = sample((3, 9), dtype, 1), sample((3, 4), dtype, 2)
    i = np.array([[0, 5, 5, 8], [1, 2, 3, 4], [8, 7, 8, 0]], NUMPY[index])
    operands = [given("tensor", a, dtype), given("tensor", i, index), given("tensor", src, dtype)]
    result, _ = run_op("tensor.scatter", operands, {"dim": -1})
    want = a.copy()
    for row in range(3):
        for k in range(4):
            want[row, i[row, k]] = src[row, k]
    close(to_numpy(result, dtype), want, dtype)
    flat = numbers((3, 4), 27, index)
    target = given("tile", a, dtype)
    result, _ = run_op("tile.scatter", [target, given("tile", src, dtype), given("tile", flat, index)])
    want = a.copy()
    for k, v in zip(flat.reshape(-1), src.reshape(-1), strict=False):
        want.reshape(-1)[int(k)] = v
    close(to_numpy(result, dtype), want, dtype)


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_scatter_update_replaces_rows_and_the_last_one_wins(space: str) -> None:
    a, src = sample((6, 8), F32, 1), sample((4, 8), F32, 2)
    index = np.array([[4, 0], [5, 4]], np.int32)
    operands = [given(space, a, F32), given(space, index, I32), given(space, src, F32)]
    result, _ = run_op(f"{space}.scatter_update", operands)
    want = a.copy()
    for p, row in enumerate(index.reshape(-1)):
        want[row] = src[p]
    close(to_numpy(result, F32), want, F32)
    assert operands[0][0].tolist() == a.tolist()


def pairs_sorted(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Interleaved (value, index bits), per 32 in descending order, ties in input order."""
    out = np.zeros((values.shape[0], 2 * values.shape[1]), values.dtype)
    for row in range(values.shape[0]):
        for start in range(0, values.shape[1], 32):
            part = slice(start, start + 32)
            order = np.argsort(-values[row, part].astype(np.float64), kind="stable")
            out[row, 2 * start : 2 * start + 64 : 2] = values[row, part][order]
            out[row, 2 * start + 1 : 2 * start + 64 : 2] = index[row, part][order].view(np.uint32).view(values.dtype)
    return out


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_sort32(space: str) -> None:
    values = np.random.default_rng(1).integers(0, 20, (2, 64)).astype(np.float32)
    index = np.arange(128, dtype=np.uint32).reshape(2, 64)
    result, _ = run_op(f"{space}.sort32", [given(space, values, F32), given(space, index, U32)])
    have, want = to_numpy(result, F32), pairs_sorted(values, index)
    np.testing.assert_array_equal(have.view(np.uint32), want.view(np.uint32))


def test_sort32_of_half_floats_keeps_the_low_bits_of_the_index() -> None:
    values = sample((1, 32), F16, 1)
    index = np.arange(32, dtype=np.uint32)[None]
    result, _ = run_op("tile.sort32", [given("tile", values, F16), given("tile", index, U32)])
    order = np.argsort(-values[0].astype(np.float64), kind="stable")
    have = to_numpy(result, F16)[0]
    np.testing.assert_array_equal(have[0::2], values[0][order])
    np.testing.assert_array_equal(have[1::2].view(np.uint16), order)


def runs_of(values: np.ndarray, run: int) -> np.ndarray:
    """Pairs (value, position), each `run` pairs sorted in descending order."""
    out = np.zeros((1, 2 * values.size), np.float32)
    for start in range(0, values.size, run):
        order = start + np.argsort(-values[start : start + run], kind="stable")
        out[0, 2 * start : 2 * (start + run) : 2] = values[order]
        out[0, 2 * start + 1 : 2 * (start + run) : 2] = order
    return out


@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_merging_runs(space: str) -> None:
    values = np.random.default_rng(2).permutation(256).astype(np.float32)
    operands = [given(space, runs_of(values, 32), F32), e.ConstInt(64, I32)]
    result, _ = run_op(f"{space}.mrgsort_format1", operands)
    np.testing.assert_array_equal(to_numpy(result, F32), runs_of(values, 128))


@pytest.mark.parametrize("exhausted", [False, True])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("space", ["tensor", "tile"])
def test_merging_lists(space: str, count: int, exhausted: bool) -> None:
    values = np.random.default_rng(3).permutation(32 * count).astype(np.float32)
    lists = [runs_of(values[32 * k : 32 * (k + 1)], 32) for k in range(count)]
    operands = [given(space, x, F32) for x in lists]
    if space == "tile":
        operands.append(given("tile", np.zeros((1, 64 * count), np.float32), F32))
    result, _ = run_op(f"{space}.mrgsort_format2", operands, {"exhausted": exhausted})
    pairs = np.concatenate(lists, axis=1).reshape(-1, 2)
    order = np.argsort(-pairs[:, 0], kind="stable")
    want = pairs[order].reshape(1, -1)
    if exhausted:
        ends = [int(np.flatnonzero(order == 32 * (k + 1) - 1)[0]) for k in range(count)]
        want[:, 2 * (min(ends) + 1) :] = 0
    np.testing.assert_array_equal(to_numpy(result, F32), want)
