"""Which values share storage, and where a copy is needed so that names keep the values they had.

Operators that write in place return the storage of their target. Memory of parameters is what callers see, so it is
always written in place. A local value that is still read under its old name is copied before it is written; a window
whose parent is written while it is alive is copied when it is taken, unless it is itself written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir.enums import ParamDirection
from ...ir.program import Function
from ...ir.types import ShapedType, TupleType
from ..ops.table import OP_MAP, OpHandler
from .flow import Definition, Flow, Place, last_use, names_reached

Root = e.Var | int
"""Where storage comes from: a parameter, or the id of the call that made it."""

ACCUMULATING = frozenset(
    {"tensor.matmul_acc", "tile.matmul_acc", "tile.batch_matmul_acc", "tile.matmul_mx_acc", "tile.gemv_acc"}
)
"""Operators that update their accumulator in place when it is a window of a larger one.

The tensor form does so only in a window of a `tensor.create` that nothing else writes, which kernels keep in the
accumulator memory; a window of any other tensor is read there, and the sum is a value of its own."""


@dataclass(frozen=True)
class Summary:
    """What a function does to its parameters: which it writes, and which each of its results may be."""

    writes: frozenset[int]
    results: tuple[frozenset[int], ...]


@dataclass
class Storage:
    """Decisions for one function; calls are identified by `id`."""

    copy_target: set[int] = field(default_factory=set)
    """In-place operators whose target is copied first."""
    snapshot: set[int] = field(default_factory=set)
    """Views that are copied when they are taken."""
    write_through: set[int] = field(default_factory=set)
    """Accumulating operators that write into a window."""
    writable: set[int] = field(default_factory=set)
    """Views through which something is written."""


def handler_of(call: e.Expr) -> OpHandler | None:
    """The handler of an operator call, or None."""
    if isinstance(call, e.Call) and not isinstance(call.op, e.GlobalVar):
        found = OP_MAP.get(call.op.name)
        return found if isinstance(found, OpHandler) else None
    return None


def callee_of(call: e.Expr, functions: Mapping[str, Function]) -> Function | None:
    """The function of the program that a call or submit starts, or None."""
    if isinstance(call, e.Submit) or (isinstance(call, e.Call) and isinstance(call.op, e.GlobalVar)):
        return functions.get(call.op.name)
    return None


class Analysis:
    """Roots, aliases and writes of one function."""

    def __init__(self, flow: Flow, functions: Mapping[str, Function], summaries: Mapping[str, Summary]) -> None:
        self.flow, self.functions, self.summaries = flow, functions, summaries
        self.roots: dict[e.Var, set[Root]] = defaultdict(set)
        self.edges: dict[e.Var, set[e.Var]] = defaultdict(set)
        self.windows: set[e.Var] = set()
        self.accumulators: set[Root] = {
            id(c) for c, _, _ in flow.calls if isinstance(c, e.Call) and c.op.name in {"tensor.create", *ACCUMULATING}
        }
        for param in flow.function.params:
            self.roots[param].add(param)
        self._solve()
        self.writes = self._writes()

    def _solve(self) -> None:
        changed = True
        while changed:
            changed = False
            for var, definitions in self.flow.defs.items():
                if not _holds_storage(var):
                    continue
                for definition in definitions:
                    if definition.source is not None and self._learn(var, definition):
                        changed = True

    def _learn(self, var: e.Var, definition: Definition) -> bool:
        assert definition.source is not None
        found, names, window = self.trace(definition.source)
        new = bool(found - self.roots[var])
        self.roots[var] |= found
        for name in names:
            new |= var not in self.edges[name]
            self.edges[name].add(var)
        if (window or any(n in self.windows for n in names)) and var not in self.windows:
            self.windows.add(var)
            new = True
        return new

    def trace(self, source: e.Expr) -> tuple[set[Root], set[e.Var], bool]:
        """Roots of an expression, the variables whose storage it may be, and whether it is a window of one."""
        if isinstance(source, e.Var):
            return set(self.roots[source]), {source}, False
        if isinstance(source, e.TupleGetItemExpr):
            return self._item(source)
        if isinstance(source, e.MakeTuple):
            return self._union(source.elements)
        handler = handler_of(source)
        if handler is not None and isinstance(source, e.Call):
            place = handler.writes if handler.writes is not None else handler.view
            if source.op.name in ACCUMULATING:
                place = 0
            if place is not None and place < len(source.args):
                roots, names, window = self.trace(source.args[place])
                if source.op.name == "tensor.matmul_acc" and not roots <= self.accumulators:
                    return {id(source)}, set(), False
                own: set[Root] = {id(source)} if source.op.name in ACCUMULATING else set()
                return roots | own, names, window or handler.window
            return {id(source)}, set(), False
        if callee_of(source, self.functions) is not None and isinstance(source, (e.Call, e.Submit)):
            return self._called(source, None)
        return {id(source)} if isinstance(source, (e.Call, e.Submit)) else set(), set(), False

    def _item(self, source: e.TupleGetItemExpr) -> tuple[set[Root], set[e.Var], bool]:
        whole = source.tuple
        if isinstance(whole, e.MakeTuple):
            return self.trace(whole.elements[source.index])
        if isinstance(whole, (e.Call, e.Submit)) and callee_of(whole, self.functions) is not None:
            return self._called(whole, source.index)
        return self.trace(whole)

    def _union(self, parts: tuple[e.Expr, ...]) -> tuple[set[Root], set[e.Var], bool]:
        traced = [self.trace(p) for p in parts]
        roots = {r for t in traced for r in t[0]}
        return roots, {n for t in traced for n in t[1]}, any(t[2] for t in traced)

    def _called(self, call: e.Call | e.Submit, index: int | None) -> tuple[set[Root], set[e.Var], bool]:
        summary = self.summaries.get(call.op.name)
        if summary is None:
            return self._union(call.args)
        results = summary.results if index is None else summary.results[index : index + 1]
        which = {k for r in results for k in r if k < len(call.args)}
        roots, names, window = self._union(tuple(call.args[k] for k in sorted(which)))
        return roots | {id(call)}, names, window

    def _writes(self) -> list[tuple[Place, e.Expr, e.Call | e.Submit]]:
        """Every write: its place, the target and the call."""
        found: list[tuple[Place, e.Expr, e.Call | e.Submit]] = []
        for call, place, _ in self.flow.calls:
            handler = handler_of(call)
            if handler is not None and isinstance(call, e.Call):
                if handler.writes is not None:
                    found.append((place, call.args[handler.writes], call))
                continue
            summary = self.summaries.get(call.op.name)
            if callee_of(call, self.functions) is not None and summary is not None:
                found += [(place, call.args[k], call) for k in sorted(summary.writes) if k < len(call.args)]
        written = {r for _, target, _ in found for r in self.trace(target)[0]}
        for call, place, _ in self.flow.calls:
            if isinstance(call, e.Call) and call.op.name in ACCUMULATING and self._writes_through(call, written):
                found.append((place, call.args[0], call))
        return found

    def _writes_through(self, call: e.Call, written: set[Root]) -> bool:
        """True when the accumulator of `call` is a window of a larger one; `written` is what others write."""
        if not self._is_window(call.args[0]):
            return False
        roots, _, _ = self.trace(call.args[0])
        return call.op.name != "tensor.matmul_acc" or (roots <= self.accumulators and not roots & written)

    def _is_window(self, target: e.Expr) -> bool:
        _, names, window = self.trace(target)
        return window or any(n in self.windows for n in names)

    def summary(self) -> Summary:
        """What the function does to its parameters."""
        place: dict[Root, int] = {param: k for k, param in enumerate(self.flow.function.params)}
        written = {place[r] for _, target, _ in self.writes for r in self.trace(target)[0] if r in place}
        declared = {k for k, d in enumerate(self.flow.function.param_directions) if d is not ParamDirection.In}
        count = max((len(values) for values in self.flow.returns), default=0)
        results = []
        for i in range(count):
            roots = {r for values in self.flow.returns if i < len(values) for r in self.trace(values[i])[0]}
            results.append(frozenset(place[r] for r in roots if r in place))
        return Summary(frozenset(written | declared), tuple(results))

    def decide(self) -> Storage:
        """Where copies are needed."""
        out = Storage()
        params = set(self.flow.function.params)
        assigned = {id(call): var for call, _, var in self.flow.calls}
        for place, target, call in self.writes:
            if isinstance(call, e.Call) and call.op.name in ACCUMULATING:
                out.write_through.add(id(call))
            elif handler_of(call) is not None and self._target_is_kept(place, target, call, assigned[id(call)], params):
                out.copy_target.add(id(call))
        for call, place, var in self.flow.calls:
            handler = handler_of(call)
            if handler is None or handler.view is None:
                continue
            if var is not None:
                self._decide_view(call, place, var, out)
            elif id(call) in self.flow.handed_on and self._written(self.trace(call)[0]):
                out.snapshot.add(id(call))
        self._mark_nested_writable(out)
        return out

    def _target_is_kept(
        self, place: Place, target: e.Expr, call: e.Call | e.Submit, result: e.Var | None, params: set[e.Var]
    ) -> bool:
        """True when a local value that is about to be overwritten is read later under an older name."""
        roots, _, _ = self.trace(target)
        if not isinstance(target, e.Var) or not roots or any(isinstance(r, e.Var) and r in params for r in roots):
            return False
        if result is target or id(call) in self.flow.effects or (result is not None and not self.flow.uses.get(result)):
            return False
        if result is None and sum(use.at == place.at for use in self.flow.uses[target]) > 1:
            return True
        later = set() if result is None else names_reached(self.flow, self.edges, result)
        others = [n for n, own in self.roots.items() if n is not result and own & roots and n not in self.windows]
        names = [target] if target in self.windows else others
        return any(self._read_after(name, place, name in later) for name in names)

    def _written(self, roots: set[Root]) -> bool:
        """True when something with one of these roots is written anywhere."""
        return any(self.trace(target)[0] & roots for _, target, _ in self.writes)

    def _read_after(self, name: e.Var, place: Place, follows: bool) -> bool:
        """True when `name`, defined before `place`, is read after it with the value it has there."""
        born = [d.place for d in self.flow.defs.get(name, ()) if d.place.at < place.at]
        if not born:
            return False
        inside = place.loops[len(born[-1].loops) :] if follows else place.loops
        home = born[-1].loops
        for use in self.flow.uses.get(name, ()):
            if use.at > place.at and (not follows or _reaches(use, home)):
                return True
            crossed = [loop for loop in inside if loop not in home and not loop.shared]
            if any(loop.start < use.at <= loop.end for loop in crossed):
                return True
        return False

    def _decide_view(self, call: e.Call | e.Submit, place: Place, var: e.Var, out: Storage) -> None:
        """Copy a view when its storage is written, not through the view, while it can still be read."""
        roots, _, _ = self.trace(call)
        names = names_reached(self.flow, self.edges, var)
        through = [w for w in self.writes if isinstance(w[1], e.Var) and w[1] in names]
        if through:
            out.writable.add(id(call))
            return
        last = last_use(self.flow, names, place)
        carried = [loop for loop in place.loops if any(v in names for v in loop.carried)]
        first = min([place.at, *(loop.start for loop in carried)])
        last = max([last, *(loop.end for loop in carried)])
        for at, target, writer in self.writes:
            hit = first < at.at <= last and writer is not call and id(writer) not in out.copy_target
            if hit and self.trace(target)[0] & roots:
                out.snapshot.add(id(call))
                return

    def _mark_nested_writable(self, out: Storage) -> None:
        for _, target, _ in self.writes:
            handler = handler_of(target)
            if handler is not None and handler.view is not None:
                out.writable.add(id(target))


def _reaches(use: Place, home: tuple[object, ...]) -> bool:
    """True when a place lies inside all the loops of `home`."""
    return len(use.loops) >= len(home) and all(a is b for a, b in zip(use.loops, home, strict=False))


def _holds_storage(var: e.Var) -> bool:
    return isinstance(var.type, (ShapedType, TupleType))
