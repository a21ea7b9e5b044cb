"""Control flow and scalars of kernels: loops, branches, casts, arrays, single elements, pointers, atomic stores."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, FindingKind
from pytest_pypto.pypto.device.machine.dtypes import NUMPY

from .faults import line_of, only
from .texts import Kernel, dirs, host, kinds, module, plain, run, single, typ, write

F = np.float32
INT = np.int32


def scalar_kernel(lines: Callable[[Kernel], str], **params: str) -> Kernel:
    """A kernel that stores one INT32 scalar, whose name `lines` gives, at o[0]."""
    k = Kernel("k", [("o", "i32", (1, 8))], list(params.items()))
    name = lines(k)
    k.line(f"pto.store_scalar %{name}, %o[{k.c(0)}] : !pto.ptr<i32>, i32")
    return k


def value_of(tmp_path: Path, lines: Callable[[Kernel], str], *values: Any, **params: str) -> int:
    out = np.zeros((1, 8), INT)
    assert kinds(run(single(tmp_path, scalar_kernel(lines, **params), ["o"]), out, *values), "error") == []
    return int(out[0, 0])


def trunc_div(a: int, b: int) -> int:
    return int(a / b)


@pytest.mark.parametrize(
    ("op", "fn"),
    [
        ("addi", operator.add),
        ("subi", operator.sub),
        ("muli", operator.mul),
        ("divsi", trunc_div),
        ("remsi", lambda a, b: a - b * trunc_div(a, b)),
        ("floordivsi", operator.floordiv),
        ("ceildivsi", lambda a, b: -(-a // b)),
        ("minsi", min),
        ("maxsi", max),
        ("andi", operator.and_),
        ("ori", operator.or_),
        ("xori", operator.xor),
    ],
)
@pytest.mark.parametrize(("a", "b"), [(17, 5), (-17, 5), (17, -5), (-17, -5)])
def test_integer_arithmetic(op: str, fn: Any, a: int, b: int, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%r = arith.{op} %a, %b : i32")
        return "r"

    assert value_of(tmp_path, lines, a, b, a="i32", b="i32") == fn(a, b)


def test_integers_wrap_at_their_width(tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line("%r = arith.addi %a, %a : i32")
        return "r"

    assert value_of(tmp_path, lines, 2**31 - 1, a="i32") == -2


@pytest.mark.parametrize("op", ["divsi", "remsi", "floordivsi"])
def test_division_by_zero_gives_zero(op: str, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%r = arith.{op} %a, %b : i32")
        return "r"

    assert value_of(tmp_path, lines, 5, 0, a="i32", b="i32") == 0


@pytest.mark.parametrize(
    ("op", "source", "value", "wanted"),
    [
        ("fptosi", "f32", 2.9, 2),
        ("fptosi", "f32", -2.9, -2),
        ("trunci", "i64", 2**32 + 7, 7),
        ("trunci", "i64", 2**31, -(2**31)),
    ],
)
def test_casts(op: str, source: str, value: Any, wanted: int, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%r = arith.{op} %a : {source} to i32")
        return "r"

    assert value_of(tmp_path, lines, value, a=source) == wanted


@pytest.mark.parametrize(
    ("op", "a", "b", "wanted"),
    [
        ("slt", -1, 1, 1),
        ("ult", -1, 1, 0),
        ("eq", 3, 3, 1),
        ("sge", 2, 3, 0),
        ("ne", 2, 3, 1),
    ],
)
def test_comparison_selects(op: str, a: int, b: int, wanted: int, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%t = arith.cmpi {op}, %a, %b : i32")
        k.line(f"%r = arith.select %t, {k.c(1, 'i32')}, {k.c(0, 'i32')} : i32")
        return "r"

    assert value_of(tmp_path, lines, a, b, a="i32", b="i32") == wanted


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 5, 1), (2, 11, 3), (5, 5, 1), (7, 3, 1)])
def test_loop_with_a_carry(start: int, stop: int, step: int, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        zero = k.c(0, "i32")
        k.line("%s0 = arith.index_cast %a : i32 to index")
        k.line("%s1 = arith.index_cast %b : i32 to index")
        k.line(f"%r = scf.for %i = %s0 to %s1 step {k.c(step)} iter_args(%x = {zero}) -> (i32) {{")
        k.line("  %j = arith.index_cast %i : index to i32")
        k.line("  %y = arith.addi %x, %j : i32")
        k.line("  scf.yield %y : i32")
        k.line("}")
        return "r"

    assert value_of(tmp_path, lines, start, stop, a="i32", b="i32") == sum(range(start, stop, step))


@pytest.mark.parametrize("rounds", [0, 1, 7])
def test_while_loop(rounds: int, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%r = scf.while (%x = {k.c(0, 'i32')}) : (i32) -> (i32) {{")
        k.line("  %go = arith.cmpi slt, %x, %a : i32")
        k.line("  scf.condition(%go) %x : i32")
        k.line("} do {")
        k.line("^bb0(%y : i32):")
        k.line(f"  %z = arith.addi %y, {k.c(1, 'i32')} : i32")
        k.line("  scf.yield %z : i32")
        k.line("}")
        return "r"

    assert value_of(tmp_path, lines, rounds, a="i32") == rounds


def test_endless_loop_is_stopped(tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%r = scf.while (%x = {k.c(0, 'i32')}) : (i32) -> (i32) {{")
        k.line("  %go = arith.cmpi sge, %x, %x : i32")
        k.line("  scf.condition(%go) %x : i32")
        k.line("} do {")
        k.line("^bb0(%y : i32):")
        k.line("  scf.yield %y : i32")
        k.line("}")
        return "r"

    folder = single(tmp_path, scalar_kernel(lines), ["o"])
    with pytest.raises(DeviceError, match="has made 1000 rounds and does not end"):
        plain(folder, np.zeros((1, 8), INT), while_limit=1000)


@pytest.mark.parametrize("which", [True, False])
def test_branch_with_results(which: bool, tmp_path: Path) -> None:
    def lines(k: Kernel) -> str:
        k.line(f"%t = arith.cmpi eq, %a, {k.c(1, 'i32')} : i32")
        k.line("%r = scf.if %t -> (i32) {")
        k.line(f"  scf.yield {k.c(10, 'i32')} : i32")
        k.line("} else {")
        k.line(f"  scf.yield {k.c(20, 'i32')} : i32")
        k.line("}")
        return "r"

    assert value_of(tmp_path, lines, int(which), a="i32") == (10 if which else 20)


def array_lines(at: str) -> Callable[[Kernel], str]:
    def lines(k: Kernel) -> str:
        array = "!pto.local_array<4xi32>"
        k.line(f"%v = pto.declare_local_array -> {array}")
        k.line("%n = arith.index_cast %a : i32 to index")
        k.line(f"pto.local_array_set %v[{k.c(2)}], {k.c(42, 'i32')} : {array}, i32")
        k.line(f"%r = pto.local_array_get %v[{at}] : {array} -> i32")
        return "r"

    return lines


def test_local_array(tmp_path: Path) -> None:
    assert value_of(tmp_path, array_lines("%n"), 2, a="i32") == 42


@pytest.mark.parametrize("at", [4, -1])
def test_local_array_bounds(at: int, tmp_path: Path) -> None:
    folder = single(tmp_path, scalar_kernel(array_lines("%n"), a="i32"), ["o"])
    result = run(folder, np.zeros((1, 8), INT), at)
    found = next(f for f in result.findings if f.kind is FindingKind.OUT_OF_BOUNDS)
    assert f"index {at} leaves an array of 4 elements" in found.message


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32"])
def test_elements_of_a_tile(dtype: str, tmp_path: Path) -> None:
    """Swap two elements of a tile through scalars."""
    k = Kernel("k", [("a", dtype, (16, 32)), ("o", dtype, (16, 32))])
    k.tile("t", 16, 32, 0, dtype=dtype)
    k.load("a", "t", (0, 0), (16, 32))
    for name, at in (("x", 5), ("y", 500)):
        k.line(f"%{name} = pto.tgetval ins(%t, {k.c(at)} : {k.types['t']}, index) outs : {dtype}")
    for name, at in (("y", 5), ("x", 500)):
        k.line(f"pto.tsetval ins({k.c(at)}, %{name} : index, {dtype}) outs(%t : {k.types['t']})")
    k.store("t", "o", (0, 0), (16, 32))
    a = np.arange(512).reshape(16, 32).astype(NUMPY[dtype])
    out = np.zeros_like(a)
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    wanted = a.copy()
    wanted[0, 5], wanted[15, 20] = a[15, 20], a[0, 5]
    np.testing.assert_array_equal(out.astype(float), wanted.astype(float))


def test_pointer_with_an_offset(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (4, 32)), ("o", "f32", (4, 32))])
    k.line(f"%q = pto.addptr %a, {k.c(32)} : <f32> -> <f32>")
    k.line(f"%x = pto.load_scalar %q[{k.c(3)}] : !pto.ptr<f32> -> f32")
    k.tile("t", 4, 32, 0)
    k.op("texpands", [("x", "f32")], ["t"])
    k.store("t", "o", (0, 0), (4, 32))
    a, out = np.arange(128, dtype=F).reshape(4, 32), np.zeros((4, 32), F)
    run(single(tmp_path, k, ["o"]), a, out)
    assert set(out.reshape(-1)) == {35.0}


def adder(dtype: str) -> Kernel:
    k = Kernel("k", [("a", dtype, (16, 32)), ("o", dtype, (16, 32))])
    k.tile("t", 16, 32, 0, dtype=dtype)
    k.load("a", "t", (0, 0), (16, 32))
    k.store("t", "o", (0, 0), (16, 32), attrs=" {atomicType = #pto<atomic_type atomic_add>}")
    return k


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "i32", "i16", "i8"])
def test_atomic_add(dtype: str, tmp_path: Path) -> None:
    """Blocks add the same tile: no race, each addition is rounded to the element type."""
    k = adder(dtype)
    t = typ(dtype, (16, 32))
    ways = dirs("input", "inout", more=', "core_num": 4')
    body = f"with pl.scope():\n    self.k(a, o, {ways})"
    folder = write(tmp_path, host(f"a: {t}, o: pl.InOut[{t}]", body, k.declaration([], ["o"])), k=module(k))
    kind = NUMPY[dtype]
    a = np.full((16, 32), 33 if dtype[0] == "i" else 0.37).astype(kind)
    out = np.full((16, 32), 3).astype(kind)
    result = run(folder, a, out)
    assert result.findings == ()
    wanted = np.full((16, 32), 3).astype(kind)
    for _ in range(4):
        wanted = (wanted + a).astype(kind)
    np.testing.assert_array_equal(out.astype(float), wanted.astype(float))


def test_plain_stores_of_blocks_race(tmp_path: Path) -> None:
    k = adder("f32")
    k.lines = [x.replace(" {atomicType = #pto<atomic_type atomic_add>}", "") for x in k.lines]
    t = typ("f32", (16, 32))
    ways = dirs("input", "output_existing", more=', "core_num": 2')
    body = f"with pl.scope():\n    self.k(a, o, {ways})"
    folder = write(tmp_path, host(f"a: {t}, o: pl.Out[{t}]", body, k.declaration(["o"])), k=module(k))
    found = only(run(folder, np.zeros((16, 32), F), np.zeros((16, 32), F)), FindingKind.RACE)
    assert {found.site.block, found.other.block} == {0, 1}


def test_operations_without_effect_on_values(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "f32", (16, 32))])
    k.tile("t", 16, 32, 0)
    k.load("a", "t", (0, 0), (16, 32))
    part, kind = k.part("a", (0, 0), (16, 32))
    for line in (
        "pto.barrier <PIPE_V>",
        "pto.barrier <PIPE_ALL>",
        "pto.fence.barrier_all #pto.fence_scope<gm>",
        "pto.cmo.cacheinvalid all #pto.address_space<gm>",
        f"pto.cmo.cacheinvalid %{part} single_cache_line : {kind}",
        "pto.sync.set <PIPE_V>, 3",
        "pto.sync.wait <PIPE_M>, 3 {ffts_mode = 2 : i32}",
        "pto.set_flag <PIPE_MTE2>, <PIPE_V>, 3",
        "pto.wait_flag <PIPE_MTE2>, <PIPE_V>, 3",
    ):
        k.line(line)
    k.store("t", "o", (0, 0), (16, 32))
    a, out = np.ones((16, 32), F), np.zeros((16, 32), F)
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pto.barrier <PIPE_W>", "unknown queue 'PIPE_W'; known are PIPE_MTE1"),
        ("pto.barrier <V>", "unknown queue 'V'"),
        ("pto.barrier", "expected '<'"),
        ("pto.set_flag <PIPE_V>, 3", "expected '<', found '3'"),
        ("pto.wait_flag <PIPE_V>, <PIPE_M>", "expected ','"),
        ("pto.set_flag <PIPE_V>, <PIPE_M>, 16", "flag 16 is out of range; there are 16, numbered from 0"),
        ("pto.set_flag <PIPE_V>, <PIPE_M>, -1", "flag -1 is out of range"),
        ("pto.sync.set <PIPE_V>, %q", "%q is used here but not defined"),
        ("pto.sync.set <PIPE_V>, 3 {ffts_mode = yes}", "attribute 'ffts_mode' must be a whole number"),
        ("pto.set_ffts %t : !pto.ptr<i64>", "%t must be a pointer"),
        ("pto.set_ffts %a : !pto.ptr<i64>", "%a is used as !pto.ptr<i64>, but has type !pto.ptr<f32>"),
        ("pto.cmo.cacheinvalid %t single_cache_line : !pto.partition_tensor_view<1x1xf32>", "%t must be a window"),
        ("pto.cmo.cacheinvalid", "expected 'single_cache_line'"),
        ("pto.fence.barrier_all", "expected the value of an attribute"),
    ],
)
def test_synchronisation_is_read(line: str, words: str, tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "f32", (16, 32))])
    k.tile("t", 16, 32, 0)
    k.load("a", "t", (0, 0), (16, 32))
    k.line(line)
    k.store("t", "o", (0, 0), (16, 32))
    with pytest.raises(DeviceError) as caught:
        plain(single(tmp_path, k, ["o"]), np.ones((16, 32), F), np.zeros((16, 32), F))
    assert words in str(caught.value)
    assert caught.value.line is not None


def flags(before: int, after: int) -> Kernel:
    """Set a flag some times, await it some times."""
    k = Kernel("k", [("a", "f32", (16, 32)), ("o", "f32", (16, 32))])
    k.tile("t", 16, 32, 0)
    k.load("a", "t", (0, 0), (16, 32))
    for _ in range(before):
        k.line("pto.set_flag <PIPE_MTE2>, <PIPE_MTE3>, 2")
    for _ in range(after):
        k.line("pto.wait_flag <PIPE_MTE2>, <PIPE_MTE3>, 2")
    k.store("t", "o", (0, 0), (16, 32))
    return k


def test_flags_that_match(tmp_path: Path) -> None:
    assert run(single(tmp_path, flags(2, 2), ["o"]), np.ones((16, 32), F), np.zeros((16, 32), F)).findings == ()


def test_flag_that_nobody_sets(tmp_path: Path) -> None:
    folder, args = single(tmp_path, flags(1, 2), ["o"]), (np.ones((16, 32), F), np.zeros((16, 32), F))
    found = only(run(folder, *args), FindingKind.DEADLOCK)
    assert "flag 2 from PIPE_MTE2 to PIPE_MTE3 is set 1 time(s) and awaited 2 time(s)" in found.message
    assert found.site.line == line_of(tmp_path, "wait_flag", 1)
    with pytest.raises(DeviceError, match="the queue that waits for it never goes on"):
        plain(folder, *args)


def test_flag_that_nobody_awaits(tmp_path: Path) -> None:
    folder, args = single(tmp_path, flags(1, 0), ["o"]), (np.ones((16, 32), F), np.zeros((16, 32), F))
    result = run(folder, *args)
    (found,) = result.findings
    assert (found.kind, found.severity) == (FindingKind.LEFTOVER, "advice")
    assert found.site.line == line_of(tmp_path, "set_flag")
    assert plain(folder, *args).findings == ()


def test_rotating_buffers_without_addresses(tmp_path: Path) -> None:
    """Planner PTOAS: no addresses; a region of two slots, of which one is taken per round."""
    k = Kernel("k", [("a", "f32", (64, 32)), ("o", "f32", (64, 32))])
    k.tile("t", 16, 32, 0)
    k.lines.pop()
    tile = k.types["t"]
    k.line(
        f"%mb = pto.alloc_multi_tile valid_row = {k.c(16)} valid_col = {k.c(32)} : !pto.multi_tile_buf<{tile}, count=2>"
    )
    k.line(f"scf.for %i = {k.c(0)} to {k.c(4)} step {k.c(1)} {{")
    k.line(f"  %n = arith.remsi %i, {k.c(2)} : index")
    k.line(f"  %row = arith.muli %i, {k.c(16)} : index")
    k.line(f"  %t = pto.multi_tile_get %mb[%n] : !pto.multi_tile_buf<{tile}, count=2> -> {tile}")
    k.load("a", "t", ("row", 0), (16, 32))
    k.line(f"  %u = pto.alloc_tile valid_row = {k.c(16)} valid_col = {k.c(32)} : {tile}")
    k.types["u"] = tile
    k.op("texp", ["t"], ["u"])
    k.store("u", "o", ("row", 0), (16, 32))
    k.line("}")
    a = np.linspace(-1, 1, 2048, dtype=F).reshape(64, 32)
    out = np.zeros_like(a)
    assert run(single(tmp_path, k, ["o"]), a, out).findings == ()
    np.testing.assert_allclose(out, np.exp(a), rtol=1e-6)


@pytest.mark.parametrize("slot", [2, -1])
def test_slot_that_is_not_there(slot: int, tmp_path: Path) -> None:
    k = Kernel("k", [("o", "f32", (16, 32))], [("n", "index")])
    k.tile("t", 16, 32, 0)
    k.lines.pop()
    multi = f"!pto.multi_tile_buf<{k.types['t']}, count=2>"
    k.line(f"%mb = pto.alloc_multi_tile valid_row = {k.c(16)} valid_col = {k.c(32)} : {multi}")
    k.line(f"%t = pto.multi_tile_get %mb[%n] : {multi} -> {k.types['t']}")
    k.op("texpands", [(k.c(1.0, "f32"), "f32")], ["t"])
    k.store("t", "o", (0, 0), (16, 32))
    result = run(single(tmp_path, k, ["o"]), np.zeros((16, 32), F), slot)
    assert "out_of_bounds" in kinds(result, "error")


def test_local_array_starts_with_zeros(tmp_path: Path) -> None:
    assert value_of(tmp_path, array_lines("%n"), 1, a="i32") == 0


def test_small_floats_survive_a_pointer_read(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "bf16", (4, 32)), ("o", "f32", (4, 32))])
    k.line(f"%x = pto.load_scalar %a[{k.c(3)}] : !pto.ptr<bf16> -> bf16")
    k.line("%y = arith.extf %x : bf16 to f32")
    k.tile("t", 4, 32, 0)
    k.op("texpands", [("y", "f32")], ["t"])
    k.store("t", "o", (0, 0), (4, 32))
    a, out = np.full((4, 32), 1.25, ml_dtypes.bfloat16), np.zeros((4, 32), F)
    run(single(tmp_path, k, ["o"]), a, out)
    assert set(out.reshape(-1)) == {1.25}
