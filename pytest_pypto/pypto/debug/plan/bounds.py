"""Lowest and highest values of integer scalars, as far as constants tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.dtypes import DataType
from ...ir.program import Function
from ...ir.types import ScalarType
from .flow import Flow

Range = tuple[int | None, int | None]
UNKNOWN: Range = (None, None)


class Bounds:
    """Ranges of the scalars of a program; arguments of functions that the program calls come from its calls."""

    def __init__(self, flows: Mapping[str, Flow], functions: Mapping[str, Function]) -> None:
        self._defs: dict[e.Var, list[e.Expr | None]] = {}
        self._loops: dict[e.Var, s.ForStmt] = {}
        self._known: dict[e.Var, Range] = {}
        self._open: set[e.Var] = set()
        launches: list[e.Expr] = []
        for flow in flows.values():
            self._loops |= flow.loop_vars
            for var, definitions in flow.defs.items():
                if isinstance(var.type, ScalarType) and var not in flow.loop_vars:
                    self._defs.setdefault(var, []).extend(d.source for d in definitions)
            launches += [scope.core_num for scope in flow.scopes if isinstance(scope, s.SpmdScopeStmt)]
            launches += [size for call, _, _ in flow.calls for size in core_num_of(call)]
        for flow in flows.values():
            for call, _, _ in flow.calls:
                self._arguments(call, functions)
        sizes = [e.const_value(x) for x in launches]
        self._blocks: Range = (0, None if None in sizes else max([n for n in sizes if n is not None], default=1) - 1)

    def _arguments(self, call: e.Call | e.Submit, functions: Mapping[str, Function]) -> None:
        callee = functions.get(call.op.name) if isinstance(call.op, e.GlobalVar) else None
        for param, arg in zip(callee.params if callee else (), call.args, strict=False):
            if isinstance(param.type, ScalarType):
                given = self._defs.setdefault(param, [None])
                self._defs[param] = [*(x for x in given if x is not None), arg]

    def of(self, x: e.Expr) -> Range:
        """The range of an expression."""
        if isinstance(x, e.ConstInt):
            return x.value, x.value
        if isinstance(x, e.Var):
            return self._variable(x)
        if isinstance(x, e.Call):
            return self._call(x.op.name)
        if isinstance(x, e.BinaryExpr) and type(x) in _RULES:
            return _RULES[type(x)](self.of(x.left), self.of(x.right))
        if isinstance(x, e.Cast) and x.dtype in (DataType.INDEX, DataType.INT64):
            return self.of(x.operand)
        return UNKNOWN

    def _call(self, name: str) -> Range:
        if name.endswith(".get_subblock_idx"):
            return 0, 1
        if name.endswith(".get_block_idx"):
            return self._blocks
        return UNKNOWN

    def _variable(self, var: e.Var) -> Range:
        if var in self._known:
            return self._known[var]
        if var in self._open:
            return UNKNOWN
        self._open.add(var)
        found = self._loop(self._loops[var]) if var in self._loops else self._joined(self._defs.get(var, [None]))
        self._open.discard(var)
        if not self._open:
            self._known[var] = found
        return found

    def _loop(self, loop: s.ForStmt) -> Range:
        step = e.const_value(loop.step)
        start, stop = self.of(loop.start), self.of(loop.stop)
        if step is None or step == 0:
            return UNKNOWN
        if step < 0:
            return _plus(stop[0], 1), start[1]
        return start[0], _plus(stop[1], -1)

    def _joined(self, sources: Iterable[e.Expr | None]) -> Range:
        ranges = [UNKNOWN if x is None else self.of(x) for x in sources]
        lows, highs = [r[0] for r in ranges], [r[1] for r in ranges]
        low = None if None in lows or not lows else min(n for n in lows if n is not None)
        return low, None if None in highs or not highs else max(n for n in highs if n is not None)


def core_num_of(call: e.Call | e.Submit) -> list[e.Expr]:
    """The number of blocks that a call or submit launches, as a list of none or one."""
    found = call.core_num if isinstance(call, e.Submit) else call.attrs.get("core_num")
    return [] if found is None else [found if isinstance(found, e.Expr) else e.index(int(found))]


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _add(a: Range, b: Range) -> Range:
    return _plus(a[0], b[0]), _plus(a[1], b[1])


def _sub(a: Range, b: Range) -> Range:
    return _plus(a[0], None if b[1] is None else -b[1]), _plus(a[1], None if b[0] is None else -b[0])


def _mul(a: Range, b: Range) -> Range:
    if None in a or None in b:
        fixed, other = (a, b) if None not in a and a[0] == a[1] else (b, a)
        if None in fixed or fixed[0] != fixed[1] or fixed[0] is None or fixed[0] < 0:
            return UNKNOWN
        scale = fixed[0]
        ends = tuple(None if n is None else n * scale for n in other)
        return ends[0], ends[1]
    corners = [x * y for x in a for y in b if x is not None and y is not None]
    return min(corners), max(corners)


def _floordiv(a: Range, b: Range) -> Range:
    if b[0] is None or b[0] != b[1] or b[0] <= 0:
        return UNKNOWN
    divisor = b[0]
    ends = tuple(None if n is None else n // divisor for n in a)
    return ends[0], ends[1]


def _mod(a: Range, b: Range) -> Range:
    return (0, b[1] - 1) if b[0] is not None and b[0] > 0 and b[1] is not None else UNKNOWN


def _min(a: Range, b: Range) -> Range:
    highs = [n for n in (a[1], b[1]) if n is not None]
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    return low, min(highs) if highs else None


def _max(a: Range, b: Range) -> Range:
    lows = [n for n in (a[0], b[0]) if n is not None]
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max(lows) if lows else None, high


_RULES: dict[type[e.BinaryExpr], Callable[[Range, Range], Range]] = {
    e.Add: _add,
    e.Sub: _sub,
    e.Mul: _mul,
    e.FloorDiv: _floordiv,
    e.FloorMod: _mod,
    e.Min: _min,
    e.Max: _max,
}
