"""Global memory that one vector lane stores and the other lane touches: nothing makes the lanes wait for each other.

The lanes of a split kernel run side by side. A window that one lane stores and that shares cells with one that the
other lane loads or stores gives different numbers from run to run, unless tiles of both lanes met on the cube core in
between. Windows whose offsets are known, or differ by a known number, are compared here; what only running tells is
left to the race sanitizer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...ir import expr as e
from ...ir import stmt as s
from ...ir.enums import MemorySpace
from ...ir.types import TensorType, TileType
from ..device_ir import kernel_error, nested_bodies, op_call, tile_of
from ..mixed.binding import Versions, tensor_versions
from ..mixed.windows import Window, Windows, meet

_LANES = (0, 1)
_GATHER, _SHARD = "tile.aic_gather", "tile.aiv_shard"
Arms = tuple[tuple[int, int], ...]
"""The branches an access stands in: `id()` of the if, number of its arm."""


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or store of the vector core: the windows of lane 0 and lane 1, and how often the lanes met before."""

    root: e.Var
    write: bool
    windows: tuple[Window, Window]
    call: e.Call
    stmt: s.Stmt
    arms: Arms
    meetings: int

    @property
    def by_lane(self) -> bool:
        """Whether the lanes touch different cells; equal cells get equal values from both."""
        return self.windows[0] != self.windows[1]


class _Reader:
    """Collects the accesses of a lane's body in program order."""

    def __init__(self, body: s.Stmt) -> None:
        self.windows = Windows(body)
        self.earlier: Versions = tensor_versions(body)
        self.gathered = False
        self.meetings = 0

    def read(self, body: s.Stmt, arms: Arms = ()) -> Iterator[_Access]:
        """The accesses of a body. Tiles of both lanes that go to the cube core and come back are a meeting."""
        for stmt in s.stmts_of(body):
            for arm, inner in enumerate(nested_bodies(stmt)):
                yield from self.read(inner, (*arms, (id(stmt), arm)) if isinstance(stmt, s.IfStmt) else arms)
            call = op_call(stmt)
            if call is None:
                continue
            self.gathered |= call.op.name == _GATHER
            if call.op.name == _SHARD and self.gathered:
                self.gathered, self.meetings = False, self.meetings + 1
            yield from self._access(stmt, call, arms)

    def _access(self, stmt: s.Stmt, call: e.Call, arms: Arms) -> Iterator[_Access]:
        if call.op.name == "tile.load" and _on_vector(call.type):
            valid = call.args[3] if len(call.args) > 3 else call.args[2]
            tensor, offsets, extents = call.args[0], call.args[1], valid
            size = extents.elements if isinstance(extents, e.MakeTuple) else ()
        elif call.op.name == "tile.store" and (tile := tile_of(call.args[0])) is not None and _on_vector(tile):
            tensor, offsets, size = call.args[2], call.args[1], tile.valid_shape
        else:
            return
        root = self._root(tensor)
        if root is not None and isinstance(offsets, e.MakeTuple) and len(offsets.elements) == len(size):
            first, second = (self.windows.of_lane(offsets, size, lane) for lane in _LANES)
            write = call.op.name == "tile.store"
            yield _Access(root, write, (first, second), call, stmt, arms, self.meetings)

    def _root(self, tensor: e.Expr) -> e.Var | None:
        while isinstance(tensor, e.Var) and tensor in self.earlier:
            tensor = self.earlier[tensor]
        return tensor if isinstance(tensor, e.Var) and isinstance(tensor.type, TensorType) else None


def _on_vector(type_: object) -> bool:
    return isinstance(type_, TileType) and type_.memory_space in (None, MemorySpace.Vec)


def _exclusive(a: Arms, b: Arms) -> bool:
    """Whether the two stand in different arms of one if."""
    other = dict(b)
    return any(other.get(where, arm) != arm for where, arm in a)


def refuse_meeting_lanes(body: s.Stmt) -> None:
    """Check that no lane touches what the other one stores.

    Args:
        body: of a kernel, as each lane runs it; it begins with the binding of the lane's number.

    Raises:
        KernelError: at the later of the two accesses, with both windows.
    """
    found: list[_Access] = []
    for now in _Reader(body).read(body):
        for before in found:
            if before.root is not now.root or before.meetings != now.meetings or _exclusive(before.arms, now.arms):
                continue
            if (before.write and before.by_lane) or (now.write and now.by_lane):
                _check(before, now)
        found.append(now)


def _check(before: _Access, now: _Access) -> None:
    for lane in _LANES:
        if not meet(before.windows[lane], now.windows[1 - lane]):
            continue
        did = "stored" if before.write else "loaded"
        does = "stores" if now.write else "loads"
        span = now.call.span if now.call.span.is_valid() else now.stmt.span
        raise kernel_error(
            f"vector lane {1 - lane} {does} a part of '{now.root.name_hint}' that lane {lane} {did} before, and the "
            "lanes of a split kernel do not wait for each other; touch the same rows and columns in both places, "
            "put one of them into a scope of its own, or take the split off this scope",
            span,
        )
