"""Statements of `.pto` text after reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .types import PtoType


@dataclass(slots=True)
class Region:
    """Statements between braces; `args` are the block arguments with their types."""

    ops: list[Op]
    args: list[tuple[str, PtoType]] = field(default_factory=list)


@dataclass(slots=True)
class Op:
    """One operation.

    `ins`/`outs` are value names without `%`; `types` the types of `ins`, `out_types` those of `outs` or results.
    `attrs` holds the attributes as Python values, `regions` the bodies of control flow, `loc` the user's place.
    """

    name: str
    line: int
    results: list[str] = field(default_factory=list)
    ins: list[str] = field(default_factory=list)
    outs: list[str] = field(default_factory=list)
    types: list[PtoType] = field(default_factory=list)
    out_types: list[PtoType] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, list[str]] = field(default_factory=dict)
    """Named operand lists: offsets, sizes, shape, strides, index, valid."""
    regions: list[Region] = field(default_factory=list)
    loc: str | None = None


@dataclass(slots=True)
class Func:
    """One kernel function; `kind` is "vector" or "cube"."""

    name: str
    params: list[tuple[str, PtoType]]
    kind: str
    body: Region
    line: int


@dataclass(slots=True)
class Module:
    """One `.pto` file: target architecture and functions by name."""

    arch: str
    funcs: dict[str, Func]
    file: str
