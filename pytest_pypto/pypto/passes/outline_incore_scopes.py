"""OutlineIncoreScopes: every CORE_GROUP region becomes a kernel, and its function the host program that calls it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType, SplitMode, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import IRMutator, walk_stmts
from ._outline import (
    FunctionNames,
    Outlined,
    Parent,
    Target,
    call_stmts,
    outline,
    submit_stmts,
    submit_type,
)
from ._util import PassError, is_call
from .base import Pass
from .properties import SPLIT_ORCH, SSA

_HOSTS = (FunctionType.Opaque, FunctionType.Orchestration)


@dataclass(frozen=True)
class OutlineIncoreScopes(Pass):
    """Kernels from `with pl.at(level=pl.Level.CORE_GROUP)` and from the inner part of `pl.spmd`.

    Parameters are the captured variables in order of first mention (initial values of loops before their bodies),
    with the directions that the region's own stores show; results are what is used outside, and a result written
    through a parameter is returned as that parameter. A region with a task id or dependencies becomes a submit.
    In the host function `pl.tensor.dim` of a dynamic extent is replaced by the extent's symbol.

    Raises (PassError): nested regions; `pl.split` together with `pl.split_aiv`; tiles or computed scalars that leave
    their region.
    """

    name = "OutlineIncoreScopes"
    requires = frozenset({SSA})
    produces = frozenset({SSA, SPLIT_ORCH, "AivSplitValid"})

    def apply(self, program: Program) -> Program:
        """The program with one function per region."""
        names = FunctionNames(program)
        functions: list[Function] = []
        for func in program.functions.values():
            functions += _outlined(func, program, names)
        return program.with_functions(functions)


def _outlined(func: Function, program: Program, names: FunctionNames) -> list[Function]:
    scopes = [x for x in walk_stmts(func.body) if isinstance(x, s.InCoreScopeStmt)]
    if func.func_type not in _HOSTS:
        if scopes and is_incore_type(func.func_type):
            raise PassError(
                f"a CORE_GROUP region stands in kernel '{func.name}', which already runs on a core group; remove the "
                "`with pl.at(...)`",
                scopes[0],
            )
        return [func]
    if not scopes:
        return [func]
    _check_nesting(scopes)
    func = _symbols_for_dims(func)
    scopes = [x for x in walk_stmts(func.body) if isinstance(x, s.InCoreScopeStmt)]
    outliner = _Outliner(Parent(func, program), _names(func, scopes, names))
    body = outliner.visit_stmt(func.body)
    kind = FunctionType.Orchestration
    host = func.with_(body=body, type=kind) if func.func_type is not kind else func.with_(body=body)
    return [*outliner.made, host]


def _check_nesting(scopes: list[s.InCoreScopeStmt]) -> None:
    for scope in scopes:
        inner = next((x for x in walk_stmts(scope.body) if isinstance(x, s.InCoreScopeStmt)), None)
        if inner is not None:
            raise PassError(
                "a CORE_GROUP region is nested in another CORE_GROUP region; a kernel cannot start a kernel: put the "
                "regions one after the other",
                inner,
                scope,
            )


def _names(func: Function, scopes: list[s.InCoreScopeStmt], names: FunctionNames) -> Iterator[str]:
    hints: list[str] = []
    unnamed = 0
    for scope in scopes:
        if scope.name_hint:
            hints.append(scope.name_hint)
        else:
            hints.append(f"{func.name}_incore_{unnamed}")
            unnamed += 1
    return names.hints(func, hints)


class _Outliner(IRMutator):
    """Replaces the regions of one function by calls."""

    def __init__(self, parent: Parent, names: Iterator[str]) -> None:
        super().__init__()
        self.parent = parent
        self.names = names
        self.made: list[Function] = []

    def visit_seq_stmts(self, op: s.SeqStmts) -> s.Stmt:
        made: list[s.Stmt] = []
        for i, stmt in enumerate(op.stmts):
            following = op.stmts[i + 1] if i + 1 < len(op.stmts) else None
            if not is_task_placeholder(stmt, following):
                made += s.stmts_of(self.visit_stmt(stmt))
        same = len(made) == len(op.stmts) and all(a is b for a, b in zip(made, op.stmts, strict=True))
        return op if same else s.SeqStmts(tuple(made), op.span)

    def visit_in_core_scope_stmt(self, op: s.InCoreScopeStmt) -> s.Stmt:
        target = Target(next(self.names), FunctionType.InCore, attrs=_attrs(op))
        out = outline(self.parent, op, op.body, target)
        self.made.append(out.func)
        return s.seq(_call(out, op), op.span)


def is_task_placeholder(stmt: s.Stmt, following: s.Stmt | None) -> bool:
    """The `tid = task_invalid()` in front of a region that defines `tid`."""
    return (
        isinstance(stmt, s.AssignStmt)
        and isinstance(following, (s.InCoreScopeStmt, s.SpmdScopeStmt))
        and following.attrs.get("task_id_var") is stmt.var
        and is_call(stmt.value, "system.task_invalid")
    )


def _call(out: Outlined, scope: s.InCoreScopeStmt) -> list[s.Stmt]:
    """A call, or a submit when the region has a task id or dependencies."""
    attrs = call_attrs(scope, out)
    if "task_id_var" not in scope.attrs and not scope.attrs.get("manual_dep_edges"):
        if scope.attrs.get("allow_early_resolve"):
            attrs["allow_early_resolve"] = True
        return call_stmts(out, attrs, scope)
    submit = e.Submit(
        e.GlobalVar(out.func.name),
        out.args,
        tuple(scope.attrs.get("manual_dep_edges") or ()),
        attrs=attrs,
        type=submit_type(out.results),
        span=scope.span,
        allow_early_resolve=bool(scope.attrs.get("allow_early_resolve")),
    )
    return submit_stmts(out, submit, scope.attrs.get("task_id_var"), scope)


def call_attrs(scope: s.ScopeStmt, out: Outlined) -> dict[str, Any]:
    """Attributes of the call: tensors to dump, arguments without ordering."""
    attrs: dict[str, Any] = {}
    if scope.attrs.get("dump_vars"):
        attrs["dump_vars"] = list(scope.attrs["dump_vars"])
    free = scope.attrs.get("arg_direction_overrides_vars")
    if free:
        attrs["arg_direction_overrides"] = [i for i, a in enumerate(out.args) if any(a is v for v in free)]
    return attrs


def _attrs(scope: s.InCoreScopeStmt) -> dict[str, Any]:
    """Function attributes from the options of a region."""
    attrs: dict[str, Any] = {}
    if scope.attrs.get("slot_num") is not None:
        attrs["slot_num"] = scope.attrs["slot_num"]
    regions = [x for x in walk_stmts(scope.body) if isinstance(x, s.SplitAivScopeStmt)]
    if regions:
        if scope.split is not SplitMode.NONE:
            raise PassError(
                f"the region has pl.split(pl.SplitMode.{scope.split.name}) and a pl.split_aiv region inside; they "
                "exclude each other: keep one of them",
                regions[0],
                scope,
            )
        attrs["split_aiv"] = True
        modes = {x.split for x in regions}
        if len(modes) == 1 and SplitMode.NONE not in modes:
            attrs["split"] = modes.pop().value
    elif scope.split is not SplitMode.NONE:
        attrs["split"] = scope.split.value
    if scope.attrs.get("windowize"):
        attrs["windowize"] = True
    return attrs


def _symbols_for_dims(func: Function) -> Function:
    """`n = pl.tensor.dim(param, axis)` of a dynamic extent: the extent's symbol in place of n."""
    params = set(func.params)
    symbols: dict[e.Var, e.Expr] = {}
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.AssignStmt) and is_call(stmt.value, "tensor.dim"):
            assert isinstance(stmt.value, e.Call)
            source, axis = stmt.value.args
            at = e.const_value(axis)
            if source in params and isinstance(source.type, TensorType) and at is not None:
                dim = source.type.shape[at]
                if isinstance(dim, e.Var):
                    symbols[stmt.var] = dim
    if not symbols:
        return func
    return func.with_(body=_Symbols(symbols).visit_stmt(func.body))


class _Symbols(IRMutator):
    """Substitutes symbols and drops the assignments they replace."""

    def __init__(self, symbols: dict[e.Var, e.Expr]) -> None:
        super().__init__()
        self.var_map.update(symbols)
        self.gone = set(symbols)

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        return s.seq([]) if op.var in self.gone else super().visit_assign_stmt(op)
