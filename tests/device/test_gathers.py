"""Sorting, gathering and scattering, inside a core and in global memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, FindingKind
from pytest_pypto.pypto.device.machine.dtypes import NUMPY

from .calculation import Array, Calc, scratch
from .faults import line_of, only
from .texts import Kernel, plain, run, single

F = np.float32
INT = np.int32
PATTERNS = {"P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3)}


def floats(seed: int, *shape: int, dtype: Any = F) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def picks(limit: int, *shape: int) -> Array:
    return np.random.default_rng(9).integers(0, limit, shape).astype(INT)


# ---- inside a core


def test_flat_gather(tmp_path: Path) -> None:
    a, i = floats(1, 16, 32), picks(512, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op("tgather", ["ta", "ti", scratch(k, 16, 32)], ["d"]))
    np.testing.assert_array_equal(calc(np.zeros_like(a), a=a, i=i), a.reshape(-1)[i])


@pytest.mark.parametrize("wrong", [512, -1])
def test_flat_gather_beyond_the_tile(wrong: int, tmp_path: Path) -> None:
    a, i = floats(1, 16, 32), picks(512, 16, 32)
    i[3, 5] = wrong
    calc = Calc(tmp_path, lambda k: k.op("tgather", ["ta", "ti", scratch(k, 16, 32)], ["d"]))
    found = only(calc.run(np.zeros_like(a), {}, (16, 32), (), {"a": a, "i": i}), FindingKind.OUT_OF_BOUNDS)
    assert f"index {wrong}, outside 0..511" in found.message
    assert found.site.line == line_of(tmp_path, "tgather")


@pytest.mark.parametrize("pattern", PATTERNS)
def test_gather_by_mask(pattern: str, tmp_path: Path) -> None:
    a = floats(1, 16, 32)
    stride, first = PATTERNS[pattern]
    mask = f", {{maskPattern = #pto.mask_pattern<{pattern}>}}"
    calc = Calc(tmp_path, lambda k: k.op("tgather", ["ta"], ["d"], inside=mask))
    np.testing.assert_array_equal(calc(np.zeros((16, 32 // stride), F), a=a), a[:, first::stride])


def test_gather_by_mask_reinterprets_bits(tmp_path: Path) -> None:
    a = floats(1, 16, 32)
    calc = Calc(tmp_path, lambda k: k.op("tgather", ["ta"], ["d"], inside=", {maskPattern = #pto.mask_pattern<P1010>}"))
    np.testing.assert_array_equal(calc(np.zeros((16, 16), np.uint32), a=a), a.view(np.uint32)[:, 1::2])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_scatter_by_mask_keeps_the_other_columns(pattern: str, tmp_path: Path) -> None:
    stride, first = PATTERNS[pattern]
    a, b = floats(1, 16, 32 // stride), floats(2, 16, 32)

    def body(k: Kernel) -> None:
        k.op("tmov", ["tb"], ["d"])
        k.line(
            f'pto.tscatter ins(%ta, {{maskPattern = #pto.mask_pattern<{pattern}>}} : {k.types["ta"]}, "row") '
            f"outs(%d : {k.types['d']})"
        )

    wanted = b.copy()
    wanted[:, first::stride] = a
    np.testing.assert_array_equal(Calc(tmp_path, body)(np.zeros_like(b), a=a, b=b), wanted)


def test_flat_scatter_in_place(tmp_path: Path) -> None:
    a, b = floats(1, 8, 32), floats(2, 16, 32)
    i = np.random.default_rng(3).permutation(512)[:256].reshape(8, 32).astype(INT)

    def body(k: Kernel) -> None:
        k.op("tmov", ["tb"], ["d"])
        k.op("tscatter", ["ta", "ti"], ["d"])

    wanted = b.copy()
    wanted.reshape(-1)[i] = a
    np.testing.assert_array_equal(Calc(tmp_path, body)(np.zeros_like(b), a=a, b=b, i=i), wanted)


def test_gather_of_blocks(tmp_path: Path) -> None:
    """Byte offsets: each moves 32 bytes."""
    a = floats(1, 16, 32)
    i = (np.random.default_rng(3).integers(0, 2048 // 32, (16, 8)) * 32).astype(np.uint32)
    calc = Calc(tmp_path, lambda k: k.op("tgatherb", ["ta", "ti"], ["d"]))
    wanted = a.reshape(-1, 8)[i // 32].reshape(16, 64)
    np.testing.assert_array_equal(calc(np.zeros((16, 64), F), a=a, i=i), wanted)


@pytest.mark.parametrize(("mode", "fn"), [("gt", np.greater), ("le", np.less_equal), ("eq", np.equal)])
def test_positions_that_compare(mode: str, fn: Any, tmp_path: Path) -> None:
    a = np.round(floats(1, 16, 32))
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "i32", (16, 8)), ("n", "i32", (1, 16))])
    k.tile("ta", 16, 32, 0)
    k.load("a", "ta", (0, 0), (16, 32))
    k.tile("s", 16, 32, 4096)
    k.tile("d", 16, 8, 8192, dtype="i32")
    k.op("texpands", [(k.c(-1, "i32"), "i32")], ["d"])
    k.tile("c", 1, 16, 12288, dtype="i32")
    value = (k.c(1.0, "f32"), "f32")
    k.op("tgather", ["ta", value, "s"], ["d", "c"], attrs=f" {{cmpMode = #pto<cmp {mode}>, offset = 100 : i32}}")
    k.store("d", "o", (0, 0), (16, 8))
    k.store("c", "n", (0, 0), (1, 16))
    out, counts = np.zeros((16, 8), INT), np.zeros((1, 16), INT)
    run(single(tmp_path, k, ["o", "n"]), a, out, counts)
    for row, line in enumerate(fn(a, 1)):
        found = np.nonzero(line)[0]
        assert counts[0, row] == len(found)
        np.testing.assert_array_equal(out[row, : len(found)], found[:8] + 100)


def pairs(values: Array, labels: Array) -> Array:
    """Interleaved (value, bits of the label)."""
    out = np.empty((values.shape[0], values.shape[1], 2), values.dtype)
    out[..., 0], out[..., 1] = values, labels.astype(f"u{values.dtype.itemsize}").view(values.dtype)
    return out.reshape(values.shape[0], -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sort_of_32_is_descending_and_stable(dtype: Any, tmp_path: Path) -> None:
    a = np.round(2 * floats(1, 4, 64)).astype(dtype)
    i = np.arange(256, dtype=np.uint32).reshape(4, 64)
    order = np.argsort(-a.reshape(4, 2, 32), axis=2, kind="stable")
    wanted = pairs(
        np.take_along_axis(a.reshape(4, 2, 32), order, 2).reshape(4, 64),
        np.take_along_axis(i.reshape(4, 2, 32), order, 2).reshape(4, 64),
    )
    calc = Calc(tmp_path, lambda k: k.op("tsort32", ["ta", "ti"], ["d"]))
    got = calc(np.zeros((4, 128), dtype), a=a, i=i)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def test_merging_runs_sorts_a_whole_row(tmp_path: Path) -> None:
    a, i = floats(1, 2, 512), np.arange(1024, dtype=np.uint32).reshape(2, 512)

    def body(k: Kernel) -> None:
        k.tile("e", 2, 1024, k.scratch)  # type: ignore[attr-defined]
        k.op("tsort32", ["ta", "ti"], ["d"])
        k.op("tmrgsort", ["d", (k.c(64, "i32"), "i32")], ["e"])
        k.op("tmrgsort", ["e", (k.c(256, "i32"), "i32")], ["d"])

    got = Calc(tmp_path, body)(np.zeros((2, 1024), F), a=a, i=i)
    order = np.argsort(-a, axis=1, kind="stable")
    wanted = pairs(np.take_along_axis(a, order, 1), np.take_along_axis(i, order, 1))
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("lists", [2, 3, 4])
def test_merging_lists(lists: int, tmp_path: Path) -> None:
    names = "abce"[:lists]
    values = {n: -np.sort(-floats(i, 1, 32)) for i, n in enumerate(names)}
    given = {n: pairs(v, 100 * i + np.arange(32)[None]) for i, (n, v) in enumerate(values.items())}
    total = 64 * lists

    def body(k: Kernel) -> None:
        k.tile("s", 1, total, k.scratch)  # type: ignore[attr-defined]
        k.line("%executed_vec = arith.constant dense<0> : vector<4xi16>")
        tiles, typ = [f"t{n}" for n in names], k.types
        ins = ", ".join(f"%{t}" for t in [*tiles, "s"])
        k.line(
            f"pto.tmrgsort ins({ins} {{exhausted = false}} : {', '.join(typ[t] for t in [*tiles, 's'])}) "
            f"outs(%d, %executed_vec : {typ['d']}, vector<4xi16>)"
        )

    got = Calc(tmp_path, body)(np.zeros((1, total), F), **given)
    all_pairs = np.concatenate([g.reshape(-1, 2) for g in given.values()])
    wanted = all_pairs[np.argsort(-all_pairs[:, 0], kind="stable")]
    np.testing.assert_array_equal(got.reshape(-1, 2).view(np.uint8), wanted.view(np.uint8))


# ---- in global memory


def rows_kernel(outside: str = "", coalesce: str = "row", dtype: str = "f32", leading: int = 1) -> Kernel:
    shape = (8, 32) if coalesce == "row" else (4, 8)
    table = (64, 32) if leading == 1 else (leading, 64 // leading, 32)
    k = Kernel("k", [("t", dtype, table), ("i", "i32", (1, 8) if coalesce == "row" else (4, 8)), ("o", dtype, shape)])
    k.tile("ti", *k.tensors[1][2], 0, dtype="i32")  # type: ignore[misc, arg-type]
    k.load("i", "ti", (0, 0), k.tensors[1][2])
    k.tile("d", *shape, 4096, dtype=dtype)
    attrs = f"{{coalesce = #pto<coalesce {coalesce}>{outside}}}"
    view = f"!pto.tensor_view<{'?x' * len(table)}{dtype}>"
    k.line(f"pto.mgather ins(%t_view, %ti : {view}, {k.types['ti']}) outs(%d : {k.types['d']}) {attrs}")
    k.store("d", "o", (0, 0), shape)
    return k


def test_rows_of_a_tensor(tmp_path: Path) -> None:
    t, i, o = floats(1, 64, 32), picks(64, 1, 8), np.zeros((8, 32), F)
    assert run(single(tmp_path, rows_kernel(), ["o"]), t, i, o).findings == ()
    np.testing.assert_array_equal(o, t[i[0]])


def test_elements_of_a_tensor(tmp_path: Path) -> None:
    t, i, o = floats(1, 64, 32), picks(2048, 4, 8), np.zeros((4, 8), F)
    assert run(single(tmp_path, rows_kernel(coalesce="elem"), ["o"]), t, i, o).findings == ()
    np.testing.assert_array_equal(o, t.reshape(-1)[i])


CLASSES = ["f32", "f16", "bf16", "i8", "ui8", "i16", "i32", "ui32"]
"""Element types of every size and kind."""


def values(seed: int, dtype: str, *shape: int) -> Array:
    """Numbers that fill a type, negative ones included where it has them."""
    kind = NUMPY[dtype]
    raw = np.random.default_rng(seed).integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8)
    if kind.kind in "iu":
        return raw.view(kind)[..., 0]
    return floats(seed, *shape).astype(kind)


def same_bytes(got: Array, wanted: Array) -> None:
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(np.ascontiguousarray(got).view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


@pytest.mark.parametrize("coalesce", ["row", "elem"])
@pytest.mark.parametrize("dtype", CLASSES)
def test_gather_from_memory_of_every_type(dtype: str, coalesce: str, tmp_path: Path) -> None:
    t = values(1, dtype, 64, 32)
    i = picks(64, 1, 8) if coalesce == "row" else picks(2048, 4, 8)
    o = np.zeros((8, 32) if coalesce == "row" else (4, 8), NUMPY[dtype])
    assert run(single(tmp_path, rows_kernel(coalesce=coalesce, dtype=dtype), ["o"]), t, i, o).findings == ()
    same_bytes(o, t[i[0]] if coalesce == "row" else t.reshape(-1)[i])


def test_rows_of_a_tensor_with_three_axes(tmp_path: Path) -> None:
    """The leading axes count as one."""
    t, i, o = floats(1, 4, 16, 32), picks(64, 1, 8), np.zeros((8, 32), F)
    assert run(single(tmp_path, rows_kernel(leading=4), ["o"]), t, i, o).findings == ()
    np.testing.assert_array_equal(o, t.reshape(64, 32)[i[0]])


@pytest.mark.parametrize("dtype", CLASSES)
def test_scatter_into_memory_of_every_type(dtype: str, tmp_path: Path) -> None:
    a = values(1, dtype, 4, 8)
    i = np.random.default_rng(2).permutation(512)[:32].reshape(4, 8).astype(INT)
    o = values(3, dtype, 16, 32)
    wanted = o.copy()
    wanted.reshape(-1)[i] = a
    result = run(single(tmp_path, scatter_kernel(dtype), [], inouts=["o"]), a, i, o)
    assert [f for f in result.findings if f.severity == "error"] == []
    same_bytes(o, wanted)


@pytest.mark.parametrize("dtype", CLASSES)
def test_flat_gather_and_scatter_of_every_type(dtype: str, tmp_path: Path) -> None:
    a, i = values(1, dtype, 16, 32), np.random.default_rng(2).permutation(512).reshape(16, 32).astype(INT)
    gather = Calc(tmp_path / "g", lambda k: k.op("tgather", ["ta", "ti", scratch(k, 16, 32, dtype)], ["d"]))
    same_bytes(gather(np.zeros_like(a), a=a, i=i), a.reshape(-1)[i])

    def body(k: Kernel) -> None:
        k.op("tmov", ["tb"], ["d"])
        k.op("tscatter", ["ta", "ti"], ["d"])

    wanted = np.zeros_like(a)
    wanted.reshape(-1)[i] = a
    same_bytes(Calc(tmp_path / "s", body)(np.zeros_like(a), a=a, b=values(4, dtype, 16, 32), i=i), wanted)


@pytest.mark.parametrize("pattern", ["P0101", "P0100"])
@pytest.mark.parametrize("dtype", CLASSES)
def test_gather_by_mask_of_every_type(dtype: str, pattern: str, tmp_path: Path) -> None:
    a = values(1, dtype, 16, 64)
    stride, first = PATTERNS[pattern]
    mask = f", {{maskPattern = #pto.mask_pattern<{pattern}>}}"
    calc = Calc(tmp_path, lambda k: k.op("tgather", ["ta"], ["d"], inside=mask))
    same_bytes(calc(np.zeros((16, 64 // stride), a.dtype), a=a), a[:, first::stride])


@pytest.mark.parametrize("offset", [-1, 10])
def test_scatter_window_beyond_the_tensor(offset: int, tmp_path: Path) -> None:
    """The part of the window that lies inside is written."""
    k = scatter_kernel("f32", window=(offset, 8))
    a, i, o = floats(1, 4, 8), np.arange(32, dtype=INT).reshape(4, 8), np.zeros((16, 32), F)
    found = only(run(single(tmp_path, k, [], inouts=["o"]), a, i, o), FindingKind.OUT_OF_BOUNDS)
    assert f"the scatter of [{offset}:{offset + 8}, 0:32] leaves 'o', which has 16x32 elements" in found.message
    assert found.site.line == line_of(tmp_path, "mscatter")


@pytest.mark.parametrize("mode", ["clamp", "wrap", "zero"])
@pytest.mark.parametrize("wrong", [64, 200, -1])
def test_index_beyond_the_tensor_as_asked(mode: str, wrong: int, tmp_path: Path) -> None:
    """Indices are unsigned: -1 lies far beyond the end."""
    t, i, o = floats(1, 64, 32), picks(64, 1, 8), np.zeros((8, 32), F)
    i[0, 3] = wrong
    kernel = rows_kernel(f", gatherOob = #pto<gather_oob {mode}>")
    assert run(single(tmp_path, kernel, ["o"]), t, i, o).findings == ()
    row = {"clamp": t[63], "wrap": t[(wrong % 2**32) % 64], "zero": np.zeros(32, F)}[mode]
    np.testing.assert_array_equal(o[3], row)
    np.testing.assert_array_equal(np.delete(o, 3, 0), t[np.delete(i[0], 3)])


def test_index_beyond_the_tensor_is_reported(tmp_path: Path) -> None:
    t, i, o = floats(1, 64, 32), picks(64, 1, 8), np.zeros((8, 32), F)
    i[0, 3] = 64
    folder = single(tmp_path, rows_kernel(), ["o"])
    found = only(run(folder, t, i, o), FindingKind.OUT_OF_BOUNDS)
    assert "index 64 leaves a tensor of 64 entries" in found.message
    assert found.site.line == line_of(tmp_path, "mgather")
    with pytest.raises(DeviceError, match="index 64 leaves"):
        plain(folder, t, i, o)


def scatter_kernel(dtype: str = "f32", window: tuple[int, int] = (0, 16)) -> Kernel:
    k = Kernel("k", [("a", dtype, (4, 8)), ("i", "i32", (4, 8)), ("o", dtype, (16, 32))])
    for name, at, kind in (("a", 0, dtype), ("i", 512, "i32")):
        k.tile(f"t{name}", 4, 8, at, dtype=kind)
        k.load(name, f"t{name}", (0, 0), (4, 8))
    part, typ = k.part("o", (window[0], 0), (window[1], 32))
    k.line(f"pto.mscatter ins(%ta, %ti : {k.types['ta']}, {k.types['ti']}) outs(%{part} : {typ})")
    return k


def test_elements_scattered_over_a_tensor(tmp_path: Path) -> None:
    a, i = floats(1, 4, 8), picks(512, 4, 8)
    i[3, 7] = i[0, 0]  # the later element wins
    o = np.zeros((16, 32), F)
    result = run(single(tmp_path, scatter_kernel(), [], inouts=["o"]), a, i, o)
    assert [f for f in result.findings if f.severity == "error"] == []
    wanted = np.zeros((16, 32), F)
    for where, x in zip(i.reshape(-1), a.reshape(-1), strict=True):
        wanted.reshape(-1)[where] = x
    np.testing.assert_array_equal(o, wanted)


def test_scatter_beyond_the_tensor(tmp_path: Path) -> None:
    a, i = floats(1, 4, 8), picks(512, 4, 8)
    i[1, 1] = 512
    result = run(single(tmp_path, scatter_kernel(), [], inouts=["o"]), a, i, np.zeros((16, 32), F))
    assert "index 512 leaves 512 elements" in only(result, FindingKind.OUT_OF_BOUNDS).message
