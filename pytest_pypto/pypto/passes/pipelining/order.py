"""Reordering inside a pipelined body: scalars, then loads, then compute and stores copy by copy."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.op_table import find_op
from ...ir.types import ScalarType, TensorType
from ...ir.visitor import defs_of, walk_stmts
from ..device_ir import WRITE_TARGET, all_uses, op_call, op_name
from ..memory.liveness import MEMBERSHIP
from ..mixed.binding import tensor_versions
from ..mixed.slot_order import FREES, POPS

SCALAR, LOAD, WORK = 0, 1, 2
_PIPE = frozenset({*POPS, *FREES, "tile.tpush_to_aic", "tile.tpush_to_aiv"})
_L0 = (MemorySpace.Left, MemorySpace.Right)
Key = tuple[int, ...]


def kind_of(stmt: s.Stmt) -> int:
    """Scalar computation, load, or work."""
    if not isinstance(stmt, s.AssignStmt):
        return WORK
    call = op_call(stmt)
    if isinstance(stmt.var.type, ScalarType):
        pure = call is None or call.op.name in ("tensor.dim", "tile.get_block_idx", "tile.get_block_num")
        return SCALAR if pure else LOAD if call is not None and call.op.name.endswith(".read") else WORK
    if call is None:
        return WORK
    name = call.op.name
    if name in ("tile.load", "tile.read", "tensor.read"):
        return LOAD
    target = call.kwargs.get("target_memory")
    return LOAD if name == "tile.extract" and target in _L0 else WORK


def is_store(stmt: s.Stmt) -> bool:
    """True for a statement that writes global memory."""
    return op_name(stmt) in WRITE_TARGET


def memberships(call: e.Call) -> list[tuple[int | None, int]]:
    """(pipeline group, copy) of each pipeline that a call is part of, innermost first."""
    text = str(call.attrs.get(MEMBERSHIP, ""))
    pairs = (item.partition(":") for item in text.split(";") if item)
    return [(int(group), int(stage)) for group, _, stage in pairs]


def groups_below(stmts: Iterable[s.Stmt]) -> set[int]:
    """Pipeline groups that statements and everything below them are part of."""
    found: set[int] = set()
    for stmt in stmts:
        for inner in walk_stmts(stmt):
            call = op_call(inner)
            if call is not None and MEMBERSHIP in call.attrs:
                found.update(g for g, _ in memberships(call) if g is not None)
    return found


@dataclass
class _Item:
    stmt: s.Stmt
    position: int
    kind: int
    stage: int
    waits: int = 0
    after: list[int] = field(default_factory=list)


class Scheduler:
    """A stable topological order of the statements of one body."""

    def __init__(self, stmts: Sequence[s.Stmt], group: int | None) -> None:
        self._group = group
        self.items = [_Item(x, i, kind_of(x), 0) for i, x in enumerate(stmts)]
        self._edges: set[tuple[int, int]] = set()
        self._definer: dict[e.Var, int] = {}
        self._readers: dict[e.Var, list[int]] = {}
        self._earlier = tensor_versions(s.SeqStmts(tuple(stmts)))
        self._stored: dict[e.Var, int] = {}
        self._loaded: dict[e.Var, list[int]] = {}
        self._depend()

    def _edge(self, before: int, after: int) -> None:
        if before != after and (before, after) not in self._edges:
            self._edges.add((before, after))
            self.items[before].after.append(after)
            self.items[after].waits += 1

    def _depend(self) -> None:
        pipe: int | None = None
        wall: int | None = None
        since: list[int] = []
        for item in self.items:
            i, stmt = item.position, item.stmt
            uses = set(all_uses(stmt))
            item.stage = self._stage(stmt, uses)
            for var in uses:
                if var in self._definer:
                    self._edge(self._definer[var], i)
            self._overwrites(stmt, i)
            self._memory(stmt, i)
            for var in uses:
                self._readers.setdefault(var, []).append(i)
            for inner in walk_stmts(stmt):
                for var in defs_of(inner):
                    self._definer[var] = i
            if wall is not None:
                self._edge(wall, i)
            if _is_wall(stmt):
                for earlier in since:
                    self._edge(earlier, i)
                wall, since, pipe = i, [], None
            else:
                since.append(i)
                if _uses_pipe(stmt):
                    if pipe is not None:
                        self._edge(pipe, i)
                    pipe = i

    def _overwrites(self, stmt: s.Stmt, i: int) -> None:
        """An update in place waits for everything that reads the value before the update."""
        for inner in walk_stmts(stmt):
            call = op_call(inner)
            spec = None if call is None else find_op(call.op.name)
            if call is None or spec is None or spec.inplace is None or spec.inplace >= len(call.args):
                continue
            target = call.args[spec.inplace]
            for reader in self._readers.get(target, ()) if isinstance(target, e.Var) else ():
                self._edge(reader, i)

    def _memory(self, stmt: s.Stmt, i: int) -> None:
        """Loads and stores of one tensor keep their order, whatever names they use for it."""
        for inner in walk_stmts(stmt):
            call = op_call(inner)
            if call is None:
                continue
            at = WRITE_TARGET.get(call.op.name)
            if at is not None:
                root = self._root(call.args[at])
                for reader in self._loaded.pop(root, ()):
                    self._edge(reader, i)
                self._stored[root] = i
            elif call.args and isinstance(call.args[0].type, TensorType):
                root = self._root(call.args[0])
                if root in self._stored:
                    self._edge(self._stored[root], i)
                self._loaded.setdefault(root, []).append(i)

    def _root(self, tensor: e.Expr) -> e.Var:
        while isinstance(tensor, e.Var) and tensor in self._earlier:
            tensor = self._earlier[tensor]
        assert isinstance(tensor, e.Var)
        return tensor

    def _stage(self, stmt: s.Stmt, uses: set[e.Var]) -> int:
        """The copy a statement belongs to: what its mark says, else that of what it reads."""
        for inner in walk_stmts(stmt):
            call = op_call(inner)
            stage = None if call is None else dict(memberships(call)).get(self._group)
            if stage is not None:
                return stage
        return max((self.items[self._definer[v]].stage for v in uses if v in self._definer), default=0)

    def order(self, key: Callable[[_Item], Key]) -> list[s.Stmt]:
        """The statements, the ready one with the smallest key first."""
        ready = [(key(x), x.position) for x in self.items if x.waits == 0]
        heapq.heapify(ready)
        made: list[s.Stmt] = []
        while ready:
            _, position = heapq.heappop(ready)
            item = self.items[position]
            made.append(item.stmt)
            for after in item.after:
                self.items[after].waits -= 1
                if self.items[after].waits == 0:
                    heapq.heappush(ready, (key(self.items[after]), after))
        return made


def _uses_pipe(stmt: s.Stmt) -> bool:
    return any(op_name(x) in _PIPE for x in walk_stmts(stmt))


def _is_wall(stmt: s.Stmt) -> bool:
    """True for a statement that nothing may cross: barriers and calls for their effect."""
    if isinstance(stmt, s.EvalStmt):
        return op_name(stmt) not in _PIPE
    return not isinstance(stmt, (s.AssignStmt, s.IfStmt, s.ForStmt, s.WhileStmt))


def copy_by_copy(item: _Item) -> Key:
    """Scalars, loads, then compute and stores of copy 0, of copy 1, ..."""
    if item.kind != WORK:
        return (item.kind, item.position)
    return (WORK, item.stage, item.position)


def stores_last(item: _Item) -> Key:
    """The same with the compute of a copy before its stores."""
    if item.kind != WORK:
        return (item.kind, item.position)
    return (WORK, item.stage, int(is_store(item.stmt)), item.position)


def in_pairs(item: _Item) -> Key:
    """Two products, then their two stores: the accumulator of one is written while the other is stored."""
    if item.kind != WORK:
        return (item.kind, item.position)
    return (WORK, item.stage // 2, int(is_store(item.stmt)), item.stage, item.position)
