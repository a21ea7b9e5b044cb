"""In which memory space each tile of a kernel lives, before moves are inserted."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace
from ..ir.op_table import find_op
from ..ir.program import Function
from ..ir.types import TileType
from ..ir.visitor import exprs_of, walk_exprs, walk_stmts
from ._roots import last_values

_M = MemorySpace
_VEC = frozenset({_M.Vec})
_IN_VEC = {
    "tile.transpose": (0,),
    "tile.reshape": (0,),
    "tile.reinterpret_view": (0,),
    "tile.read": (0,),
    "tile.write": (0,),
    "tile.fillpad": (0,),
    "tile.fillpad_inplace": (0,),
    "tile.fillpad_expand": (0,),
    "tile.scatter": (0,),
    "tile.scatter_mask": (0,),
    "tile.scatter_update": (0,),
}
"""Operands that the table leaves open but that only the vector core handles when they come from the accumulator."""


SUMS = {"tile.matmul_acc": "tile.matmul", "tile.gemv_acc": "tile.gemv"}
"""Products added to an accumulator, and the same products alone."""
L0_OPERANDS = frozenset({_M.Left, _M.Right, _M.Bias, _M.LeftScale, _M.RightScale})
"""What the matrix unit reads; only L1 (Mat) is copied there, and nothing is copied back."""


def can_move(source: MemorySpace | None, target: MemorySpace) -> bool:
    """True when a tile gets from one space to another by copies: on one core, or through the pipes between cores."""
    return source is target or (target is not _M.Acc and source not in L0_OPERANDS)


def allowed_spaces(op: str, k: int, args: Sequence[e.Expr]) -> frozenset[MemorySpace] | None:
    """Spaces in which operand k of an operator may be; None for any."""
    spec = find_op(op)
    if spec is None or k >= len(spec.params):
        return None
    spaces = spec.params[k].spaces
    if spaces is not None:
        return spaces
    here = _space(args[k])
    if k in _IN_VEC.get(op, ()) and here is _M.Acc:
        return _VEC
    if op == "tile.assemble" and k == 1 and here is _M.Acc and _space(args[0]) is _M.Vec:
        return _VEC
    return None


def _space(x: e.Expr) -> MemorySpace | None:
    return x.type.space if isinstance(x.type, TileType) else None


class SpaceMap:
    """Spaces of all tile variables, settled by walking the body until nothing changes.

    Where two spaces meet, in a loop or behind a branch, the value lies where both can be moved; nothing can be moved
    into the accumulator. A tile that is only created first goes where the other value is.
    `target` maps calls (create, load) to the `target_memory` they must get.
    """

    def __init__(self, func: Function) -> None:
        self.space: dict[e.Var, MemorySpace] = {}
        self.target: dict[e.Call, MemorySpace] = {}
        self.origin: dict[e.Var, e.Call] = {}
        self.settled: dict[e.Call, MemorySpace] = {}
        self.carried: dict[e.IterArg, MemorySpace] = {}
        self.demand = _demands(func.body)
        self.changed = True
        while self.changed:  # ends: a space only ever moves on in the order of `_meeting`
            self.changed = False
            self.scan(func.body)

    def of(self, var: e.Expr) -> MemorySpace | None:
        """The space of a tile."""
        if not isinstance(var, e.Var) or not isinstance(var.type, TileType):
            return None
        return self.space.get(var, var.type.space)

    def of_call(self, call: e.Call, var: e.Var | None = None) -> MemorySpace | None:
        """The space of an operator's result."""
        if call in self.target:
            return self.target[call]
        spec = find_op(call.op.name)
        if not isinstance(call.type, TileType) or spec is None:
            return None
        if spec.space_kwarg is not None and call.op.name != "tile.move":
            given = call.kwargs.get(spec.space_kwarg)
            if given is not None:
                return MemorySpace(given)
            want = self.demand.get(var) if var is not None else None
            self.target[call] = want if want in (_M.Vec, _M.Mat) else _M.Vec
            return self.target[call]
        if self.sums_in_vector(call):
            return _M.Vec
        if spec.space_from is not None:
            return self.of(call.args[spec.space_from]) or call.type.space
        return call.type.space or spec.space

    def sums_in_vector(self, call: e.Call) -> bool:
        """True for a running sum of products that lies in Vec because vector operators work on it too."""
        return call.op.name in SUMS and len(call.args) == 3 and self.of(call.args[0]) is _M.Vec

    def scan(self, body: s.Stmt | None) -> None:
        for stmt in s.stmts_of(body):
            self.stmt(stmt)

    def stmt(self, stmt: s.Stmt) -> None:
        if isinstance(stmt, s.AssignStmt):
            self.assign(stmt)
        elif isinstance(stmt, (s.ForStmt, s.WhileStmt)):
            self.loop(stmt)
        elif isinstance(stmt, s.IfStmt):
            self.branch(stmt)
        elif isinstance(stmt, s.ScopeStmt):
            self.scan(stmt.body)

    def assign(self, stmt: s.AssignStmt) -> None:
        if not isinstance(stmt.var.type, TileType):
            return
        value = stmt.value
        space = self.of(value)
        if isinstance(value, e.Call):
            if value.op.name in SUMS and self.of(value.args[0]) is _M.Vec:
                self.settle(value.args[0], _M.Vec, _M.Acc)
            space = self.of_call(value, stmt.var)
            if value.op.name == "tile.create":
                self.origin[stmt.var] = value
        elif isinstance(value, e.Var) and value in self.origin:
            self.origin[stmt.var] = self.origin[value]
        if space is not None:
            self.space[stmt.var] = space

    def branch(self, stmt: s.IfStmt) -> None:
        self.scan(stmt.then_body)
        self.scan(stmt.else_body)
        pairs = zip(last_values(stmt.then_body), last_values(stmt.else_body), strict=False)
        for var, (a, b) in zip(stmt.return_vars, pairs, strict=False):
            first, second = self.of(a), self.of(b)
            if first is not None and second is not None and first is not second:
                first, second = self.settle(a, first, second), self.settle(b, second, first)
            if first is not None:
                self.space[var] = first if second is None else meeting(first, second)

    def loop(self, loop: s.ForStmt | s.WhileStmt) -> None:
        """Walk the body; carried values meet what the body yields."""
        for arg in loop.iter_args:
            self.enter(arg)
        self.scan(loop.body)
        for arg, value in zip(loop.iter_args, last_values(loop.body), strict=False):
            want, have = self.of(value), self.of(arg)
            if want is not None and have is not None and want is not have:
                self.carry(arg, have, want)
        for arg, var in zip(loop.iter_args, loop.return_vars, strict=False):
            found = self.of(arg)
            if found is not None:
                self.space[var] = found

    def enter(self, arg: e.IterArg) -> None:
        space = self.carried.get(arg) or self.of(arg.initValue)
        if space is not None:
            self.space[arg] = space
        if isinstance(arg.initValue, e.Var) and arg.initValue in self.origin:
            self.origin[arg] = self.origin[arg.initValue]

    def carry(self, arg: e.IterArg, have: MemorySpace, want: MemorySpace) -> None:
        """A carried value lies in another space than what the body yields for it."""
        if arg in self.origin:
            self.settle(arg, have, want)
            return
        met = meeting(have, want)
        if met is not have:
            self.space[arg] = self.carried[arg] = met
            self.changed = True

    def settle(self, value: e.Expr, have: MemorySpace, want: MemorySpace) -> MemorySpace:
        """Where a value lies that another one meets; a created tile moves there, with all its names."""
        made = self.origin.get(value) if isinstance(value, e.Var) else None
        if made is None:
            return have
        before = self.settled.get(made)
        space = want if before is None else meeting(before, want)
        if space is not have:
            self.settled[made] = self.target[made] = space
            self.changed = True
            self.space.update((v, space) for v, call in self.origin.items() if call is made)
        return space


def meeting(a: MemorySpace, b: MemorySpace) -> MemorySpace:
    """Where two values meet: nothing moves into Acc, and what a vector operator made is not moved to the cube core."""
    return next((x for x in (_M.Vec, _M.Left, _M.Right, _M.Bias, _M.Mat) if x in (a, b)), a)


def _demands(body: s.Stmt) -> dict[e.Var, MemorySpace]:
    """What the first consumer of a tile wants, also through views."""
    wants: dict[e.Var, MemorySpace] = {}
    views: list[tuple[e.Var, e.Var]] = []
    for stmt in walk_stmts(body):
        for root in exprs_of(stmt):
            for x in walk_exprs(root):
                if not isinstance(x, e.Call):
                    continue
                spec = find_op(x.op.name)
                for k, arg in enumerate(x.args):
                    if spec is None or not isinstance(arg, e.Var) or not isinstance(arg.type, TileType):
                        continue
                    spaces = spec.params[k].spaces if k < len(spec.params) else None
                    if spaces is not None and len(spaces) == 1:
                        (only,) = spaces
                        wants.setdefault(arg, _M.Mat if only in (_M.Left, _M.Right) else only)
                    elif spec.space_from == k and isinstance(stmt, s.AssignStmt):
                        views.append((arg, stmt.var))
    for source, view in reversed(views):
        if view in wants:
            wants.setdefault(source, wants[view])
    return wants
