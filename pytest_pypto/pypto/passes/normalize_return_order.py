"""NormalizeReturnOrder: a returned tensor that was written through a parameter is returned as that parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType, TupleType
from ..ir.visitor import IRMutator, find_yield_stmt, replace_call, replace_submit, walk_stmts
from .base import Pass
from .device_ir import WRITE_TARGET, op_call

Returned = tuple[int | None, ...]
"""For each returned value the position of the parameter it is, or None."""


@dataclass(frozen=True)
class NormalizeReturnOrder(Pass):
    """Makes visible which parameters a kernel returns, in the order of its parameters."""

    name = "NormalizeReturnOrder"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps"})
    produces = frozenset({"ReturnParamsExplicit"})

    def apply(self, program: Program) -> Program:
        """The program with explicit returns; callers' tuple positions follow."""
        known: dict[str, Returned] = {}
        orders: dict[str, list[int]] = {}
        changed: dict[str, Function] = {}
        for func in _callees_first(program):
            if is_incore_type(func.func_type) or func.func_type in (FunctionType.Group, FunctionType.Spmd):
                made = _normalize(func, known, orders)
                known[func.name] = _returned(made)
                if made is not func:
                    changed[func.name] = made
        functions = [changed.get(f.name, f) for f in program.functions.values()]
        if orders:
            functions = [_follow(f, orders) for f in functions]
        return program.with_functions(functions)


def _callees_first(program: Program) -> list[Function]:
    from ..ir.visitor import calls_in

    done: dict[str, Function] = {}
    open_: set[str] = set()

    def visit(func: Function) -> None:
        if func.name in done or func.name in open_:
            return
        open_.add(func.name)
        for call in calls_in(func.body):
            callee = program.get_function(call.op.name) if isinstance(call.op, e.GlobalVar) else None
            if callee is not None:
                visit(callee)
        done[func.name] = func

    for func in program.functions.values():
        visit(func)
    return list(done.values())


class _Roots:
    """Which parameter's storage a tensor name stands for."""

    def __init__(self, func: Function, known: Mapping[str, Returned]) -> None:
        self.known = known
        self._root: dict[e.Var, e.Var | None] = dict(zip(func.params, func.params, strict=True))
        self._tuples: dict[e.Var, tuple[e.Var | None, ...]] = {}
        self._results(func.body)

    def of(self, expr: e.Expr) -> e.Var | None:
        """The parameter, or None."""
        if isinstance(expr, e.TupleGetItemExpr) and isinstance(expr.tuple, e.Var):
            parts = self._tuples.get(expr.tuple, ())
            return parts[expr.index] if expr.index < len(parts) else None
        return self._root.get(expr) if isinstance(expr, e.Var) else None

    def _assign(self, stmt: s.AssignStmt) -> None:
        value, call = stmt.value, op_call(stmt)
        if call is not None and call.op.name in WRITE_TARGET:
            self._root[stmt.var] = self.of(call.args[WRITE_TARGET[call.op.name]])
        elif isinstance(value, (e.Var, e.TupleGetItemExpr)):
            self._root[stmt.var] = self.of(value)
        elif isinstance(value, e.Call) and isinstance(value.op, e.GlobalVar):
            back = self.known.get(value.op.name, ())
            roots = tuple(None if i is None else self.of(value.args[i]) for i in back)
            if isinstance(stmt.var.type, TupleType):
                self._tuples[stmt.var] = roots
            elif len(roots) == 1:
                self._root[stmt.var] = roots[0]

    def _results(self, body: s.Stmt) -> None:
        """Follow a body in program order: names first, then the results of each loop and branch."""
        for stmt in s.stmts_of(body):
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                self._root.update({a: self.of(a.initValue) for a in stmt.iter_args})
                self._results(stmt.body)
                self._join(stmt.return_vars, [stmt.body], [a.initValue for a in stmt.iter_args])
            elif isinstance(stmt, s.IfStmt):
                bodies = [b for b in (stmt.then_body, stmt.else_body) if b is not None]
                for inner in bodies:
                    self._results(inner)
                self._join(stmt.return_vars, bodies, None)
            elif isinstance(stmt, s.ScopeStmt):
                self._results(stmt.body)
            elif isinstance(stmt, s.AssignStmt):
                self._assign(stmt)

    def _join(self, results: Sequence[e.Var], bodies: Sequence[s.Stmt], inits: Sequence[e.Expr] | None) -> None:
        yields = [y for y in map(find_yield_stmt, bodies) if y is not None]
        for i, result in enumerate(results):
            values = [y.value[i] for y in yields if i < len(y.value)]
            roots = {self.of(v) for v in (*values, *([inits[i]] if inits is not None else []))}
            self._root[result] = roots.pop() if len(roots) == 1 else None


def _return_stmts(func: Function) -> list[s.ReturnStmt]:
    return [x for x in walk_stmts(func.body) if isinstance(x, s.ReturnStmt)]


def _returned(func: Function) -> Returned:
    returns = _return_stmts(func)
    if not returns:
        return ()
    position = {p: i for i, p in enumerate(func.params)}
    return tuple(position.get(v) if isinstance(v, e.Var) else None for v in returns[0].value)


def _normalize(func: Function, known: Mapping[str, Returned], orders: dict[str, list[int]]) -> Function:
    returns = _return_stmts(func)
    if not any(isinstance(v.type, TensorType) for r in returns for v in r.value):
        return func
    roots = _Roots(func, known)
    position = {p: i for i, p in enumerate(func.params)}
    made: dict[int, s.ReturnStmt] = {}
    for stmt in returns:
        values = tuple(_explicit(v, roots) for v in stmt.value)
        if any(a is not b for a, b in zip(values, stmt.value, strict=True)):
            made[id(stmt)] = replace(stmt, value=values)
    first = made.get(id(returns[0]), returns[0])
    order = _order([position.get(v) if isinstance(v, e.Var) else None for v in first.value])
    types = func.return_types
    if order != list(range(len(order))):
        orders[func.name] = order
        types = tuple(types[i] for i in order) if len(types) == len(order) else types
        for stmt in returns:
            now = made.get(id(stmt), stmt)
            made[id(stmt)] = replace(now, value=tuple(now.value[i] for i in order))
    if not made:
        return func
    return func.with_(body=_SwapReturns(made).visit_stmt(func.body), return_types=types)


def _explicit(value: e.Expr, roots: _Roots) -> e.Expr:
    root = roots.of(value) if isinstance(value.type, TensorType) else None
    return value if root is None else root


def _order(positions: list[int | None]) -> list[int]:
    """Returned parameters in parameter order; what is no parameter keeps its place."""
    places = [i for i, p in enumerate(positions) if p is not None]
    ordered = sorted(places, key=lambda i: positions[i] or 0)
    order = list(range(len(positions)))
    for place, source in zip(places, ordered, strict=True):
        order[place] = source
    return order


class _SwapReturns(IRMutator):
    def __init__(self, made: Mapping[int, s.ReturnStmt]) -> None:
        super().__init__()
        self.made = made

    def visit_return_stmt(self, op: s.ReturnStmt) -> s.Stmt:
        return self.made.get(id(op), op)


class _FollowOrder(IRMutator):
    """Tuple positions of calls whose results were put into another order."""

    def __init__(self, orders: Mapping[str, list[int]]) -> None:
        super().__init__()
        self.orders = orders
        self._moved: dict[e.Var, list[int]] = {}

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = op.value
        order = self.orders.get(value.op.name) if isinstance(value, (e.Call, e.Submit)) else None
        if order is None or not isinstance(op.var.type, TupleType):
            return super().visit_assign_stmt(op)
        assert isinstance(value, (e.Call, e.Submit))
        types = op.var.type.types
        tail = tuple(range(len(order), len(types)))
        type_ = TupleType(tuple(types[i] for i in (*order, *tail)))
        var = e.Var(op.var.name_hint, type_, op.var.span)
        self.var_map[op.var] = var
        self._moved[var] = [*order, *tail]
        made = replace_call(value, type=type_) if isinstance(value, e.Call) else replace_submit(value, type=type_)
        return replace(op, var=var, value=made)

    def visit_tuple_get_item_expr(self, op: e.TupleGetItemExpr) -> e.Expr:
        whole = self.visit_expr(op.tuple)
        order = self._moved.get(whole) if isinstance(whole, e.Var) else None
        if order is None:
            return super().visit_tuple_get_item_expr(op)
        return e.TupleGetItemExpr(whole, order.index(op.index), op.span)


def _follow(func: Function, orders: Mapping[str, list[int]]) -> Function:
    body = _FollowOrder(orders).visit_stmt(func.body)
    return func if body is func.body else func.with_(body=body)
