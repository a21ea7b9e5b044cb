"""MaterializeValidShapeSymbols: kernels get the valid extents that only their callers know as arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir import expr as e
from ..ir import extents
from ..ir.dtypes import INDEX
from ..ir.enums import ArgDirection, FunctionType, ParamDirection, is_incore_type
from ..ir.program import Function, Program
from ..ir.types import ScalarType, TensorType
from ..ir.visitor import IRMutator, replace_call, replace_submit
from ._util import PassError, expr_vars, type_vars
from .base import Pass
from .properties import SPLIT_ORCH

_CALLEES = (FunctionType.Group, FunctionType.Spmd)


@dataclass(frozen=True)
class MaterializeValidShapeSymbols(Pass):
    """A `pl.dynamic` symbol that a kernel only has in `valid_shape` becomes a leading scalar parameter of its name.

    Callers pass the valid extent that their argument has at that place (its whole extent when it has no valid shape);
    wrappers get the parameter as well. Symbols that also are an extent of a shape come with the tensor and stay.

    Raises (PassError): a symbol that no parameter has by itself (`N * 2`); arguments with different valid extents for
    one symbol; a caller that does not know the extent.
    """

    name = "MaterializeValidShapeSymbols"
    requires = frozenset({SPLIT_ORCH, "CallDirectionsResolved"})

    def apply(self, program: Program) -> Program:
        """The program in which every kernel gets its valid extents."""
        found = {f.name: _symbols(f) for f in program.functions.values() if _is_callee(f)}
        if not any(found.values()):
            return program
        return program.with_functions([_Passer(f, found).function() for f in program.functions.values()])


@dataclass(frozen=True)
class _Symbol:
    """A symbol and the (parameter, axis) places where it is the valid extent."""

    var: e.Var
    places: list[tuple[int, int]] = field(default_factory=list)


def _is_callee(func: Function) -> bool:
    return is_incore_type(func.func_type) or func.func_type in _CALLEES


def _symbols(func: Function) -> list[_Symbol]:
    """Symbols that only valid shapes of the parameters know, in the order of their first place."""
    tensors = [(i, p, p.type) for i, p in enumerate(func.params) if isinstance(p.type, TensorType)]
    known = {v for _, _, t in tensors for x in t.shape for v in expr_vars(x)} | set(func.params)
    found: dict[e.Var, _Symbol] = {}
    for i, _, type_ in tensors:
        for axis, extent in enumerate(_valid(type_)):
            if isinstance(extent, e.Var) and extent not in known:
                found.setdefault(extent, _Symbol(extent)).places.append((i, axis))
    for _, param, type_ in tensors:
        for extent in _valid(type_):
            for var in expr_vars(extent):
                if var not in known and var not in found:
                    raise PassError(
                        f"the valid shape of '{param.name_hint}' has the extent {extents.text([extent])}, from which "
                        f"'{var.name_hint}' cannot be told; give the extent a symbol of its own",
                        param,
                        func,
                    )
    return list(found.values())


def _valid(type_: TensorType) -> tuple[e.Expr, ...]:
    return () if type_.tensor_view is None else tuple(type_.tensor_view.valid_shape)


class _Passer(IRMutator):
    """Adds the parameters of one function and the arguments of its calls."""

    def __init__(self, func: Function, symbols: dict[str, list[_Symbol]]) -> None:
        super().__init__()
        self.func = func
        self.symbols = symbols
        self.own = symbols.get(func.name, [])
        for symbol in self.own:
            self.var_map[symbol.var] = e.Var(symbol.var.name_hint, ScalarType(INDEX), func.span)
        shapes = {v for p in func.params if isinstance(p.type, TensorType) for x in p.type.shape for v in expr_vars(x)}
        open_ = {v for p in func.params for v in type_vars(p.type)} - shapes - set(func.params)
        self.unknown = open_ - {symbol.var for symbol in self.own}

    def function(self) -> Function:
        """The function with its extents as leading parameters."""
        made = self.visit_function(self.func)
        if not self.own:
            return made
        lead = [(self.var_map[symbol.var], ParamDirection.In) for symbol in self.own]
        return made.with_(params=[*lead, *made.pairs])

    def visit_call(self, op: e.Call) -> e.Expr:
        made = super().visit_call(op)
        assert isinstance(made, e.Call)
        lead = self.arguments(made)
        if not lead:
            return made
        return replace_call(made, args=(*lead, *made.args), attrs=_with_directions(made, len(lead)))

    def visit_submit(self, op: e.Submit) -> e.Expr:
        made = super().visit_submit(op)
        assert isinstance(made, e.Submit)
        lead = self.arguments(made)
        if not lead:
            return made
        return replace_submit(made, args=(*lead, *made.args), attrs=_with_directions(made, len(lead)))

    def arguments(self, call: e.Call | e.Submit) -> list[e.Expr]:
        """The extents for a call; none for functions without symbols."""
        if not isinstance(call.op, e.GlobalVar):
            return []
        return [self.extent(symbol, call) for symbol in self.symbols.get(call.op.name, [])]

    def extent(self, symbol: _Symbol, call: e.Call | e.Submit) -> e.Expr:
        name = symbol.var.name_hint
        found: list[e.Expr] = []
        for index, axis in symbol.places:
            arg = call.args[index]
            assert isinstance(arg.type, TensorType)
            valid = _valid(arg.type)
            extent = valid[axis] if valid else arg.type.shape[axis]
            missing = [v for v in expr_vars(extent) if v in self.unknown]
            if missing:
                raise PassError(
                    f"'{call.op.name}' needs the valid extent '{name}', but its caller '{self.func.name}' has no value "
                    f"for '{missing[0].name_hint}'; pass it as a pl.Scalar[pl.INDEX] and slice with valid_shape",
                    call,
                    self.func,
                )
            if found and not extents.equal(found[0], extent):
                raise PassError(
                    f"'{call.op.name}' uses one symbol '{name}' for the valid extents {extents.text(found[:1])} and "
                    f"{extents.text([extent])} of this call; use two symbols, or pass windows of the same valid shape",
                    call,
                    self.func,
                )
            found.append(extent)
        return found[0]


def _with_directions(call: e.Call | e.Submit, count: int) -> dict[str, object]:
    directions = call.attrs.get("arg_directions")
    if directions is None:
        return dict(call.attrs)
    return call.attrs | {"arg_directions": [*[ArgDirection.Scalar] * count, *directions]}
