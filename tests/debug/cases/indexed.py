"""Gather, scatter and sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_pypto.pypto.ir.dtypes import DataType as D
from pytest_pypto.pypto.ir.enums import MemorySpace

from ..arrays import FLOATS, NUMPY
from .elementwise import SIGNS
from .kit import EDGES, FULL, Array, Example, Kit, both, case, edge_array

ANY = (FULL, EDGES)
MARKED = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}


def index_type(k: Kit) -> D:
    return D.INT32 if k.dtype.get_bit() == 32 else D.INT16


def numbers(shape: Sequence[int], top: int, dtype: D = D.INT32, seed: int = 5) -> Array:
    return np.random.default_rng(seed).integers(0, top, tuple(shape)).astype(NUMPY[dtype])


def edged(k: Kit, seed: int, shape: tuple[int, int]) -> Array:
    """Data of a shape; with edge values these first."""
    a = k.array(seed, shape)
    if k.form == EDGES:
        values = edge_array(k.dtype)[: a.size]
        a.reshape(-1)[: values.size] = values
    return a


GATHERED = (D.FP32, D.FP16, D.INT16, D.INT32)


@case("tensor.gather", dtypes=GATHERED, forms=ANY)
def gather(k: Kit) -> Example:
    a, i = edged(k, 1, (4, 9)), numbers((4, 5), 9, index_type(k))
    want = np.take_along_axis(a, i.astype(np.int64), axis=1)
    return Example([k.plain(a), k.plain(i, index_type(k))], want, {"dim": -1})


@case("tile.gather", dtypes=GATHERED)
def gather_flat(k: Kit) -> Example:
    a, i = edged(k, 1, (4, 9)), numbers((3, 5), 36, index_type(k))
    box = (4, 8) if k.ragged else (3, 5)
    operands = [k.plain(a), k.give(i, index_type(k), box), k.scratch(box, index_type(k))]
    return Example(operands, a.reshape(-1)[i.astype(np.int64)])


@case(*both("gather_mask"), forms=ANY)
def gather_mask(k: Kit) -> Example:
    pattern = 2 if k.form == FULL else 5
    start, stride = MARKED[pattern]
    a = edged(k, 1, (3, 16))
    return Example([k.plain(a)], a[:, start::stride], {"mask_pattern": pattern})


@case(*both("scatter_mask"), forms=ANY)
def scatter_mask(k: Kit) -> Example:
    pattern = 1 if k.form == FULL else 6
    start, stride = MARKED[pattern]
    a, src = edged(k, 1, (3, 16)), edged(k, 2, (3, 16 // stride))
    want = a.copy()
    want[:, start::stride] = src
    operands = [k.plain(src), k.plain(a)]
    return Example(operands if k.space == "tensor" else operands[::-1], want, {"mask_pattern": pattern})


@case("tile.gatherb", forms=ANY)
def gather_bytes(k: Kit) -> Example:
    width = 256 // k.dtype.get_byte()
    a = edged(k, 1, (2, width))
    offsets = (numbers((2, 8), 16) * 32).astype(np.uint32)
    raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1)
    want = np.stack([np.concatenate([raw[o : o + 32] for o in row]) for row in offsets]).view(NUMPY[k.dtype])
    return Example([k.plain(a), k.plain(offsets, D.UINT32)], want)


@case(*both("gather_compare"), forms=ANY)
def gather_compare(k: Kit) -> Example:
    mode = 4 if k.form == FULL else 3
    a = numbers((3, 10), 5, D.INT32).astype(NUMPY[k.dtype])
    operands: list[Any] = [k.plain(a), k.number(2)]
    if k.space == "tile":
        operands.append(k.scratch((3, 10)))

    def check(result: Any) -> None:
        positions, counts = result
        for row in range(3):
            hits = np.flatnonzero(SIGNS[mode](a[row].astype(np.float64), 2))
            assert int(counts[0, row]) == len(hits)
            assert positions[row, : len(hits[:4])].tolist() == [int(h) + 100 for h in hits[:4]]

    return Example(operands, check, {"cmp_mode": mode, "out_cols": 4, "offset": 100})


@case(*both("gather_row"), forms=ANY)
def gather_row(k: Kit) -> Example:
    """A row of a tensor into a row of the accumulator, and with edge values into a column."""
    turned = k.form == EDGES
    src, dst = edged(k, 1, (6, 8)), k.array(2, (8, 8))
    want = dst.copy()
    if turned:
        want[:, 3] = src[2]
    else:
        want[3, 1:6] = src[2, 2:7]
    more = {"space": MemorySpace.Mat} if k.space == "tile" else {}
    acc = (k.plain(dst)[0], _typed(k, (8, 8), more))
    operands = [acc, k.plain(src, space="tensor"), (0, 3) if turned else (3, 1), (2, 0) if turned else (2, 2)]
    return Example([*operands, (1, 8) if turned else (1, 5)], want, {"transpose": True} if turned else {})


def _typed(k: Kit, shape: tuple[int, int], more: dict[str, Any]) -> Any:
    from ..build import tensor, tile

    return tile(shape, k.dtype, None, more["space"]) if more else tensor(shape, k.dtype)


@case("tensor.paged_gather", dtypes=(*FLOATS, D.INT8), forms=ANY)
def paged_gather(k: Kit) -> Example:
    """Rows through a block table; rows beyond the indices are zero; transposed with edge values."""
    src = edged(k, 1, (12, 16))
    index, table = np.array([5, 0, 3], np.int32), np.array([2, 0, 1], np.int32)
    turned = k.form == EDGES
    kwargs = {"block_size": 4, "size": 8, "col_off": 4, "max_indices": 5, "is_trans": turned}
    want = np.zeros((5, 8), NUMPY[k.dtype])
    for row, x in enumerate(index):
        want[row] = src[table[x // 4] * 4 + x % 4, 4:12]
    operands = [k.plain(src), k.plain(index, D.INT32), k.plain(table, D.INT32)]
    return Example(operands, want.T if turned else want, kwargs)


@case("tile.mgather")
def gather_from_memory(k: Kit) -> Example:
    """By row with wrapping indices, by element when ragged, with zeros outside for edge values."""
    mem = edged(k, 1, (4, 8))
    if k.ragged:
        index = numbers((2, 5), 32)
        operands = [k.plain(mem, space="tensor"), k.give(index, D.INT32, (3, 8), space="tile")]
        return Example(operands, mem.reshape(-1)[index], {"coalesce": 1})
    index = np.array([[2, 5, -1, 0]], np.int32)
    outside = 2 if k.form == FULL else 3
    rows = [mem[r % 4] if outside == 2 or 0 <= r < 4 else np.zeros(8, mem.dtype) for r in (2, 5, -1, 0)]
    operands = [k.plain(mem, space="tensor"), k.plain(index, D.INT32, space="tile")]
    return Example(operands, np.stack(rows), {"gather_oob": outside})


@case("tile.mscatter")
def scatter_to_memory(k: Kit) -> Example:
    """Later elements win where indices repeat."""
    out, src = edged(k, 1, (4, 8)), edged(k, 2, (2, 4))
    index = np.random.default_rng(3).permutation(32)[:8].reshape(2, 4).astype(np.int32)
    index[1, 3] = index[0, 0]
    want = out.copy()
    for at, v in zip(index.reshape(-1), src.reshape(-1), strict=True):
        want.reshape(-1)[at] = v
    box = (2, 8) if k.ragged else None
    return Example([k.give(src, box=box), k.give(index, D.INT32, box), k.plain(out, space="tensor")], want)


@case("tensor.scatter", forms=ANY)
def scatter(k: Kit) -> Example:
    a, src = edged(k, 1, (3, 9)), edged(k, 2, (3, 4))
    i = np.array([[0, 5, 5, 8], [1, 2, 3, 4], [8, 7, 8, 0]], NUMPY[index_type(k)])
    want = a.copy()
    for row in range(3):
        for n in range(4):
            want[row, i[row, n]] = src[row, n]
    return Example([k.plain(a), k.plain(i, index_type(k)), k.plain(src)], want, {"dim": -1})


@case("tile.scatter", forms=ANY)
def scatter_flat(k: Kit) -> Example:
    a, src, i = edged(k, 1, (3, 9)), edged(k, 2, (3, 4)), numbers((3, 4), 27, index_type(k))
    want = a.copy()
    for at, v in zip(i.reshape(-1), src.reshape(-1), strict=True):
        want.reshape(-1)[int(at)] = v
    return Example([k.plain(a), k.plain(src), k.plain(i, index_type(k))], want)


@case(*both("scatter_update"), forms=ANY)
def scatter_update(k: Kit) -> Example:
    a, src = edged(k, 1, (6, 8)), edged(k, 2, (4, 8))
    index = np.array([[4, 0], [5, 4]], np.int32)
    want = a.copy()
    for p, row in enumerate(index.reshape(-1)):
        want[row] = src[p]
    return Example([k.plain(a), k.plain(index, D.INT32), k.plain(src)], want)


# sorting -------------------------------------------------------------------------------------------------------------

HALVES = (D.FP32, D.FP16)


def descending(values: Array) -> Array:
    """Positions in descending order, ties in input order."""
    return np.argsort(-values.astype(np.float64), kind="stable")


@case(*both("sort32"), dtypes=HALVES, forms=ANY)
def sort32(k: Kit) -> Example:
    """Per 32 values; infinities and both zeros take part with edge values."""
    values = numbers((2, 64), 20).astype(NUMPY[k.dtype])
    if k.form == EDGES:
        values[0, :6] = [np.inf, -np.inf, 0.0, -0.0, np.inf, 1.5]
    index = np.arange(128, dtype=np.uint32).reshape(2, 64)
    bits = k.dtype.get_bit()

    def check(result: Any) -> None:
        from ..arrays import to_numpy

        have = to_numpy(result, k.dtype)
        for row in range(2):
            for start in (0, 32):
                order = start + descending(values[row, start : start + 32])
                part = have[row, 2 * start : 2 * start + 64]
                np.testing.assert_array_equal(part[0::2], values[row, order])
                low = index[row, order].astype(np.int64) % (1 << bits)
                np.testing.assert_array_equal(part[1::2].view(f"uint{bits}"), low)

    return Example([k.plain(values), k.plain(index, D.UINT32)], check)


def pairs(k: Kit, values: Array, run: int) -> Array:
    """Pairs (value, position), each `run` of them sorted in descending order."""
    out = np.zeros((1, 2 * values.size), NUMPY[k.dtype])
    for start in range(0, values.size, run):
        order = start + descending(values[start : start + run])
        out[0, 2 * start : 2 * (start + run) : 2] = values[order]
        out[0, 2 * start + 1 : 2 * (start + run) : 2] = order
    return out


@case(*both("mrgsort_format1"), dtypes=HALVES, forms=(FULL,))
def merge_runs(k: Kit) -> Example:
    from pytest_pypto.pypto.ir import expr as e

    values = np.random.default_rng(2).permutation(256).astype(NUMPY[k.dtype])
    return Example([k.plain(pairs(k, values, 32)), e.ConstInt(64, D.INT32)], pairs(k, values, 128))


@case(*both("mrgsort_format2"), dtypes=HALVES, forms=(FULL,), unsaid="lists come from sort32, of FP32 and FP16")
def merge_lists(k: Kit) -> Example:
    values = np.random.default_rng(3).permutation(96).astype(NUMPY[k.dtype])
    lists = [pairs(k, values[32 * n : 32 * (n + 1)], 32) for n in range(3)]
    operands = [k.plain(x) for x in lists]
    if k.space == "tile":
        operands.append(k.scratch((1, 192)))
    joined = np.concatenate(lists, axis=1).reshape(-1, 2)
    return Example(operands, joined[descending(joined[:, 0])].reshape(1, -1))
