"""What may be passed to a run: arrays of every kind, one array twice, settings; and what is refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_pypto.pypto.device import DeviceError, DeviceSettings, DfxSettings, run_artifact

from .faults import named, unary
from .texts import Kernel, host, kinds, module, run, single, typ, write

F = np.float32
T = typ("f32", (16, 16))
I = typ("i32", (16, 16))  # noqa: E741
ORDERS: list[tuple[str, int]] = [("program", 0), ("late", 0), *(("random", s) for s in range(4)), ("exhaustive", 0)]


def ones() -> np.ndarray[Any, Any]:
    return np.ones((16, 16), F)


def frozen() -> np.ndarray[Any, Any]:
    x = ones()
    x.flags.writeable = False
    return x


def unaligned() -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray(1025), np.uint8)[1:].view(F).reshape(16, 16)


@pytest.fixture(scope="module")
def exp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """o = exp(a)"""
    return single(tmp_path_factory.mktemp("exp"), unary(), ["o"])


TAKEN: dict[str, Callable[[], Any]] = {
    "read-only": frozen,
    "column-major": lambda: np.asfortranarray(ones()),
    "every second": lambda: np.ones((32, 32), F)[::2, ::2],
    "backwards": lambda: ones()[::-1],
    "repeated": lambda: np.broadcast_to(F(1), (16, 16)),
    "matrix": lambda: ones().view(np.matrix),
    "unaligned": lambda: unaligned() + F(1),
}


@pytest.mark.parametrize("name", list(TAKEN))
def test_inputs_of_every_kind(name: str, exp: Path) -> None:
    a, o = TAKEN[name](), np.zeros((16, 16), F)
    assert run(exp, a, o).findings == ()
    np.testing.assert_array_equal(o, np.exp(ones()))
    np.testing.assert_array_equal(np.asarray(a), ones())


@pytest.mark.parametrize("name", ["column-major", "every second", "backwards", "matrix", "unaligned"])
def test_outputs_of_every_kind(name: str, exp: Path) -> None:
    o = TAKEN[name]() if name != "unaligned" else unaligned()
    assert run(exp, ones(), o).findings == ()
    np.testing.assert_array_equal(np.asarray(o), np.exp(ones()))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "other byte order": (lambda: ones().astype(">f4"), "float32 of the other byte order, the program takes float32"),
    "masked": (lambda: np.ma.masked_array(ones()), "must be an array, got MaskedArray"),
    "objects": (lambda: ones().astype(object), "holds object"),
    "number": (lambda: F(1), "must be an array, got float32"),
    "list": (lambda: [[1.0]], "must be an array, got list"),
    "nothing": (lambda: None, "must be an array, got NoneType"),
    "empty": (lambda: np.zeros((0, 16), F), r"has shape \[0, 16\], the program takes \[16, 16\]"),
    "flat": (lambda: ones().reshape(-1), r"has shape \[256\]"),
    "double": (lambda: ones().astype(np.float64), "holds float64, the program takes float32"),
}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_arrays(name: str, place: int, exp: Path) -> None:
    made, words = REFUSED[name]
    args = [ones(), ones()]
    args[place] = made()
    with pytest.raises(DeviceError, match=rf"argument {place} \('{'ao'[place]}'\).*{words}"):
        run_artifact(exp, args)


def test_outputs_that_cannot_be_written(exp: Path) -> None:
    with pytest.raises(DeviceError, match=r"argument 1 \('o'\) is read-only, but the program writes it; pass a copy"):
        run_artifact(exp, [ones(), frozen()])
    same = np.lib.stride_tricks.as_strided(np.zeros(1, F), (16, 16), (0, 0))
    with pytest.raises(DeviceError, match="repeats its elements in memory"):
        run_artifact(exp, [ones(), same])


def test_call_of_another_kind(exp: Path) -> None:
    with pytest.raises(TypeError, match="args must be a list or tuple"):
        run_artifact(exp, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="settings must be DeviceSettings, got int"):
        run_artifact(exp, [ones(), ones()], 3)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match=r"main takes 2 argument\(s\) \(a, o\), got 3"):
        run_artifact(exp, [ones(), ones(), ones()])


SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"order": None}, "unknown order None"),
    ({"sanitize": "race"}, "sanitize takes a set of names, got 'race'"),
    ({"sanitize": None}, "sanitize takes a set of names"),
    ({"sanitize": {"x"}}, "unknown sanitizer 'x'"),
    ({"poison": "a"}, "poison must be a byte 0..255, got 'a'"),
    ({"poison": True}, "poison must be a byte"),
    ({"seed": "x"}, "seed must be a whole number"),
    ({"max_orders": 0}, "max_orders must be a whole number of at least 1, got 0"),
    ({"while_limit": "a"}, "while_limit must be a whole number of at least 1, got 'a'"),
    ({"clusters": 0}, "clusters must be a whole number of at least 1"),
    ({"clusters": 1.5}, "clusters must be a whole number of at least 1"),
    ({"max_findings": -1}, "max_findings must be a whole number of at least 0"),
    ({"ring_heap": 1.5}, r"ring_heap takes one number or four \(one per ring\), got 1.5"),
    ({"ring_heap": True}, "ring_heap takes one number or four"),
    ({"ring_heap": (1, 2)}, "ring_heap takes one number or four"),
    ({"ring_task_window": (1, 2, 3, "x")}, "ring_task_window takes one number or four"),
    ({"ring_dep_pool": 0}, "ring_dep_pool must be positive"),
    ({"platform": "zz"}, "unknown platform 'zz'; choose from a2a3sim, a5sim"),
    ({"dfx": None}, "dfx takes DfxSettings, got None"),
]


@pytest.mark.parametrize(("changes", "words"), SETTINGS, ids=[next(iter(s)) for s, _ in SETTINGS])
def test_settings_out_of_range(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DeviceSettings(**changes)


def test_settings_within_their_range() -> None:
    made = DeviceSettings(
        ring_heap=[1, 2, 3, 4], poison=np.uint8(255), seed=np.int64(-1), clusters=1, dfx=DfxSettings()
    )  # type: ignore[arg-type]
    assert made.per_ring("ring_heap") == (1, 2, 3, 4)


# ---- one array twice


def two(second: str, direction: str = "input") -> str:
    """fill writes o from a, then use reads the second parameter and writes p."""
    t = T
    body = f"""
    with pl.scope():
        o1: {t} = self.fill(a, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})
        p1: {t} = self.use({second}, p, attrs={{"arg_directions": [pl.adir.{direction}, pl.adir.output_existing]}})
    """
    kernels = [named(n).declaration(["o"]) for n in ("fill", "use")]
    return host(f"a: {t}, o: pl.Out[{t}], b: {t}, p: pl.Out[{t}]", body, *kernels)


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """o = exp(a); p = exp(b), in two tasks that only the memory of o and b can order."""
    return write(tmp_path_factory.mktemp("twice"), two("b"), f=module(named("fill")), u=module(named("use")))


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_one_array_as_two_parameters_is_one_tensor(order: str, seed: int, twice: Path) -> None:
    x, p = np.zeros((16, 16), F), np.zeros((16, 16), F)
    result = run(twice, ones(), x, x, p, order=order, seed=seed)
    assert kinds(result, "error") == []
    np.testing.assert_array_equal(x, np.exp(ones()))
    np.testing.assert_array_equal(p, np.exp(x))


def test_one_input_twice(twice: Path) -> None:
    a, o, p = ones(), np.zeros((16, 16), F), np.zeros((16, 16), F)
    assert run(twice, a, o, a, p).findings == ()
    np.testing.assert_array_equal(p, o)


@pytest.mark.parametrize("apart", [True, False])
def test_arrays_that_overlap(apart: bool, twice: Path) -> None:
    memory = np.zeros(600, F)
    o, b = memory[:256].reshape(16, 16), memory[256 if apart else 16 :][:256].reshape(16, 16)
    result = run(twice, ones(), o, b, np.zeros((16, 16), F))
    assert ("race" in kinds(result, "error")) is not apart
    if not apart:
        assert "the arguments 'o' and 'b' overlap in memory" in result.findings[0].message


def test_inputs_may_overlap(twice: Path) -> None:
    memory = np.ones(600, F)
    a, b = memory[:256].reshape(16, 16), memory[16:272].reshape(16, 16)
    assert run(twice, a, np.zeros((16, 16), F), b, np.zeros((16, 16), F)).findings == ()


# ---- one tensor under two element types


def bits() -> Kernel:
    """o = a + 1 on the bits of a."""
    k = Kernel("use", [("a", "i32", (16, 16)), ("o", "i32", (16, 16))])
    k.tile("t", 16, 16, 0, dtype="i32")
    k.load("a", "t", (0, 0), (16, 16))
    k.op("tadds", ["t", (k.c(1, "i32"), "i32")], ["t"])
    k.store("t", "o", (0, 0), (16, 16))
    return k


def seen_as_bits(writer_first: bool) -> str:
    """fill writes t; use reads its bits - or the other way round."""
    calls = [
        f't1: {T} = self.fill(a, t0, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})',
        f"r: {I} = pl.tensor.reinterpret_view({'t1' if writer_first else 't0'}, dtype=pl.INT32)",
        f'o1: {I} = self.use(r, o, attrs={{"arg_directions": [pl.adir.input, pl.adir.output_existing]}})',
    ]
    calls = calls if writer_first else [*calls[1:], calls[0]]
    body = [f"    t0: {T} = pl.tensor.create([16, 16], dtype=pl.FP32, layout=pl.TensorLayout.ND)"]
    body += [f"    {c}" for c in calls]
    kernels = [named("fill").declaration(["o"]), bits().declaration(["o"])]
    return host(f"a: {T}, o: pl.Out[{I}]", "with pl.scope():\n" + "\n".join(body), *kernels)


@pytest.mark.parametrize(("order", "seed"), ORDERS)
def test_a_reinterpreted_tensor_waits_for_its_writer(order: str, seed: int, tmp_path: Path) -> None:
    folder = write(tmp_path, seen_as_bits(True), f=module(named("fill")), u=module(bits()))
    o = np.zeros((16, 16), np.int32)
    assert run(folder, ones(), o, order=order, seed=seed).findings == ()
    np.testing.assert_array_equal(o, np.exp(ones()).view(np.int32) + 1)


def test_a_reinterpreted_tensor_knows_what_is_undefined(tmp_path: Path) -> None:
    """The reader comes first: it sees undefined bytes, and nothing orders the writer after it."""
    folder = write(tmp_path, seen_as_bits(False), f=module(named("fill")), u=module(bits()))
    result = run(folder, ones(), np.zeros((16, 16), np.int32))
    assert {"uninitialised", "race"} <= set(kinds(result, "error"))
