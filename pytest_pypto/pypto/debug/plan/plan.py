"""All that is known about a program before its script is written."""

from __future__ import annotations

import math

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.program import Function, Program
from ...ir.types import ShapedType
from ...ir.visitor import calls_in, collect_def_vars
from ..dtypes import is_narrow_float
from .bounds import Bounds
from .flow import Flow, flow_of
from .groups import Pair, launched_functions, pairs_of, syncing_functions, two_lane_functions, waiting_functions
from .meeting import meeting_functions
from .regions import Regions
from .sharing import Sharing
from .storage import Analysis, Storage, Summary, callee_of

PRODUCTS = frozenset(
    f"{space}.{name}" for space in ("tensor", "tile") for name in ("matmul", "matmul_acc", "matmul_bias")
)
_MASK_MAKERS = ("tile.cmp", "tile.cmps")
_MASK_READERS = ("tile.sel", "tile.sels")


class Plan:
    """Facts about a program, or about a function on its own."""

    def __init__(self, node: Program | Function) -> None:
        listed = [node] if isinstance(node, Function) else list(node.functions.values())
        self.functions: dict[str, Function] = {f.name: f for f in listed}
        self.flows: dict[str, Flow] = {f.name: flow_of(f) for f in listed}
        self.pairs: dict[str, Pair] = pairs_of(self.functions) if isinstance(node, Program) else {}
        self.syncing = syncing_functions(self.flows, self.pairs)
        self.two_lane = two_lane_functions(self.functions, self.pairs)
        self.meeting = meeting_functions(self.functions, self.two_lane)
        self.waiting = waiting_functions(self.flows, self.functions, self.pairs, self.meeting)
        self.launched = launched_functions(self.flows, self.functions)
        self.regions = Regions(self.flows, self.functions, Bounds(self.flows, self.functions))
        self.summaries: dict[str, Summary] = {}
        self.storage: dict[str, Storage] = {}
        self.analyses: dict[str, Analysis] = {}
        for name in self._callees_first():
            self.analyses[name] = Analysis(self.flows[name], self.functions, self.summaries)
            self.summaries[name] = self.analyses[name].summary()
            self.storage[name] = self.analyses[name].decide()
        sharing = Sharing(self.analyses, self.summaries, self.functions, self.pairs)
        self.shared = {k for name in self.functions for k in sharing.loads(name)}
        """Ids of loads that need no copy."""
        self.members = {m for pair in self.pairs.values() for m in (pair.aic, pair.aiv)}
        self.masks = {v for flow in self.flows.values() for v in _logical_masks(flow)}

    def invariant_factors(self, name: str, loop: s.ForStmt | s.WhileStmt) -> list[e.Var]:
        """Narrow float operands of products in a loop that are neither defined nor written in it.

        With them the tensors of which the loop's products read windows, when the windows add up to all of them.
        """
        made = set(collect_def_vars(loop))
        inside = list(calls_in(loop.body))
        factors = [a for c in inside for a in c.args if isinstance(c, e.Call) and c.op.name in PRODUCTS]
        windows = [a.args[0] for a in factors if isinstance(a, e.Call) and _sweeps(a, loop)]
        wanted = dict.fromkeys(a for a in (*factors, *windows) if isinstance(a, e.Var) and a not in made)
        ids = {id(c) for c in inside}
        analysis = self.analyses[name]
        touched = {r for _, target, call in analysis.writes if id(call) in ids for r in analysis.trace(target)[0]}
        return [
            v
            for v in wanted
            if isinstance(v.type, ShapedType)
            and is_narrow_float(v.type.dtype)
            and v not in self.regions.partial
            and not analysis.roots[v] & touched
        ]

    def _callees_first(self) -> list[str]:
        order: list[str] = []
        seen: set[str] = set()

        def visit(name: str) -> None:
            if name in seen:
                return
            seen.add(name)
            for call, _, _ in self.flows[name].calls:
                callee = callee_of(call, self.functions)
                if callee is not None:
                    visit(callee.name)
            order.append(name)

        for name in self.functions:
            visit(name)
        return order


def _sweeps(window: e.Call, loop: s.ForStmt | s.WhileStmt) -> bool:
    """As many elements as the source has are read by windows of this form in the turns of a loop."""
    if window.op.name != "tensor.slice" or len(window.args) != 3 or window.kwargs or not isinstance(loop, s.ForStmt):
        return False
    source, shape = window.args[0].type, window.args[1]
    bounds = e.static_dims((loop.start, loop.stop, loop.step))
    if bounds is None or not bounds[2] or not isinstance(source, ShapedType) or not isinstance(shape, e.MakeTuple):
        return False
    cut, whole = e.static_dims(shape.elements), e.static_dims(source.shape)
    return cut is not None and whole is not None and len(range(*bounds)) * math.prod(cut) >= math.prod(whole)


def _logical_masks(flow: Flow) -> set[e.Var]:
    """Comparison results that only selections read: they stay bool tensors of the logical shape."""
    made = {}
    for var, definitions in flow.defs.items():
        sources = [d.source for d in definitions]
        if sources and all(isinstance(x, e.Call) and x.op.name in _MASK_MAKERS for x in sources):
            made[var] = 0
    for call, _, _ in flow.calls:
        if call.op.name in _MASK_READERS and isinstance(call.args[0], e.Var) and call.args[0] in made:
            made[call.args[0]] += 1
    return {v for v, reads in made.items() if reads == len(flow.uses.get(v, ()))}
