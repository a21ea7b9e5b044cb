"""Buffers added after the first numbering."""

from __future__ import annotations

import re

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.program import Function
from ...ir.span import Span
from ...ir.types import PtrType, TileType
from ...ir.visitor import walk_stmts
from .attach import Allocation, alloc_stmt, memref_of

_NUMBER = re.compile(r"mem_[a-z]+_(\d+)$")


class BufferNames:
    """Hands out buffers with the next free number of a function."""

    def __init__(self, func: Function) -> None:
        names = {p.name_hint for p in func.params}
        for param in func.params:
            names.update(_base_name(param))
        for stmt in walk_stmts(func.body):
            if isinstance(stmt, s.AssignStmt):
                names.add(stmt.var.name_hint)
                names.update(_base_name(stmt.var))
            elif isinstance(stmt, (s.ForStmt, s.WhileStmt, s.IfStmt)):
                for var in stmt.return_vars:
                    names.update(_base_name(var))
        numbers = [int(m.group(1)) for m in map(_NUMBER.match, names) if m is not None]
        self._next = max(numbers, default=-1) + 1
        self.added: list[Allocation] = []

    def fresh(self, tile: TileType, size: int) -> e.MemRef:
        """A new buffer of `size` bytes in the tile's memory space."""
        assert tile.space is not None
        base = e.Var(f"mem_{tile.space.name.lower()}_{self._next}", PtrType.get())
        self._next += 1
        self.added.append(Allocation(base, tile.space, size))
        return e.MemRef(base, 0, size)

    def declare(self, body: s.Stmt, span: Span) -> s.Stmt:
        """`body` with the declarations of the added buffers behind those that are there."""
        if not self.added:
            return body
        stmts = s.stmts_of(body)
        at = 0
        while at < len(stmts) and _is_alloc(stmts[at]):
            at += 1
        new = tuple(alloc_stmt(a, span) for a in self.added)
        return s.SeqStmts((*stmts[:at], *new, *stmts[at:]), body.span)


def _is_alloc(stmt: s.Stmt) -> bool:
    return isinstance(stmt, s.AssignStmt) and isinstance(stmt.var.type, PtrType)


def _base_name(var: e.Var) -> set[str]:
    memref = memref_of(var)
    return set() if memref is None else {memref.base_.name_hint}
