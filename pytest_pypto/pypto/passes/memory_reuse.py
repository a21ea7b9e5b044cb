"""MemoryReuse: buffers that are never needed at the same time share memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ..backend import BackendType
from ..backend.handler import Handler, current_handler, handler_for
from ..ir import expr as e
from ..ir import stmt as s
from ..ir.enums import MemorySpace
from ..ir.program import Function, Program
from ..ir.types import TileType
from ..ir.visitor import IRMutator, find_yield_stmt, walk_stmts
from .base import FunctionPass
from .device_ir import is_device, op_name
from .hints import hint
from .memory.align import align_values
from .memory.attach import memref_of
from .memory.carries import Retarget
from .memory.groups import Group, Grouping, Reduced, group_space, pipeline_depths
from .memory.liveness import Buffer, Liveness
from .memory.marks import without_marks
from .memory.packing import pack
from .memory.rebase import Rebase
from .memory.reserved import reservations


@dataclass(frozen=True)
class MemoryReuse(FunctionPass):
    """Merges buffers, then copies carried values and branch results that ended up in another buffer."""

    name = "MemoryReuse"
    requires = frozenset({"SplitIncoreOrch", "IncoreTileOps", "HasMemRefs", "TileOps2D", "NormalizedStmtStructure"})
    produces = frozenset({"NormalizedStmtStructure"})

    def apply_function(self, func: Function, program: Program) -> Function:
        """The function with fewer buffers."""
        if not is_device(func):
            return func
        handler = current_handler() or handler_for(BackendType.Ascend910B)
        if not Liveness(func.body, handler).buffers:
            return func
        body = _shared(func, func.body, handler)
        if any(_is_torn(x) for x in walk_stmts(body)):
            body = _shared(func, Retarget(func.body, handler, branches=True).apply(func.body), handler)
        body = without_marks(body)
        made = align_values(func if body is func.body else func.with_(body=body))
        return _without_unused(made)


def _shared(func: Function, body: s.Stmt, handler: Handler) -> s.Stmt:
    """The body with merged buffers."""
    live = Liveness(body, handler)
    return _regrouped(body, live, _groups(func, live, handler))


def _is_torn(stmt: s.Stmt) -> bool:
    """True for a branch whose result lies elsewhere than what a side yields, in a memory that nothing can copy in."""
    if not isinstance(stmt, s.IfStmt):
        return False
    for body in (stmt.then_body, stmt.else_body):
        last = find_yield_stmt(body)
        for var, value in zip(stmt.return_vars, () if last is None else last.value, strict=False):
            here, there = memref_of(var), memref_of(value)
            on_cube = isinstance(var.type, TileType) and var.type.space is not MemorySpace.Vec
            if on_cube and here is not None and there is not None and here.base_ is not there.base_:
                return True
    return False


def _groups(func: Function, live: Liveness, handler: Handler) -> dict[e.Var, Group]:
    """The group of every buffer that shares; pinned buffers stay alone."""
    spaces: dict[MemorySpace, list[Buffer]] = defaultdict(list)
    for buffer in live.buffers.values():
        if not buffer.pinned and buffer.lives:
            spaces[buffer.space].append(buffer)
    found: dict[e.Var, Group] = {}
    for space, buffers in spaces.items():
        grouping, reduced = group_space(buffers, space, handler)
        if _better_packed(func, space, grouping, buffers, handler):
            continue
        for item in reduced:
            _hint(func, item)
        for group in grouping.groups:
            for member in group.members:
                found[member.base] = group
    return found


def _better_packed(
    func: Function, space: MemorySpace, grouping: Grouping, buffers: list[Buffer], handler: Handler
) -> bool:
    """True when groups overflow the space, but buffers placed by lifetime fit; then each keeps its own name."""
    limit, floor = handler.limit(space), reservations(func).end(space)
    if limit is None or floor + grouping.total() <= limit:
        return False
    return pack(buffers, floor, pipeline_depths(buffers, limit)).top <= limit


def _hint(func: Function, item: Reduced) -> None:
    hint(
        "PH-MR-001",
        "MemoryReuse",
        f"pipeline group {item.group} of '{func.name}' asked for {item.wanted} copies in flight, but {item.space.name} "
        f"holds buffers for {item.depth}: stages {item.depth} apart share a buffer and wait for each other. Make the "
        "tiles smaller or let fewer live at one time",
        func.span,
    )


def _regrouped(body: s.Stmt, live: Liveness, groups: dict[e.Var, Group]) -> s.Stmt:
    roots = {b.lives[0].var: b for b in live.buffers.values() if b.lives}
    shared: dict[e.Var, e.MemRef] = {}

    def home(group: Group) -> e.MemRef:
        if group.base not in shared:
            shared[group.base] = e.MemRef(group.base, 0, group.size)
        return shared[group.base]

    def choose(var: e.Var, memref: e.MemRef) -> e.MemRef:
        group = groups.get(memref.base_)
        if group is None or group.base is memref.base_:
            return memref
        at = e.const_value(memref.byte_offset_)
        if var in roots or not _has_own_extent(var, live) or (at == 0 and memref.size_ == group.size):
            return home(group)
        offset = memref.byte_offset_
        return e.MemRef(group.base, offset if at is None else e.index(at), memref.size_, memref.span)

    return Rebase(choose).visit_stmt(body)


def _has_own_extent(var: e.Var, live: Liveness) -> bool:
    """False for names that merely repeat another tile: aliases, carries and results."""
    stmt = live.flow.assigned.get(var)
    return stmt is not None and not isinstance(stmt.value, e.Var)


def _without_unused(func: Function) -> Function:
    """The function without declarations of buffers that no tile lies in; sizes follow the tiles."""
    used = _Bases()
    used.visit_stmt(func.body)
    stmts = s.stmts_of(func.body)
    kept = [x for x in stmts if op_name(x) != "tile.alloc" or (isinstance(x, s.AssignStmt) and x.var in used.found)]
    return func if len(kept) == len(stmts) else func.with_(body=s.SeqStmts(tuple(kept), func.body.span))


class _Bases(IRMutator):
    """Collects the bases of all tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[e.Var] = set()

    def define(self, var: e.Var) -> e.Var:
        memref = memref_of(var)
        if memref is not None and isinstance(var.type, TileType):
            self.found.add(memref.base_)
        return var

    def visit_expr(self, expr: e.Expr) -> e.Expr:
        return expr
