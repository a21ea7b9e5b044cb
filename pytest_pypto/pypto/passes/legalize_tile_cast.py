"""LegalizeTileCast: a conversion the processor lacks becomes a chain of conversions it has."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ..backend.handler import Handler, current_handler
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import DataType
from ..ir.op_table import create_op_call
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import IRMutator
from .base import FunctionPass
from .device_ir import is_device, kernel_error, op_call


@dataclass(frozen=True)
class LegalizeTileCast(FunctionPass):
    """Inserts the shortest chain of direct conversions; every step keeps the rounding mode the author asked for.

    Nothing happens when no architecture is selected. The table of direct conversions is the architecture's `casts`.
    """

    name = "LegalizeTileCast"

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with legal casts only.

        Raises:
            ValueError: no chain of conversions leads from the source type to the target type.
        """
        handler = current_handler()
        if handler is None or not is_device(func):
            return func
        body = _Chains(handler).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Chains(IRMutator):
    """Splits `v = tile.cast(x)`; temporaries are named `<v>__cast_<type>_tmp_v<n>`."""

    def __init__(self, handler: Handler) -> None:
        super().__init__()
        self.handler = handler
        self.count = 0

    def visit_assign_stmt(self, op: s.AssignStmt) -> s.Stmt:
        call = op_call(op)
        if call is None or call.op.name != "tile.cast" or not isinstance(call.args[0].type, TileType):
            return op
        source, target = call.args[0].type.dtype, call.kwargs["target_type"]
        path = conversion_path(self.handler.backend_type, source, target)
        if path is None:
            raise kernel_error(self.no_path(source, target), op.span)
        return op if len(path) == 1 else self.chain(op, call, path)

    def no_path(self, source: DataType, target: DataType) -> str:
        reachable = sorted(str(t) for t in reachable_types(self.handler.casts, source))
        return (
            f"tile.cast: {self.handler.arch} cannot convert {source} to {target}, directly or in steps; "
            f"from {source} it reaches {', '.join(reachable) or 'nothing'}"
        )

    def chain(self, op: s.AssignStmt, call: e.Call, path: tuple[DataType, ...]) -> s.Stmt:
        base = op.var.name_hint.removesuffix("__tile")
        value, made = call.args[0], []
        for step in path[:-1]:
            cast = create_op_call("tile.cast", [value], {**call.kwargs, "target_type": step}, span=call.span)
            var = e.Var(f"{base}__cast_{step}_tmp_v{self.count}", cast.type, call.span)
            self.count += 1
            made.append(s.AssignStmt(var, cast, op.span))
            value = var
        last = e.Call(call.op, [value], call.kwargs, call.attrs, call.type, call.span)
        return s.SeqStmts((*made, s.AssignStmt(op.var, last, op.span, leading_comments=op.leading_comments)), op.span)


@cache
def conversion_path(backend: object, source: DataType, target: DataType) -> tuple[DataType, ...] | None:
    """The types after each step of the shortest chain from `source` to `target`; None when there is none.

    Of chains of one length the one that loses least is taken: over floats, and over wider types, first.
    """
    handler = current_handler()
    assert handler is not None
    assert handler.backend_type is backend
    queue: deque[tuple[DataType, tuple[DataType, ...]]] = deque([(source, ())])
    seen = {source}
    while queue:
        at, path = queue.popleft()
        for following in sorted(handler.casts.get(at, ()), key=lambda t: (not t.is_float(), -t.get_bit(), t.code())):
            if following is target:
                return (*path, following)
            if following not in seen:
                seen.add(following)
                queue.append((following, (*path, following)))
    return None


def reachable_types(casts: Mapping[DataType, frozenset[DataType]], source: DataType) -> set[DataType]:
    """Every type that some chain of conversions reaches from `source`."""
    found: set[DataType] = set()
    todo = [source]
    while todo:
        fresh = casts.get(todo.pop(), frozenset()) - found
        found |= fresh
        todo.extend(fresh)
    return found - {source}
