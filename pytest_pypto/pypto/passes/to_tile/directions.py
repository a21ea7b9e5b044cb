"""Directions of kernel parameters, from what the kernel does with global memory."""

from __future__ import annotations

from ...ir import expr as e
from ...ir.enums import ParamDirection
from ...ir.op_table import find_op
from ...ir.program import Function
from ...ir.types import TensorType
from ...ir.visitor import calls_in
from .._roots import WriteThrough
from .._util import PassError

_READS_ONLY_STORAGE = frozenset({"tensor.dim"})


def with_directions(func: Function) -> Function:
    """In parameters that are written become Out, or InOut when they are read as well.

    Raises (PassError): stores and element writes into one parameter, which the core does not keep in order.
    """
    roots = WriteThrough(func.params).scan(func.body)
    stored: dict[e.Var, e.Call] = {}
    poked: dict[e.Var, e.Call] = {}
    read: set[e.Var] = set()
    for call in calls_in(func.body):
        if not isinstance(call, e.Call) or call.op.name in _READS_ONLY_STORAGE:
            continue
        target = _written(call)
        for k, arg in enumerate(call.args):
            root = roots.of(arg) if isinstance(arg, e.Var) and isinstance(arg.type, TensorType) else None
            if root is None:
                continue
            if k != target or call.kwargs.get("atomic"):
                read.add(root)
            if k == target:
                (poked if call.op.name == "tensor.write" else stored).setdefault(root, call)
    _check(stored, poked)
    written = {**stored, **poked}
    return _changed(func, written, read)


def _written(call: e.Call) -> int | None:
    """The operand that is written in place."""
    spec = find_op(call.op.name)
    return None if spec is None else spec.inplace


def _check(stored: dict[e.Var, e.Call], poked: dict[e.Var, e.Call]) -> None:
    for root, call in poked.items():
        if root in stored:
            raise PassError(
                f"'{root.name_hint}' is written by whole tiles and by pl.write in one kernel; the two ways to memory "
                "are not ordered: write the elements into the tile before it is stored",
                call,
                stored[root],
            )


def _changed(func: Function, written: dict[e.Var, e.Call], read: set[e.Var]) -> Function:
    pairs = []
    for var, direction in func.pairs:
        if direction is ParamDirection.In and var in written:
            direction = ParamDirection.InOut if var in read else ParamDirection.Out
        pairs.append((var, direction))
    return func if tuple(pairs) == func.pairs else func.with_(params=pairs)
