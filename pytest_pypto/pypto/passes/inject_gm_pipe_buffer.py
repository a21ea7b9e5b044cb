"""InjectGMPipeBuffer: where pipes go through global memory, their buffer becomes an argument."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..backend import BackendType
from ..backend.handler import current_handler, handler_for
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import FP32
from ..ir.enums import FunctionType, ParamDirection, TensorLayout, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType
from ..ir.visitor import calls_in, replace_call, replace_submit
from .base import Pass
from .device_ir import body_like, nested_bodies, op_assign, with_bodies
from .mixed.pipes import has_setup

PARAM = "__gm_pipe_buffer"
_FORWARDING = (FunctionType.Group, FunctionType.Spmd)


def _buffer_type() -> TensorType:
    return TensorType((e.index(1),), FP32)


@dataclass(frozen=True)
class InjectGMPipeBuffer(Pass):
    """Adds the pipe buffer to every function that uses a pipe and to the wrappers around it; callers create it.

    The tensor is declared with one element; its size follows from the pipes and is worked out by code generation.
    """

    name = "InjectGMPipeBuffer"
    requires = frozenset({"SSAForm", "MixedKernelExpanded", "NormalizedStmtStructure"})
    produces = requires

    def apply(self, program: Program) -> Program:
        """The program with pipe buffers; itself on architectures whose pipes stay on the chip."""
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        if not handler.gm_pipe_buffer:
            return program
        takers = _takers(program)
        if not takers:
            return program
        return program.with_functions([_inject(f, takers) for f in program.functions.values()])


def _takers(program: Program) -> set[str]:
    functions = list(program.functions.values())
    takers = {f.name for f in functions if is_incore_type(f.func_type) and has_setup(f.body)}
    calls = {f.name: {c.op.name for c in calls_in(f.body) if isinstance(c.op, e.GlobalVar)} for f in functions}
    forwarding = [f.name for f in functions if f.func_type in _FORWARDING or is_incore_type(f.func_type)]
    grew = True
    while grew:
        more = {name for name in forwarding if name not in takers and not calls[name].isdisjoint(takers)}
        grew = bool(more)
        takers |= more
    return takers


def _inject(func: Function, takers: set[str]) -> Function:
    if func.name in takers and all(p.name_hint != PARAM for p in func.params):
        param = e.Var(PARAM, _buffer_type(), func.span)
        body = _Caller(takers, param).body(func.body)
        return func.with_(params=[*func.pairs, (param, ParamDirection.Out)], body=body)
    body = _Caller(takers, None).body(func.body)
    return func if body is func.body else func.with_(body=body)


class _Caller:
    """Adds the argument to calls: the function's own parameter, or a tensor created before the call."""

    def __init__(self, takers: set[str], param: e.Var | None) -> None:
        self.takers = takers
        self.param = param
        self.count = 0

    def body(self, body: s.Stmt) -> s.Stmt:
        made: list[s.Stmt] = []
        for stmt in s.stmts_of(body):
            bodies = nested_bodies(stmt)
            if isinstance(stmt, s.ScopeStmt):
                made.append(replace(stmt, body=self.body(stmt.body)))  # type: ignore[type-var]
            elif bodies:
                made.append(with_bodies(stmt, [self.body(b) for b in bodies]))
            else:
                made.extend(self._stmt(stmt))
        return body_like(body, made)

    def _stmt(self, stmt: s.Stmt) -> list[s.Stmt]:
        value = stmt.value if isinstance(stmt, s.AssignStmt) else stmt.expr if isinstance(stmt, s.EvalStmt) else None
        if not isinstance(value, (e.Call, e.Submit)) or not isinstance(value.op, e.GlobalVar):
            return [stmt]
        if value.op.name not in self.takers:
            return [stmt]
        create: list[s.Stmt] = []
        buffer = self.param
        if buffer is None:
            buffer = e.Var(f"gm_pipe_buffer_{self.count}", _buffer_type(), stmt.span)
            self.count += 1
            kwargs = {"dtype": FP32, "layout": TensorLayout.ND, "manual_dep": True}
            create.append(op_assign(buffer, "tensor.create", [e.make_tuple([1])], kwargs, stmt.span))
        args = (*value.args, buffer)
        made = replace_call(value, args=args) if isinstance(value, e.Call) else replace_submit(value, args=args)
        if isinstance(stmt, s.AssignStmt):
            return [*create, replace(stmt, value=made)]
        assert isinstance(stmt, s.EvalStmt)
        return [*create, replace(stmt, expr=made)]
