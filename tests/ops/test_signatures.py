"""Public functions have the names, parameters and defaults that the API listing states."""

from __future__ import annotations

import importlib
import inspect
import json
from enum import Enum
from typing import Any

import pytest

from pytest_pypto.pypto.ir.op.signature import parse
from tests.kit import SPEC, needs_spec

_FILE = SPEC / "api_surface.json"
_API: dict[str, Any] = json.loads(_FILE.read_text()) if _FILE.is_file() else {}
_MODULES = {
    "pypto.language": "language.op.unified_ops",
    "pypto.language.tensor": "language.op.tensor_ops",
    "pypto.language.tile": "language.op.tile_ops",
    "pypto.language.system": "language.op.system_ops",
    "pypto.language.array": "language.op.array_ops",
    "pypto.language.prefetch": "language.op.prefetch_ops",
    "pypto.ir.op.tensor": "ir.op.tensor",
    "pypto.ir.op.tile": "ir.op.tile",
    "pypto.ir.op.system": "ir.op.system",
    "pypto.ir.op.array": "ir.op.array",
}
_OF_OTHERS = frozenset({"typing", "pypto.language.dsl_api", "pypto.language.scope", "pypto.language.optimizations"})
_OURS = {("pypto.ir.op.tile", "alloc")}
"""Listed with operands that the operator no longer has; ours takes space and size."""


def _functions() -> list[tuple[str, str]]:
    found = []
    for module in _MODULES:
        for name, entry in _API.get(module, {}).get("names", {}).items():
            home = entry.get("module", "")
            elsewhere = home in _OF_OTHERS or ".parser." in home or home.endswith(".dynamic")
            if entry["kind"] == "function" and not elsewhere and (module, name) not in _OURS:
                found.append((module, name))
    return found


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return repr(value) if isinstance(value, str) else str(value)


@needs_spec
def test_there_are_many() -> None:
    assert len(_functions()) > 650


@pytest.mark.parametrize(("module", "name"), _functions())
def test_signature(module: str, name: str) -> None:
    function = getattr(importlib.import_module(f"pytest_pypto.pypto.{_MODULES[module]}"), name)
    empty = inspect.Parameter.empty
    found = [
        (p.name, p.kind.name, None if p.default is empty else _text(p.default))
        for p in inspect.signature(function).parameters.values()
    ]
    listed = _API[module]["names"][name]["signature"]["params"]
    assert found == [(p["name"], p["kind"], p.get("default")) for p in listed]
    assert function.__name__ == name or name.startswith(("normalize_", "resolve_"))


_SIG = parse("f(a, b, c=1, *, d, e=None)")


@pytest.mark.parametrize(
    ("text", "args", "kwargs"),
    [
        ("f(a, b)", (1,), {}),
        ("f(a, b, c)", (1,), {}),
        ("f(a, b, c, d)", (), {}),
        ("f()", (1,), {}),
        ("f(a)", (1, 2), {}),
        ("f(a, b=1)", (1, 2, 3), {}),
        ("f(a, *, b)", (1,), {}),
        ("f(a, *, b, c)", (1,), {}),
        ("f(a)", (1,), {"z": 1}),
        ("f(a)", (1,), {"a": 1}),
    ],
)
def test_binding_errors_read_like_python(text: str, args: tuple[int, ...], kwargs: dict[str, int]) -> None:
    scope: dict[str, Any] = {}
    exec(f"def {text}: pass", scope)  # the words come from Python itself
    with pytest.raises(TypeError) as python:
        scope["f"](*args, **kwargs)
    with pytest.raises(TypeError) as ours:
        parse(text).bind(args, kwargs)
    assert str(ours.value) == str(python.value)


def test_binding_fills_defaults_in_order() -> None:
    assert _SIG.bind((1,), {"b": 2, "d": 3}) == {"a": 1, "b": 2, "c": 1, "d": 3, "e": None}
    assert str(_SIG.inspected()) == "(a, b, c=1, *, d, e=None)"
    assert str(parse("f(x, *args, y=2, **kwargs)").inspected()) == "(x, *args, y=2, **kwargs)"
