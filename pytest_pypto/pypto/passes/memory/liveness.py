"""Lifetimes of buffers and of the tiles that lie in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import find_op
from ...ir.types import TileType
from ..device_ir import op_call
from .attach import memref_of
from .flow import Flow, Loops, flow_of, sources

MEMBERSHIP = "pipeline_membership"


@dataclass(slots=True)
class Life:
    """One tile: where it is defined and up to where it is needed; `family` are the branch slots it goes through."""

    var: e.Var
    start: int
    end: int
    family: set[tuple[int, int]] = field(default_factory=set)


@dataclass(slots=True)
class Buffer:
    """One on-chip allocation with everything that lies in it."""

    base: e.Var
    space: MemorySpace
    size: int
    pinned: bool
    order: int
    stmt: s.AssignStmt
    start: int = 0
    end: int = 0
    lives: list[Life] = field(default_factory=list)
    apart: set[e.Var] = field(default_factory=set)
    """Bases that must not share with this buffer, because an operator forbids it."""
    stages: dict[str, set[int]] = field(default_factory=dict)
    """Pipeline group -> stages of the copies that lie here."""

    def overlaps(self, other: Buffer) -> bool:
        """True when both are needed at one time; the last use of one may be the definition of the other."""
        return self.start < other.end and other.start < self.end


def allocations(body: s.Stmt) -> dict[e.Var, Buffer]:
    """The buffers that a body declares, by base, in order."""
    found: dict[e.Var, Buffer] = {}
    for stmt in s.stmts_of(body):
        call = op_call(stmt)
        if call is None or call.op.name != "tile.alloc" or not isinstance(stmt, s.AssignStmt):
            continue
        space, size = e.const_value(call.args[0]), e.const_value(call.args[1])
        assert space is not None
        assert size is not None
        pinned = bool(call.kwargs.get("pinned"))
        found[stmt.var] = Buffer(stmt.var, MemorySpace(space), size, pinned, len(found), stmt)
    return found


def _no_alias(call: e.Call, result: TileType, handler: Handler) -> list[e.Expr]:
    """Operands whose bytes the result must not share."""
    spec = find_op(call.op.name)
    if spec is None:
        return []
    tiles = [a for a in call.args if isinstance(a.type, TileType)]
    if -1 in spec.no_alias or (spec.extra.get("no_alias_910b") and handler.arch == "a2a3"):
        return tiles
    found = [call.args[i] for i in spec.no_alias if 0 <= i < len(call.args)]
    at = spec.extra.get("no_alias_when_wider")
    if at is not None:
        source = call.args[at].type
        if isinstance(source, TileType) and source.dtype.get_bit() < result.dtype.get_bit():
            found.append(call.args[at])
    return [a for a in found if isinstance(a.type, TileType)]


def _shifted(call: e.Call) -> list[e.Expr]:
    """Operands that start inside their buffer: a result at its start would be written over cells not read yet."""
    found = []
    for arg in call.args:
        memref = memref_of(arg) if isinstance(arg.type, TileType) else None
        if memref is not None and e.const_value(memref.byte_offset_) != 0:
            found.append(arg)
    return found


class Liveness:
    """Lifetimes in one function body whose tiles have buffers."""

    def __init__(self, body: s.Stmt, handler: Handler) -> None:
        self.flow: Flow = flow_of(body)
        self.buffers = allocations(body)
        self._lives: dict[e.Var, Life] = {}
        self._home: dict[e.Var, Loops] = {}
        self._define(handler)
        self._use()
        self._close()

    def buffer_of(self, expr: e.Expr) -> Buffer | None:
        """The declared buffer that an expression lies in, or None."""
        memref = memref_of(expr)
        return None if memref is None else self.buffers.get(memref.base_)

    def _define(self, handler: Handler) -> None:
        for var, stmt in self.flow.assigned.items():
            buffer = self.buffer_of(var)
            if buffer is None:
                continue
            place = self.flow.defs[var]
            life = Life(var, place.number, place.number)
            self._lives[var] = life
            buffer.lives.append(life)
            if buffer.base not in self._home:
                self._home[buffer.base] = place.loops
                buffer.start = buffer.end = place.number
            call = op_call(self._filler(stmt))
            if call is not None and isinstance(var.type, TileType):
                for operand in (*_no_alias(call, var.type, handler), *_shifted(call)):
                    self._keep_apart(buffer, operand)
                self._note_stages(buffer, call)

    def _filler(self, stmt: s.AssignStmt) -> s.AssignStmt:
        """The statement that fills a tile: for an element of a pair, the one that makes the pair."""
        pair = stmt.value.tuple if isinstance(stmt.value, e.TupleGetItemExpr) else None
        return self.flow.pairs[pair][0] if isinstance(pair, e.Var) and pair in self.flow.pairs else stmt

    def _keep_apart(self, buffer: Buffer, operand: e.Expr) -> None:
        other = self.buffer_of(operand)
        if other is not None and other is not buffer:
            buffer.apart.add(other.base)
            other.apart.add(buffer.base)

    def _note_stages(self, buffer: Buffer, call: e.Call) -> None:
        for item in str(call.attrs.get(MEMBERSHIP, "")).split(";"):
            group, _, stage = item.partition(":")
            if stage:
                buffer.stages.setdefault(group, set()).add(int(stage))

    def _use(self) -> None:
        flow = self.flow
        for var, places in flow.uses.items():
            buffer = self.buffer_of(var)
            if buffer is not None and buffer.base in self._home:
                home = self._home[buffer.base]
                buffer.end = max(buffer.end, max(flow.reach(home, p) for p in places))
            for source, slots in sources(flow, var):
                life = self._lives.get(source)
                if life is not None:
                    life.end = max(life.end, max(flow.extent(source, p) for p in places))
                    life.family.update(slots)

    def _close(self) -> None:
        for buffer in self.buffers.values():
            for life in buffer.lives:
                buffer.end = max(buffer.end, life.end)
