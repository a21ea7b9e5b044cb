"""Loop-carried tiles: every iteration's value is written straight into the carry's buffer."""

from __future__ import annotations

from collections import defaultdict

from ...backend.handler import Handler
from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.visitor import find_yield_stmt
from ..device_ir import nested_bodies
from .attach import memref_of
from .flow import Place
from .liveness import Buffer, Liveness
from .rebase import Rebase, zero_offset


class Retarget:
    """Lets the producer of a yielded value write into the carry's buffer, where nothing in between reads it.

    With `branches` also for the values that branches yield in a memory of the cube core, which cannot be copied there.
    """

    def __init__(self, body: s.Stmt, handler: Handler, branches: bool = False) -> None:
        self._branches = branches
        self.live = Liveness(body, handler)
        self.flow = self.live.flow
        self._into: dict[e.Var, e.Var] = {}
        self._members: dict[e.Var, list[e.Var]] = defaultdict(list)
        for var in self.flow.defs:
            buffer = self.live.buffer_of(var)
            if buffer is not None:
                self._members[buffer.base].append(var)
        self._loops(body)

    def find(self, base: e.Var) -> e.Var:
        """The buffer that `base` was merged into; itself when it was not."""
        while base in self._into:
            base = self._into[base]
        return base

    def apply(self, body: s.Stmt) -> s.Stmt:
        """The body with retargeted tiles in their new buffers."""
        if not self._into:
            return body
        homes = {base: self._home_memref(base) for base in set(map(self.find, self._into))}

        def choose(var: e.Var, memref: e.MemRef) -> e.MemRef:
            target = self.find(memref.base_)
            if target is memref.base_:
                return memref
            if zero_offset(memref):
                return homes[target]
            return e.MemRef(target, memref.byte_offset_, memref.size_, memref.span)

        return Rebase(choose).visit_stmt(body)

    def _home_memref(self, base: e.Var) -> e.MemRef:
        """The MemRef of what was in the buffer first."""
        for var in self._members[base]:
            memref = memref_of(var)
            if memref is not None and memref.base_ is base and zero_offset(memref):
                return memref
        return e.MemRef(base, 0, self.live.buffers[base].size)

    def _loops(self, body: s.Stmt) -> None:
        for stmt in s.stmts_of(body):
            for inner in nested_bodies(stmt):
                self._loops(inner)
            if isinstance(stmt, (s.ForStmt, s.WhileStmt)):
                last = find_yield_stmt(stmt.body)
                for arg, value in zip(stmt.iter_args, last.value if last is not None else (), strict=False):
                    buffer = self.live.buffer_of(arg)
                    if buffer is not None:
                        self._push(value, buffer.base, self.flow.loop_places[id(stmt)][0])
            elif isinstance(stmt, s.IfStmt) and self._branches:
                self._if(stmt)

    def _if(self, stmt: s.IfStmt) -> None:
        for result in stmt.return_vars:
            target = self.live.buffer_of(result)
            if target is None or target.space is MemorySpace.Vec:
                continue
            for value in self.flow.merged.get(result, ()):
                buffer = self.live.buffer_of(value)
                if buffer is not None:
                    self._merge(self.find(buffer.base), self.find(target.base), None)

    def _push(self, value: e.Expr, target: e.Var, loop: int) -> None:
        if not isinstance(value, e.Var):
            return
        if value in self.flow.merged:
            for branch in self.flow.merged[value]:
                self._push(branch, target, loop)
            return
        buffer = self.live.buffer_of(value)
        if buffer is not None:
            self._merge(self.find(buffer.base), self.find(target), loop)

    def _merge(self, source: e.Var, target: e.Var, loop: int | None) -> None:
        if source is target:
            return
        a, b = self.live.buffers[source], self.live.buffers[target]
        if a.pinned or b.pinned or a.space is not b.space or a.size > b.size or self._apart(a, b):
            return
        mine = self._members[source]
        if loop is not None and any(loop not in self.flow.defs[v].loops for v in mine):
            return
        theirs = self._members[target]
        if self._clobbers(mine, theirs) or self._clobbers(theirs, mine):
            return
        self._into[source] = target
        self._members[target] = [*theirs, *mine]
        b.apart |= a.apart

    def _apart(self, a: Buffer, b: Buffer) -> bool:
        return any(self.find(x) is b.base for x in a.apart) or any(self.find(x) is a.base for x in b.apart)

    def _clobbers(self, writers: list[e.Var], readers: list[e.Var]) -> bool:
        """True when some tile of `writers` is written while one of `readers` is still needed."""
        flow = self.flow
        for writer in writers:
            if writer not in flow.assigned and writer not in flow.merged:
                continue
            at = flow.defs[writer]
            if any(self._needed_at(reader, at) for reader in readers):
                return True
        return False

    def _needed_at(self, var: e.Var, at: Place) -> bool:
        start = self.flow.defs[var]
        if start.number >= at.number and not isinstance(var, e.IterArg):
            return False
        return any(self.flow.extent(var, u) > at.number and not u.excludes(at) for u in self.flow.uses.get(var, ()))
