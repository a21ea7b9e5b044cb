"""ConvertToSSA: gives every variable one definition and makes the state of loops and branches explicit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.branches import complete_branches
from ..ir.dtypes import BOOL
from ..ir.enums import MemorySpace, ParamDirection, TensorLayout
from ..ir.op_table import create_op_call, find_op, infer_type
from ..ir.program import Function, Program
from ..ir.types import ScalarType, ShapedType, TensorType, TileType, Type
from ..ir.visitor import IRMutator, collect_def_vars, replace_call
from ._live import LoopFacts, loop_facts
from ._util import PassError, base_name, type_vars
from .base import FunctionPass
from .properties import NORM, SSA


@dataclass(frozen=True)
class ConvertToSSA(FunctionPass):
    """Single assignment form.

    Every assignment defines a new version (`x__ssa_v<n>`, one counter per variable). A branch that assigns a variable
    yields it, the other branch yields the version from before; a loop carries what its body assigns and what had a
    value before (in order of names). A variable first assigned in a loop and read after it is carried too; it starts as
    the matching Out parameter, else as an empty value of its type. Result types are inferred again from the new
    operands, so that extents in types name the version they were computed with.

    Raises (PassError): a variable that is read where no value of it exists; branches that yield different names.
    """

    name = "ConvertToSSA"
    produces = frozenset({SSA})
    invalidates = frozenset({NORM})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function in single assignment form."""
        func = complete_branches(func)
        return _Converter(func).function()


class _Converter(IRMutator):
    """`var_map` holds the current version of every variable; `journal` remembers what branches change."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.func = func
        self.facts: dict[s.Stmt, LoopFacts] = loop_facts(func.body)
        self.counters: dict[e.Var, int] = {}
        self.journal: list[tuple[e.Var, e.Expr | None]] = []
        self.locals = {v for f in self.facts.values() for v in f.assigned} | set(collect_def_vars(func.body))

    def function(self) -> Function:
        func = self.func
        params = [(self.version(p, "ssa"), d) for p, d in func.pairs]
        body = self.visit_stmt(func.body)
        returns = tuple(self.visit_type(t) for t in func.return_types)
        return func.with_(params=params, body=body, return_types=returns, attrs=self.visit_attrs(func.attrs))

    # versions --------------------------------------------------------------------------------------------------

    def fresh(self, var: e.Var, role: str) -> str:
        """`<base>__<role>_v<n>`, n counting all versions of the variable."""
        n = self.counters.get(var, 0)
        self.counters[var] = n + 1
        return f"{base_name(var.name_hint)}__{role}_v{n}"

    def bind(self, var: e.Var, made: e.Expr) -> None:
        """Let `made` be the current version of `var`."""
        self.journal.append((var, self.var_map.get(var)))
        self.var_map[var] = made

    def version(self, var: e.Var, role: str, type_: Type | None = None) -> e.Var:
        """A new version of `var`, current from now on."""
        made = e.Var(self.fresh(var, role), self.visit_type(var.type) if type_ is None else type_, var.span)
        self.bind(var, made)
        return made

    def rollback(self, mark: int) -> dict[e.Var, e.Expr]:
        """Undo the bindings since `mark`; gives the versions that were current."""
        changed: dict[e.Var, e.Expr] = {}
        while len(self.journal) > mark:
            var, old = self.journal.pop()
            changed.setdefault(var, self.var_map[var])
            if old is None:
                del self.var_map[var]
            else:
                self.var_map[var] = old
        return changed

    # expressions -----------------------------------------------------------------------------------------------

    def visit_var(self, op: e.Var) -> e.Expr:
        made = self.var_map.get(op)
        if made is not None:
            return made
        if op in self.locals:
            raise PassError(
                f"'{op.name_hint}' has no value here: it is assigned only on some other way through the program; "
                "give it a value before the branch or loop that assigns it",
                self.place,
                op,
            )
        return op

    place: s.Stmt | None = None

    def visit_stmt(self, stmt: s.Stmt) -> s.Stmt:
        if not isinstance(stmt, s.SeqStmts):
            self.place = stmt
        return super().visit_stmt(stmt)

    def visit_call(self, op: e.Call) -> e.Expr:
        args, attrs = self.visit_exprs(op.args), self.visit_attrs(op.attrs)
        if args is op.args and attrs is op.attrs:
            return op
        return replace_call(op, args=args, attrs=attrs, type=self.call_type(op, args))

    def call_type(self, op: e.Call, args: tuple[e.Expr, ...]) -> Type:
        """The result type over the new operands: inferred anew when it mentions variables."""
        if not any(True for _ in type_vars(op.type)):
            return op.type
        if isinstance(op.op, e.GlobalVar) or find_op(op.op.name) is None:
            return self.visit_type(op.type)
        try:
            made = infer_type(op.op.name, args, op.kwargs, op.span)
        except (TypeError, ValueError):
            return self.visit_type(op.type)
        return made if type(made) is type(op.type) else self.visit_type(op.type)

    # statements ------------------------------------------------------------------------------------------------

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = self.visit_expr(op.value)
        type_ = self.assigned_type(op, value)
        if isinstance(value, e.Call) and type_ is not value.type and _is_op(value):
            value = replace_call(value, type=type_)
        return replace(op, var=self.version(op.var, "ssa", type_), value=value)

    def assigned_type(self, op: s.AssignStmt, value: e.Expr) -> Type:
        """Type of the new version: the value's, with the declared buffer; the declared one where it says more."""
        declared = op.var.type
        memref = getattr(declared, "memref", None)
        if type(value.type) is not type(declared) or not isinstance(declared, ShapedType):
            return self.visit_type(declared)
        if memref is not None and isinstance(value.type, (TileType, TensorType)):
            return _with_memref(value.type, self.visit_memref(memref))
        old = op.value.type
        same = old is declared or old == declared
        return value.type if same else self.visit_type(declared)

    def visit_if_stmt(self, op: s.IfStmt) -> s.Stmt:
        condition = self.visit_expr(op.condition)
        results = tuple(op.return_vars)
        _check_yields(op)
        then, then_vars = self.branch(op.then_body)
        other, other_vars = self.branch(op.else_body)
        then_ends, other_ends = _ends(op.then_body), _ends(op.else_body)
        merged: list[e.Var] = []
        if then_ends or other_ends:
            for var, made in (other_vars if then_ends else then_vars).items():
                if not (then_ends and other_ends):
                    self.bind(var, made)
        else:
            merged = [v for v in _by_name(then_vars, other_vars) if self.mergeable(v, then_vars, other_vars)]
        extra = [(self.get(v, then_vars), self.get(v, other_vars)) for v in merged]
        kept = tuple(self.version(v, "rv") for v in results)
        phis = tuple(self.version(v, "phi", a.type) for v, (a, _) in zip(merged, extra, strict=True))
        then = _add_yields(then, [a for a, _ in extra])
        if op.else_body is not None or extra:
            other = _add_yields(other, [b for _, b in extra])
        else:
            other = None
        return replace(op, condition=condition, then_body=then, else_body=other, return_vars=kept + phis)

    def branch(self, body: s.Stmt | None) -> tuple[s.Stmt | None, dict[e.Var, e.Expr]]:
        """A branch and the versions it leaves; the bindings from before are current again."""
        mark = len(self.journal)
        made = s.seq([]) if body is None else self.visit_stmt(body)
        return made, self.rollback(mark)

    def mergeable(self, var: e.Var, then: dict[e.Var, e.Expr], other: dict[e.Var, e.Expr]) -> bool:
        """Both branches have a value of `var`."""
        return (var in then and var in other) or var in self.var_map

    def get(self, var: e.Var, versions: dict[e.Var, e.Expr]) -> e.Expr:
        return versions[var] if var in versions else self.var_map[var]

    # loops -----------------------------------------------------------------------------------------------------

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        bounds = self.visit_exprs((op.start, op.stop, op.step))
        args, carried, before = self.enter(op)
        index = self.version(op.loop_var, "idx")
        body = self.loop_body(op, carried)
        start, stop, step = bounds
        loop = replace(
            op,
            loop_var=index,
            start=start,
            stop=stop,
            step=step,
            iter_args=args,
            body=body,
            return_vars=self.leave(op, carried),
            attrs=self.visit_attrs(op.attrs),
        )
        return s.seq([*before, loop]) if before else loop

    def visit_while_stmt(self, op: s.WhileStmt) -> s.Stmt:
        args, carried, before = self.enter(op)
        condition = self.visit_expr(op.condition)
        body = self.loop_body(op, carried)
        loop = replace(op, condition=condition, iter_args=args, body=body, return_vars=self.leave(op, carried))
        return s.seq([*before, loop]) if before else loop

    def enter(self, op: s.ForStmt | s.WhileStmt) -> tuple[tuple[e.IterArg, ...], list[_Carry], list[s.Stmt]]:
        """The iter args inside the loop; what it carries beyond its own; statements that make initial values."""
        facts = self.facts[op]
        before: list[s.Stmt] = []
        carried: list[_Carry] = []
        names = [v for v in facts.assigned if v in self.var_map or v in facts.read_after]
        self.mark = len(self.journal)
        own = [
            e.IterArg(a.name_hint, self.visit_type(a.type), self.visit_expr(a.initValue), a.span) for a in op.iter_args
        ]
        for var in sorted(names, key=lambda v: v.name_hint):
            init = self.var_map.get(var)
            if init is None:
                init = self.initial(var, op, before)
            arg = e.IterArg(self.fresh(var, "iter"), init.type, init, var.span)
            carried.append(_Carry(var, arg, self.fresh(var, "rv"), len(self.journal)))
        for old, new in zip(op.iter_args, own, strict=True):
            self.bind(old, new)
        for carry in carried:
            self.bind(carry.var, carry.arg)
        return (*own, *(c.arg for c in carried)), carried, before

    mark = 0

    def loop_body(self, op: s.ForStmt | s.WhileStmt, carried: list[_Carry]) -> s.Stmt:
        """The body with its yield completed; afterwards the bindings from before the loop are current."""
        mark = self.mark
        body = self.visit_stmt(op.body)
        made = _add_yields(body, [self.var_map[c.var] for c in carried])
        self.rollback(mark)
        self.mark = mark
        return made

    def leave(self, op: s.ForStmt | s.WhileStmt, carried: list[_Carry]) -> tuple[e.Var, ...]:
        """The results, current from now on."""
        own = []
        for var in op.return_vars:
            made = e.Var(var.name_hint, self.visit_type(var.type), var.span)
            self.bind(var, made)
            own.append(made)
        for carry in carried:
            made = e.Var(carry.result, carry.arg.type, carry.var.span)
            self.bind(carry.var, made)
            own.append(made)
        return tuple(own)

    def initial(self, var: e.Var, loop: s.Stmt, before: list[s.Stmt]) -> e.Expr:
        """What a variable that the loop defines first holds before its first iteration."""
        type_ = var.type
        if isinstance(type_, TensorType):
            for param, direction in self.func.pairs:
                current = self.var_map.get(param)
                fits = current is not None and current.type == type_
                if direction is not ParamDirection.In and fits and self.facts[loop].writes(param):
                    assert current is not None
                    return current
        value = _empty(type_, loop)
        if value is None:
            raise PassError(
                f"'{var.name_hint}' is assigned only inside this loop and read after it, and no empty value of type "
                f"{type_} can be made; assign it before the loop",
                loop,
                var,
            )
        first = s.AssignStmt(self.version(var, "ssa", value.type), value, loop.span)
        before.append(first)
        return first.var


@dataclass(frozen=True)
class _Carry:
    """One carried variable: the iter arg and the name of the result."""

    var: e.Var
    arg: e.IterArg
    result: str
    order: int


def _is_op(call: e.Call) -> bool:
    return not isinstance(call.op, e.GlobalVar)


def _with_memref(type_: TileType | TensorType, memref: e.MemRef) -> Type:
    if isinstance(type_, TileType):
        return TileType(type_.shape, type_.dtype, memref, type_.tile_view, type_.space)
    return replace(type_, memref=memref)


def _empty(type_: Type, loop: s.Stmt) -> e.Expr | None:
    if any(True for _ in type_vars(type_)):
        return None
    if isinstance(type_, ScalarType):
        if type_.dtype is BOOL:
            return e.ConstBool(False, loop.span)
        if type_.dtype.is_int():
            return e.ConstInt(0, type_.dtype, loop.span)
        return e.ConstFloat(0.0, type_.dtype, loop.span) if type_.dtype.is_float() else None
    shape = e.MakeTuple(getattr(type_, "shape", ()), loop.span)
    if isinstance(type_, TileType):
        kwargs: dict[str, Any] = {"dtype": type_.dtype, "target_memory": type_.space or MemorySpace.Vec}
        return create_op_call("tile.create", [shape], kwargs, span=loop.span)
    if isinstance(type_, TensorType):
        kwargs = {"dtype": type_.dtype, "layout": TensorLayout.ND}
        return create_op_call("tensor.create", [shape], kwargs, span=loop.span)
    return None


def _by_name(*maps: dict[e.Var, e.Expr]) -> list[e.Var]:
    """The keys of all maps once, by name; first come first among equal names."""
    return sorted({v: None for m in maps for v in reversed(m)}, key=lambda v: v.name_hint)


def _ends(body: s.Stmt | None) -> bool:
    """The body does not run to its end: it jumps or returns."""
    stmts = s.stmts_of(body)
    if not stmts:
        return False
    last = stmts[-1]
    if isinstance(last, s.IfStmt):
        return last.else_body is not None and _ends(last.then_body) and _ends(last.else_body)
    if isinstance(last, s.ScopeStmt):
        return _ends(last.body)
    return isinstance(last, (s.BreakStmt, s.ContinueStmt, s.ReturnStmt))


def _check_yields(op: s.IfStmt) -> None:
    """Every branch that runs to its end yields all results.

    Raises:
        PassError: at the yield that misses some, or at the if when a branch has none.
    """
    names = [base_name(v.name_hint) for v in op.return_vars]
    for word, body in (("first", op.then_body), ("else", op.else_body)):
        last = _last(body)
        made = len(last.value) if isinstance(last, s.YieldStmt) else 0
        if names and made != len(names) and not _ends(body):
            raise PassError(
                f"this if has the results {', '.join(names)}, but its {word} branch yields {made or 'nothing'}; end "
                f"both with {', '.join(names)} = pl.yield_(...), or use one name where both mean the same value",
                last if made else op,
            )


def _last(body: s.Stmt | None) -> s.Stmt | None:
    """The last statement; scopes are looked into."""
    stmts = s.stmts_of(body)
    if stmts and isinstance(stmts[-1], s.ScopeStmt):
        return _last(stmts[-1].body)
    return stmts[-1] if stmts else None


def _add_yields(body: s.Stmt | None, values: Sequence[e.Expr]) -> s.Stmt:
    """The body with `values` at the end of its yield; a yield is made when there is none."""
    stmts = list(s.stmts_of(body))
    span = body.span if body is not None else s.SeqStmts().span
    if not values:
        return s.seq(stmts, span)
    if stmts and isinstance(stmts[-1], s.YieldStmt):
        last = stmts.pop()
        assert isinstance(last, s.YieldStmt)
        values = [*last.value, *values]
        span = last.span
    return s.seq([*stmts, s.YieldStmt(tuple(values), span)], span)
