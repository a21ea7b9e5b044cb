"""`pl.jit` and its kinds."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest

import pytest_pypto.pypto.language as pl
from pytest_pypto.pypto.jit import JITFunction, jit


@pl.jit
def kernel(a: pl.Tensor, o: pl.Out[pl.Tensor]):
    """Adds."""
    return o


def test_a_jit_function_looks_like_the_function() -> None:
    assert isinstance(kernel, JITFunction)
    assert (kernel.__name__, kernel.__doc__, kernel.__module__) == ("kernel", "Adds.", __name__)
    assert repr(kernel) == "JITFunction('kernel', func_type='orchestration')"
    assert pl.jit is jit
    assert pl.JITFunction is JITFunction


@pytest.mark.parametrize("kind", ["incore", "inline", "opaque", "host"])
def test_kinds(kind: str) -> None:
    def f(a: pl.Tensor) -> None: ...

    decorate = getattr(pl.jit, kind)
    assert decorate(f).func_type == kind
    assert decorate()(f).func_type == kind


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("incore", {"auto_scope": False}, "@pl.jit.incore does not accept a auto_scope= argument; it takes level="),
        ("inline", {"level": pl.Level.AIV}, "@pl.jit.inline does not accept a level= argument; it takes auto_scope="),
        ("opaque", {"level": pl.Level.AIV}, "@pl.jit.opaque does not accept a level= argument; it takes no options"),
        ("host", {"level": pl.Level.HOST}, "@pl.jit.host does not accept a level= argument"),
    ],
)
def test_unknown_options(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as error:
        getattr(pl.jit, kind)(**options)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"core_type": "gpu"}, ValueError, "takes core_type 'aiv', 'aic' or 'mixed', got 'gpu'"),
        ({"core_type": "aiv"}, ValueError, "needs source="),
        ({"core_type": "mixed", "aic_source": "a.cpp"}, ValueError, "needs aic_source= and aiv_source="),
        (
            {"core_type": "aiv", "source": "missing.cpp"},
            ValueError,
            "extern kernel not found: missing.cpp",
        ),
        ({"core_type": "aiv", "source": __file__, "dual_aiv_dispatch": True}, ValueError, "for core_type='mixed' only"),
        ({"core_type": "aiv", "source": __file__, "include_dirs": "inc"}, TypeError, "must be a list of paths"),
        ({"core_type": "aiv", "source": __file__, "include_dirs": ["no/such"]}, ValueError, "include directory"),
    ],
)
def test_extern_settings(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pl.jit.extern(**options)


def test_extern_kernels_are_refused_when_compiled(tmp_path: Path) -> None:
    source = tmp_path / "k.cpp"
    source.write_text("// kernel")

    @pl.jit.extern(core_type="aiv", source=str(source))
    def native(a: pl.Tensor) -> None: ...

    assert native.external_aiv_source == str(source)
    with pytest.raises(TypeError, match="'native' is a C\\+\\+ kernel"):
        native.compile()


def test_only_functions_are_decorated() -> None:
    with pytest.raises(TypeError, match=r"pl\.jit decorates a function written with def, got the int 3"):
        pl.jit(3)


@pytest.mark.parametrize("level", [pl.Level.CHIP, "AIV", 3])
def test_a_kernel_has_the_level_of_a_core(level: object) -> None:
    with pytest.raises(ValueError, match=r"level= of @pl\.jit\.incore is pl\.Level\.AIC, AIV or CORE_GROUP, got"):
        pl.jit.incore(level=level)(lambda a: a)


def test_auto_scope_is_a_bool() -> None:
    with pytest.raises(TypeError, match="auto_scope= of a jit function is True or False, got 'no'"):
        pl.jit(auto_scope="no")(lambda a: a)


def test_kinds_are_known() -> None:
    with pytest.raises(ValueError, match="func_type of a jit function is one of orch"):
        pl.JITFunction(lambda a: a, "kernel")


def test_unknown_kinds_list_the_known_ones() -> None:
    with pytest.raises(AttributeError, match=r"there is no pl\.jit\.graph; there are pl\.jit itself .*pl\.jit\.incore"):
        pl.jit.graph  # noqa: B018


def test_pickled_by_name() -> None:
    """Worker processes that are spawned get kernels this way."""
    assert pickle.loads(pickle.dumps(kernel)) is kernel
    assert copy.deepcopy([kernel])[0] is kernel
