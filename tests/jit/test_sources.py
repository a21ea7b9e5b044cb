"""Where jit functions come from: closures, classes, decorators, modules, and sources that cannot be read."""

from __future__ import annotations

import functools
import importlib.util
import linecache
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_pypto.pypto.language as dialect
import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.ir.printer import python_print
from pytest_pypto.pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))


def x() -> Any:
    return torch.arange(512.0).reshape(16, 32)


def factor(kernel: Any) -> float:
    """What a kernel multiplies its argument by, as run."""
    a, o = x(), torch.full((16, 32), -7.0)
    kernel(a, o)
    by = float(o[1, 1] / a[1, 1])
    assert torch.allclose(o, a * by)
    return by


def test_a_rebound_variable_of_the_enclosing_function_counts() -> None:
    by = 2.0

    @pl.jit
    def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.mul(a, by)
        return o

    assert factor(kernel) == 2.0
    by = 3.0
    assert factor(kernel) == 3.0


def test_values_that_change_inside_objects_count() -> None:
    settings, numbers = SimpleNamespace(by=2.0), [4.0]

    @pl.jit
    def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.mul(pl.mul(a, settings.by), numbers[0])
        return o

    assert factor(kernel) == 8.0
    settings.by, numbers[0] = 3.0, 5.0
    assert factor(kernel) == 15.0


def test_helpers_may_be_defined_later_and_replaced() -> None:
    @pl.jit
    def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = helper(a)
        return o

    def make(by: float) -> Any:
        @pl.jit.inline
        def scaled(a: pl.Tensor):
            r = pl.mul(a, by)
            return r

        return scaled

    helper = make(2.0)
    assert factor(kernel) == 2.0
    helper = make(3.0)
    assert factor(kernel) == 3.0


def test_functions_made_in_a_loop() -> None:
    def make(by: float) -> Any:
        @pl.jit
        def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.mul(a, by)
            return o

        return kernel

    kernels = [make(by) for by in (2.0, 3.0)]
    assert [factor(k) for k in kernels] == [2.0, 3.0]


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    by = -1.0  # not the kernel's `by`

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, by, **kwargs)

    return wrapper


def test_wrapping_decorators_are_looked_through() -> None:
    by = 2.0

    @pl.jit
    @wrapped
    def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.mul(a, by)
        return o

    assert factor(kernel) == 2.0


class Kernels:
    by = 2.0

    @staticmethod
    @pl.jit
    def outside(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.mul(a, Kernels.by)
        return o

    @pl.jit
    @staticmethod
    def inside(a: pl.Tensor, o: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.mul(a, Kernels.by)
        return o

    @pl.jit
    def method(self, a: pl.Tensor, o: pl.Out[pl.Tensor]):
        return o

    @staticmethod
    @pl.jit.inline
    def helper(a: pl.Tensor):
        r = pl.mul(a, 5.0)
        return r


@pl.jit
def qualified(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = Kernels.helper(a)
    return o


def test_functions_of_classes() -> None:
    assert factor(Kernels.outside) == factor(Kernels.inside) == 2.0
    assert factor(qualified) == 5.0
    with pytest.raises(ParserSyntaxError, match="jit function 'method' is a method") as caught:
        Kernels().method(x(), x())
    assert caught.value.span is not None
    assert "def method(self" in Path(__file__).read_text().splitlines()[caught.value.span["line"] - 1]


@dialect.jit
def other_name(a: "dialect.Tensor", größe: "dialect.Out[dialect.Tensor]", /, *, by: "dialect.Scalar[dialect.FP32]" = 2):  # noqa: UP037
    """Zeichen außerhalb von ASCII: 漢字.

    Three lines of text.
    """
    # 漢字
    with dialect.at(level=dialect.Level.CORE_GROUP):
        größe[:] = dialect.mul(a, by)
    return größe


def test_other_names_of_the_language_other_alphabets_and_annotations_as_text() -> None:
    assert factor(other_name) == 2.0
    assert "größe" in python_print(other_name.specialize(x(), x(), by=3.0), format=False)


def test_a_module_of_functions(tmp_path: Path) -> None:
    """Two modules with the same text and other constants, and `pl` is something else in one of them."""
    text = "import pytest_pypto.pypto.language as {alias}\nBY = {by}\n{rest}\n\n@{alias}.jit\n" + (
        "def kernel(a: {alias}.Tensor, o: {alias}.Out[{alias}.Tensor]):\n"
        "    with {alias}.at(level={alias}.Level.CORE_GROUP):\n"
        "        o[:] = {alias}.mul(a, BY)\n"
        "    return o\n"
    )
    found = []
    for name, alias, by, rest in (("one", "pl", 2.0, ""), ("two", "lang", 3.0, "pl = None")):
        path = tmp_path / f"{name}.py"
        path.write_text(text.format(alias=alias, by=by, rest=rest))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(factor(module.kernel))
    assert found == [2.0, 3.0]


@pl.jit
def many(*tensors: pl.Tensor):
    return tensors


@pl.jit
def options(a: pl.Tensor, **rest: pl.Tensor):
    return a


@pl.jit
def python_types(a: pl.Tensor, n: int):
    return a


@pl.jit
def broken_text(a: "pl.Tensor[", o: pl.Out[pl.Tensor]):  # noqa: F722
    return o


@pl.jit
def misspelt_text(a: "pl.Out[pl.Tensr]", o: pl.Out[pl.Tensor]):  # noqa: UP037
    return o


@pytest.mark.parametrize(
    ("kernel", "error", "message", "text"),
    [
        (broken_text, ParserSyntaxError, r"the annotation 'pl\.Tensor\[' is no expression", '"pl.Tensor["'),
        (misspelt_text, ParserTypeError, r"Unsupported type annotation: pl\.Tensr", '"pl.Out[pl.Tensr]"'),
        (many, ParserSyntaxError, r"cannot take \*tensors", "*tensors"),
        (options, ParserSyntaxError, r"cannot take \*\*rest", "**rest"),
        (python_types, ParserTypeError, "Unsupported type annotation: int", "n: int"),
    ],
)
def test_parameters_that_are_no_tensors_or_scalars(
    kernel: Any, error: type[Exception], message: str, text: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        kernel(x(), 3)
    span = caught.value.span
    assert span is not None
    line = Path(__file__).read_text().splitlines()[span["line"] - 1]
    assert text in line
    assert line[span["column"] - 1 :].startswith(text.lstrip("*n: "))


async def coroutine(a: Any) -> Any:
    return a


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (len, "got the builtin_function_or_method"),
        (Kernels, "got the type"),
        (functools.partial(factor, 1), "got the partial"),
        (coroutine, "'coroutine' is an async def"),
        (qualified, r"'qualified' is a jit function \(orchestration\) already"),
    ],
)
def test_only_plain_functions_are_decorated(value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        pl.jit(value)


def test_lambdas_have_no_def() -> None:
    with pytest.raises(OSError, match="is no def statement"):
        pl.jit(lambda a, o: o)(x(), x())


def test_a_file_that_changed_after_the_import_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    text = "def first(a, o):\n    return o\n\n\ndef second(a, o):\n    return a\n"
    path.write_text(text)
    scope: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), scope)
    path.write_text("\n\n\n\n" + text)
    linecache.checkcache(str(path))
    with pytest.raises(OSError, match="'second' has changed since it was imported: where it was there is 'first' now"):
        pl.jit(scope["second"]).specialize(x(), x())
