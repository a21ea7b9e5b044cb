"""StampTfreeSplit: each free of a pipe slot gets the split code and pipe id of the pop it belongs to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.program import Function, Program
from ..ir.visitor import IRMutator, replace_call, walk_stmts
from .base import FunctionPass
from .device_ir import is_device, kernel_error, op_call
from .mixed.slot_order import POPS, freed_tile, shared_storage


@dataclass(frozen=True)
class StampTfreeSplit(FunctionPass):
    """Copies `split` and `id` from pops to frees."""

    name = "StampTfreeSplit"
    requires = frozenset({"SplitIncoreOrch"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with stamped frees.

        Raises:
            ValueError: a free of a tile that was not popped, popped from the other side, or with another pipe id.
        """
        if not is_device(func) or not any(freed_tile(x) is not None for x in walk_stmts(func.body)):
            return func
        body = _Stamp(func.body).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Stamp(IRMutator):
    def __init__(self, body: s.Stmt) -> None:
        super().__init__()
        self._origin: dict[e.Var, e.Call] = {}
        for stmt in walk_stmts(body):
            if isinstance(stmt, s.AssignStmt):
                call, source = op_call(stmt), shared_storage(stmt)
                if call is not None and call.op.name in POPS:
                    self._origin[stmt.var] = call
                elif isinstance(source, e.Var) and source in self._origin:
                    self._origin[stmt.var] = self._origin[source]

    def visit_eval_stmt(self, op: s.EvalStmt) -> s.Stmt:
        call, tile = op_call(op), freed_tile(op)
        if call is None or tile is None:
            return super().visit_eval_stmt(op)
        pop = self._origin.get(tile)
        if pop is None:
            raise kernel_error(
                f"{call.op.name} frees '{tile.name_hint}', which is not the result of a pop; free the popped tile",
                op.span,
            )
        if POPS[pop.op.name] != call.op.name:
            raise kernel_error(
                f"{call.op.name} frees '{tile.name_hint}', which came from {pop.op.name}; use {POPS[pop.op.name]}",
                op.span,
            )
        kwargs = _stamped(call, pop, op)
        return (
            op
            if list(kwargs.items()) == list(call.kwargs.items())
            else replace(op, expr=replace_call(call, kwargs=kwargs))
        )


def _stamped(call: e.Call, pop: e.Call, stmt: s.Stmt) -> dict[str, Any]:
    mine, theirs = call.kwargs.get("id"), pop.kwargs.get("id")
    if mine is not None and mine != (theirs or 0):
        raise kernel_error(
            f"{call.op.name} names pipe id {mine}, but the tile was popped from pipe {theirs or 0}; use the same id",
            stmt.span,
        )
    kwargs: dict[str, Any] = {"split": int(pop.kwargs.get("split", 0))}
    if theirs is not None:
        kwargs["id"] = theirs
    return kwargs
