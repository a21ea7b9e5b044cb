"""Python names for IR names."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

from ..ir.expr import Var
from .catalog import helper_names

_OTHER = re.compile(r"[^A-Za-z0-9_]")
_RUNS = re.compile(r"__+")
SSA_SUFFIX = re.compile(r"__(?:ssa|iter|rv|phi|tmp|idx)_v\d+(?:_\d+)?$")
"""The version mark that SSA construction puts behind a name."""

RESERVED = frozenset(dir(builtins)) | {"torch", "threading", "self"}


def sanitize(hint: str) -> str:
    """`hint` as an identifier: other characters become `_`, runs of `_` one, the ends lose theirs."""
    base = _RUNS.sub("_", _OTHER.sub("_", hint)).strip("_") or "v"
    if base[0].isdigit():
        base = f"v_{base}"
    return f"{base}_v" if keyword.iskeyword(base) else base


def base_name(name: str) -> str:
    """The author's name behind an SSA name: `acc` for `acc__ssa_v3`."""
    while True:
        shorter = SSA_SUFFIX.sub("", name)
        if shorter == name or not shorter:
            return name
        name = shorter


class NameTable:
    """Unique names of one function. Builtins, helpers and the names in `taken` are never given out."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = RESERVED | helper_names() | frozenset(taken)
        self._used: set[str] = set()
        self._count: dict[str, int] = {}
        self._of: dict[tuple[str, int], str] = {}

    def unique(self, hint: str) -> str:
        """A fresh name: the sanitized hint itself, the n-th time with `_<n-1>` behind it."""
        base = sanitize(hint)
        if base in self._taken:
            base = f"{base}_v"
        count = self._count.get(base, 0)
        name = base if count == 0 else f"{base}_{count}"
        while name in self._used or name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._count[base] = count + 1
        self._used.add(name)
        return name

    def known(self, var: Var) -> str | None:
        """The name of `var` if it has one."""
        return self._of.get(semantic_key(var))

    def of(self, var: Var) -> str:
        """The name of `var`, made at its first use."""
        key = semantic_key(var)
        name = self._of.get(key)
        if name is None:
            name = self._of[key] = self.unique(var.name_hint)
        return name

    def alias(self, var: Var, name: str) -> None:
        """Let `var` go under a name that exists already."""
        self._of[semantic_key(var)] = name


def semantic_key(var: Var) -> tuple[str, int]:
    """What identifies a variable: its process-wide id, never a source place."""
    return ("var", var.unique_id)
