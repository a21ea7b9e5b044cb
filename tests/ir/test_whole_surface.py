"""The API listing from end to end: every module, name, member, method and attribute, with signatures that fit."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from tests.kit import SPEC, needs_spec

_FILE = SPEC / "api_surface.json"
API: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.is_file() else {}
Key = tuple[str, ...]
REASONS: dict[str, set[Key]] = {
    "names of Python's typing module that the listing caught": {
        ("pypto", "cast"),
        ("pypto.ir.op.system", "overload"),
        ("pypto.ir.op.system", "runtime_checkable"),
    },
    "modules that only the reference's own modules use": {
        ("pypto.ir", "comm_layout"),
        ("pypto.ir", "tensor_view_semantics"),
        ("pypto.backend", "pto_backend"),
        ("pypto.language.distributed", "op"),
        ("pypto.language.distributed", "typing"),
        ("pypto.pypto_core.passes", "l0_tile_chooser"),
        ("pypto.pypto_core.passes", "stmt_dependency_analysis"),
        ("pypto.pypto_core.passes", "verify_tensor_view_canonical"),
    },
    "arguments of the device runtime of the vendor, which no machine of ours has": {
        ("pypto.ir", "CompiledProgram", "build_orch_args"),
        ("pypto.ir", "CompiledProgram", "build_call_config"),
    },
    "the class makes values of ir.MemRef, and these have it": {("pypto.language", "MemRef", "__getitem__")},
}
"""Names that are not there, by reason."""
OTHER_SIGNATURES: dict[str, set[Key]] = {
    "abstract: nobody makes one without its fields": {
        ("pypto.ir", "BinaryExpr"),
        ("pypto.ir", "UnaryExpr"),
        ("pypto.pypto_core.passes", "Diagnostic"),
    },
    "Python calls it, by place": {
        ("pypto.language", "manual_scope", "__exit__"),
        ("pypto.language", "scope", "__exit__"),
    },
    "keywords with an underscore are the reference's own": {("pypto.ir", "CompiledProgram")},
    "options are keywords: only the program is given by place": {("pypto.ir", "compile")},
    "the operator takes a memory space and a size": {("pypto.ir.op.tile", "alloc")},
}
"""Signatures that differ, by reason."""


def found(key: Key) -> Any:
    """What a listed name means here, or None."""
    parts = [*key[0].split("."), *key[1:]]
    value: Any = importlib.import_module("pypto")
    for n, part in enumerate(parts[1:], 2):
        inner = getattr(value, part, None)
        if inner is None and isinstance(value, ModuleType):
            with contextlib.suppress(ModuleNotFoundError):
                inner = importlib.import_module(".".join(parts[:n]))
        value = inner
    return value


def listed() -> Iterator[tuple[Key, str, Any]]:
    """Key, kind and record of every name, method and attribute of the listing."""
    for module, content in API.items():
        if not isinstance(content, dict) or "names" not in content:
            continue
        for name, record in content["names"].items():
            yield (module, name), record["kind"], record
            for method, signature in (record.get("methods") or {}).items():
                yield (module, name, method), "method", {"signature": signature}


def explained(key: Key) -> bool:
    return any(key[:n] in keys for keys in REASONS.values() for n in (2, 3))


@needs_spec
def test_every_name_and_method_is_there() -> None:
    assert [k for k, _, _ in listed() if not explained(k) and found(k) is None and not _is_none(k)] == []


def _is_none(key: Key) -> bool:
    home = found(key[:-1]) if len(key) > 1 else None
    return home is not None and hasattr(home, key[-1])


@needs_spec
def test_every_exception_is_needed() -> None:
    known = {k for k, _, _ in listed()}
    for keys in REASONS.values():
        for key in keys:
            assert key in known, key
            ours = key[0] == "pypto.pypto_core.passes" and f"pytest_pypto.pypto.passes.{key[1]}" in sys.modules
            assert found(key) is None or ours, key  # a module of ours by that name, when something imported it


@needs_spec
def test_kinds() -> None:
    wrong = []
    for key, kind, _ in listed():
        value = found(key)
        if value is None:
            continue
        fits = {
            "module": isinstance(value, ModuleType) or not callable(value) or inspect.isclass(value),
            "class": inspect.isclass(value),
            "enum": inspect.isclass(value) and issubclass(value, Enum),
            "function": callable(value),
            "method": callable(value) or isinstance(value, property),
            "callable object": callable(value),
        }
        if not fits.get(kind, True):
            wrong.append((key, kind, type(value).__name__))
    assert wrong == []


def _refused(value: Any, params: list[dict[str, Any]]) -> str:
    """Why a call with all listed parameters, or with the required ones, would not bind; empty when both do."""
    named = [
        p for p in params if p["kind"] not in ("VAR_POSITIONAL", "VAR_KEYWORD") and p["name"] not in ("self", "cls")
    ]
    shown = inspect.signature(value)
    for wanted in (named, [p for p in named if "default" not in p]):
        places = [p["name"] for p in wanted if p["kind"] != "KEYWORD_ONLY"]
        keywords = {p["name"]: 0 for p in wanted if p["kind"] == "KEYWORD_ONLY"}
        by_name = {p["name"]: 0 for p in wanted if p["kind"] != "POSITIONAL_ONLY"}
        only = [p["name"] for p in wanted if p["kind"] == "POSITIONAL_ONLY"]
        for args, kwargs in ((places, keywords), (only, by_name)):
            try:
                shown.bind(*args, **kwargs)
            except TypeError as exc:
                return f"{exc}"
    return ""


@needs_spec
@pytest.mark.parametrize("module", [m for m, c in API.items() if isinstance(c, dict) and "names" in c] or ["-"])
def test_signatures(module: str) -> None:
    wrong = {}
    for key, _, record in listed():
        signature = record.get("signature") or (record.get("init") if record.get("kind") == "class" else None)
        value = found(key)
        if key[0] != module or not isinstance(signature, dict) or value is None or not callable(value):
            continue
        params = signature["params"]
        try:
            own = inspect.signature(value)
        except ValueError:  # classes of the interpreter have none
            continue
        if len(key) == 3 and next(iter(own.parameters), "") == "self":
            params = [p for p in params if p["name"] != "self"]
            value = _without_self(own)
        reason = _refused(value, params)
        if reason:
            wrong[key] = reason
    expected = {k for keys in OTHER_SIGNATURES.values() for k in keys if k[0] == module}
    assert {k: v for k, v in wrong.items() if k not in expected} == {}
    assert expected <= set(wrong)


def _without_self(own: inspect.Signature) -> Any:
    def stand_in(*args: Any, **kwargs: Any) -> None: ...

    stand_in.__signature__ = own.replace(parameters=list(own.parameters.values())[1:])  # type: ignore[attr-defined]
    return stand_in
