"""OptimizeOrchTensors: kernels know the strides of the windows they get, and assembles of the host become copies."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator
from ._assemble_fusion import assembles, fusions
from ._copy_kernel import CopyKernels
from ._strides import with_argument_strides
from .base import Pass
from .properties import SPLIT_ORCH, TILE_OPS

_HOSTS = (FunctionType.Orchestration,)


@dataclass(frozen=True)
class OptimizeOrchTensors(Pass):
    """Prepares what host functions pass to kernels.

    * A kernel parameter that is always given a window of a larger tensor (a slice, or a created tensor that
      FuseCreateAssembleToSlice makes a window) gets the strides of that tensor; its declared valid shape stays. A
      kernel that is given tensors of different strides is cloned per strides.
    * An assemble in a host function that cannot become such a window is done by a generated copy kernel.

    Raises (PassError): a window that may be of tensors of different strides; a copy of a tensor whose inner extents
    are not constant.
    """

    name = "OptimizeOrchTensors"
    requires = frozenset({SPLIT_ORCH, TILE_OPS})
    produces = frozenset({SPLIT_ORCH, TILE_OPS})

    def apply(self, program: Program) -> Program:
        """The program with copies and strides."""
        return with_argument_strides(_with_copies(program))


def _with_copies(program: Program) -> Program:
    """Assembles that cannot be windows, as calls of copy kernels."""
    kernels = CopyKernels(program)
    functions: list[Function] = []
    for func in program.functions.values():
        if func.func_type in _HOSTS and assembles(func):
            done = {f.assemble.var for f in fusions(func, program)}
            body = _Copier(kernels, done).visit_stmt(func.body)
            func = func if body is func.body else func.with_(body=body)
        functions.append(func)
    return program.with_functions([*functions, *kernels.made])


class _Copier(IRMutator):
    """Replaces assembles by calls."""

    def __init__(self, kernels: CopyKernels, keep: set[e.Var]) -> None:
        super().__init__()
        self.kernels = kernels
        self.keep = keep

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        call = op.value
        if not isinstance(call, e.Call) or call.op.name != "tensor.assemble" or op.var in self.keep:
            return op
        return s.seq(self.kernels.call(op, call), op.span)
