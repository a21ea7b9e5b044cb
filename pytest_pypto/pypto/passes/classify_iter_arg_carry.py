"""ClassifyIterArgCarry: whether a value that a host loop carries is the same buffer in every iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.dtypes import TASK_ID
from ..ir.enums import ForKind, FunctionType
from ..ir.program import Function, Program
from ..ir.types import ArrayType, ScalarType, TensorType, Type
from ..ir.visitor import IRMutator
from ._roots import WriteThrough, last_values
from ._util import PassError
from .base import FunctionPass


@dataclass(frozen=True)
class ClassifyIterArgCarry(FunctionPass):
    """Loop attribute `iter_arg_rebind_<i>`: False when the yielded value is the carried buffer, else True.

    A tensor that is yielded is the carried buffer when it was only written through (assemble, Out and InOut arguments,
    inner loops). Scalars, arrays and task ids are values: True. Task ids of a parallel loop also get
    `iter_arg_array_size_<i>`, the trip count.

    Raises (PassError): task ids carried by a parallel loop whose trip count is not constant.
    """

    name = "ClassifyIterArgCarry"
    requires = frozenset({"CallDirectionsResolved", "RuntimeScopesMaterialized"})
    produces = frozenset({"IterArgCarryClassified", "RuntimeScopesMaterialized"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with classified loops."""
        if func.func_type is not FunctionType.Orchestration:
            return func
        body = _Classifier(program).visit_stmt(func.body)
        return func if body is func.body else func.with_(body=body)


class _Classifier(IRMutator):
    """Adds the attributes to every for loop that carries something."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def visit_for_stmt(self, op: s.ForStmt) -> s.Stmt:
        made = super().visit_for_stmt(op)
        assert isinstance(made, s.ForStmt)
        if not made.iter_args:
            return made
        roots = WriteThrough(made.iter_args, self.program).scan(made.body)
        attrs = dict(made.attrs)
        for i, (arg, value) in enumerate(zip(made.iter_args, last_values(made.body), strict=False)):
            same = isinstance(arg.type, TensorType) and roots.of(value) is arg
            attrs[f"iter_arg_rebind_{i}"] = not same
            if made.kind is ForKind.Parallel and _is_task(arg.type):
                attrs[f"iter_arg_array_size_{i}"] = _trips(made)
        return replace(made, attrs=attrs)


def _is_task(type_: Type) -> bool:
    return isinstance(type_, (ScalarType, ArrayType)) and type_.dtype is TASK_ID


def _trips(loop: s.ForStmt) -> int:
    bounds = e.static_dims((loop.start, loop.stop, loop.step))
    if bounds is None or bounds[2] == 0:
        raise PassError(
            f"a pl.parallel loop that carries task ids needs constant bounds, got ({loop.start}, {loop.stop}, "
            f"{loop.step}); write the numbers, or collect the ids in a pl.range loop",
            loop,
        )
    return len(range(*bounds))
