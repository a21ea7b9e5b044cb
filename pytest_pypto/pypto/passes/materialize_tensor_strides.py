"""MaterializeTensorStrides: explicit tensor views say their strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..ir import expr as e
from ..ir import extents
from ..ir.enums import TensorLayout
from ..ir.program import Function, Program
from ..ir.types import TensorType, TensorView, Type
from ..ir.visitor import IRMutator
from ._util import PassError
from .base import Pass
from .properties import TILES_PLACED


@dataclass(frozen=True)
class MaterializeTensorStrides(Pass):
    """Fills `stride=[]` of tensor types that have a view: row-major for ND; for DN the second-last axis has stride 1.

    Raises (PassError): a tensor of layout NZ, which has no strides.
    """

    name = "MaterializeTensorStrides"
    requires = TILES_PLACED
    produces = TILES_PLACED | {"TensorViewCanonical"}

    def apply(self, program: Program) -> Program:
        """The program with strides in every explicit tensor view."""
        return program.with_functions([_Strides(f).visit_function(f) for f in program.functions.values()])


class _Strides(IRMutator):
    """Rewrites tensor types."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.func = func

    def _tensor_type(self, t: TensorType) -> Type:
        made = super()._tensor_type(t)
        assert isinstance(made, TensorType)
        view = made.tensor_view
        if view is None or view.stride:
            return made
        if view.layout is TensorLayout.NZ:
            raise PassError(
                f"a tensor of layout NZ has no strides ({made} in '{self.func.name}'); use ND or DN in this place",
                self.func,
            )
        if view.layout not in (TensorLayout.ND, TensorLayout.DN):
            return made
        filled = TensorView(strides_of(made.shape, view.layout), view.layout, view.valid_shape, view.pad)
        return replace(made, tensor_view=filled)


def strides_of(shape: Sequence[e.Expr], layout: TensorLayout = TensorLayout.ND) -> tuple[e.Expr, ...]:
    """Strides of a packed tensor, in elements."""
    order = list(range(len(shape)))
    if layout is TensorLayout.DN and len(shape) > 1:
        order[-1], order[-2] = order[-2], order[-1]
    strides: list[e.Expr] = [e.index(1)] * len(shape)
    step: e.Expr = e.index(1)
    for axis in reversed(order):
        strides[axis] = step
        step = extents.mul(shape[axis], step)
    return tuple(strides)
