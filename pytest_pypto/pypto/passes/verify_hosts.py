"""Checks of what host functions promise: outlined scopes, known callees, directions, scopes and carries."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType, ParamDirection, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import calls_in, walk_stmts
from ._util import is_call
from .diagnostic_types import Diagnostic
from .verify_flow import Rule, error, per_function


def _no_scopes(rule: str, what: str, *kinds: type[s.ScopeStmt]) -> Rule:
    """No scope of these kinds is left outside Inline functions."""

    def check(func: Function) -> Iterator[Diagnostic]:
        if func.func_type is not FunctionType.Inline:
            for stmt in walk_stmts(func.body):
                if isinstance(stmt, kinds):
                    yield error(rule, f"{what} is left", stmt.span)

    return per_function(check)


def references_resolved(program: Program) -> Iterator[Diagnostic]:
    """Host functions call functions of the program."""
    for func in program.functions.values():
        for call in calls_in(func.body) if func.func_type is FunctionType.Orchestration else ():
            if isinstance(call.op, e.GlobalVar) and program.get_function(call.op.name) is None:
                text = f"Function '{func.name}': calls '{call.op.name}', which the program does not have"
                yield error("OrchestrationReferencesResolved", text, call.span)


def call_directions_resolved(program: Program) -> Iterator[Diagnostic]:
    """Every call of a function has one direction per argument."""
    for func in program.functions.values():
        for call in calls_in(func.body):
            if not isinstance(call.op, e.GlobalVar) or program.get_function(call.op.name) is None:
                continue
            directions = call.attrs.get("arg_directions")
            if directions is None or len(directions) != len(call.args):
                have = "no" if directions is None else str(len(directions))
                text = (
                    f"Function '{func.name}': {have} directions for the {len(call.args)} arguments of '{call.op.name}'"
                )
                yield error("CallDirectionsResolved", text, call.span)


def runtime_scopes_materialized(func: Function) -> Iterator[Diagnostic]:
    """Host functions have explicit scopes."""
    if func.func_type is FunctionType.Orchestration and func.attrs.get("auto_scope") is not False:
        yield error("RuntimeScopesMaterialized", "scopes of task lifetimes are not explicit", func.span)


def iter_arg_carry_classified(func: Function) -> Iterator[Diagnostic]:
    """Every carry of a host loop is classified."""
    if func.func_type is FunctionType.Orchestration:
        for stmt in walk_stmts(func.body):
            if not isinstance(stmt, s.ForStmt):
                continue
            for i, arg in enumerate(stmt.iter_args):
                if f"iter_arg_rebind_{i}" not in stmt.attrs:
                    yield error("IterArgCarryClassified", f"carry '{arg.name_hint}' is not classified", stmt.span)


def manual_deps_on_submit_only(func: Function) -> Iterator[Diagnostic]:
    """Only submits name the tasks they wait for."""
    for call in calls_in(func.body):
        if isinstance(call, e.Call) and isinstance(call.op, e.GlobalVar) and call.attrs.get("manual_dep_edges"):
            text = f"the call of '{call.op.name}' names tasks to wait for; only pl.submit can"
            yield error("ManualDepsOnSubmitOnly", text, call.span)


def inout_use_valid(program: Program) -> Iterator[Diagnostic]:
    """What a function writes through is storage: a tensor variable."""
    for func in program.functions.values():
        for call in calls_in(func.body):
            callee = program.get_function(call.op.name) if isinstance(call.op, e.GlobalVar) else None
            if callee is None:
                continue
            for arg, param, direction in zip(call.args, callee.params, callee.param_directions, strict=False):
                if direction is not ParamDirection.In and isinstance(param.type, TensorType) and not _is_storage(arg):
                    text = (
                        f"Function '{func.name}': '{callee.name}' writes its parameter '{param.name_hint}', so the "
                        "argument must be a tensor variable"
                    )
                    yield error("InOutUseValid", text, call.span)


def _is_storage(arg: e.Expr) -> bool:
    return isinstance(arg, (e.Var, e.TupleGetItemExpr)) or is_call(arg, "tensor.slice", "tensor.create")


def out_param_not_shadowed(func: Function) -> Iterator[Diagnostic]:
    """No Out parameter becomes the name of a new tensor."""
    outs = {p for p, d in func.pairs if d is not ParamDirection.In}
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.AssignStmt) and stmt.var in outs and is_call(stmt.value, "tensor.create"):
            text = f"'{stmt.var.name_hint}' is an output, and a new tensor takes its name: nothing reaches the caller"
            yield error("OutParamNotShadowed", text, stmt.span)


def core_code_outlined(func: Function) -> Iterator[Diagnostic]:
    """Core code is in kernels."""
    if func.func_type is FunctionType.Inline or is_incore_type(func.func_type):
        return
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.InCoreScopeStmt):
            yield error("SplitIncoreOrch", "a CORE_GROUP region is left", stmt.span)


HOST_RULES: dict[str, Rule] = {
    "SplitIncoreOrch": per_function(core_code_outlined),
    "HierarchyOutlined": _no_scopes("HierarchyOutlined", "a scope of another level", s.HierarchyScopeStmt),
    "ClusterOutlined": _no_scopes("ClusterOutlined", "a cluster", s.ClusterScopeStmt, s.SpmdScopeStmt),
    "OrchestrationReferencesResolved": references_resolved,
    "CallDirectionsResolved": call_directions_resolved,
    "RuntimeScopesMaterialized": per_function(runtime_scopes_materialized),
    "IterArgCarryClassified": per_function(iter_arg_carry_classified),
    "ManualDepsOnSubmitOnly": per_function(manual_deps_on_submit_only),
    "InOutUseValid": inout_use_valid,
    "OutParamNotShadowed": per_function(out_param_not_shadowed),
}
