"""Which values may have a valid region smaller than their extent when the script runs.

Types say it where the region is part of the program; a window that may overhang its source, and what is made from one,
is found here. Arguments count over all calls of the program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...ir import expr as e
from ...ir.program import Function
from ...ir.structural import structural_equal
from ...ir.types import ShapedType, TensorType, TileType, Type
from ..ops.system import split_mode_to_int
from .bounds import Bounds
from .flow import Flow
from .storage import callee_of, handler_of

_WINDOWS = {"tile.load": (1, 2, 3), "tensor.slice": (2, 1, 3), "tile.slice": (2, 1, 3)}
"""Operators that read a window: the places of offsets, extents and valid extents."""
_PUSHES = {"tile.tpush_to_aiv": "aiv", "tile.tpush_to_aic": "aic"}
_POPS = {"tile.tpop_from_aic": "aiv", "tile.tpop_from_aiv": "aic"}


def declared_partial(type_: Type | None) -> bool:
    """True when a type gives a valid shape other than its shape."""
    return isinstance(type_, (TensorType, TileType)) and type_.valid_shape is not type_.shape and not _same(type_)


def _same(type_: TensorType | TileType) -> bool:
    have, want = type_.valid_shape, type_.shape
    return len(have) == len(want) and all(structural_equal(a, b) for a, b in zip(have, want, strict=True))


class Regions:
    """The variables and results that may be partial."""

    def __init__(self, flows: Mapping[str, Flow], functions: Mapping[str, Function], bounds: Bounds) -> None:
        self.flows, self.functions, self.bounds = flows, functions, bounds
        self.partial: set[e.Var] = set()
        self.results: dict[str, dict[int, bool]] = defaultdict(dict)
        self.pushed: dict[str, bool] = {"aiv": False, "aic": False}
        for flow in flows.values():
            self.partial |= {v for v in flow.defs if declared_partial(v.type)}
        while self._round():
            pass

    def _round(self) -> bool:
        before = (len(self.partial), sum(map(len, self.results.values())), tuple(self.pushed.values()))
        for name, flow in self.flows.items():
            for var, definitions in flow.defs.items():
                sources = [d.source for d in definitions if d.source is not None]
                if isinstance(var.type, ShapedType) and any(self.of(x) for x in sources):
                    self.partial.add(var)
            for values in flow.returns:
                for k, value in enumerate(values):
                    if self.of(value):
                        self.results[name][k] = True
            self._calls(flow)
        return before != (len(self.partial), sum(map(len, self.results.values())), tuple(self.pushed.values()))

    def _calls(self, flow: Flow) -> None:
        for call, _, _ in flow.calls:
            receiver = _PUSHES.get(call.op.name)
            if receiver is not None and call.args and (self.of(call.args[0]) or self._uneven(call)):
                self.pushed[receiver] = True
            callee = callee_of(call, self.functions)
            for param, arg in zip(callee.params if callee else (), call.args, strict=False):
                if self.of(arg):
                    self.partial.add(param)

    @staticmethod
    def _uneven(call: e.Call | e.Submit) -> bool:
        return split_mode_to_int(call.kwargs.get("split")) in (3, 4) or bool(call.kwargs.get("lane_stride"))

    def of(self, x: e.Expr) -> bool:
        """True when the value of `x` may have a partial region."""
        if isinstance(x, e.Var):
            return x in self.partial
        if isinstance(x, e.TupleGetItemExpr):
            whole = x.tuple
            if callee_of(whole, self.functions) is not None and isinstance(whole, (e.Call, e.Submit)):
                return self._result(whole, x.index)
            return self.of(whole)
        if isinstance(x, e.MakeTuple):
            return any(self.of(part) for part in x.elements)
        if callee_of(x, self.functions) is not None and isinstance(x, (e.Call, e.Submit)):
            return any(self._result(x, k) for k in range(9))
        return self._operator(x) if isinstance(x, e.Call) else False

    def _result(self, call: e.Call | e.Submit, index: int) -> bool:
        return self.results[call.op.name].get(index, False)

    def _operator(self, call: e.Call) -> bool:
        name = call.op.name
        handler = handler_of(call)
        if handler is None:
            return False
        if name in _WINDOWS:
            return self._window(call, *_WINDOWS[name])
        if name in _POPS:
            return self.pushed[_POPS[name]] or self._uneven(call) or declared_partial(call.type)
        if name.endswith("aiv_shard") and self._uneven_shard(call):
            return True
        if name in ("tile.tri", "tile.random", "tensor.random"):
            return len(call.args) in (3, 8) and isinstance(call.args[-1], e.MakeTuple)
        if name == "tile.mgather":
            return any(isinstance(a, e.MakeTuple) for a in call.args[2:]) or self.of(call.args[1])
        if handler.writes is not None:
            return self.of(call.args[handler.writes])
        if (name.endswith("reshape") and len(call.args) > 2) or (name == "tensor.transpose" and len(call.args) > 3):
            return True
        if name == "tensor.view" and len(call.args) > 2 and isinstance(call.args[2], e.MakeTuple):
            return True
        partials = [self.of(a) if isinstance(a.type, ShapedType) else False for a in call.args]
        return handler.result_partial(partials, [isinstance(a.type, ShapedType) for a in call.args])

    def _uneven_shard(self, call: e.Call) -> bool:
        split = split_mode_to_int(call.kwargs.get("split"))
        if not split or not isinstance(call.args[0].type, ShapedType):
            return False
        shape = call.args[0].type.shape
        extent = e.const_value(shape[0 if split in (1, 3) else 1]) if len(shape) > 1 else None
        return self._uneven(call) or extent is None or extent % 2 == 1

    def _window(self, call: e.Call, offsets: int, shapes: int, valid: int) -> bool:
        source = call.args[0]
        if self.of(source):
            return True
        extents = _items(call, shapes)
        if len(call.args) > valid and isinstance(call.args[valid], e.MakeTuple):
            wanted = _items(call, valid)
            if wanted and not _all_equal(wanted, extents):
                return True
        if call.op.name == "tile.slice":
            return False
        return not self._inside(source, _items(call, offsets), extents)

    def inside(self, call: e.Call) -> bool:
        """True when the window of a tile slice or extract is all data of its source, provably."""
        name = call.op.name
        if name not in ("tile.slice", "tile.extract") or self.of(call) or not isinstance(call.args[0].type, ShapedType):
            return False
        source = call.args[0]
        extents = _items(call, 1 if name == "tile.slice" else 3)
        offsets = _items(call, 2) if name == "tile.slice" else call.args[1:3]
        if not isinstance(call.type, ShapedType) or not len(extents) == len(offsets) == len(call.type.shape):
            return False
        lows = [self.bounds.of(x)[0] for x in offsets]
        return all(n is not None and n >= 0 for n in lows) and self._inside(source, offsets, extents)

    def _inside(self, source: e.Expr, offsets: Sequence[e.Expr], extents: Sequence[e.Expr]) -> bool:
        """True when the window provably lies inside its source."""
        if not isinstance(source.type, ShapedType):
            return False
        shape = source.type.shape[len(source.type.shape) - len(extents) :]
        for at, extent, size in zip(offsets[len(offsets) - len(extents) :], extents, shape, strict=False):
            high = self.bounds.of(at)[1]
            width, whole = e.const_value(extent), e.const_value(size)
            if high == 0 and structural_equal(extent, size):
                continue
            if high is None or width is None or whole is None or high + width > whole:
                return False
        return True


def _items(call: e.Call, place: int) -> tuple[e.Expr, ...]:
    arg = call.args[place] if place < len(call.args) else None
    return arg.elements if isinstance(arg, e.MakeTuple) else ()


def _all_equal(a: Sequence[e.Expr], b: Sequence[e.Expr]) -> bool:
    return len(a) == len(b) and all(structural_equal(x, y) for x, y in zip(a, b, strict=True))
