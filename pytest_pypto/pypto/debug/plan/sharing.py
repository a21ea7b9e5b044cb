"""Loads that need no copy: tiles read from memory that nothing writes while a kernel runs.

A load counts as such when its source is a parameter that neither the kernel nor its partner on the other core writes,
when no call of the program passes the same memory to a parameter that is written, and when the tile is only read.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import expr as e
from ...ir.program import Function
from .flow import Flow, names_reached
from .groups import Pair
from .storage import Analysis, Summary, callee_of


class Sharing:
    """Which parameters only ever stand for memory that is read."""

    def __init__(
        self,
        analyses: Mapping[str, Analysis],
        summaries: Mapping[str, Summary],
        functions: Mapping[str, Function],
        pairs: Mapping[str, Pair],
    ) -> None:
        self.analyses, self.functions = analyses, functions
        self.written: dict[str, set[int]] = {name: set(s.writes) for name, s in summaries.items()}
        for pair in pairs.values():
            if pair.direct:
                both = self.written[pair.aic] | self.written[pair.aiv]
                self.written[pair.aic] = self.written[pair.aiv] = both
            else:
                for name in (pair.aic, pair.aiv):
                    self.written[name] = set(range(len(functions[name].params)))
        self.aliased: set[tuple[str, int]] = set()
        while self._round():
            pass

    def _round(self) -> bool:
        before = len(self.aliased)
        for name, analysis in self.analyses.items():
            place = {p: k for k, p in enumerate(self.functions[name].params)}
            for call, _, _ in analysis.flow.calls:
                callee = callee_of(call, self.functions)
                if callee is None:
                    continue
                roots = [analysis.trace(a)[0] for a in call.args]
                for k, own in enumerate(roots):
                    shared = any(own & roots[j] for j in self.written[callee.name] if j < len(roots) and j != k)
                    if shared or any(isinstance(r, e.Var) and (name, place.get(r, -1)) in self.aliased for r in own):
                        self.aliased.add((callee.name, k))
        return len(self.aliased) != before

    def loads(self, name: str) -> set[int]:
        """Ids of the loads of a function that need no copy."""
        analysis, function = self.analyses[name], self.functions[name]
        readable = {
            p for k, p in enumerate(function.params) if k not in self.written[name] and (name, k) not in self.aliased
        }
        found = set()
        for call, _, var in analysis.flow.calls:
            if call.op.name != "tile.load" or var is None:
                continue
            roots = analysis.trace(call.args[0])[0]
            if roots and all(r in readable for r in roots) and _only_read(analysis, analysis.flow, var):
                found.add(id(call))
        return found


def _only_read(analysis: Analysis, flow: Flow, var: e.Var) -> bool:
    """True when nothing is written through the names a tile goes under, and none of them is returned."""
    names = names_reached(flow, analysis.edges, var)
    if any(isinstance(v, e.Var) and v in names for values in flow.returns for v in values):
        return False
    return not any(isinstance(target, e.Var) and target in names for _, target, _ in analysis.writes)
