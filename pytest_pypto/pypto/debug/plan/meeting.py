"""Kernels whose two lanes must reach memory together.

Before a mixed kernel is taken apart, each lane's run also does the cube core's work. Where both cores touch one tensor,
a lane that runs to its end before the other starts would let the cube's store go ahead of the other lane's load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import FunctionType, MemorySpace
from ...ir.program import Function
from ...ir.types import TileType
from ...ir.visitor import walk_stmts

ACCESSES = {"tile.load": 0, "tile.store": 2}
"""Operator -> the operand that is the tensor."""


def meeting_functions(functions: Mapping[str, Function], two_lane: Iterable[str]) -> set[str]:
    """Those of the `two_lane` kernels, halved by the compiler, in which both cores touch a tensor that one writes."""
    return {name for name in two_lane if _halved(functions[name]) and _shares_memory(functions[name])}


def _halved(function: Function) -> bool:
    return function.func_type is FunctionType.InCore and not function.attrs.get("split_aiv_region_validated")


def _shares_memory(function: Function) -> bool:
    earlier = _versions(function)
    cores: dict[e.Expr, set[bool]] = {}
    written: set[e.Expr] = set()
    for stmt in walk_stmts(function.body):
        call = stmt.value if isinstance(stmt, s.AssignStmt) else None
        if not isinstance(stmt, s.AssignStmt) or not isinstance(call, e.Call) or call.op.name not in ACCESSES:
            continue
        root = _root(call.args[ACCESSES[call.op.name]], earlier)
        tile = stmt.var.type if call.op.name == "tile.load" else call.args[0].type
        cores.setdefault(root, set()).add(isinstance(tile, TileType) and tile.space is MemorySpace.Vec)
        if call.op.name == "tile.store":
            written.add(root)
    return any(len(cores[root]) == 2 for root in written)


def _root(x: e.Expr, earlier: Mapping[e.Var, e.Expr]) -> e.Expr:
    seen: set[e.Expr] = set()
    while isinstance(x, e.Var) and x in earlier and x not in seen:
        seen.add(x)
        x = earlier[x]
    return x


def _versions(function: Function) -> dict[e.Var, e.Expr]:
    """Tensor name -> the name of the same tensor before a store, loop or branch."""
    earlier: dict[e.Var, e.Expr] = {}
    for stmt in walk_stmts(function.body):
        if isinstance(stmt, s.AssignStmt):
            if isinstance(stmt.value, e.Var):
                earlier[stmt.var] = stmt.value
            elif isinstance(stmt.value, e.Call) and stmt.value.op.name == "tile.store":
                earlier[stmt.var] = stmt.value.args[2]
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
                earlier[arg] = earlier[result] = arg.initValue
        elif isinstance(stmt, s.IfStmt):
            last = s.stmts_of(stmt.then_body)[-1:]
            if last and isinstance(last[0], s.YieldStmt):
                earlier.update(zip(stmt.return_vars, last[0].value, strict=True))
    return earlier
