"""Which windows of tensors the statements of a loop read and write, as far as the text tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.printer import python_print
from ..ir.program import Function
from ..ir.span import Span
from ..ir.types import ScalarType, ShapedType, TensorType, TileType
from ..ir.visitor import exprs_of, walk_exprs, walk_stmts


@dataclass(frozen=True)
class Access:
    """A window of a tensor that one statement reads or writes, and the branches it stands in."""

    tensor: e.Var
    offsets: tuple[e.Expr, ...]
    extents: tuple[int, ...]
    call: e.Call
    stmt: s.Stmt
    guards: tuple[tuple[e.Expr, bool], ...]

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.call.span if self.call.span.is_valid() else self.stmt.span

    def text(self) -> str:
        """The window in words."""
        at = ", ".join(python_print(x, format=False).strip() for x in self.offsets)
        return f"[{at}] (extents {list(self.extents)}, {self.span})"


class Facts:
    """Of one function: scalars that are assigned once, and which tensor a name stands for."""

    def __init__(self, func: Function) -> None:
        self.scalars: dict[e.Var, e.Expr] = {}
        self.changing: set[e.Var] = set()
        """Scalars that are assigned more than once."""
        self.first: dict[e.Var, int] = {}
        """Where a variable is defined first: the statement's `id`; parameters have 0."""
        self._lent: set[int] = set()
        """`id` of expressions that name what is written, or are given to a function."""
        self._roots: dict[e.Var, e.Var] = {}
        self._several: set[e.Var] = set()
        self.first.update(dict.fromkeys(func.params, 0))
        for stmt in walk_stmts(func.body):
            for root in exprs_of(stmt):
                self._note_lent(root)
            if isinstance(stmt, s.AssignStmt):
                self._assigned(stmt)
            elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                self._carried(stmt)

    def _note_lent(self, root: e.Expr) -> None:
        for x in walk_exprs(root):
            if isinstance(x, e.Call) and x.op.name in _WRITES:
                self._lent.add(id(_WRITES[x.op.name](x)[0]))
            elif isinstance(x, e.Submit) or (isinstance(x, e.Call) and isinstance(x.op, e.GlobalVar)):
                self._lent.update(id(a) for a in x.args)

    def _assigned(self, stmt: s.AssignStmt) -> None:
        var = stmt.var
        again = var in self.first
        self.first.setdefault(var, id(stmt))
        if isinstance(var.type, ScalarType):
            if again:
                self.changing.add(var)
            self.scalars[var] = stmt.value
        else:
            target = _written(stmt.value)
            self._stands_for(var, var if target is None else target, again)

    def _carried(self, loop: s.ForStmt | s.WhileStmt) -> None:
        for arg, result in zip(loop.iter_args, loop.return_vars, strict=False):
            for var in (arg, result):
                self.first.setdefault(var, id(loop))
                if isinstance(arg.initValue, e.Var):
                    self._stands_for(var, arg.initValue, False)

    def _stands_for(self, var: e.Var, other: e.Var, again: bool) -> None:
        root = self._roots.get(other, other)
        if again and root is not self._roots.get(var, var):
            self._several.add(var)
        elif root is not var:
            self._roots[var] = root

    def root(self, var: e.Var) -> e.Var | None:
        """The tensor that `var` is a state of; None when it is now one tensor, now another."""
        root = self._roots.get(var, var)
        return None if var in self._several or root in self._several else root

    def may_be_written(self, view: e.Call, stmt: s.Stmt) -> bool:
        """True for a slice that serves as a target, or that a function is given."""
        named = isinstance(stmt, s.AssignStmt) and stmt.value is view and id(stmt.var) in self._lent
        return named or id(view) in self._lent

    def is_local(self, var: e.Var, body: s.Stmt) -> bool:
        """True for tensors that a loop's body makes."""
        return self.first.get(var, 0) in {id(x) for x in walk_stmts(body)}


_READS: dict[str, Callable[[e.Call], tuple[Any, Any, Any]]] = {
    "tile.load": lambda c: (c.args[0], c.args[1], c.args[3] if len(c.args) > 3 else c.args[2]),
    "tensor.slice": lambda c: (c.args[0], c.args[2], c.args[3] if len(c.args) > 3 else c.args[1]),
    "tensor.read": lambda c: (c.args[0], c.args[1], None),
}
_WRITES: dict[str, Callable[[e.Call], tuple[Any, Any, Any]]] = {
    "tile.store": lambda c: (c.args[2], c.args[1], c.args[3] if len(c.args) > 3 else c.args[0].type),
    "tensor.assemble": lambda c: (c.args[0], c.args[2], c.args[1].type),
    "tensor.write": lambda c: (c.args[0], c.args[1], None),
}
"""Operator -> tensor, offsets and extents (a tuple, the type of what is written, or None for one element)."""


def _written(value: e.Expr) -> e.Var | None:
    if isinstance(value, e.Call) and value.op.name in _WRITES:
        target = _WRITES[value.op.name](value)[0]
        return target if isinstance(target, e.Var) else None
    return value if isinstance(value, e.Var) else None


def _access(call: e.Call, parts: tuple[Any, Any, Any], stmt: s.Stmt, guards: Any, facts: Facts) -> Access | None:
    tensor, offsets, extents = parts
    root = facts.root(tensor) if isinstance(tensor, e.Var) else None
    if (
        root is None
        or not isinstance(offsets, e.MakeTuple)
        or call.kwargs.get("atomic")
        or call.kwargs.get("transpose")
    ):
        return None
    if call.op.name == "tensor.slice" and facts.may_be_written(call, stmt):
        return None
    rank = len(offsets.elements)
    sizes = (1,) * rank if extents is None else _static(extents)
    if sizes is None or len(sizes) > rank:
        return None
    sizes = (1,) * (rank - len(sizes)) + sizes
    limits = tensor.type.shape if isinstance(tensor.type, ShapedType) else ()
    if len(limits) != rank or any(n > (e.const_value(m) or n) for n, m in zip(sizes, limits, strict=True)):
        return None
    return Access(root, offsets.elements, sizes, call, stmt, guards)


def _static(extents: Any) -> tuple[int, ...] | None:
    """Constant extents of a tuple, or of the valid part of a tile or tensor type."""
    if isinstance(extents, (TensorType, TileType)):
        extents = extents.valid_shape
    elif isinstance(extents, e.MakeTuple):
        extents = extents.elements
    else:
        return None
    return e.static_dims(extents)


def accesses(body: s.Stmt, facts: Facts) -> tuple[list[Access], list[Access]]:
    """What a loop's body reads and writes."""
    reads: list[Access] = []
    writes: list[Access] = []
    for stmt, guards in _guarded(body, ()):
        for root in exprs_of(stmt):
            for call in walk_exprs(root):
                if isinstance(call, e.Call):
                    for table, into in ((_READS, reads), (_WRITES, writes)):
                        found = call.op.name in table and _access(call, table[call.op.name](call), stmt, guards, facts)
                        if found:
                            into.append(found)
    return reads, writes


def _guarded(stmt: s.Stmt, guards: tuple[tuple[e.Expr, bool], ...]) -> Iterator[tuple[s.Stmt, Any]]:
    """All statements below `stmt` with the conditions that they stand under."""
    yield stmt, guards
    if isinstance(stmt, s.IfStmt):
        yield from _guarded(stmt.then_body, (*guards, (stmt.condition, True)))
        if stmt.else_body is not None:
            yield from _guarded(stmt.else_body, (*guards, (stmt.condition, False)))
    elif isinstance(stmt, s.WhileStmt):
        yield from _guarded(stmt.body, (*guards, (stmt.condition, True)))
    elif isinstance(stmt, s.SeqStmts):
        for inner in stmt.stmts:
            yield from _guarded(inner, guards)
    elif isinstance(body := getattr(stmt, "body", None), s.Stmt):
        yield from _guarded(body, guards)
