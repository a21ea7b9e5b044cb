"""Slots of a pipe are given back in the order in which their tiles came: what would be used for longer is copied.

A free names no slot: it gives back the oldest one. A tile that is still used after a younger one was given back would
lose its slot, and one that keeps its slot while the ring is full would make both cores wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import find_op
from ...ir.types import TileType
from ...ir.visitor import IRMutator, walk_stmts
from ..device_ir import all_uses, body_like, kernel_error, nested_bodies, op_assign, op_call, with_bodies

POPS = {"tile.tpop_from_aic": "system.tfree_to_aic", "tile.tpop_from_aiv": "system.tfree_to_aiv"}
"""Pop operator -> the operator that frees its slot."""
FREES = frozenset(POPS.values())
_IN_PLACE = frozenset({"tile.assemble", "tile.write", "tile.set_validshape", "tile.fillpad_inplace", "tile.scatter"})
_VIEWS = frozenset({"tile.reshape", "tile.slice", "tile.transpose_view", "tile.reinterpret_view"})
Group = tuple[str, object]
"""Pop operator and pipe id: tiles of one ring."""


@dataclass(eq=False)
class _Pop:
    """A tile that is received at statement `start` of a list and used until statement `last`."""

    var: e.Var
    group: Group
    start: int
    last: int


def shared_storage(stmt: s.AssignStmt) -> e.Expr | None:
    """The operand whose storage the assigned tile is (a view, an in-place update, an alias), or None."""
    if isinstance(stmt.value, e.Var):
        return stmt.value
    call = op_call(stmt)
    if call is None or not isinstance(stmt.var.type, TileType):
        return None
    if call.op.name in _VIEWS or call.op.name in _IN_PLACE:
        return call.args[0]
    spec = find_op(call.op.name)
    at = None if spec is None else spec.view_of if spec.view_of is not None else spec.inplace
    return call.args[at] if at is not None and at < len(call.args) else None


def group_of(stmt: s.Stmt) -> Group | None:
    """The ring from which a statement receives a tile, or None."""
    call = op_call(stmt) if isinstance(stmt, s.AssignStmt) else None
    return None if call is None or call.op.name not in POPS else (call.op.name, call.kwargs.get("id"))


def freed_tile(stmt: s.Stmt) -> e.Var | None:
    """The popped tile whose slot a statement gives back, or None."""
    call = op_call(stmt)
    if call is None or call.op.name not in FREES or not isinstance(call.args[0], e.Var):
        return None
    return call.args[0]


class SlotOrder:
    """Copies received tiles that would be given back too late.

    `slots` is the number of tiles a ring can hold; None when the author of the kernel answers for it.
    """

    def __init__(self, slots: int | None) -> None:
        self._slots = slots

    def body(self, body: s.Stmt) -> s.Stmt:
        """A statement list in which every received tile can be given back in its turn.

        Raises:
            ValueError: a tile of the cube core's Mat memory, which has no copy, would have to be copied.
        """
        stmts = [self._nested(x) for x in s.stmts_of(body)]
        found = self._find(stmts)
        late = _late(found, [self._groups_below(x) for x in stmts], self._slots) if found else []
        return body_like(body, _with_copies(stmts, late)) if late else body_like(body, stmts)

    def _nested(self, stmt: s.Stmt) -> s.Stmt:
        bodies = nested_bodies(stmt)
        return with_bodies(stmt, [self.body(b) for b in bodies]) if bodies else stmt

    def _groups_below(self, stmt: s.Stmt) -> set[Group]:
        inner = (y for b in nested_bodies(stmt) for y in walk_stmts(b))
        return {g for g in (group_of(x) for x in inner) if g is not None}

    def _find(self, stmts: list[s.Stmt]) -> list[_Pop]:
        found: list[_Pop] = []
        owners: dict[e.Var, _Pop] = {}
        below = {freed_tile(x) for stmt in stmts for b in nested_bodies(stmt) for x in walk_stmts(b)}
        for i, stmt in enumerate(stmts):
            for var in all_uses(stmt) if owners else ():
                if var in owners:
                    owners[var].last = i
            if not isinstance(stmt, s.AssignStmt):
                continue
            group = group_of(stmt)
            if group is not None and stmt.var not in below:  # else the author of the kernel answers for it
                owners[stmt.var] = _Pop(stmt.var, group, i, i)
                found.append(owners[stmt.var])
                continue
            source = shared_storage(stmt)
            if isinstance(source, e.Var) and source in owners:
                owners[stmt.var] = owners[source]
        return found


def _late(pops: list[_Pop], below: list[set[Group]], slots: int | None) -> list[_Pop]:
    """The tiles that must be copied when they come."""
    late: list[_Pop] = []
    for group in dict.fromkeys(p.group for p in pops):
        held = [p for p in pops if p.group == group]
        while held:
            pop = _one_late(held, [group in x for x in below], slots)
            if pop is None:
                break
            held.remove(pop)
            late.append(pop)
    return late


def _one_late(held: list[_Pop], receives: list[bool], slots: int | None) -> _Pop | None:
    """The first tile whose slot is needed, or passed by, before its turn comes."""
    freed: dict[int, int] = {}
    turn = 0
    for pop in held:
        turn = freed[id(pop)] = max(turn, pop.last)
    for pop in held:
        if any(receives[pop.start + 1 : freed[id(pop)] + 1]):
            return pop
    for pop in held if slots is not None else ():
        waiting = [p for p in held if p.start < pop.start <= freed[id(p)]]
        if slots is not None and len(waiting) >= slots:
            return waiting[0]
    return None


def _with_copies(stmts: list[s.Stmt], late: list[_Pop]) -> list[s.Stmt]:
    at = {p.start: p for p in late}
    mutator = IRMutator()
    made: list[s.Stmt] = []
    copied = {p.var for p in late}
    for i, stmt in enumerate(stmts):
        if freed_tile(stmt) in copied:
            continue  # it is given back behind its copy
        made.append(mutator.visit_stmt(stmt) if mutator.var_map else stmt)
        if i in at:
            copy = _copy(at[i].var, stmt)
            made.append(copy)
            mutator.var_map[at[i].var] = copy.var
    return made


def _copy(var: e.Var, stmt: s.Stmt) -> s.AssignStmt:
    tile = var.type
    assert isinstance(tile, TileType)
    if tile.space is not MemorySpace.Vec:
        where = tile.space.name if tile.space is not None else "its memory"
        raise kernel_error(
            f"'{var.name_hint}' was received from the vector core and is used after tiles that came later, but slots "
            f"of a pipe are given back in their order, and a tile in {where} cannot be copied; receive it where it is "
            "used, or send it once more",
            stmt.span,
        )
    kept = e.Var(f"{var.name_hint}_kept", tile, var.span)
    made = op_assign(kept, "tile.move", [var], {"target_memory": MemorySpace.Vec}, stmt.span)
    assert isinstance(made, s.AssignStmt)
    return made
