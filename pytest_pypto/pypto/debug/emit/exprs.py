"""Expressions as Python text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import expr as e
from ...ir.dtypes import DataType
from ...ir.enums import ParamDirection
from ...ir.program import Function
from ...ir.types import ArrayType, ScalarType, ShapedType, TupleType
from ..dtypes import is_stored_otherwise, torch_name
from ..names import NameTable
from ..ops.system import handler_of
from ..ops.table import Operand, OpHandler, Site, number, wrapped
from ..plan.bounds import core_num_of
from ..plan.plan import Plan
from ..plan.regions import declared_partial
from ..plan.storage import Storage

_SIGNS = {cls: cls.symbol for cls in e.BINARY_CLASSES if cls not in (e.Min, e.Max, e.Xor)} | {e.Xor: "^"}
_READERS = frozenset({"tile.load", "tensor.read", "tile.read", "tensor.dim"})
"""Operators that take memory as it is: they convert what they read, or read no element."""
_POPS = ("tile.tpop_from_aic", "tile.tpop_from_aiv")


class ExprWriter:
    """Writes the expressions of one function. `hoist` puts a statement in front and gives back a name."""

    def __init__(
        self, plan: Plan, function: Function | None, names: NameTable, hoist: Callable[[str], str], in_lane: bool
    ) -> None:
        self.plan, self.function, self.names, self.hoist, self.in_lane = plan, function, names, hoist, in_lane
        name = function.name if function is not None else ""
        self.storage = plan.storage.get(name, Storage())
        self.analysis = plan.analyses.get(name)
        self.launched = name in plan.launched
        self.wide: dict[str, str] = {}
        """Names of operands of products that were converted to FP32 before the loop."""

    def text(self, x: e.Expr, packed: bool = False) -> str:
        """The text of an expression; `packed` asks for comparison masks in packed form."""
        if isinstance(x, e.Var):
            return self.names.of(x)
        if isinstance(x, (e.ConstInt, e.ConstFloat, e.ConstBool)):
            return number(x.value)
        if isinstance(x, e.MakeTuple):
            return _tuple([self.text(part) for part in x.elements])
        if isinstance(x, e.TupleGetItemExpr):
            return f"{wrapped(self.text(x.tuple))}[{x.index}]"
        if isinstance(x, e.BinaryExpr):
            return self._binary(x)
        if isinstance(x, e.UnaryExpr):
            return self._unary(x)
        if isinstance(x, e.Submit):
            return self._submit(x)
        if isinstance(x, e.Call):
            return self._function_call(x) if isinstance(x.op, e.GlobalVar) else self._operator(x, packed)
        raise TypeError(f"torch_codegen cannot write a {type(x).__name__}")

    def _binary(self, x: e.BinaryExpr) -> str:
        left, right = self.text(x.left), self.text(x.right)
        if isinstance(x, (e.Min, e.Max)):
            return f"{x.symbol}({left}, {right})"
        return f"({left} {_SIGNS[type(x)]} {right})"

    def _unary(self, x: e.UnaryExpr) -> str:
        inner = self.text(x.operand)
        if isinstance(x, e.Abs):
            return f"abs({inner})"
        if isinstance(x, e.Cast):
            given = x.operand.type
            same = isinstance(given, ScalarType) and _fits(given.dtype, x.dtype)
            return inner if same else f'_cast_scalar({inner}, "{x.dtype}")'
        return (
            f"(not {inner})"
            if isinstance(x, e.Not)
            else f"({x.symbol}{inner})"
            if isinstance(x, e.Neg)
            else f"(~{inner})"
        )

    def operand(self, x: e.Expr, packed: bool = True) -> Operand:
        """An operand of an operator."""
        text = self.text(x, packed)
        if text.startswith("yield "):
            text = f"({text})"
        items = tuple(self.text(part) for part in x.elements) if isinstance(x, e.MakeTuple) else ()
        return Operand(text, x, x.type, self.plan.regions.of(x), items)

    def _operator(self, call: e.Call, packed: bool) -> str:
        handler = handler_of(call.op.name)
        selects = call.op.name in ("tile.sel", "tile.sels")
        operands = [self.operand(a, packed=not (selects and k == 0)) for k, a in enumerate(call.args)]
        if not isinstance(handler, OpHandler):
            return str(handler([o.text for o in operands], call.kwargs))
        if handler.writes is None and handler.view is None and call.op.name not in _READERS:
            for operand in operands:
                self._lift(operand)
        if id(call) in self.storage.copy_target and handler.writes is not None:
            operands[handler.writes].text = _copied(operands[handler.writes])
        site = Site(call.op.name, operands, call.kwargs, call.type, self.hoist, self._facts(call, packed))
        text = self._tagged(call, handler, handler.render(site))
        if id(call) in self.storage.snapshot:
            return f"_snapshot({text})" if self.plan.regions.of(call) else f"{wrapped(text)}.clone()"
        return text

    def _lift(self, operand: Operand) -> None:
        """Bring the values of an argument from a torch type without arithmetic to the one that holds them."""
        if operand.expr is None or not operand.is_tensor or not is_stored_otherwise(operand.dtype):
            return
        if self.analysis is None or any(isinstance(root, e.Var) for root in self.analysis.trace(operand.expr)[0]):
            operand.text = f'_held({operand.text}, "{operand.dtype}")'

    def _facts(self, call: e.Call, packed: bool) -> dict[str, Any]:
        first = call.args[0] if call.args else None
        made = isinstance(first, e.Call) and first.op.name in ("tile.cmp", "tile.cmps")
        return {
            "write_through": id(call) in self.storage.write_through,
            "writable": id(call) in self.storage.writable,
            "mask": made or (isinstance(first, e.Var) and first in self.plan.masks),
            "packed": packed,
            "wide": self.wide,
            "inside": self.plan.regions.inside(call),
            "shared": id(call) in self.plan.shared,
            "yields": self.in_lane,
            "launched": self.launched,
            "both_lanes": self.function is not None and self.function.name in self.plan.two_lane,
        }

    def _tagged(self, call: e.Call, handler: OpHandler, text: str) -> str:
        """Record the valid region that a type declares where the operator itself records none."""
        popped = call.op.name in _POPS
        if not (handler.region == "full" or popped) or not declared_partial(call.type) or handler.writes is not None:
            return text
        valid = self.valid_of(call.type)
        if valid is None:
            return text
        text = f"({text})" if text.startswith("yield ") else text
        return f"{'_default_valid' if popped else '_with_valid'}({text}, {valid})"

    def valid_of(self, type_: Any) -> str | None:
        """The valid extents of a type as a tuple, or None when they mention something that has no name here."""
        dims = type_.valid_shape
        from ...ir.visitor import uses_of

        known = all(self.names.known(v) is not None for d in dims for v in uses_of(d))
        return _tuple([self.text(d) for d in dims]) if known else None

    def _callee(self, name: str) -> Function | None:
        callee = self.plan.functions.get(name)
        if callee is None and self.function is not None and len(self.plan.functions) > 1:
            raise ValueError(
                f"function '{self.function.name}' calls '{name}', which the program does not have "
                f"(it has: {', '.join(sorted(self.plan.functions))}); add it or correct the call"
            )
        return callee

    def _function_call(self, call: e.Call) -> str:
        callee = self._callee(call.op.name)
        args = [self.operand(a).text for a in call.args]
        text = self.invoked(call.op.name, args, core_num_of(call))
        if callee is not None and not _returns(callee) and isinstance(call.type, (ShapedType, TupleType)):
            return self._outputs(text, callee, args)
        return text

    def invoked(self, name: str, args: list[str], launch: list[e.Expr]) -> str:
        """The text that runs function `name` on `args`, once or once per block."""
        joined = ", ".join(args)
        pair = name in self.plan.pairs
        if launch:
            target = f"_run_group_call, '{name}'" if pair else name
            return f"_run_spmd({self.text(launch[0])}, {target}{', ' if args else ''}{joined})"
        lane = self.in_lane and name in self.plan.waiting
        if pair:
            runner = "yield from _group_lane" if lane else "_run_group_call"
            text = f"{runner}('{name}'{', ' if args else ''}{joined})"
            return f"({text})" if lane else text
        return f"(yield from {name}.lane({joined}))" if lane else f"{name}({joined})"

    def _outputs(self, text: str, callee: Function, args: list[str]) -> str:
        """The outputs of a kernel that returns nothing: the arguments it was given for them."""
        outs = [a for a, d in zip(args, callee.param_directions, strict=False) if d is not ParamDirection.In]
        if not outs:
            return text
        return f"({text}, {outs[0]})[1]" if len(outs) == 1 else f"({text}, {_tuple(outs)})[1]"

    def _submit(self, call: e.Submit) -> str:
        """A submitted kernel runs at once; the value is its results and the id of a task that has run."""
        callee = self._callee(call.op.name)
        args = self._arguments(call, callee)
        text = self.invoked(call.op.name, args, core_num_of(call))
        if callee is not None and not _returns(callee):
            text = self._outputs(text, callee, args)
        outs = (
            []
            if callee is None
            else [a for a, d in zip(args, callee.param_directions, strict=False) if d is not ParamDirection.In]
        )
        results = len(call.type.types) - 1 if isinstance(call.type, TupleType) else 1
        if call.predicate is not None:
            skipped = outs[0] if results == 1 and outs else _tuple(outs[:results])
            text = f"({text} if {self.text(call.predicate)} else {skipped})"
        if results == 1:
            return f"({text}, _new_task_id())"
        return f"({text}, _new_task_id())[1:]" if results == 0 else f"(*{text}, _new_task_id())"

    def _arguments(self, call: e.Submit, callee: Function | None) -> list[str]:
        """The arguments of a submit, with fresh tensors for the outputs it leaves to the runtime."""
        given = [self.operand(a).text for a in call.args]
        if callee is None or len(given) == len(callee.params):
            return given
        rest = iter(given)
        outs = [d is ParamDirection.Out for d in callee.param_directions]
        fill = len(given) == len(outs) - sum(outs)
        full = []
        for k, param in enumerate(callee.params):
            left = None if fill and outs[k] else next(rest, None)
            full.append(self._fresh(param) if left is None else left)
        return full

    def _fresh(self, param: e.Var) -> str:
        type_ = param.type
        if not isinstance(type_, ShapedType):
            raise ValueError(
                f"submit of a kernel leaves out the argument '{param.name_hint}', which is no tensor; pass it"
            )
        return f"torch.zeros({_tuple([self.text(d) for d in type_.shape])}, dtype={torch_name(type_.dtype)})"


def _copied(operand: Operand) -> str:
    return f"_snapshot({operand.text})" if operand.partial else f"{wrapped(operand.text)}.clone()"


def _returns(callee: Function) -> bool:
    """True when a function returns a value somewhere."""
    from ...ir.stmt import ReturnStmt
    from ...ir.visitor import walk_stmts

    return any(isinstance(x, ReturnStmt) and x.value for x in walk_stmts(callee.body))


def _fits(given: DataType, wanted: DataType) -> bool:
    """True when a scalar conversion changes no Python number."""
    wide = (DataType.INDEX, DataType.INT64)
    if given is wanted or (given.is_signed_int() and wanted in wide):
        return True
    return given.is_unsigned_int() and wanted in wide and given is not DataType.UINT64


def _tuple(parts: list[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def is_tensor(type_: object) -> bool:
    """True for tensors and tiles."""
    return isinstance(type_, ShapedType) and not isinstance(type_, ArrayType)
