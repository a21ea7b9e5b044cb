"""Small analyses over statements, and what the op table says about operands."""

from __future__ import annotations

from enum import Enum
from typing import Any

from .op_table import OpSpec, find_op
from .program import Function
from .stmt import ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt


class ParentStmtAnalysis:
    """For every statement of a function, the statement that contains it."""

    def __init__(self) -> None:
        self._parents: dict[Stmt, Stmt] = {}

    def build_map(self, func: Function) -> None:
        """Look at the body of `func`; what was known before is forgotten."""
        self.clear()
        self._visit(func.body)

    def _visit(self, stmt: Stmt) -> None:
        for child in _children(stmt):
            self._parents[child] = stmt
            self._visit(child)

    def get_parent(self, stmt: Stmt) -> Stmt | None:
        """The containing statement, or None for the body itself and for unknown statements."""
        return self._parents.get(stmt)

    def has_parent(self, stmt: Stmt) -> bool:
        """True when `stmt` lies inside another statement."""
        return stmt in self._parents

    def clear(self) -> None:
        """Forget everything."""
        self._parents.clear()


def _children(stmt: Stmt) -> list[Stmt]:
    if isinstance(stmt, SeqStmts):
        return list(stmt.stmts)
    if isinstance(stmt, IfStmt):
        return [b for b in (stmt.then_body, stmt.else_body) if b is not None]
    if isinstance(stmt, (ForStmt, WhileStmt, ScopeStmt)):
        return [stmt.body]
    return []


class ArgEffect(Enum):
    """What an operator does to an operand."""

    Read = 0
    Write = 1
    ReadWrite = 2


class WriteChannel(Enum):
    """How an operator writes to global memory."""

    Dma = 0
    Scalar = 1


_WRITES_ONLY = frozenset({"tile.store", "tensor.assemble", "tensor.write", "tile.mscatter", "tile.write"})
_SCALAR_WRITES = frozenset({"tensor.write"})


def _spec(op_name: str) -> OpSpec:
    spec = find_op(op_name)
    if spec is None:
        raise ValueError(f"Operator '{op_name}' not found in registry")
    return spec


def get_op_arg_effect(op_name: str, arg_index: int, **kwargs: Any) -> ArgEffect:
    """What the operator does to operand `arg_index`; `atomic=` of a store makes it read as well.

    Raises:
        ValueError: unknown operator.
        IndexError: it has no such operand.
    """
    spec = _spec(op_name)
    if not 0 <= arg_index < len(spec.params):
        raise IndexError(f"operator '{op_name}' has {len(spec.params)} operands, asked for number {arg_index}")
    if arg_index in spec.scratch:
        return ArgEffect.Write
    if spec.inplace != arg_index:
        return ArgEffect.Read
    plain = op_name in _WRITES_ONLY and not kwargs.get("atomic")
    return ArgEffect.Write if plain else ArgEffect.ReadWrite


def op_has_declared_arg_effect(op_name: str, arg_index: int) -> bool:
    """True when the operator writes operand `arg_index`."""
    spec = _spec(op_name)
    return spec.inplace == arg_index or arg_index in spec.scratch


def op_has_declared_arg_effects(op_name: str) -> bool:
    """True when the operator writes any operand."""
    spec = _spec(op_name)
    return spec.inplace is not None or bool(spec.scratch)


def get_op_write_channel(op_name: str) -> WriteChannel | None:
    """How the operator writes to global memory, or None when it does not."""
    spec = _spec(op_name)
    target = spec.inplace
    if target is None or target >= len(spec.params) or spec.params[target].kind != "tensor":
        return None
    return WriteChannel.Scalar if op_name in _SCALAR_WRITES else WriteChannel.Dma


def get_op_memory_spec(op_name: str) -> dict[str, Any]:
    """Where the operands of an operator may lie and where its result does (names of memory spaces)."""
    spec = _spec(op_name)
    inputs = [None if p.spaces is None else sorted(m.name for m in p.spaces) for p in spec.params]
    return {
        "inputs": inputs,
        "output": None if spec.space is None else spec.space.name,
        "output_inherits": spec.space_from,
        "output_reuses": spec.inplace,
        "no_alias": sorted(spec.no_alias),
    }
