"""Constructors, methods and functions take the arguments that the API listing states, by place and by keyword."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit import SPEC, needs_spec

_FILE = SPEC / "api_surface.json"
_API: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8")) if _FILE.is_file() else {}
_MODULES = ("pypto", "pypto.ir", "pypto.pypto_core.passes")
_OTHER_KEYWORDS = {"MemRef()", "structural_hash"}
"""One of ours stands for several listed signatures; its keywords are those of the first."""


def _listed() -> Iterator[tuple[str, str, str]]:
    """Module, dotted name and text of each signature that is listed as text."""
    for module in _MODULES:
        for name, entry in _API.get(module, {}).get("names", {}).items():
            groups = {name: entry.get("signature"), f"{name}()": entry.get("init")}
            groups |= {f"{name}.{m}": s for m, s in (entry.get("methods") or {}).items() if not m.startswith("__")}
            for label, signatures in groups.items():
                for text in signatures if isinstance(signatures, list) else ():
                    yield module, label, text


def _parameters(text: str) -> tuple[list[str], int, bool]:
    """Names of the parameters, how many of them are required, and whether they have keywords."""
    text = re.sub(r"\\\d+|<[^>]*>", "None", text)
    try:
        args = ast.parse(text + ": ...").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:  # a default before a parameter without one: such listings are called by keyword
        names = re.findall(r"(\w+)(?=: )", text.partition("(")[2].rpartition(")")[0])
        return ["self", *names], -1, True
    names = [a.arg for a in (*args.posonlyargs, *args.args)]
    return names, len(names) - len(args.defaults), not args.posonlyargs


def _refusals(function: Any, text: str, keywords: bool) -> list[str]:
    names, required, has_keywords = _parameters(text)
    static = names[:1] != ["self"] or inspect.isclass(function)
    names, required = (
        (names[1:], max(required - 1, min(required, 0))) if names[:1] == ["self"] and static else (names, required)
    )
    shown = inspect.signature(function)
    ways: list[tuple[list[str], dict[str, int]]] = [(names, {})] if required >= 0 else []
    if required > 0:
        ways.append((names[:required], {}))
    if has_keywords and keywords:
        first = 1 if names[:1] == ["self"] else 0
        ways.append((names[:first], dict.fromkeys(names[first:], 0)))
    found = []
    for places, by_name in ways:
        try:
            shown.bind(*places, **by_name)
        except TypeError as exc:
            found.append(f"{places} {sorted(by_name)}: {exc}")
    return found


@needs_spec
def test_there_are_many() -> None:
    assert len(list(_listed())) > 450


@needs_spec
@pytest.mark.parametrize("module", _MODULES)
def test_listed_arguments_are_accepted(module: str) -> None:
    wrong = {}
    for home, label, text in _listed():
        if home != module:
            continue
        value: Any = importlib.import_module(module)
        for part in label.removesuffix("()").split("."):
            value = getattr(value, part, None)
        if value is not None and callable(value):
            wrong[label, text] = _refusals(value, text, label not in _OTHER_KEYWORDS)
    assert {k: v for k, v in wrong.items() if v} == {}
