"""The host program: arguments, views, reads, loops, tasks and their edges, returned values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, DeviceSettings, run_artifact

from .texts import Kernel, dirs, host, kinds, module, plain, run, single, typ, write

F = np.float32
ONE = typ("f32", (16, 16))
PAIR = f"pl.Tuple[{ONE}, pl.Scalar[pl.TASK_ID]]"


def add(name: str = "k", value: float = 1.0) -> Kernel:
    """o = a + value"""
    k = Kernel(name, [("a", "f32", (16, 16)), ("o", "f32", (16, 16))])
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.op("tadds", ["t", (k.c(value, "f32"), "f32")], ["t"])
    k.store("t", "o", (0, 0), (16, 16))
    return k


def scaled() -> Kernel:
    """o += a * s at row block i; scalars come after the tensors."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (64, 16))], [("s", "f32"), ("i", "index")])
    k.line(f"%row = arith.muli %i, {k.c(16)} : index")
    k.tile("t", 16, 16, 0)
    k.load("a", "t", (0, 0), (16, 16))
    k.op("tmuls", ["t", ("s", "f32")], ["t"])
    k.tile("u", 16, 16, 1024)
    k.load("o", "u", ("row", 0), (16, 16))
    k.op("tadd", ["u", "t"], ["u"])
    k.store("u", "o", ("row", 0), (16, 16))
    return k


def program(
    folder: Path, params: str, body: str, *kernels: Kernel, outs: tuple[str, ...] = ("o",), result: str = ""
) -> Path:
    text = host(params, body, *(k.declaration(outs) for k in kernels), result=result)
    return write(folder, text, k=module(*kernels))


# ---- arguments


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([np.zeros((16, 16), F)], r"main takes 2 argument\(s\) \(a, o\), got 1"),
        ([np.zeros((16, 8), F), np.zeros((16, 16), F)], r"argument 0 \('a'\) has shape \[16, 8\], the program takes"),
        ([np.zeros((16, 16)), np.zeros((16, 16), F)], r"argument 0 \('a'\) holds float64, the program takes float32"),
        ([1.0, np.zeros((16, 16), F)], r"argument 0 \('a'\) must be an array, got float"),
    ],
)  # fmt: skip
def test_wrong_arguments(args: list[Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=words):
        plain(single(tmp_path, add(), ["o"]), *args)


@pytest.mark.parametrize("value", [1.5, "x", np.zeros(3)])
def test_wrong_scalars(value: Any, tmp_path: Path) -> None:
    k = Kernel("k", [("o", "f32", (16, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0)
    k.op("texpands", [(k.c(0.0, "f32"), "f32")], ["t"])
    k.store("t", "o", (0, 0), (16, 16))
    with pytest.raises(DeviceError, match=r"argument 1 \('n'\) must be"):
        plain(single(tmp_path, k, ["o"]), np.zeros((16, 16), F), value)


def test_wrong_platform(tmp_path: Path) -> None:
    folder = single(tmp_path, add(), ["o"])
    with pytest.raises(DeviceError, match="the artifact is for a2a3sim, the run asks for a5sim"):
        plain(folder, np.zeros((16, 16), F), np.zeros((16, 16), F), platform="a5sim")
    plain(folder, np.zeros((16, 16), F), np.zeros((16, 16), F), platform="a2a3sim")


def test_strided_arrays_are_written_in_place(tmp_path: Path) -> None:
    base = np.zeros((16, 32), F)
    a = np.arange(256, dtype=F).reshape(16, 16).T
    plain(single(tmp_path, add(), ["o"]), a, base[:, ::2])
    np.testing.assert_array_equal(base[:, ::2], a + 1)
    assert (base[:, 1::2] == 0).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sanitize": frozenset({"speed"})}, "unknown sanitizer 'speed'"),
        ({"order": "backwards"}, "unknown order 'backwards'"),
        ({"poison": 256}, "poison must be a byte"),
        ({"ring_heap": 0}, "ring_heap must be positive"),
        ({"ring_heap": (1, 2)}, "takes one number or four"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DeviceSettings(**changes)


# ---- views


@pytest.mark.parametrize(("row", "rows"), [(0, 16), (16, 16), (24, 8), (32, 0)])
def test_slice_extents_are_cut(row: int, rows: int, tmp_path: Path) -> None:
    """A kernel with a run-time extent sees what is left of the parent."""
    k = Kernel("k", [("a", "f32", (16, 16)), ("o", "f32", (16, 16))], [("n", "index")])
    k.tile("t", 16, 16, 0, valid=("n", 16))
    k.load("a", "t", (0, 0), ("n", 16))
    k.store("t", "o", (0, 0), ("n", 16))
    body = f"""
    with pl.scope():
        w: {ONE} = pl.tensor.slice(a, [16, 16], [r, 0])
        n: pl.Scalar[pl.INDEX] = pl.tensor.dim(w, 0)
        o1: {ONE} = self.k(w, o, n, {dirs("input", "output_existing", "scalar")})
    """
    folder = program(tmp_path, f"a: {typ('f32', (32, 16))}, r: pl.Scalar[pl.INDEX], o: pl.Out[{ONE}]", body, k)
    a, o = np.arange(512, dtype=F).reshape(32, 16), np.full((16, 16), -7, F)
    assert kinds(run(folder, a, row, o), "error") == ([] if rows else ["never_written"])
    np.testing.assert_array_equal(o[:rows], a[row : row + rows])
    assert (o[rows:] == -7).all()


def test_column_windows_keep_the_parents_strides(tmp_path: Path) -> None:
    k = add()
    k.lines = [x.replace(f"strides = [{k.c(16)},", f"strides = [{k.c(48)},") for x in k.lines]
    body = f"""
    with pl.scope():
        for h in pl.range(3):
            with pl.scope():
                w: {ONE} = pl.tensor.slice(a, [16, 16], [0, h * 16])
                c: {ONE} = pl.tensor.slice(o, [16, 16], [0, h * 16])
                c1: {ONE} = self.k(w, c, attrs={{"arg_directions": [pl.adir.input, pl.adir.inout]}})
    """
    wide = typ("f32", (16, 48))
    folder = program(tmp_path, f"a: {wide}, o: pl.Out[{wide}]", body, k)
    a, o = np.random.default_rng(0).standard_normal((16, 48)).astype(F), np.zeros((16, 48), F)
    assert run(folder, a, o).findings == ()
    np.testing.assert_array_equal(o, a + 1)


def test_assemble_is_a_copy_task(tmp_path: Path) -> None:
    body = f"""
    with pl.scope():
        t: {ONE} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)
        t1: {ONE} = self.k(a, t, {dirs("input", "output_existing")})
        o1: {typ("f32", (32, 16))} = pl.tensor.assemble(o, t1, [16, 0])
    return o1
    """
    big = typ("f32", (32, 16))
    folder = program(tmp_path, f"a: {ONE}, o: pl.Out[{big}]", body, add(), result=big)
    for order in ("program", "late", "random"):
        a, o = np.ones((16, 16), F), np.full((32, 16), -7, F)
        result = run(folder, a, o, order=order)
        assert kinds(result, "error") == []
        assert (o[:16] == -7).all()
        assert (o[16:] == 2).all()
        assert result.returned is o


def test_transpose_and_reshape_of_arguments(tmp_path: Path) -> None:
    body = f"""
    with pl.scope():
        r: {ONE} = pl.tensor.reshape(a, [16, 16])
        o1: {ONE} = self.k(r, o, {dirs("input", "output_existing")})
    """
    folder = program(tmp_path, f"a: {typ('f32', (4, 64))}, o: pl.Out[{ONE}]", body, add())
    a, o = np.arange(256, dtype=F).reshape(4, 64), np.zeros((16, 16), F)
    assert run(folder, a, o).findings == ()
    np.testing.assert_array_equal(o, a.reshape(16, 16) + 1)


# ---- control flow and scalars


def test_loop_scalars_and_float_precision(tmp_path: Path) -> None:
    """Scalars go to the kernel unrounded beyond FP32, also very small ones."""
    big = typ("f32", (64, 16))
    body = f"""
    with pl.scope():
        for i, (x,) in pl.range(4, init_values=(o,)):
            with pl.scope():
                y: {big} = self.k(a, s, i, x, {dirs("input", "scalar", "scalar", "inout")})
                z: {big} = pl.yield_(y)
    return z
    """
    k = scaled()
    declared = k.declaration(["o"]).replace(
        f"a: {ONE}, o: pl.Out[{big}], s: pl.Scalar[pl.FP32], i: pl.Scalar[pl.INDEX]",
        f"a: {ONE}, s: pl.Scalar[pl.FP32], i: pl.Scalar[pl.INDEX], o: pl.Out[{big}]",
    )
    assert "s: pl.Scalar[pl.FP32], i: pl.Scalar[pl.INDEX], o:" in declared
    params = f"a: {ONE}, s: pl.Scalar[pl.FP32], o: pl.InOut[{big}]"
    folder = write(tmp_path, host(params, body, declared, result=big), k=module(k))
    a, o = np.ones((16, 16), F), np.zeros((64, 16), F)
    assert run(folder, a, 1.2345678e-7, o).findings == ()
    np.testing.assert_array_equal(o, np.full((64, 16), F(1.2345678e-7)))


def test_read_waits_for_its_producer(tmp_path: Path) -> None:
    """The host branches on what a task has computed, also when tasks are put off."""
    body = f"""
    with pl.scope():
        t: {ONE} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)
        t1: {ONE} = self.k(a, t, {dirs("input", "output_existing")})
        v: pl.Scalar[pl.FP32] = pl.tensor.read(t1, [3, 4])
        if v > 2.5:
            o1: {ONE} = self.k(t1, o, {dirs("input", "output_existing")})
            o2: {ONE} = pl.yield_(o1)
        else:
            o3: {ONE} = self.m(t1, o, {dirs("input", "output_existing")})
            o2: {ONE} = pl.yield_(o3)
    return o2
    """
    folder = program(tmp_path, f"a: {ONE}, o: pl.Out[{ONE}]", body, add(), add("m", -10.0), result=ONE)
    for order in ("program", "late", "random"):
        for start, wanted in ((1.0, -8.0), (2.0, 4.0)):
            o = np.zeros((16, 16), F)
            assert run(folder, np.full((16, 16), start, F), o, order=order).findings == ()
            assert (o == wanted).all()


def test_host_writes_come_after_earlier_tasks(tmp_path: Path) -> None:
    body = f"""
    with pl.scope():
        o1: {ONE} = self.k(a, o, {dirs("input", "output_existing")})
        pl.tensor.write(o1, [0, 0], pl.const(42.0, pl.FP32))
    """
    folder = program(tmp_path, f"a: {ONE}, o: pl.Out[{ONE}]", body, add())
    for order in ("program", "late", "random"):
        o = np.zeros((16, 16), F)
        run(folder, np.zeros((16, 16), F), o, order=order)
        assert o[0, 0] == 42
        assert o[0, 1] == 1


@pytest.mark.parametrize("at", ["[16, 0]", "[0, 16]"])
def test_read_outside_the_tensor(at: str, tmp_path: Path) -> None:
    body = f"with pl.scope():\n    v: pl.Scalar[pl.FP32] = pl.tensor.read(a, {at})"
    folder = program(tmp_path, f"a: {ONE}, o: pl.Out[{ONE}]", body, add())
    assert "out_of_bounds" in kinds(run(folder, np.zeros((16, 16), F), np.zeros((16, 16), F)))
    with pytest.raises(DeviceError, match="leaves 'a'"):
        plain(folder, np.zeros((16, 16), F), np.zeros((16, 16), F))


# ---- tasks


def manual(deps: str) -> str:
    return f"""
    with pl.scope(mode=pl.ScopeMode.MANUAL):
        r1: {PAIR} = pl.submit(self.k, a, t, {dirs("input", "output_existing")})
        t1: {ONE} = r1[0]
        id1: pl.Scalar[pl.TASK_ID] = r1[1]
        r2: {PAIR} = pl.submit(self.k, t1, o{deps}, {dirs("input", "output_existing")})
    """


@pytest.mark.parametrize("deps", [", deps=[id1]", ""])
def test_manual_scope_knows_only_explicit_edges(deps: str, tmp_path: Path) -> None:
    folder = program(tmp_path, f"a: {ONE}, t: pl.Out[{ONE}], o: pl.Out[{ONE}]", manual(deps), add())
    a = np.zeros((16, 16), F)
    late = np.full((16, 16), -7, F)
    result = run(folder, a, np.zeros((16, 16), F), late, order="late")
    if deps:
        assert result.findings == ()
        assert (late == 2).all()
    else:
        assert {"race", "uninitialised"} <= set(kinds(result, "error"))
        assert not (late == 2).all()


def test_writer_order_of_the_tensor_map(tmp_path: Path) -> None:
    """Step 0..3 stores its number at slot step // 2: the slots hold 1 and 3."""
    k = Kernel("k", [("o", "f32", (32, 16))], [("i", "index")])
    k.line(f"%slot = arith.divsi %i, {k.c(2)} : index")
    k.line(f"%row = arith.muli %slot, {k.c(16)} : index")
    k.line("%n = arith.index_cast %i : index to i32")
    k.line("%v = arith.sitofp %n : i32 to f32")
    k.tile("t", 16, 16, 0)
    k.op("texpands", [("v", "f32")], ["t"])
    k.store("t", "o", ("row", 0), (16, 16))
    big = typ("f32", (32, 16))
    body = f"""
    with pl.scope():
        for i, (x,) in pl.range(4, init_values=(o,)):
            with pl.scope():
                y: {big} = self.k(i, x, attrs={{"arg_directions": [pl.adir.scalar, pl.adir.inout]}})
                z: {big} = pl.yield_(y)
    return z
    """
    declared = k.declaration([]).replace(
        f"o: {big}, i: pl.Scalar[pl.INDEX]):", f"i: pl.Scalar[pl.INDEX], o: pl.InOut[{big}]) -> {big}:"
    )
    folder = write(tmp_path, host(f"o: pl.Out[{big}]", body, declared, result=big), k=module(k))
    for order, seed in [("program", 0), ("late", 0), *(("random", s) for s in range(5))]:
        o = np.zeros((32, 16), F)
        assert run(folder, o, order=order, seed=seed).findings == ()
        assert o[:, 0].tolist() == [1] * 16 + [3] * 16


def test_spmd_runs_every_block(tmp_path: Path) -> None:
    k = Kernel("k", [("a", "f32", (64, 16)), ("o", "f32", (64, 16))], block=True)
    k.line("%b = arith.index_cast %__pypto_spmd_block_idx : i32 to index")
    k.line(f"%row = arith.muli %b, {k.c(16)} : index")
    k.tile("t", 16, 16, 0)
    k.load("a", "t", ("row", 0), (16, 16))
    k.op("tneg", ["t"], ["t"])
    k.store("t", "o", ("row", 0), (16, 16))
    big = typ("f32", (64, 16))
    ways = dirs("input", "output_existing", more=', "core_num": 4')
    body = f"with pl.scope():\n    self.k(a, o, {ways})"
    folder = program(tmp_path, f"a: {big}, o: pl.Out[{big}]", body, k)
    a = np.arange(1024, dtype=F).reshape(64, 16)
    for order in ("program", "late", "random"):
        o = np.zeros((64, 16), F)
        result = run(folder, a, o, order=order)
        assert result.findings == ()
        assert result.counters.blocks == 4
        np.testing.assert_array_equal(o, -a)


# ---- returned values


def test_returned_values(tmp_path: Path) -> None:
    """A created tensor and a number come back beside the parameter."""
    body = f"""
    with pl.scope():
        t: {ONE} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)
        t1: {ONE} = self.k(a, t, {dirs("input", "output_existing")})
        o1: {ONE} = self.k(t1, o, {dirs("input", "output_existing")})
        v: pl.Scalar[pl.FP32] = pl.tensor.read(o1, [0, 0])
    return o1, t1, v
    """
    result_type = f"tuple[{ONE}, {ONE}, pl.Scalar[pl.FP32]]"
    folder = program(tmp_path, f"a: {ONE}, o: pl.Out[{ONE}]", body, add(), result=result_type)
    a, o = np.ones((16, 16), F), np.zeros((16, 16), F)
    first, second, third = run(folder, a, o).returned
    assert first is o
    assert (second == 2).all()
    assert third == 3.0


def test_program_without_kernels(tmp_path: Path) -> None:
    """Everything runs on the host."""
    body = f"""
    y: {ONE} = pl.tensor.add(a, a)
    z: {ONE} = pl.tensor.mul(y, y)
    s: {typ("f32", (16, 1))} = pl.tensor.row_sum(z)
    return s
    """
    text = host(f"a: {ONE}", body, result=typ("f32", (16, 1)))
    folder = write(tmp_path, text)
    a = np.random.default_rng(0).standard_normal((16, 16)).astype(F)
    found = run_artifact(folder, [a]).returned
    np.testing.assert_allclose(found, ((2 * a) ** 2).sum(axis=1, keepdims=True), rtol=1e-5)
    assert found.shape == (16, 1)


def test_unsupported_host_operator(tmp_path: Path) -> None:
    keys = ", ".join(f"pl.const({i}, pl.INT32)" for i in range(1, 7))
    body = f"""
    y: {ONE} = pl.tensor.random({keys}, [16, 16], dtype=pl.UINT32)
    return y
    """
    folder = write(
        tmp_path, host("n: pl.Scalar[pl.INDEX]", body.replace("FP32", "UINT32"), result=typ("ui32", (16, 16)))
    )
    with pytest.raises(DeviceError, match=r"the host cannot compute tensor\.random; put it into a device region"):
        run_artifact(folder, [1])


def test_kernel_that_is_not_there(tmp_path: Path) -> None:
    body = 'with pl.scope():\n    self.gone(a, o, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})'
    folder = write(tmp_path, host(f"a: {ONE}, o: pl.Out[{ONE}]", body, add("gone").declaration(["o"])), k=module(add()))
    with pytest.raises(DeviceError, match=r"launches kernel 'gone', which no \.pto file defines; defined are k"):
        plain(folder, np.zeros((16, 16), F), np.zeros((16, 16), F))


def test_edited_artifact_is_read_again(tmp_path: Path) -> None:
    folder = single(tmp_path, add(), ["o"])
    a, o = np.zeros((16, 16), F), np.zeros((16, 16), F)
    plain(folder, a, o)
    assert (o == 1).all()
    single(tmp_path, add(value=25.0), ["o"])
    plain(folder, a, o)
    assert (o == 25).all()
