"""On-chip memory that pipes set aside (`system.reserve_buffer`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType, MemorySpace
from ...ir.program import Function
from ...ir.visitor import replace_call, walk_stmts
from ..device_ir import body_like, kernel_error, nested_bodies, op_call
from ..device_ir import with_bodies as replace_bodies
from ..mixed.pipes import AUTO_BASE
from .groups import ALIGN
from .sizes import padded

_SPACE = {FunctionType.AIC: MemorySpace.Mat, FunctionType.AIV: MemorySpace.Vec}
"""The memory of each core in which it receives tiles."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """One reserved range."""

    name: str
    base: int
    size: int
    stmt: s.Stmt


@dataclass(frozen=True, slots=True)
class Reserved:
    """All reserved ranges of a function, in the memory space they take."""

    space: MemorySpace | None
    ranges: tuple[Reservation, ...]

    def end(self, space: MemorySpace) -> int:
        """First free byte of `space` behind all reservations."""
        if space is not self.space:
            return 0
        return padded(max((r.base + r.size for r in self.ranges), default=0), ALIGN)


def reservations(func: Function) -> Reserved:
    """The reserved ranges with their addresses: given ones stay, the others follow each other from 0 around them.

    Raises:
        ValueError: two given ranges overlap.
    """
    found: list[tuple[s.Stmt, e.Call]] = []
    for stmt in walk_stmts(func.body):
        call = op_call(stmt)
        if call is not None and call.op.name == "system.reserve_buffer":
            found.append((stmt, call))
    fixed = _fixed(found)
    _check(fixed)
    ranges: list[Reservation] = []
    cursor = 0
    for stmt, call in found:
        size, base = int(call.kwargs["size"]), int(call.kwargs.get("base", AUTO_BASE))
        if base == AUTO_BASE:
            base = _next_free(cursor, size, fixed)
            cursor = padded(base + size, ALIGN)
        ranges.append(Reservation(str(call.kwargs["name"]), base, size, stmt))
    return Reserved(_SPACE.get(func.func_type), tuple(ranges))


def _fixed(found: list[tuple[s.Stmt, e.Call]]) -> list[Reservation]:
    given = [(st, c, int(c.kwargs.get("base", AUTO_BASE))) for st, c in found]
    made = [Reservation(str(c.kwargs["name"]), at, int(c.kwargs["size"]), st) for st, c, at in given if at != AUTO_BASE]
    return sorted(made, key=lambda r: r.base)


def _check(fixed: list[Reservation]) -> None:
    for a, b in pairwise(fixed):
        if a.base + a.size > b.base:
            raise kernel_error(
                f"reserved buffer '{a.name}' ({a.size} bytes from {a.base}) overlaps '{b.name}' (from {b.base}); leave "
                "base out to have the addresses chosen",
                b.stmt.span,
            )


def _next_free(cursor: int, size: int, fixed: list[Reservation]) -> int:
    for r in fixed:
        if cursor + size > r.base and cursor < r.base + r.size:
            cursor = padded(r.base + r.size, ALIGN)
    return cursor


def with_bases(body: s.Stmt, reserved: Reserved) -> s.Stmt:
    """`body` with the chosen addresses in its `reserve_buffer` calls."""
    chosen = {id(r.stmt): r.base for r in reserved.ranges}
    if not chosen:
        return body
    return _Rewrite(chosen).body(body)


class _Rewrite:
    def __init__(self, chosen: dict[int, int]) -> None:
        self.chosen = chosen

    def body(self, body: s.Stmt) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            inner = nested_bodies(stmt)
            if inner:
                stmt = replace_bodies(stmt, [self.body(b) for b in inner])
            elif id(stmt) in self.chosen:
                stmt = self._stmt(stmt, self.chosen[id(stmt)])
            made.append(stmt)
        return body_like(body, made)

    def _stmt(self, stmt: s.Stmt, base: int) -> s.Stmt:
        call = op_call(stmt)
        assert call is not None
        if call.kwargs.get("base") == base:
            return stmt
        made = replace_call(call, kwargs=call.kwargs | {"base": base})
        if isinstance(stmt, s.AssignStmt):
            return replace(stmt, value=made)
        assert isinstance(stmt, s.EvalStmt)
        return replace(stmt, expr=made)
