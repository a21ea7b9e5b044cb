"""Turning a scope into a function and a call: what it captures, which way data flows, what it gives back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import TASK_ID
from ..ir.enums import FunctionType, Level, ParamDirection, Role
from ..ir.program import Function, Program
from ..ir.types import ArrayType, ScalarType, TensorType, TupleType, Type
from ..ir.visitor import IRMutator, collect_def_vars, deep_clone, exprs_of, walk_exprs, walk_stmts
from ._roots import WriteThrough
from ._util import PassError, all_uses, attr_vars, base_name, expr_vars, is_call, type_vars

_RANK = {ParamDirection.In: 0, ParamDirection.Out: 1, ParamDirection.InOut: 2}


def strongest(a: ParamDirection, b: ParamDirection) -> ParamDirection:
    """The later of two directions in In < Out < InOut."""
    return a if _RANK[a] >= _RANK[b] else b


@dataclass
class Parent:
    """A function that scopes are taken out of: what it defines, and how often each variable is mentioned."""

    func: Function
    program: Program
    defined: set[e.Var] = field(init=False)
    uses: Counter[e.Var] = field(init=False)

    def __post_init__(self) -> None:
        self.defined = set(self.func.params) | set(collect_def_vars(self.func.body))
        self.uses = mentions(self.func.body)


def mentions(body: s.Stmt) -> Counter[e.Var]:
    """How often each variable is mentioned below `body`, types of defined variables included."""
    count = Counter(all_uses(body))
    for var in collect_def_vars(body):
        count.update(type_vars(var.type))
    return count


@dataclass
class Target:
    """What the new function shall be."""

    name: str
    kind: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Region:
    """The body of a scope, with what it captures and exports."""

    parent: Parent
    body: s.Stmt
    captured: list[e.Var] = field(init=False)
    exported: list[e.Var] = field(init=False)

    def __post_init__(self) -> None:
        inside = collect_def_vars(self.body)
        known = set(inside)
        order = {v: None for v in _in_order(self.body) if v in self.parent.defined and v not in known}
        self.captured = list(order)
        uses = mentions(self.body)
        total = self.parent.uses
        self.exported = [v for v in dict.fromkeys(inside) if total[v] > uses[v]]

    def directions(self) -> list[ParamDirection]:
        """Directions of the captured variables."""
        access = _Access(self.captured, self.parent.program)
        access.scan(self.body)
        return [access.direction(v) for v in self.captured]

    def unchanged(self, roots: WriteThrough) -> list[tuple[e.Var, e.Var]]:
        """Exported tensors that are a captured one as it was, with that one."""
        touched: set[e.Var | None] = set()
        for stmt in walk_stmts(self.body):
            for root in exprs_of(stmt):
                for x in walk_exprs(root):
                    target = _destination(x)
                    targets = [] if target is None else [target]
                    if isinstance(x, (e.Call, e.Submit)) and isinstance(x.op, e.GlobalVar):
                        targets = list(x.args)
                    touched.update(roots.of(y) for y in targets)
        found = [(v, roots.of(v)) for v in self.exported]
        return [(v, root) for v, root in found if root is not None and root not in touched]


def _in_order(body: s.Stmt | None) -> Iterator[e.Var]:
    """Variables in the order in which the text mentions them; initial values of a loop come before its body."""
    for stmt in walk_stmts(body):
        if isinstance(stmt, s.WhileStmt):
            for arg in stmt.iter_args:
                yield from expr_vars(arg.initValue)
            yield from expr_vars(stmt.condition)
        else:
            for root in exprs_of(stmt):
                yield from expr_vars(root)
        yield from attr_vars(stmt)
        if isinstance(stmt, s.AssignStmt):
            yield from type_vars(stmt.var.type)


class _Access:
    """Which captured tensors a region writes, and which it reads.

    A tensor is written where it is itself the destination of a store or assemble, and read at any other mention of it
    or of a name for the result of such a store; a destination of an atomic store is read as well. A value that an outer
    loop carries stays In: ConvertTensorToTileOps follows the carry.
    """

    def __init__(self, captured: list[e.Var], program: Program) -> None:
        self.alias: dict[e.Var, e.Var] = {v: v for v in captured}
        self.captured = set(captured)
        self.program = program
        self.written: set[e.Var] = set()
        self.read: set[e.Var] = set()
        self.passed: dict[e.Var, ParamDirection] = {}

    def direction(self, var: e.Var) -> ParamDirection:
        if not isinstance(var.type, TensorType):
            return ParamDirection.In
        own = ParamDirection.In
        if var in self.written and not isinstance(var, e.IterArg):
            own = ParamDirection.InOut if var in self.read else ParamDirection.Out
        return strongest(own, self.passed.get(var, ParamDirection.In))

    def scan(self, body: s.Stmt) -> None:
        for stmt in walk_stmts(body):
            for root in exprs_of(stmt):
                self.expr(root)
            if isinstance(stmt, s.AssignStmt):
                target = _destination(stmt.value)
                if isinstance(target, e.Var) and target in self.alias:
                    self.alias[stmt.var] = self.alias[target]

    def expr(self, root: e.Expr) -> None:
        skip: set[int] = set()
        for x in walk_exprs(root):
            target = _destination(x)
            if isinstance(target, e.Var):
                if target in self.captured:
                    self.written.add(target)
                assert isinstance(x, e.Call)
                if not x.kwargs.get("atomic"):
                    self.mention([a for a in x.args if a is not target])
                    skip.update(id(a) for a in x.args)
                    continue
            if isinstance(x, (e.Call, e.Submit)) and isinstance(x.op, e.GlobalVar):
                self.call(x)
            if isinstance(x, e.Var) and id(x) not in skip and x in self.alias:
                self.read.add(self.alias[x])

    def mention(self, args: list[e.Expr]) -> None:
        for arg in args:
            for var in expr_vars(arg):
                if var in self.alias:
                    self.read.add(self.alias[var])

    def call(self, call: e.Call | e.Submit) -> None:
        callee = self.program.get_function(call.op.name)
        if callee is None:
            return
        for arg, direction in zip(call.args, callee.param_directions, strict=False):
            if isinstance(arg, e.Var) and arg in self.captured:
                self.passed[arg] = strongest(self.passed.get(arg, ParamDirection.In), direction)


def _destination(x: e.Expr) -> e.Expr | None:
    """The tensor that a store or assemble writes."""
    if is_call(x, "tile.store") and isinstance(x, e.Call):
        return x.args[2]
    if is_call(x, "tensor.assemble") and isinstance(x, e.Call):
        return x.args[0]
    return None


@dataclass
class Outlined:
    """The new function, the call of it, and what the caller's variables are bound to."""

    func: Function
    args: list[e.Var]
    results: list[e.Var]
    before: list[s.Stmt]


def outline(parent: Parent, scope: s.ScopeStmt, body: s.Stmt, target: Target) -> Outlined:
    """A function with the statements of `body`. A result that is a captured tensor as it was stays with the caller.

    Raises (PassError): the region defines a tile or an array that is used outside.
    """
    region = Region(parent, body)
    exported, before = _results(region, scope, target)
    pairs: dict[e.Var, e.Expr] = {}
    params: list[tuple[e.Var, ParamDirection]] = []
    for var, direction in zip(region.captured, region.directions(), strict=True):
        fresh = e.Var(var.name_hint, var.type, var.span)
        pairs[var] = fresh
        params.append((fresh, direction))
    params = _typed(params, pairs)
    written = WriteThrough(region.captured, parent.program).scan(body)
    same = region.unchanged(written)
    before += [s.AssignStmt(v, root, scope.span) for v, root in same]
    exported = [v for v in exported if all(v is not gone for gone, _ in same)]
    made = list(s.stmts_of(deep_clone(body, pairs)))
    values: list[e.Expr] = []
    for var in exported:
        root = written.of(var)
        if root is not None and _stored(body, var):
            alias = e.Var(f"{base_name(var.name_hint)}__store", pairs[var].type, var.span)
            made.append(s.AssignStmt(alias, pairs[var], var.span))
        values.append(pairs[root if root is not None else var])
    if values:
        made.append(s.ReturnStmt(tuple(values), scope.span))
    types = [v.type for v in exported]
    func = Function(
        target.name,
        params,
        types,
        s.seq(made, body.span),
        scope.span,
        target.kind,
        target.level,
        target.role,
        target.attrs,
    )
    return Outlined(func, region.captured, exported, before)


def _typed(
    params: list[tuple[e.Var, ParamDirection]], pairs: dict[e.Var, e.Expr]
) -> list[tuple[e.Var, ParamDirection]]:
    """Parameters whose types name other parameters instead of the caller's variables."""
    mutator = IRMutator()
    mutator.var_map.update(pairs)
    back = {new: old for old, new in pairs.items()}
    made: list[tuple[e.Var, ParamDirection]] = []
    for var, direction in params:
        type_ = mutator.visit_type(var.type)
        if type_ is not var.type:
            new = e.Var(var.name_hint, type_, var.span)
            pairs[back[var]] = new
            mutator.var_map[back[var]] = new
            var = new
        made.append((var, direction))
    return made


def _stored(body: s.Stmt, var: e.Var) -> bool:
    """`var` is the result of a tile store of this body, at any depth."""
    return any(
        isinstance(x, s.AssignStmt) and x.var is var and is_call(x.value, "tile.store") for x in walk_stmts(body)
    )


def _results(region: Region, scope: s.ScopeStmt, target: Target) -> tuple[list[e.Var], list[s.Stmt]]:
    """Exported tensors, and statements that compute exported index arithmetic in the caller."""
    tensors: list[e.Var] = []
    scalars: list[e.Var] = []
    for var in region.exported:
        if isinstance(var.type, TensorType):
            tensors.append(var)
        elif isinstance(var.type, ScalarType) or target.kind is not FunctionType.InCore:
            scalars.append(var)
        else:
            what = "array" if isinstance(var.type, ArrayType) else "tile"
            raise PassError(
                f"{what} '{var.name_hint}' is made in a device region and used outside of it; store it to a tensor, "
                "or move its use into the region",
                var,
                scope,
            )
    return tensors, _hoisted(region, scalars, scope)


def _hoisted(region: Region, scalars: list[e.Var], scope: s.ScopeStmt) -> list[s.Stmt]:
    """Copies of the assignments behind scalars that the caller needs too."""
    if not scalars:
        return []
    defs = {x.var: x for x in s.stmts_of(region.body) if isinstance(x, s.AssignStmt)}
    made: dict[e.Var, s.Stmt] = {}
    inside = set(collect_def_vars(region.body))

    def need(var: e.Var) -> None:
        if var in made or var not in inside:
            return
        stmt = defs.get(var)
        if stmt is None or any(isinstance(x, (e.Call, e.Submit)) for x in walk_exprs(stmt.value)):
            raise PassError(
                f"'{var.name_hint}' is computed in a device region and used outside of it; a kernel gives back tensors "
                "only: compute it before the region, or write it to a tensor with pl.write and read it there",
                var,
                scope,
            )
        for used in expr_vars(stmt.value):
            need(used)
        made[var] = stmt

    for var in scalars:
        need(var)
    return list(made.values())


def call_stmts(out: Outlined, attrs: Mapping[str, Any], scope: s.ScopeStmt) -> list[s.Stmt]:
    """`result = self.f(args)`, with tuple items when there are several results."""
    call = e.Call(e.GlobalVar(out.func.name), out.args, attrs=attrs, type=_result_type(out.results), span=scope.span)
    if not out.results:
        return [*out.before, s.EvalStmt(call, scope.span)]
    if len(out.results) == 1:
        return [*out.before, s.AssignStmt(out.results[0], call, scope.span)]
    return [*out.before, *_unpacked(call, out.results, scope)]


def submit_stmts(out: Outlined, submit: e.Submit, task: e.Var | None, scope: s.ScopeStmt) -> list[s.Stmt]:
    """`(results, task) = pl.submit(self.f, args)` as a tuple and its items."""
    targets = out.results if task is None else [*out.results, task]
    return [*out.before, *_unpacked(submit, targets, scope)]


def submit_type(results: list[e.Var]) -> Type:
    """Type of a submit: the results and the task id."""
    return TupleType((*(v.type for v in results), ScalarType(TASK_ID)))


def _unpacked(value: e.Expr, targets: list[e.Var], scope: s.ScopeStmt) -> list[s.Stmt]:
    whole = e.Var("ret__tmp_v0", value.type, scope.span)
    items = [s.AssignStmt(v, e.TupleGetItemExpr(whole, i, scope.span), scope.span) for i, v in enumerate(targets)]
    return [s.AssignStmt(whole, value, scope.span), *items]


def _result_type(results: list[e.Var]) -> Type | None:
    if not results:
        return None
    return results[0].type if len(results) == 1 else TupleType(tuple(v.type for v in results))


class FunctionNames:
    """Names of new functions: free in the program, numbered where hints repeat."""

    def __init__(self, program: Program) -> None:
        self.taken = {f.name for f in program.functions.values()}

    def hints(self, func: Function, hints: list[str]) -> Iterator[str]:
        """One name per hint of a function, in order."""
        repeated = {h for h, n in Counter(hints).items() if n > 1}
        seen: Counter[str] = Counter()
        for hint in hints:
            name = f"{hint}_{seen[hint]}" if hint in repeated else hint
            seen[hint] += 1
            yield self.free(name, func)

    def free(self, name: str, func: Function) -> str:
        """`name`, or prefixed by the function's name when it is taken."""
        made, k = name, 0
        while made in self.taken:
            made = f"{func.name}_{name}" if k == 0 else f"{func.name}_{name}_{k}"
            k += 1
        self.taken.add(made)
        return made
