"""What a golden depends on, as a key: its code, everything its code refers to, and its inputs.

A function whose dependencies cannot all be seen has no fingerprint, and its result is not cached: a cache that may be
stale is worse than none.
"""

from __future__ import annotations

import enum
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from pytest_pypto.harness.store import digest


class Unknown(Exception):
    """Something whose content cannot be seen."""


def golden_key(function: Any, inputs: Mapping[str, Any]) -> str | None:
    """Key of a golden's result, None when it cannot be told."""
    try:
        parts = [sys.version, *_value(function, set())]
        for name, value in inputs.items():
            parts += [name, *_value(value, set())]
    except Unknown:
        return None
    return digest(parts)


def _value(value: Any, seen: set[int]) -> Iterator[str | bytes]:
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str):
        yield f"{kind.__name__}:{value!r}"
    elif kind is bytes:
        yield value
    elif kind in (tuple, list, set, frozenset):
        items = sorted(value, key=repr) if kind in (set, frozenset) else value
        yield f"{kind.__name__}:{len(items)}"
        for item in items:
            yield from _value(item, seen)
    elif isinstance(value, Mapping):
        yield f"mapping:{len(value)}"
        for key, item in value.items():
            yield from _value(key, seen)
            yield from _value(item, seen)
    elif isinstance(value, FunctionType):
        yield from _function(value, seen)
    else:
        yield from _special(value)


def _special(value: Any) -> Iterator[str | bytes]:
    if isinstance(value, ModuleType):
        yield _module(value)
    elif isinstance(value, (BuiltinFunctionType, type)):
        yield _named(value)
    elif isinstance(value, enum.Enum):
        yield f"{type(value).__qualname__}.{value.name}"
    elif type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "Tensor"):
        yield from _torch(value)
    else:
        raise Unknown(repr(type(value)))


def _torch(value: Any) -> Iterator[str | bytes]:
    yield str(getattr(value, "dtype", value))
    if hasattr(value, "shape"):
        import torch

        yield str(tuple(value.shape))
        flat = value.detach().contiguous().flatten()
        yield flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _function(function: FunctionType, seen: set[int]) -> Iterator[str | bytes]:
    if _library(function.__code__.co_filename):
        yield _named(function)
        return
    if id(function) in seen:
        yield "again"
        return
    seen.add(id(function))
    yield from _code(function.__code__, seen)
    for part in (function.__defaults__, function.__kwdefaults__):
        yield from _value(part, seen)
    for cell in function.__closure__ or ():
        yield from _value(cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        if name in function.__globals__:
            yield name
            yield from _value(function.__globals__[name], seen)


def _code(code: CodeType, seen: set[int]) -> Iterator[str | bytes]:
    yield code.co_code
    yield " ".join((*code.co_names, *code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, seen)
        elif constant is Ellipsis:
            yield "..."
        else:
            yield from _value(constant, seen)


def _names(code: CodeType) -> set[str]:
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _module(module: ModuleType) -> str:
    """A library module by name and version; a module of the user's own can change unseen."""
    file = getattr(module, "__file__", None)
    if file is not None and not _library(file):
        raise Unknown(module.__name__)
    return f"{module.__name__} {getattr(module, '__version__', '')}"


def _named(value: Any) -> str:
    home = sys.modules.get(getattr(value, "__module__", "") or "")
    if home is not None:
        _module(home)
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _library(file: str) -> bool:
    """Whether a file belongs to the standard library or to an installed distribution."""
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return file.startswith("<frozen") or any(root and file.startswith(root) for root in roots)
