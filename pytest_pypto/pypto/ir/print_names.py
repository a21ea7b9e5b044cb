"""Printed names of variables: one table per function."""

from __future__ import annotations

import functools
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from . import expr as e
from . import stmt as s
from . import types as t
from .program import Function
from .walk import children_of, exprs_of, uses_of

FREE_SUFFIX = "__FREE_VAR"


class Names:
    """Names of the variables of one function (or of a statement printed alone).

    A hint used by one variable prints as it is; variables that share a hint take the first free of `n`, `n_1`, `n_2`,
    ... in the order parameters, definitions, remaining uses.
    """

    def __init__(
        self, params: Iterable[e.Var], body: s.Stmt | None, types: Iterable[t.Type] = (), mark_free: bool = True
    ) -> None:
        scan = _Scan(params)
        scan.body(body)
        self.defined, self.callees = scan.defined, frozenset(scan.callees)
        symbols: dict[e.Var, None] = {}
        for type_ in (*types, *(d.type for d in self.defined)):
            _add_type_vars(type_, symbols)
        self.symbols = [v for v in symbols if v not in self.defined]
        free = [v for v in scan.used if v not in self.defined and v not in symbols]
        self._shown = _assign([*self.defined, *self.symbols, *free])
        if mark_free:
            self._shown |= {v: self._shown[v] + FREE_SUFFIX for v in free}

    def of(self, var: e.Var) -> str:
        """The printed name of `var`; variables that nobody defines end in `FREE_SUFFIX`."""
        name = self._shown.get(var)
        return var.name_hint if name is None else name


def _assign(order: list[e.Var]) -> dict[e.Var, str]:
    """Names of variables, which take turns in this order."""
    hints = {var: legal(var.name_hint) for var in order}
    counts = Counter(hints.values())
    if len(counts) == len(hints):
        return hints
    taken = {hint for hint, n in counts.items() if n == 1}
    numbers: dict[str, int] = {}
    for var, hint in hints.items():
        if counts[hint] == 1:
            continue
        name, n = hint, numbers.get(hint, 0)
        while name in taken:
            n += 1
            name = f"{hint}_{n}"
        numbers[hint] = n
        taken.add(name)
        hints[var] = name
    return hints


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
    """The name table of a function."""
    return Names(func.params, func.body, func.return_types)


class _Scan:
    """What a body defines and uses, in printing order, and whom it calls."""

    def __init__(self, params: Iterable[e.Var]) -> None:
        self.defined: dict[e.Var, None] = dict.fromkeys(params)
        self.used: dict[e.Var, None] = {}
        self.callees: set[str] = set()

    def body(self, body: s.Stmt | None) -> None:
        for stmt in s.stmts_of(body):
            if isinstance(stmt, s.AssignStmt):
                self.defined[stmt.var] = None
                self.uses(stmt.value)
            else:
                for root in exprs_of(stmt):
                    self.uses(root)
                self.parts(stmt)

    def parts(self, stmt: s.Stmt) -> None:
        """Attributes, variables and bodies of a statement; a loop has its variable, results and iter args first."""
        if isinstance(stmt, s.ForStmt):
            self.attr_uses(stmt.attrs)
            self.define(stmt.loop_var, *stmt.return_vars, *stmt.iter_args)
            self.body(stmt.body)
        elif isinstance(stmt, s.WhileStmt):
            self.define(*stmt.return_vars, *stmt.iter_args)
            self.body(stmt.body)
        elif isinstance(stmt, s.IfStmt):
            self.define(*stmt.return_vars)
            self.body(stmt.then_body)
            self.body(stmt.else_body)
        elif isinstance(stmt, s.ScopeStmt):
            self.attr_uses(stmt.attrs)
            task = stmt.attrs.get("task_id_var")
            if isinstance(task, e.Var):
                self.define(task)
            self.body(stmt.body)

    def define(self, *found: e.Var) -> None:
        self.defined.update(dict.fromkeys(found))

    def uses(self, x: e.Expr) -> None:
        """Variables of an expression and of the attributes of its calls, parents first, left to right."""
        if isinstance(x, e.Var):
            self.used[x] = None
        elif not isinstance(x, _CONSTANTS):
            if isinstance(x, (e.Call, e.Submit)):
                if isinstance(x.op, e.GlobalVar):
                    self.callees.add(x.op.name)
                if x.attrs:
                    self.attr_uses(x.attrs)
            for child in children_of(x):
                self.uses(child)

    def attr_uses(self, attrs: Mapping[str, object]) -> None:
        for value in attrs.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, e.Expr):
                    self.used.update(dict.fromkeys(uses_of(item)))


_CONSTANTS = (e.ConstInt, e.ConstFloat, e.ConstBool)


def _add_type_vars(type_: t.Type, found: dict[e.Var, None]) -> None:
    """Add the variables in the extents and views of a type (not in its MemRef)."""
    if isinstance(type_, t.TupleType):
        for part in type_.types:
            _add_type_vars(part, found)
    elif isinstance(type_, t.TileType):
        _add_dim_vars(type_.shape, found)
        if type_.tile_view is not None:
            view = type_.tile_view
            offset = () if view.start_offset is None else (view.start_offset,)
            _add_dim_vars((*(view.valid_shape or ()), *(view.stride or ()), *offset), found)
    elif isinstance(type_, t.TensorType):
        _add_dim_vars(type_.shape, found)
        if type_.tensor_view is not None:
            _add_dim_vars((*type_.tensor_view.valid_shape, *type_.tensor_view.stride), found)


def _add_dim_vars(dims: Iterable[e.Expr], found: dict[e.Var, None]) -> None:
    for dim in dims:
        if not isinstance(dim, e.ConstInt):
            found.update(dict.fromkeys(uses_of(dim)))
