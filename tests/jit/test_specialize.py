"""What specialisation makes of a jit function, compared with the program it stands for."""

from __future__ import annotations

from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.printer import python_print

torch = pytest.importorskip("torch")

FACTOR = 3.0
ROWS = 16
LAYOUT = pl.NZ
M = pl.dynamic("M")


def f32(*shape: int) -> Any:
    return torch.zeros(*shape)


def same(made: Any, wanted: str) -> None:
    """The program prints like the text."""
    program = pl.parse("import pypto.language as pl\n" + wanted)
    assert python_print(made, format=False) == python_print(program, format=False)


@pl.jit.incore
def scaled(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    m, n = a.shape
    half = m // 2
    for i in pl.range(2):
        t = pl.load(a, [i * half, 0], [half, n])
        o = pl.store(pl.mul(t, FACTOR), [i * half, 0], o)
    return o


@pl.jit
def scale(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = scaled(o=o, a=a)
    return o


def test_shapes_and_closure_constants_become_literals() -> None:
    same(
        scale.specialize(f32(32, 64), f32(32, 64)),
        """
@pl.program
class _jit_scale:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        o: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        for i in pl.range(2):
            t = pl.load(a, [i * 16, 0], [16, 64])
            o = pl.store(pl.mul(t, 3.0), [i * 16, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def scale(
        self,
        a: pl.Tensor[[32, 64], pl.FP32],
        o: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ) -> pl.Tensor[[32, 64], pl.FP32]:
        o_v1 = self.scaled(a, o)
        return o_v1
""",
    )


@pl.jit
def kinds(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.create_tensor(a.shape, dtype=a.dtype)
        if len(t.shape) == 2 and a.shape[-1] > 4:
            o[:] = t
    return o


@pl.jit
def retyped(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(a, a)
        t = pl.cast(t, pl.FP32)
        t = pl.mul(t, 2.0)
        o[:] = t
    return o


def test_a_variable_may_change_its_type() -> None:
    same(
        retyped.specialize(torch.zeros(16, 32, dtype=torch.float16), f32(16, 32)),
        """
@pl.program
class _jit_retyped:
    @pl.function(type=pl.FunctionType.Orchestration)
    def retyped(
        self,
        a: pl.Tensor[[16, 32], pl.FP16],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(a, a)
            t_v1 = pl.cast(t, pl.FP32)
            t_v2 = pl.mul(t_v1, 2.0)
            o[:] = t_v2
        return o
""",
    )


@pl.jit
def carried(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(a, 1.0)
        o = pl.assemble(o, t, [0, 0])
    for i in pl.range(3):
        t = pl.add(t, a)
        o = pl.assemble(o, t, [i, 0])
    return o


def test_a_variable_of_an_earlier_block_is_bridged_into_a_loop() -> None:
    same(
        carried.specialize(f32(16, 32), f32(16, 32)),
        """
@pl.program
class _jit_carried:
    @pl.function(type=pl.FunctionType.Orchestration)
    def carried(
        self,
        a: pl.Tensor[[16, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(a, 1.0)
            o = pl.assemble(o, t, [0, 0])
        t_v1 = t
        for i in pl.range(3):
            t_v1 = pl.add(t_v1, a)
            o = pl.assemble(o, t_v1, [i, 0])
        return o
""",
    )


@pl.jit
def branches(a: pl.Tensor, o: pl.Out[pl.Tensor], flag: pl.Scalar[pl.BOOL]):
    with pl.at(level=pl.Level.CORE_GROUP):
        if flag:
            t = pl.add(a, 1.0)
        else:
            t = pl.mul(a, 2.0)
        o[:] = t
    return o


def test_branches_keep_one_name() -> None:
    text = python_print(branches.specialize(f32(16, 32), f32(16, 32), False), format=False)
    assert "if False:" in text
    assert "t_v1" not in text


@pl.jit
def scalars(a: pl.Tensor, o: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32], k: pl.INT32 = 3):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.slice(a, [4, 32], [k, 0])
        o = pl.assemble(o, pl.mul(t, s), [k + 1, 0])
    return o


def test_scalars_are_specialised_by_value() -> None:
    same(
        scalars.specialize(f32(16, 32), f32(16, 32), 2),
        """
@pl.program
class _jit_scalars:
    @pl.function(type=pl.FunctionType.Orchestration)
    def scalars(
        self,
        a: pl.Tensor[[16, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
        s: pl.Scalar[pl.FP32],
        k: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.slice(a, [4, 32], [3, 0])
            o = pl.assemble(o, pl.mul(t, 2.0), [4, 0])
        return o
""",
    )


@pl.jit
def complete(a: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]], s: pl.Scalar[pl.FP32] = 0.5):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, s)
    return o


def test_signature_mode() -> None:
    """Without tensors the annotations decide; `pl.RUNTIME` leaves a scalar to the run."""
    sample = complete.specialize(f32(16, 32), f32(16, 32), 2.0)
    assert python_print(complete.specialize(s=2.0)) == python_print(sample)
    assert "pl.tensor.muls(a, 0.5)" in python_print(complete.specialize())
    assert "pl.tensor.muls(a, s)" in python_print(complete.specialize(s=pl.RUNTIME))


@pl.jit
def rows(a: pl.Tensor[[M, 32], pl.FP32], o: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    n = a.shape[0]
    for i in pl.range(n // 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.slice(a, [4, 32], [i * 4, 0]), [i * 4, 0])
    return o


def test_dynamic_extents_are_not_specialised() -> None:
    """Two sample sizes give one program, which asks for the extent at run time."""
    small, large = rows.specialize(f32(8, 32), f32(8, 32)), rows.specialize(f32(16, 32), f32(16, 32))
    assert python_print(small) == python_print(large)
    same(
        small,
        """
M = pl.dynamic("M")

@pl.program
class _jit_rows:
    @pl.function(type=pl.FunctionType.Orchestration)
    def rows(
        self,
        a: pl.Tensor[[M, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[M, 32], pl.FP32]],
    ) -> pl.Tensor[[M, 32], pl.FP32]:
        n = pl.tensor.dim(a, 0)
        for i in pl.range(n // 4):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.slice(a, [4, 32], [i * 4, 0]), [i * 4, 0])
        return o
""",
    )


@pl.jit.incore
def tail(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    D = pl.dynamic("D")
    x.bind_dynamic(0, D)
    y.bind_dynamic(0, D)
    t = pl.load(x, [0, 0], [8, 32])
    y = pl.store(t, [D - 8, 0], y)
    return y


@pl.jit
def outer(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = tail(a, o)
    return o


def test_dynamic_extents_spread_from_helpers_to_callers() -> None:
    text = python_print(outer.specialize(f32(16, 32), f32(16, 32)), format=False)
    assert text.count("pl.Tensor[[D, 32], pl.FP32]") >= 4
    assert "[16, 32]" not in text
    assert "bind_dynamic" not in text


@pl.jit.inline
def double(src: pl.Tensor):
    r = pl.add(src, src)
    return r


@pl.jit
def sliced(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        part = a[0:ROWS, :]
        d = double(part)
        part = pl.reshape(part, [32, 16])
        o = pl.assemble(o, d, [0, 0])
    return o


def test_types_at_a_call_are_those_before_later_rebindings() -> None:
    text = python_print(sliced.specialize(f32(64, 32), f32(64, 32)), format=False)
    assert "def double(self, src: pl.Tensor[[16, 32], pl.FP32]):" in text


@pl.jit.inline
def accumulate(cache: pl.InOut[pl.Tensor], x: pl.Tensor):
    cache = pl.assemble(cache, pl.add(x, x), [0, 0])
    return cache


@pl.jit
def caching(cache: pl.InOut[pl.Tensor], x: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        cache = accumulate(cache, x)
    return cache


def test_directions_of_helpers_are_kept() -> None:
    text = python_print(caching.specialize(f32(16, 32), f32(16, 32)), format=False)
    assert "def accumulate(self, cache: pl.InOut[pl.Tensor[[16, 32], pl.FP32]], x:" in text
    assert "-> pl.Tensor[[16, 32], pl.FP32]:" in text


@pl.jit
def laid_out(a: pl.Tensor[[64, 64], pl.FP32, LAYOUT], o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.add(a, a)
    return o


def test_the_layout_of_an_annotation_is_kept() -> None:
    text = python_print(laid_out.specialize(f32(64, 64), f32(64, 64)), format=False)
    assert "a: pl.Tensor[[64, 64], pl.FP32, pl.TensorView(stride=[], layout=pl.TensorLayout.NZ)]" in text


@pl.jit
def pair(a: pl.Tensor, x: pl.Out[pl.Tensor], y: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = pl.add(a, 1.0)
        y[:] = pl.add(a, 2.0)
    return x, y


@pl.jit
def called(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    return scaled(a, o)


def test_return_types() -> None:
    two = pair.specialize(f32(8, 8), f32(8, 8), f32(8, 8)).get_function("pair")
    assert two is not None
    assert [str(t) for t in two.return_types] == ["pl.Tensor[[8, 8], pl.FP32]"] * 2
    one = called.specialize(f32(32, 64), f32(32, 64)).get_function("called")
    assert one is not None
    assert one.return_types == ()


@pl.jit
def submitted(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.manual_scope():
        o, tid = pl.submit(scaled, a, o)  # noqa: RUF059
    return o


def test_helpers_can_be_submitted() -> None:
    text = python_print(submitted.specialize(f32(32, 64), f32(32, 64)), format=False)
    assert "pl.submit(self.scaled, a, o)" in text
    assert "def scaled(a: pl.Tensor[[32, 64], pl.FP32]" in text


@pl.jit.incore(level=pl.Level.AIV)
def on_vector(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = pl.store(pl.load(a, [0, 0], [16, 16]), [0, 0], o)
    return o


@pl.jit(auto_scope=False)
def kinds_of_functions(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = on_vector(a, o)
    return o


def test_kinds_of_functions() -> None:
    text = python_print(kinds_of_functions.specialize(f32(16, 16), f32(16, 16)), format=False)
    assert "@pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV" in text
    assert "role=pl.Role.Orchestrator, auto_scope=False)" in text


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("bfloat16", "BF16"), ("float16", "FP16"), ("int32", "INT32"), ("uint8", "UINT8"), ("float8_e4m3fn", "FP8E4M3FN")],
)
def test_dtypes_and_shapes_of_parameters(dtype: str, name: str) -> None:
    x = torch.zeros(16, 32).to(getattr(torch, dtype))
    text = python_print(kinds.specialize(x, x.clone()), format=False)
    assert f"pl.tensor.create([16, 32], dtype=pl.{name}, layout=" in text
    assert (
        "if pl.const(2, pl.INDEX) == pl.const(2, pl.INDEX) and pl.const(32, pl.INDEX) > pl.const(4, pl.INDEX):" in text
    )


def test_local_functions_see_their_enclosing_scope() -> None:
    width = 8

    @pl.jit
    def local(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.slice(a, [width, width], [0, 0]), [0, 0])
        return o

    assert "pl.tensor.slice(a, [8, 8], [0, 0])" in python_print(local.specialize(f32(16, 16), f32(16, 16)))
