"""ConvertTensorToTileOps: kernels compute on tiles."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import expr as e
from ..ir import extents
from ..ir import stmt as s
from ..ir.enums import FunctionType, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import TensorType, TileType
from ..ir.visitor import calls_in, walk_stmts
from ._util import PassError
from .base import Pass
from .properties import NORM, SPLIT_ORCH, SSA, TILE_OPS
from .to_tile.callers import forward_outputs
from .to_tile.directions import with_directions
from .to_tile.kernel import Kernel, Output


@dataclass(frozen=True)
class ConvertTensorToTileOps(Pass):
    """In kernels (InCore functions) every operator on tensors becomes one on tiles.

    Parameters that compute operators consume are loaded once at the head; slices of memory become loads, to Mat where
    only the cube core reads them; assembles into memory become stores; returned values get Out parameters that the
    callers create. Valid shapes travel with the tiles. Directions of written In parameters are corrected.

    Raises (PassError): operators that kernels do not have; tiles without constant extents; a tensor that is written
    both by stores and element by element.
    """

    name = "ConvertTensorToTileOps"
    requires = frozenset({SSA, SPLIT_ORCH, NORM})
    produces = frozenset({SSA, TILE_OPS, NORM, "AivSplitValid"})
    invalidates = frozenset({"AivSplitValid"})

    def apply(self, program: Program) -> Program:
        """The program with converted kernels and adapted callers."""
        outputs: dict[str, list[Output]] = {}
        functions: list[Function] = []
        for func in program.functions.values():
            made = func
            if is_incore_type(func.func_type):
                _refuse_empty(func)
            if func.func_type is FunctionType.InCore and _needs_conversion(func):
                kernel = Kernel(func, program)
                made = kernel.convert()
                if kernel.outputs:
                    outputs[func.name] = kernel.outputs
            functions.append(with_directions(made) if is_incore_type(made.func_type) else made)
        return forward_outputs(program.with_functions(functions), outputs)


def _refuse_empty(func: Function) -> None:
    """Kernels work on something.

    Raises:
        PassError: at a parameter or value with the literal extent 0.
    """
    assigned = ((x.var, x) for x in walk_stmts(func.body) if isinstance(x, s.AssignStmt))
    for var, place in (*((p, func) for p in func.params), *assigned):
        shape = var.type.shape if isinstance(var.type, (TensorType, TileType)) else ()
        if any(e.const_value(d) == 0 for d in shape):
            raise PassError(
                f"'{var.name_hint}' in a kernel has the shape {extents.text(shape)} with an extent 0: nothing is "
                "computed; give every axis at least 1, and say with valid_shape= how much of it counts",
                var.span if var.span.is_valid() else place,
            )


def _needs_conversion(func: Function) -> bool:
    """The kernel has tensor operators, or gives back a tile."""
    if any(isinstance(c, e.Call) and c.op.name.startswith("tensor.") for c in calls_in(func.body)):
        return True
    last = s.stmts_of(func.body)[-1:]
    returned = last[0].value if last and isinstance(last[0], s.ReturnStmt) else ()
    return any(isinstance(v.type, TileType) for v in returned)
