"""AutoDeriveTaskDependencies: the edges between the tasks of a straight host program, written down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import ArgDirection, FunctionType
from ..ir.op_table import find_op
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import IRMutator, calls_in, replace_call, walk_stmts
from ._roots import WriteThrough
from ._util import is_call
from .base import FunctionPass
from .properties import SPLIT_ORCH

EDGES = "compiler_manual_dep_edges"
SCOPE_CANDIDATE = "__compiler_auto_manual_scope_candidate"
LAYER_CANDIDATE = "__compiler_auto_manual_layer_candidate"
_READS = (ArgDirection.Input, ArgDirection.InOut)
_WRITES = (ArgDirection.InOut, ArgDirection.OutputExisting, ArgDirection.Output)


@dataclass(frozen=True)
class AutoDeriveTaskDependencies(FunctionPass):
    """Gives calls of a host function without control flow and explicit tasks the tasks they wait for.

    An input whose writers are all known becomes `no_dep`, and the call names the writers' results in
    `compiler_manual_dep_edges`. When every call's waits are known, MaterializeRuntimeScopes puts the function into a
    manual scope, where the runtime looks nothing up. Other functions stay as they are: the runtime finds their edges.
    Runs only with `analyze_auto_scopes_for_deps=True`; made by hand with `analyze_auto_scopes=False` it does nothing.
    """

    analyze_auto_scopes: bool = True

    name = "AutoDeriveTaskDependencies"
    requires = frozenset({SPLIT_ORCH, "CallDirectionsResolved"})
    produces = frozenset({"CallDirectionsResolved"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with explicit edges."""
        if not self.analyze_auto_scopes:
            return func
        if func.func_type is not FunctionType.Orchestration or func.attrs.get("auto_scope") is False:
            return func
        if not _is_straight(func) or _is_called(func, program):
            return func
        deriver = _Deriver(func, program)
        body = deriver.visit_stmt(func.body)
        if body is func.body:
            return func
        return func.with_(body=body, attrs=func.attrs | {LAYER_CANDIDATE: True})


def _is_straight(func: Function) -> bool:
    """Only kernels' calls, created tensors and windows of them; every call's results have a name."""
    for stmt in walk_stmts(func.body):
        if isinstance(stmt, s.AssignStmt):
            if not _is_known(stmt.value):
                return False
        elif not isinstance(stmt, (s.SeqStmts, s.ReturnStmt)):
            return False
    return True


def _is_known(value: e.Expr) -> bool:
    if isinstance(value, e.Submit):
        return False
    if not isinstance(value, e.Call):
        return True
    if isinstance(value.op, e.GlobalVar):
        return "arg_directions" in value.attrs
    spec = find_op(value.op.name)
    return is_call(value, "tensor.create", "tensor.slice", "tensor.dim") and spec is not None


def _is_called(func: Function, program: Program) -> bool:
    return any(c.op.name == func.name for f in program.functions.values() for c in calls_in(f.body))


@dataclass
class _Writers:
    """Results of the calls that wrote a buffer and are not yet waited for by a later writer of all of it."""

    results: list[e.Var] = field(default_factory=list)


class _Deriver(IRMutator):
    """Follows a straight body; windows count as the buffer they lie in."""

    def __init__(self, func: Function, program: Program) -> None:
        super().__init__()
        made = [
            x.var
            for x in walk_stmts(func.body)
            if isinstance(x, s.AssignStmt) and is_call(x.value, "tensor.create", "tensor.slice")
        ]
        self.roots = WriteThrough([*func.params, *made], program).scan(func.body)
        self.inside: dict[e.Var, e.Var] = {}
        self.writers: dict[e.Var, _Writers] = {}

    def buffer(self, value: e.Expr) -> e.Var | None:
        root = self.roots.of(value)
        while root is not None and root in self.inside:
            root = self.inside[root]
        return root

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        value = op.value
        if is_call(value, "tensor.slice") and isinstance(value, e.Call):
            parent = self.buffer(value.args[0])
            if parent is not None:
                self.inside[op.var] = parent
        if not isinstance(value, e.Call) or not isinstance(value.op, e.GlobalVar):
            return op
        made = self.call(value)
        self.wrote(value, op.var)
        return op if made is value else replace(op, value=made)

    def call(self, call: e.Call) -> e.Call:
        """The call with its edges."""
        directions = list(call.attrs["arg_directions"])
        edges: dict[e.Var, None] = {}
        for i, (arg, direction) in enumerate(zip(call.args, directions, strict=True)):
            if direction not in _READS or not isinstance(arg.type, TensorType):
                continue
            buffer = self.buffer(arg)
            found = [] if buffer is None else self.writers.get(buffer, _Writers()).results
            edges.update(dict.fromkeys(found))
            if found and direction is ArgDirection.Input:
                directions[i] = ArgDirection.NoDep
        if not edges:
            return call
        attrs = {**call.attrs, "arg_directions": directions, EDGES: list(edges), SCOPE_CANDIDATE: True}
        return replace_call(call, attrs=attrs)

    def wrote(self, call: e.Call, result: e.Var) -> None:
        """Note what a call writes; an inout over a whole buffer stands for the writers before it."""
        for arg, direction in zip(call.args, call.attrs["arg_directions"], strict=True):
            buffer = self.buffer(arg) if direction in _WRITES else None
            if buffer is None:
                continue
            writers = self.writers.setdefault(buffer, _Writers())
            if direction is ArgDirection.InOut:
                writers.results = []
            writers.results.append(result)
