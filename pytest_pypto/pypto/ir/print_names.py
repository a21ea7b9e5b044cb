"""Printed names of variables: one table per function."""

from __future__ import annotations

import functools
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from . import expr as e
from . import stmt as s
from . import types as t
from .program import Function
from .visitor import exprs_of, uses_of, walk_exprs

FREE_SUFFIX = "__FREE_VAR"


class Names:
    """Names of the variables of one function (or of a statement printed alone).

    A hint used by one variable prints as it is; variables that share a hint take the first free of `n`, `n_1`, `n_2`,
    ... in the order parameters, definitions, remaining uses.
    """

    def __init__(self, params: Iterable[e.Var], body: s.Stmt | None, types: Iterable[t.Type] = ()) -> None:
        defined = dict.fromkeys((*params, *_definitions(body)))
        self.defined = set(defined)
        symbols = dict.fromkeys(v for ty in (*types, *(d.type for d in defined)) for v in type_vars(ty))
        self.symbols = [v for v in symbols if v not in self.defined]
        used = dict.fromkeys(v for stmt in _statements(body) for v in _stmt_uses(stmt))
        self.free = dict.fromkeys(v for v in used if v not in self.defined and v not in symbols)
        self._by_var: dict[e.Var, str] = {}
        self._assign([*defined, *self.symbols, *self.free])

    def _assign(self, order: list[e.Var]) -> None:
        hints = {var: legal(var.name_hint) for var in order}
        counts = Counter(hints.values())
        taken = {hint for hint, n in counts.items() if n == 1}
        numbers: dict[str, int] = {}
        for var, hint in hints.items():
            name, n = hint, numbers.get(hint, 0)
            while counts[hint] > 1 and name in taken:
                n += 1
                name = f"{hint}_{n}"
            numbers[hint] = n
            taken.add(name)
            self._by_var[var] = name

    def of(self, var: e.Var, free_marker: bool = True) -> str:
        """The printed name of `var`."""
        name = self._by_var.get(var, var.name_hint)
        return name + FREE_SUFFIX if free_marker and var in self.free else name


@functools.cache
def legal(hint: str) -> str:
    """`hint` as a name that Python reads as one: `a.b` -> `a_b`, `1x` -> `_1x`, `lambda` -> `lambda_`."""
    if hint.isidentifier() and not keyword.iskeyword(hint) and hint not in _RESERVED:
        return hint
    made = re.sub(r"\W", "_", hint) or "v"
    made = f"_{made}" if made[0].isdigit() else made
    return f"{made}_" if keyword.iskeyword(made) or made in _RESERVED else made


_RESERVED = frozenset({"pl", "pld", "self"})


def function_names(func: Function) -> Names:
    """The name table of a function; `free` are variables it uses but nobody defines."""
    return Names(func.params, func.body, func.return_types)


def _definitions(body: s.Stmt | None) -> Iterator[e.Var]:
    """Defined variables in printing order: for a loop the loop variable, results, iter args, then the body."""
    for stmt in s.stmts_of(body):
        if isinstance(stmt, s.AssignStmt):
            yield stmt.var
        elif isinstance(stmt, s.ForStmt):
            yield from (stmt.loop_var, *stmt.return_vars, *stmt.iter_args)
            yield from _definitions(stmt.body)
        elif isinstance(stmt, s.WhileStmt):
            yield from (*stmt.return_vars, *stmt.iter_args)
            yield from _definitions(stmt.body)
        elif isinstance(stmt, s.IfStmt):
            yield from stmt.return_vars
            yield from _definitions(stmt.then_body)
            yield from _definitions(stmt.else_body)
        elif isinstance(stmt, s.ScopeStmt):
            task = stmt.attrs.get("task_id_var")
            if isinstance(task, e.Var):
                yield task
            yield from _definitions(stmt.body)


def _statements(body: s.Stmt | None) -> Iterator[s.Stmt]:
    for stmt in s.stmts_of(body):
        yield stmt
        if isinstance(stmt, s.IfStmt):
            yield from _statements(stmt.then_body)
            yield from _statements(stmt.else_body)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt, s.ScopeStmt)):
            yield from _statements(stmt.body)


def _stmt_uses(stmt: s.Stmt) -> Iterator[e.Var]:
    for root in exprs_of(stmt):
        for x in walk_exprs(root):
            if isinstance(x, e.Var):
                yield x
            elif isinstance(x, (e.Call, e.Submit)):
                yield from (v for value in x.attrs.values() for v in attr_vars(value))
    attrs = getattr(stmt, "attrs", None)
    for value in (attrs or {}).values():
        yield from attr_vars(value)


def attr_vars(value: object) -> Iterator[e.Var]:
    """Variables inside an attribute value."""
    for item in value if isinstance(value, (list, tuple)) else (value,):
        if isinstance(item, e.Expr):
            yield from uses_of(item)


def type_vars(type_: t.Type) -> Iterator[e.Var]:
    """Variables in the extents and views of a type (not in its MemRef)."""
    if isinstance(type_, t.TupleType):
        for part in type_.types:
            yield from type_vars(part)
    if isinstance(type_, (t.TensorType, t.TileType)):
        for dim in (*type_.shape, *_view_exprs(type_)):
            yield from uses_of(dim)


def _view_exprs(type_: t.TensorType | t.TileType) -> tuple[e.Expr, ...]:
    if isinstance(type_, t.TensorType):
        view = type_.tensor_view
        return () if view is None else (*view.valid_shape, *view.stride)
    tile = type_.tile_view
    if tile is None:
        return ()
    offset = () if tile.start_offset is None else (tile.start_offset,)
    return (*(tile.valid_shape or ()), *(tile.stride or ()), *offset)
