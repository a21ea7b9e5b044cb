"""Helpers called with arguments of several types: every call gets the specialisation for its own arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.language.parser.diagnostics import (
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from pytest_pypto.pypto.runtime.config import RunConfig

torch = pytest.importorskip("torch")

M = pl.dynamic("M")
PLATFORMS = ("a2a3sim", "a5sim")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    yield
    for function in [f for f in globals().values() if isinstance(f, pl.JITFunction)]:
        function.cache_clear()


def x(*shape: int, dtype: Any = None) -> Any:
    return torch.randn(*shape).to(dtype or torch.float32)


def o(*shape: int, dtype: Any = None) -> Any:
    return torch.full(shape, -7.0).to(dtype or torch.float32)


def heads(program: Any) -> list[str]:
    text = python_print(program, format=False).splitlines()
    return [line.strip().removeprefix("def ").split(" ->")[0] for line in text if line.strip().startswith("def ")]


@pl.jit.incore
def scale(a: pl.Tensor, out: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    m, n = a.shape
    t = pl.load(a, [0, 0], [m, n])
    out = pl.store(pl.mul(t, s), [0, 0], out)
    return out


@pl.jit
def called(a: pl.Tensor, b: pl.Tensor, r: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor], t: pl.Out[pl.Tensor]):
    r = scale(a, r, 2.0)
    s = scale(b, s, 3.0)
    t = scale(a, out=t, s=4.0)
    return r, s, t


@pl.jit
def submitted(a: pl.Tensor, b: pl.Tensor, r: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor], t: pl.Out[pl.Tensor]):
    r, first = pl.submit(scale, a, r, 2.0)
    s, second = pl.submit(scale, b, s, 3.0, deps=[first])
    t, _third = pl.submit(scale, a, t, 4.0, deps=[second])
    return r, s, t


def test_one_specialisation_per_shape() -> None:
    shapes = (x(16, 32), x(8, 64), x(16, 32), x(8, 64), x(16, 32))
    found = {h.split("(")[0]: h for h in heads(called.specialize(*shapes))}
    assert sorted(found) == ["called", "scale", "scale_1"]
    assert "a: pl.Tensor[[16, 32], pl.FP32]" in found["scale"]
    assert "a: pl.Tensor[[8, 64], pl.FP32]" in found["scale_1"]


def test_equal_arguments_share_one() -> None:
    same = [x(16, 32)] * 5
    assert [h.split("(")[0] for h in heads(called.specialize(*same))].count("scale_1") == 0


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kernel", [called, submitted], ids=["called", "submitted"])
def test_two_shapes_and_two_dtypes_run(kernel: Any, platform: str) -> None:
    for dtype in (torch.float32, torch.float16):
        a, b = x(16, 32, dtype=dtype), x(8, 64)
        r, s, t = o(16, 32, dtype=dtype), o(8, 64), o(16, 32, dtype=dtype)
        kernel(a, b, r, s, t, config=RunConfig(platform=platform))
        for have, want in ((r, a * 2), (s, b * 3), (t, a * 4)):
            assert torch.allclose(have, want)


@pl.jit.inline
def doubled(a: pl.Tensor):
    r = pl.mul(a, 2.0)
    return r


@pl.jit.inline
def head_twice(a: pl.Tensor):
    r = doubled(a)
    r = pl.assemble(r, doubled(doubled(a[0:8, :])), [0, 0])
    return r


@pl.jit
def nested(a: pl.Tensor, b: pl.Tensor, r: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        r[:] = head_twice(a)
    with pl.at(level=pl.Level.CORE_GROUP):
        s[:] = pl.add(head_twice(b), doubled(b))
    return r, s


@pytest.mark.parametrize("platform", PLATFORMS)
def test_inline_helpers_within_helpers_and_expressions(platform: str) -> None:
    a, b, r, s = x(16, 32), x(24, 16, dtype=torch.float16), o(16, 32), o(24, 16, dtype=torch.float16)
    nested(a, b, r, s, config=RunConfig(platform=platform))
    factor = torch.full((24, 1), 2.0)
    factor[:8] = 4.0
    assert torch.allclose(r, a * factor[:16])
    assert torch.allclose(s, b * (factor + 2.0).half(), rtol=1e-3)


@pl.jit
def in_a_condition(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    k: pl.Scalar[pl.INT32] = 0
    while pl.read(doubled(a), [0, 0]) > 0.0:
        k = k + 1
    return r


def test_inline_helpers_in_the_condition_of_a_loop_are_refused() -> None:
    with pytest.raises(ParserTypeError, match="cannot be called in the condition of a while loop"):
        in_a_condition.specialize(x(16, 32), x(16, 32))


@pl.jit.inline
def grow(cache: pl.InOut[pl.Tensor], a: pl.Tensor):
    cache = pl.assemble(cache, pl.add(cache, a), [0, 0])
    return cache


@pl.jit
def caches(c: pl.InOut[pl.Tensor], d: pl.InOut[pl.Tensor], a: pl.Tensor, b: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = grow(c, a)
    with pl.at(level=pl.Level.CORE_GROUP):
        d = grow(d, b)
    return c, d


@pytest.mark.parametrize("platform", PLATFORMS)
def test_two_caches_accumulate_in_place(platform: str) -> None:
    c, d, a, b = x(16, 32), x(8, 64), x(16, 32), x(8, 64)
    wanted = c + a + a, d + b + b
    for _ in range(2):
        caches(c, d, a, b, config=RunConfig(platform=platform))
    assert torch.allclose(c, wanted[0], atol=1e-6)
    assert torch.allclose(d, wanted[1], atol=1e-6)


@pl.jit.incore
def rows(a: pl.Tensor[[M, 32], pl.FP32], out: pl.Out[pl.Tensor[[M, 32], pl.FP32]]):
    m = a.shape[0]
    for i in pl.range(0, m, 8):
        t = pl.load(a, [i, 0], [8, 32])
        out = pl.store(pl.add(t, t), [i, 0], out)
    return out


@pl.jit
def two_lengths(a: pl.Tensor, b: pl.Tensor, r: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor]):
    r = rows(a, r)
    s = rows(b, s)
    return r, s


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_dynamic_helper_takes_tensors_of_two_lengths(platform: str) -> None:
    """One symbol of the helper stood for the extents of all arguments that were ever handed to it."""
    for m, n in ((8, 8), (8, 24), (16, 8)):
        a, b, r, s = x(m, 32), x(n, 32), o(m, 32), o(n, 32)
        two_lengths(a, b, r, s, config=RunConfig(platform=platform))
        assert torch.allclose(r, a * 2)
        assert torch.allclose(s, b * 2)
    assert len(two_lengths._cache.entries) == 2, "equal and unequal lengths"


@pl.jit.opaque
def region(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        r[:] = pl.mul(a, 2.0)
    return r


@pl.jit
def through_an_opaque_helper(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = region(a, r)
    return r


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_opaque_helper_is_not_the_entry(platform: str) -> None:
    """It becomes a second host program, and the call did not know which one to run."""
    a, r = x(16, 32), o(16, 32)
    through_an_opaque_helper(a, r, config=RunConfig(platform=platform))
    assert torch.allclose(r, a * 2)


@pl.jit.inline
def both(a: pl.Tensor, *, s: pl.Scalar[pl.FP32] = 2.0):
    p = pl.mul(a, s)
    q = pl.add(a, 1.0)
    return p, q


@pl.jit
def several_results(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    made = pl.create_tensor(a.shape, dtype=a.dtype)
    with pl.at(level=pl.Level.CORE_GROUP):
        p, q = both(s=3.0, a=a)
        r[:] = pl.add(p, q)
    with pl.at(level=pl.Level.CORE_GROUP):
        made = pl.assemble(made, pl.mul(a, 5.0), [0, 0])
    return r, made


@pytest.mark.parametrize("platform", PLATFORMS)
def test_results_of_helpers_and_of_the_entry(platform: str) -> None:
    a, r = x(16, 32), o(16, 32)
    returned = several_results(a, r, config=RunConfig(platform=platform))
    assert torch.allclose(r, a * 4 + 1, rtol=1e-5, atol=1e-5)
    assert torch.allclose(returned[0], r)
    assert torch.allclose(returned[1], a * 5)


@pl.jit
def unknown_keyword(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    _p, _q = both(a, t=3.0)
    return r


def make(by: float) -> Any:
    @pl.jit.inline
    def add(a: pl.Tensor):
        r = pl.add(a, by)
        return r

    return add


one, two = make(1.0), make(2.0)


@pl.jit
def namesakes(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        r[:] = pl.mul(one(a), two(a))
    return r


def test_two_helpers_of_one_name() -> None:
    a, r = x(16, 32), o(16, 32)
    namesakes(a, r)
    assert torch.allclose(r, (a + 1) * (a + 2), rtol=1e-5, atol=1e-5)


@pl.jit
def itself(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = around(a, r)
    return r


@pl.jit.inline
def around(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = around(a, r)
    return r


@pl.jit
def number_for_tensor(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = scale(2.0, r, 2.0)
    return r


@pl.jit
def tensor_for_number(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = scale(a, r, a)
    return r


@pl.jit
def entry_from_entry(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = itself(a, r)
    return r


@pl.jit.extern(core_type="aiv", source=__file__)
def foreign(a: pl.Tensor, r: pl.Out[pl.Tensor]): ...


@pl.jit
def calls_foreign(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    r = foreign(a, r)
    return r


@pl.jit
def negative_axis(a: pl.Tensor, r: pl.Out[pl.Tensor]):
    a.bind_dynamic(-2, M)
    return r


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (calls_foreign, UnsupportedFeatureError, r"'foreign' is a C\+\+ kernel"),
        (negative_axis, ParserTypeError, r"bind_dynamic\(\) counts axes from 0 on, got a negative one"),
        (unknown_keyword, ParserTypeError, r"both\(\) got an unexpected keyword argument 't'"),
        (itself, ParserSyntaxError, "jit function 'around' calls itself"),
        (number_for_tensor, ParserTypeError, r"parameter 'a' of jit function 'scale' is a tensor, a call gives pl\.Sc"),
        (tensor_for_number, ParserTypeError, r"parameter 's' of jit function 'scale' is a scalar, a call gives pl\.Te"),
        (entry_from_entry, ParserTypeError, r"'itself' is an entry \(@pl\.jit\)"),
    ],
)
def test_refused_calls(kernel: Any, error: type[ParserError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        kernel.specialize(x(16, 32), x(16, 32))
    assert caught.value.span is not None
    assert caught.value.span["filename"] == __file__
