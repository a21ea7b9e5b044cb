"""InitMemRef: every tensor and tile gets a buffer; on-chip buffers are declared at the top of the kernel."""

from __future__ import annotations

from dataclasses import dataclass

from ..backend import BackendType
from ..backend.handler import current_handler, handler_for
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType
from ..ir.visitor import collect_def_vars
from .base import FunctionPass
from .device_ir import is_device
from .memory.attach import AttachBuffers, alloc_stmt
from .memory.declared import Declared
from .memory.separate import separate_values


@dataclass(frozen=True)
class InitMemRef(FunctionPass):
    """Attaches MemRefs: views, in-place updates and loop carries share, everything else gets its own buffer."""

    name = "InitMemRef"
    requires = frozenset({"SSAForm", "SplitIncoreOrch", "IncoreTileOps", "TileOps2D", "TileMemoryInferred"})
    produces = frozenset({"HasMemRefs", "NormalizedStmtStructure"})
    invalidates = frozenset({"SSAForm"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with buffers.

        Raises:
            ValueError: a declared buffer is bound to a view, to two memory spaces, or to a tile of run-time shape.
        """
        if not any(isinstance(v.type, (TensorType, TileType)) for v in (*func.params, *collect_def_vars(func.body))):
            return func
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        if is_device(func):
            func = func.with_(body=separate_values(func.body))
        attach = AttachBuffers(handler, Declared(func.body, handler))
        made = attach.visit_function(func)
        if not attach.allocations:
            return made
        allocs = tuple(alloc_stmt(a, func.body.span) for a in attach.allocations)
        return made.with_(body=s.SeqStmts((*allocs, *s.stmts_of(made.body)), made.body.span))
