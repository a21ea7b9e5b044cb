"""MaterializeSemanticAliases: a loop's new value is computed in the buffer that carries it."""

from __future__ import annotations

from dataclasses import dataclass

from ..backend import BackendType
from ..backend.handler import current_handler, handler_for
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import walk_stmts
from .base import FunctionPass
from .context import MemoryPlanner, active_planner
from .device_ir import is_device
from .memory.align import align_values
from .memory.carries import Retarget
from .memory.marks import without_marks


@dataclass(frozen=True)
class MaterializeSemanticAliases(FunctionPass):
    """Retargets the producers of yielded tiles; with planners that do not reuse memory, also copies what is left."""

    name = "MaterializeSemanticAliases"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps", "HasMemRefs", "TileOps2D", "NormalizedStmtStructure"})
    produces = frozenset({"NormalizedStmtStructure"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function whose carries are updated in place where possible."""
        if not is_device(func):
            return func
        body = func.body
        planner = active_planner()
        copies = planner is not MemoryPlanner.PYPTO  # with that planner MemoryReuse brings the branches together
        if copies or _carries_tile(body):
            handler = current_handler() or handler_for(BackendType.Ascend910B)
            body = Retarget(body, handler, branches=copies).apply(body)
        if planner is MemoryPlanner.PTOAS:  # no later pass of this planner reads or removes the marks
            body = without_marks(body)
        made = func if body is func.body else func.with_(body=body)
        return align_values(made) if copies else made


def _carries_tile(body: s.Stmt) -> bool:
    loops = (x for x in walk_stmts(body) if isinstance(x, (s.ForStmt, s.WhileStmt)))
    return any(isinstance(a.type, TileType) for x in loops for a in x.iter_args)
