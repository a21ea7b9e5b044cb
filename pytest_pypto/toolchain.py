"""Which `pypto` is in force: an installed PyPTO, or the embedded one under the same import name.

`activate("auto")` prefers an installed PyPTO (a package `pypto` whose `pypto.language` has `program`). Without one, a
finder on `sys.meta_path` makes `pypto.X` and `pytest_pypto.pypto.X` the same module object, whichever is imported
first. An unrelated distribution of the same name is recognised by its files; it is never imported.

This module imports the standard library only.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Literal

Kind = Literal["installed", "embedded"]
MODES = ("auto", "installed", "embedded")
ALIAS = "pypto"
REAL = "pytest_pypto.pypto"
EMBEDDED_DIR = Path(__file__).resolve().parent / "pypto"

FOREIGN = (
    "the package `pypto` at {where} is another project of the same name (it has no `pypto.language` with `program`); "
    "uninstall it, or choose the embedded PyPTO with --pypto-toolchain=embedded"
)
MISSING = (
    "no PyPTO is installed (no package `pypto` on the import path); "
    "install one, or choose the embedded PyPTO with --pypto-toolchain=embedded"
)
UNKNOWN_MODE = "unknown toolchain {mode!r}: choose one of {known}"


class ToolchainError(Exception):
    """The PyPTO that was asked for is not there; the message says what is, and the next step."""


@dataclass(frozen=True)
class Toolchain:
    """The PyPTO in force.

    Attributes:
        kind: `installed` or `embedded`.
        location: directory of the package.
        foreign: directory of an unrelated package named `pypto` that is being shadowed, or "".
    """

    kind: Kind
    location: str
    foreign: str = ""

    @property
    def version(self) -> str:
        """Version of the distribution that provides it, or "unknown"."""
        return distribution_version("pytest-pypto" if self.kind == "embedded" else ALIAS)

    def describe(self) -> str:
        """One line for headers: kind, version, and what it shadows."""
        text = f"{self.kind} PyPTO {self.version}"
        return f"{text} (shadows an unrelated package `pypto` at {self.foreign})" if self.foreign else text


def distribution_version(name: str) -> str:
    """Version of an installed distribution, or "unknown"."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


# ---------------------------------------------------------------------------------------------------------------
# Finding


@dataclass(frozen=True)
class Found:
    """A package named `pypto` on the import path; `genuine` when its `pypto.language` has `program`."""

    where: str
    genuine: bool


def find_installed() -> Found | None:
    """Look for a package named `pypto` without importing anything. The embedded copy does not count."""
    loaded = sys.modules.get(ALIAS)
    if loaded is not None and not is_embedded(loaded):
        return _judge(getattr(loaded, "__path__", None), getattr(loaded, "__file__", None))
    spec = _foreign_spec(ALIAS, None)
    if spec is None:
        return None
    return _judge(spec.submodule_search_locations, spec.origin)


def is_embedded(module: ModuleType) -> bool:
    """Whether a module is part of the embedded PyPTO, under either name."""
    return module.__name__ == REAL or module.__name__.startswith(REAL + ".")


def _judge(search: Sequence[str] | None, origin: str | None) -> Found | None:
    paths = list(search or ())
    where = paths[0] if paths else str(origin)
    if paths and Path(where).resolve() == EMBEDDED_DIR:
        return None  # our own package directory stands on the path itself
    return Found(where, bool(paths) and _has_program(_language_spec(paths)))


def _language_spec(paths: Sequence[str]) -> ModuleSpec | None:
    try:
        return _foreign_spec(f"{ALIAS}.language", paths)
    except KeyError:  # a bare directory: the import system wants its parent imported first
        return None


def _has_program(spec: ModuleSpec | None) -> bool:
    """Whether `pypto.language` speaks of `program`, judged by its source; without a source it is believed."""
    if spec is None or (spec.loader is None and not spec.has_location):
        return False  # a bare directory
    file = Path(spec.origin or "")
    if file.suffix != ".py" or not file.is_file():
        return True
    return re.search(r"\bprogram\b|import \*", file.read_text(encoding="utf-8", errors="replace")) is not None


def _foreign_spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec that the import system would find if our finder were not there."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or isinstance(finder, EmbeddedFinder):
            continue
        spec: ModuleSpec | None = find(name, path)
        if spec is not None:
            return spec
    return None


def resolve(mode: str = "auto") -> Toolchain:
    """Decide which PyPTO to use, without importing or installing anything.

    Args:
        mode: `auto` (installed if there is one, else embedded), `installed` or `embedded`.

    Raises:
        ToolchainError: unknown mode, or `installed` without an installed PyPTO.
    """
    if mode not in MODES:
        raise ToolchainError(UNKNOWN_MODE.format(mode=mode, known=", ".join(MODES)))
    found = find_installed()
    if found is not None and found.genuine and mode != "embedded":
        return Toolchain("installed", found.where)
    if mode == "installed":
        raise ToolchainError(FOREIGN.format(where=found.where) if found else MISSING)
    return Toolchain("embedded", str(EMBEDDED_DIR), foreign=found.where if found else "")


# ---------------------------------------------------------------------------------------------------------------
# Import names


class _RealLoader(SourceFileLoader):
    """Loads a module of the embedded PyPTO and enters it under its `pypto` name before its body runs."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[alias_of(module.__name__)] = module
        try:
            super().exec_module(module)
        except BaseException:  # passed on; a module that was not loaded to its end must not be found
            sys.modules.pop(alias_of(module.__name__), None)
            raise


class _AliasLoader(Loader):
    """Hands out the real module for a `pypto` name; the module keeps its own `__spec__`."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.real)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class EmbeddedFinder(MetaPathFinder):
    """Makes `pypto.X` and `pytest_pypto.pypto.X` one module object.

    Both names are caught: a module imported under its real name is entered under the other at once, so that a later
    `import pypto.X` finds it and never rebinds an attribute of its parent (`pypto.debug.torch_codegen` is a function
    and a submodule).
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == ALIAS or fullname.startswith(ALIAS + "."):
            return self._alias_spec(fullname)
        if fullname == REAL or fullname.startswith(REAL + "."):
            return self._real_spec(fullname, path)
        return None

    def _alias_spec(self, fullname: str) -> ModuleSpec | None:
        real = real_of(fullname)
        found = importlib.util.find_spec(real)  # imports parents, as any import of a submodule does
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return ModuleSpec(fullname, _AliasLoader(real), origin=found.origin, is_package=is_package)

    def _real_spec(self, fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
        spec = _path_spec(fullname, path)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _RealLoader(spec.loader.name, spec.loader.path)
        return spec


def _path_spec(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(fullname, path)


def real_of(name: str) -> str:
    """`pypto.ir` -> `pytest_pypto.pypto.ir`."""
    return REAL + name[len(ALIAS) :]


def alias_of(name: str) -> str:
    """`pytest_pypto.pypto.ir` -> `pypto.ir`."""
    return ALIAS + name[len(REAL) :]


# ---------------------------------------------------------------------------------------------------------------
# Switching on and off


_FINDER = EmbeddedFinder()
_users = 0
_current: Toolchain | None = None
_displaced: dict[str, ModuleType] = {}


def current() -> Toolchain | None:
    """The toolchain that `activate` put in force, or None."""
    return _current


def activate(mode: str = "auto") -> Toolchain:
    """Put a PyPTO in force for this process and return which.

    Calls are counted: each needs its own `deactivate`, and a nested session keeps the toolchain of the outer one.

    Raises:
        ToolchainError: see `resolve`; or a nested call asks for another kind than the one in force.
    """
    global _users, _current
    if _current is not None and mode in ("auto", _current.kind):
        chosen = _current
    elif _current is not None:
        raise ToolchainError(f"the {_current.kind} PyPTO is in force in this process already; cannot switch to {mode}")
    else:
        chosen = resolve(mode)
    if chosen.kind == "embedded":
        _install()
    _users, _current = _users + 1, chosen
    return chosen


def deactivate() -> None:
    """Undo one `activate`; the last one removes the finder and the `pypto` names."""
    global _users, _current
    if _users == 0:
        return
    _users -= 1
    if _users == 0:
        _uninstall()
        _current = None


def _install() -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    for name, module in list(sys.modules.items()):
        if (name == ALIAS or name.startswith(ALIAS + ".")) and not is_embedded(module):
            _displaced[name] = sys.modules.pop(name)
    for name, module in list(sys.modules.items()):
        if name == REAL or name.startswith(REAL + "."):
            sys.modules[alias_of(name)] = module


def _uninstall() -> None:
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for name, module in list(sys.modules.items()):
        if (name == ALIAS or name.startswith(ALIAS + ".")) and is_embedded(module):
            del sys.modules[name]
    sys.modules.update(_displaced)
    _displaced.clear()
