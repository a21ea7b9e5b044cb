"""Arguments of jit functions: modes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.runtime import ChipWorker, RunConfig

torch = pytest.importorskip("torch")

D = pl.dynamic("D")


@pl.jit
def bare(a: pl.Tensor, o: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32] = 1.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.mul(a, s)
    return o


@pl.jit
def complete(a: pl.Tensor[[8, 8], pl.FP32], o: pl.Out[pl.Tensor[[8, 8], pl.FP32]], k: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = pl.assemble(o, pl.slice(a, [4, 8], [k, 0]), [0, 0])
    return o


@pl.jit
def untyped(a: pl.Tensor, n):  # type: ignore[no-untyped-def]
    return a


@pl.jit
def arrays(a: pl.Array[4, pl.INT32], o: pl.Out[pl.Tensor]):
    return o


@pl.jit
def lengths(a: pl.Tensor[[D, 8], pl.FP32], o: pl.Out[pl.Tensor[[D, 8], pl.FP32]]):
    return o


X = torch.zeros(8, 8)


@pytest.mark.parametrize(
    ("kernel", "args", "kwargs", "message"),
    [
        (bare, (X,), {}, "@pl.jit function 'bare': missing a required argument: 'o'"),
        (bare, (X, X, 1.0, 2), {}, "@pl.jit function 'bare': too many positional arguments"),
        (
            bare,
            (X, X),
            {"skip_ptoas": True},
            "@pl.jit function 'bare': got an unexpected keyword argument 'skip",
        ),
        (bare, (), {"skip_ptoas": True}, "@pl.jit function 'bare': got an unexpected keyword argument 'skip"),
        (complete, (), {"zz": 1}, "@pl.jit function 'complete': got an unexpected keyword argument 'zz'"),
        (bare, (), {}, "@pl.jit function 'bare': parameter 'a' has a bare 'pl.Tensor' annotation with no shape"),
        (complete, (), {}, "@pl.jit function 'complete': parameter 'k': scalar parameter 'k' has no value"),
        (complete, (), {"k": "3"}, "@pl.jit function 'complete': parameter 'k' must be an int/float/bool, got '3'"),
        (
            complete,
            (),
            {"k": 1.5},
            "@pl.jit function 'complete': parameter 'k' is declared INT32, but got",
        ),
        (bare, (X, X, pl.RUNTIME), {}, "@pl.jit function 'bare': parameter 's' received pl.RUNTIME"),
        (bare, (X, 3), {}, "@pl.jit function 'bare': parameter 'o' must be a torch tensor, got 3"),
        (bare, (X, X, X), {}, "@pl.jit function 'bare': parameter 's' is a scalar, but got a tensor of shape [8, 8]"),
        (bare, (X, X, "s"), {}, "@pl.jit function 'bare': parameter 's' must be an int/float/bool, got 's'"),
        (
            bare,
            (X.to(torch.complex64), X),
            {},
            "Unsupported torch dtype torch.complex64. Supported: torch.b",
        ),
        (bare, (X.double(), X), {}, "Unsupported torch dtype torch.float64"),
        (bare, (X.numpy(), X), {}, "@pl.jit function 'bare': parameter 'a' must be a torch tensor, got the numpy.ndar"),
        (bare, (X, X, X.sum().numpy()[()]), {}, "@pl.jit function 'bare': parameter 's' must be an int/float/bool, go"),
        (bare, (X, X, 1j), {}, "@pl.jit function 'bare': parameter 's' must be an int/float/bool, got the complex 1j"),
        (bare, (X, X, None), {}, "@pl.jit function 'bare': parameter 's' must be an int/float/bool, got None"),
        (bare, (X, X, 10**400), {}, "@pl.jit function 'bare': parameter 's' is a float; the int that was given is too"),
        (
            complete,
            (X, X, 2**40),
            {},
            "@pl.jit function 'complete': parameter 'k' is declared INT32 (-2147483648 .. ",
        ),
        (complete, (X, X, -(2**31) - 1), {}, "@pl.jit function 'complete': parameter 'k' is declared INT32 (-2147"),
        (
            complete,
            (),
            {"k": 1, "a": 3.0},
            "@pl.jit function 'complete': parameter 'a' must be a torch tensor, got 3.0",
        ),
        (complete, (), {"k": 1, "a": pl.RUNTIME}, "@pl.jit function 'complete': parameter 'a' must be a torch tensor,"),
        (arrays, (X, X), {}, "@pl.jit function 'arrays': parameter 'a' is a pl.Array[4, pl.INT32]; only tensors and"),
        (untyped, (), {"n": 3}, "@pl.jit function 'untyped': parameter 'a' has a bare"),
    ],
)
def test_refused(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as error:
        kernel.specialize(*args, **kwargs)
    assert str(error.value).startswith(message)


def test_a_parameter_without_annotation_is_refused_at_its_place() -> None:
    from pytest_pypto.pypto.language.parser.diagnostics import ParserTypeError

    with pytest.raises(ParserTypeError, match="Parameter 'n' missing type annotation") as error:
        untyped.specialize(X, 3)
    assert error.value.span is not None
    assert error.value.span["filename"] == __file__


def test_an_axis_that_is_not_there() -> None:
    @pl.jit
    def wrong(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        a.bind_dynamic(2, pl_dynamic)
        return o

    pl_dynamic = pl.dynamic("D")
    with pytest.raises(TypeError, match="axis 2 is declared dynamic, but the tensor has rank 2"):
        wrong.specialize(X, X)


def test_one_extent_has_one_value() -> None:
    message = "the extent D is 8 on axis 0 of 'a' and 16 on axis 0 of 'o'; pass tensors that agree"
    with pytest.raises(ValueError, match=message):
        lengths.specialize(X, torch.zeros(16, 8))
    lengths.specialize(torch.zeros(16, 8), torch.zeros(16, 8))


@pytest.mark.parametrize("method", ["compile", "lower", "__call__"])
@pytest.mark.parametrize("config", [{"platform": "a5sim"}, "a5sim", 5, X])
def test_a_config_is_a_run_config(method: str, config: Any) -> None:
    with pytest.raises(TypeError, match=r"@pl\.jit function 'bare': config= takes a RunConfig, got"):
        getattr(bare, method)(X, X, config=config)


def test_values_the_message_helps_with() -> None:
    with pytest.raises(TypeError, match=r"got the numpy\.int64 .*; pass int\(\.\.\.\) or float\(\.\.\.\) of it"):
        bare.specialize(X, X, X.sum().long().numpy()[()])
    with pytest.raises(TypeError, match=r"scalar, but got a tensor of shape \[\]; pass t\.item\(\)"):
        bare.specialize(X, X, X.sum())
    with pytest.raises(TypeError, match=r"torch\.float8_e8m0fnu.* \(parameter 'o' of 'bare'\)"):
        bare.specialize(X, X.double())


def test_tensors_of_a_worker_are_for_the_artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    with ChipWorker(RunConfig()) as worker:
        a, o = worker.alloc_tensor((8, 8), torch.float32, init=torch.ones(8, 8)), torch.zeros(8, 8)
        message = (
            "@pl.jit: missing inferred tensor metadata for parameter 'a': .* compile with sample host tensors first"
        )
        with pytest.raises(ValueError, match=message):
            bare(a, o)
        bare.compile(o, o)(a, o, 1.0)
        assert torch.equal(o, torch.ones(8, 8))
    bare.cache_clear()


def test_samples_need_no_memory() -> None:
    assert "pl.Tensor[[8, 8], pl.FP32]" in str(bare.specialize(X.to("meta"), X.to("meta")))


def test_calling_needs_tensors_even_with_complete_annotations() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        complete(k=3)


def test_numbers_take_the_declared_type() -> None:
    assert "pl.tensor.muls(a, 2.0)" in str(bare.specialize(X, X, 2))
    assert "[3, 0]" in str(complete.specialize(k=3))
    assert "pl.tensor.muls(a, 1.0)" in str(bare.specialize(X, X))


def test_binding_does_not_import_torch() -> None:
    import subprocess
    import sys

    code = "import sys, pytest_pypto.pypto.language as pl; pl.jit; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
