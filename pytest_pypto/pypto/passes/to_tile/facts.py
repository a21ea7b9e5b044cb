"""What has to be known about a kernel before its tensor operators are converted."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...backend.handler import current_handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.program import Function, Program
from ...ir.span import Span
from ...ir.types import TensorType
from ...ir.visitor import calls_in, exprs_of, uses_of, walk_exprs, walk_stmts
from .._roots import WriteThrough, last_values
from .._util import is_call

PRODUCTS = {"tensor.matmul": (0, 1), "tensor.matmul_acc": (1, 2)}
"""Operands that the cube core reads from Mat."""
METADATA = frozenset(
    {"tensor.slice", "tensor.reshape", "tensor.view", "tensor.reinterpret_view", "tensor.set_validshape"}
)
"""Operators that only describe storage anew; a demand for Mat passes through them."""
SELF_LOADING = frozenset(
    {
        *("tensor.slice", "tensor.matmul", "tensor.matmul_acc", "tensor.read", "tensor.write", "tensor.assemble"),
        *("tensor.gather_row", "tensor.paged_gather", "tensor.dim", "tensor.view", "tensor.create", "tensor.create_l1"),
    }
)
"""Operators that reach into global memory by themselves, so that their operands need no load at the kernel's entry."""
_MAT, _ACC, _OTHER, _WINDOW = "mat", "acc", "other", "window"


@dataclass
class Facts:
    """Results of the analysis of one kernel."""

    func: Function
    program: Program
    consumed: dict[e.Var, Span] = field(default_factory=dict)
    flows: dict[e.Var, list[e.Var | str]] = field(default_factory=dict)
    written: set[e.Var] = field(default_factory=set)
    outputs: dict[e.Var, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.creates = {
            x.var: x
            for x in walk_stmts(self.func.body)
            if isinstance(x, s.AssignStmt) and is_call(x.value, "tensor.create", "tensor.full")
        }
        self.params = set(self.func.params)
        self.roots = WriteThrough([*self.func.params, *self.creates], self.program).scan(self.func.body)
        self._uses()
        self._writes()
        self._outputs()

    # where values go -------------------------------------------------------------------------------------------

    def _flow(self, var: e.Expr, to: e.Var | str) -> None:
        if isinstance(var, e.Var):
            self.flows.setdefault(var, []).append(to)

    def _uses(self) -> None:
        """Fill `flows` (variable -> where its value goes) and `consumed` (operand of a compute operator -> where)."""
        for stmt in walk_stmts(self.func.body):
            if isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.Call):
                self._call(stmt.value, stmt.var)
            elif isinstance(stmt, s.AssignStmt) and isinstance(stmt.value, e.Var):
                self._flow(stmt.value, stmt.var)
            elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                self._carries(stmt)
            elif isinstance(stmt, s.IfStmt):
                for body in (stmt.then_body, stmt.else_body):
                    for value, var in zip(last_values(body), stmt.return_vars, strict=False):
                        self._flow(value, var)
            elif not isinstance(stmt, s.YieldStmt):
                for root in exprs_of(stmt):
                    for var in uses_of(root):
                        self._flow(var, _OTHER)

    def _call(self, call: e.Call, result: e.Var) -> None:
        name = call.op.name
        for k, arg in enumerate(call.args):
            if name in PRODUCTS and k in PRODUCTS[name]:
                self._flow(arg, _MAT)
            elif name == "tensor.matmul_acc" and k == 0:
                self._flow(arg, _ACC)
                self._flow(arg, result)
            elif name in METADATA and k == 0:
                self._flow(arg, result)
                self._flow(arg, _WINDOW)
            else:
                for x in walk_exprs(arg):
                    self._flow(x, _OTHER)
        if name.startswith("tensor.") and name not in SELF_LOADING:
            for arg in call.args:
                if isinstance(arg, e.Var) and isinstance(arg.type, TensorType):
                    self.consumed.setdefault(arg, call.span)

    def _carries(self, loop: s.ForStmt | s.WhileStmt) -> None:
        values = last_values(loop.body)
        for arg, var in zip(loop.iter_args, loop.return_vars, strict=False):
            self._flow(arg.initValue, arg)
            self._flow(arg, var)
        for value, arg, var in zip(values, loop.iter_args, loop.return_vars, strict=False):
            self._flow(value, arg)
            self._flow(value, var)

    def only_mat(self, var: e.Var) -> bool:
        """Every way of the value ends at the cube core: it belongs in Mat."""
        ends = self._ends(var)
        return _MAT in ends and not ends & {_ACC, _OTHER}

    def only_windows(self, var: e.Var) -> bool:
        """The value is only cut, described anew and handed to the cube core: no load of the whole is needed."""
        flows = self.flows.get(var, [])
        kinds = {f for f in flows if isinstance(f, str)}
        return bool(kinds & {_MAT, _WINDOW}) and not kinds & {_ACC, _OTHER}

    def is_accumulator(self, var: e.Var) -> bool:
        """The value is used as an accumulator of a product."""
        return _ACC in self._ends(var)

    def _ends(self, var: e.Var) -> set[str]:
        ends: set[str] = set()
        seen: set[e.Var] = set()
        todo: list[e.Var] = [var]
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            for to in self.flows.get(at, ()):
                if isinstance(to, str):
                    ends.add(to)
                else:
                    todo.append(to)
        return ends

    # global memory ---------------------------------------------------------------------------------------------

    def _writes(self) -> None:
        """Parameters that are written by anything."""
        targets = {"tile.store": 2, "tensor.assemble": 0, "tensor.write": 0, "tensor.gather_row": 0}
        for call in calls_in(self.func.body):
            at = targets.get(call.op.name)
            if at is not None:
                root = self.roots.of(call.args[at])
                if root is not None:
                    self.written.add(root)

    def _outputs(self) -> None:
        """Tensors made in the kernel that are better made by the caller: returned, and filled piece by piece."""
        last = s.stmts_of(self.func.body)[-1:] if s.stmts_of(self.func.body) else ()
        if not last or not isinstance(last[0], s.ReturnStmt):
            return
        pieces = self._filled_in_loops()
        for i, value in enumerate(last[0].value):
            root = self.roots.of(value)
            if root is None or root not in self.creates or root in self.outputs:
                continue
            whole = is_call(self.creates[root].value, "tensor.create")
            if whole and (root in pieces or too_large(root)):
                self.outputs[root] = i

    def _filled_in_loops(self) -> set[e.Var]:
        found: set[e.Var] = set()
        for loop in walk_stmts(self.func.body):
            if isinstance(loop, (s.ForStmt, s.WhileStmt)):
                for call in calls_in(loop.body):
                    if call.op.name == "tensor.assemble":
                        root = self.roots.of(call.args[0])
                        if root is not None:
                            found.add(root)
        return found

    def in_memory(self, value: e.Expr) -> bool:
        """The value stays a tensor in global memory."""
        root = self.roots.of(value)
        return root is not None and (root in self.params or root in self.outputs)


def too_large(var: e.Var) -> bool:
    """A tensor that does not fit the vector buffer of the selected architecture."""
    handler = current_handler()
    type_ = var.type
    extents = e.static_dims(type_.shape) if isinstance(type_, TensorType) else None
    if handler is None or extents is None or not isinstance(type_, TensorType):
        return False
    size = type_.dtype.get_byte()
    for extent in extents:
        size *= extent
    limit = handler.limit(MemorySpace.Vec)
    return limit is not None and size > limit
