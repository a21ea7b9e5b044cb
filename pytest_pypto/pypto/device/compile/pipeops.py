"""Pipe operations and barriers over all blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..findings import FindingKind
from ..machine.bind import Part
from ..machine.tiles import Tile
from ..measure.cost import Cost
from ..mixed.pipes import Message, Ring, fill, joined, lane_part
from ..text.nodes import Op
from ..text.types import TileT, itemsize
from .handles import Retagger, Teller, base_tile, put, teller, tile_type
from .values import Scalar, TileValue

if TYPE_CHECKING:
    from .builder import Builder


def _buffer(k: Builder, op: Op) -> None:
    value = int(k.scan.consts[op.results[0]])
    k.define(op, op.results[0], Scalar(repr(value), op.out_types[0], value))
    if op.name == "pto.reserve_buffer":
        space, base, size, _ = k.scan.reserved[op.results[0]]
        if k.memory.space(space) is None:
            k.fail(op, f"a {k.func.kind} kernel has no memory {space!r}")
        limit = k.memory.platform.capacity.get(space, 0)
        k.use(space, base + size)
        if base < 0 or base + size > limit:
            k.report(
                op,
                FindingKind.OUT_OF_BOUNDS,
                f"the buffer takes bytes {base}..{base + size - 1} of {space}, which has {limit}",
                space=space,
                addresses=((base, base + size),),
            )


def _ring_name(pipe: int, way: str) -> str:
    return f"ring_{way}_{pipe}"


def _init(k: Builder, op: Op) -> None:
    decl = k.scan.pipes[int(op.attrs.get("id", 0))]
    if decl.slots < 1 or decl.local < 1 or decl.slot_size < 1:
        k.fail(op, f"pipe {decl.id} has {decl.slots} slot(s) of {decl.slot_size} bytes; both must be positive")
    if not decl.dirs:
        k.fail(op, f"dir_mask = {op.attrs['dir_mask']} names no direction; 1 is cube to vector, 2 back, 3 both")
    for (name,) in op.groups.values():
        k.lookup(op, name)
    if all(op is not top for top in k.func.body.ops):
        k.fail(op, f"pipe {decl.id} is initialised inside a loop or branch; it must be ready for the whole kernel")
    k.ready_pipes.add(decl.id)
    for way in decl.dirs:
        k.emit.line(f"{_ring_name(decl.id, way)} = ag.rings[({decl.id}, '{way}')]")
        if (way == "c2v") == (k.func.kind == "vector"):
            _check_reserved(k, op, decl, way)


def _check_reserved(k: Builder, op: Op, decl: Any, way: str) -> None:
    """The consumer's slots must fit the reserved buffer."""
    needed = decl.local * decl.slot_size
    for space, base, size, line in k.scan.reserved.values():
        if base == decl.bases[way] and space == ("vec" if way == "c2v" else "mat") and needed > size:
            k.report(
                op,
                FindingKind.OUT_OF_BOUNDS,
                f"{decl.local} slot(s) of {decl.slot_size} bytes do not fit the {size} bytes reserved in line {line}",
                space=space,
                addresses=((base + size, base + needed),),
            )


def _ring(k: Builder, op: Op, way: str) -> tuple[Any, str]:
    pipe = int(op.attrs.get("id", 0))
    decl = k.scan.pipes.get(pipe)
    if decl is None or way not in decl.dirs:
        known = ", ".join(f"{d.id} ({'/'.join(d.dirs)})" for d in k.scan.pipes.values()) or "none"
        k.fail(op, f"pipe {pipe} is not initialised for {way} in this kernel; initialised: {known}")
    if pipe not in k.ready_pipes:
        k.fail(op, f"pipe {pipe} is initialised further down only (line {decl.line})")
    return decl, _ring_name(pipe, way)


def _wait(k: Builder, ring: str, site: int, verb: str) -> None:
    """Emit the point where an agent may have to wait."""
    k.emit.line("if ag.restless: yield")
    k.emit.line(f"if not {ring}.can_{verb}(ag.lane):")
    with k.emit.indented():
        k.emit.line(f"ag.wait = ({site}, {ring}, '{verb}')")
        k.emit.line("yield")
        k.emit.line("ag.wait = None")


class Pusher:
    """`tpush`: copies the valid box into a message."""

    def __init__(self, k: Builder, op: Op, site: int, decl: Any) -> None:
        self.shadow, self.site, self.place = k.shadow, site, k.place
        self.split, self.decl, self.tell = int(op.attrs["split"]), decl, teller(k, op)
        self.known: dict[Tile, Any] = {}

    def __call__(self, ag: Any, cells: Any, ring: Ring, tile: Tile) -> None:
        holes = None
        if cells is not None and tile.vr and tile.vc:
            move = self.known.get(tile)
            if move is None:
                parts = [Part(tile, tile.vr, tile.vc)]
                assert self.shadow is not None
                move = self.known[tile] = self.shadow.transition(self.site, reads=parts, message=True)
            found = move.apply(cells, ag)
            holes = None if found is False else found
        if tile.type.nbytes > self.decl.slot_size:
            self.tell(
                ag,
                FindingKind.OUT_OF_BOUNDS,
                f"a tile of {tile.type.nbytes} bytes does not fit a slot of {self.decl.slot_size}",
            )
        data = np.array(tile.reader(tile.vr, tile.vc)()) if tile.vr and tile.vc else np.zeros((0, 0), tile.dtype)
        ring.push(ag, Message(data, tile.type.rows, tile.type.cols, self.split, holes, (ag, self.site), None))
        ag.moved(self.site, data.size)


def _push(k: Builder, op: Op) -> None:
    way = "c2v" if op.name.endswith("aiv") else "v2c"
    if (way == "c2v") != (k.func.kind == "cube"):
        k.fail(op, f"a {k.func.kind} kernel cannot push in this direction")
    tile = k.tile(op, op.ins[0], op.types[0])
    decl, ring = _ring(k, op, way)
    info = k.site(op, "pipe")
    info.reads = ((tile.type.space, itemsize(tile.type.dtype)),)
    _wait(k, ring, info.id, "push")
    source = tile.code or k.emit.bind("T", tile.tile)
    cells = "cells" if k.shadow is not None else "None"
    k.emit.line(f"{k.emit.bind('push', Pusher(k, op, info.id, decl))}(ag, {cells}, {ring}, {source})")


class Popper:
    """`tpop`: puts the next message into its slot and gives the tile there."""

    def __init__(self, k: Builder, op: Op, site: int, slots: list[Tile], way: str) -> None:
        self.shadow, self.site, self.place, self.way = k.shadow, site, k.place, way
        self.split, self.slots, self.tell = int(op.attrs["split"]), slots, teller(k, op)
        stride = op.attrs.get("lane_stride")
        self.stride = None if stride is None else int(stride)
        self.retag = Retagger(self.tell)
        self.known: dict[Any, Any] = {}

    def __call__(self, ag: Any, cells: Any, ring: Ring, vr: int, vc: int) -> Tile:
        number, messages = ring.pop(ag)
        tile = self.retag(ag, self.slots[number % len(self.slots)], vr, vc)
        if self.split and max(ring.producers, ring.consumers) < 2:
            self._tell_lane(
                ag, messages[0], f"split = {self.split} divides a tile between two lanes, but one lane runs"
            )
        for m in messages:
            self._check(ag, m, tile)
        if self.way == "c2v":
            data, holes = lane_part(messages[0], tile, ag.lane, self.split, self.stride)
        else:
            data, holes = joined(messages, tile, self.split, self.stride)
        missing = fill(tile, data, holes)
        if cells is not None and tile.vr and tile.vc:
            self._note(ag, cells, tile, missing)
        ag.moved(self.site, tile.vr * tile.vc)
        return tile

    def _check(self, ag: Any, m: Message, tile: Tile) -> None:
        if m.split != self.split:
            self._tell_lane(ag, m, f"pops with split = {self.split} what was pushed with split = {m.split}")
        down = self.split in (1, 3)
        if self.way == "c2v":
            rows, cols = m.rows, m.cols
            fits = [rows <= tile.type.rows, cols <= tile.type.cols]
            if self.split:
                fits[0 if down else 1] = (rows if down else cols) <= 2 * (tile.type.rows if down else tile.type.cols)
        else:
            fits = [m.rows <= tile.type.rows, m.cols <= tile.type.cols]
        if not all(fits) or m.data.dtype != tile.dtype:
            self._tell_lane(
                ag,
                m,
                f"pops a tile of {tile.type.rows}x{tile.type.cols} {tile.type.dtype} (split {self.split}), but "
                f"{m.rows}x{m.cols} elements of type {m.data.dtype.name} were pushed",
            )

    def _tell_lane(self, ag: Any, m: Message, message: str) -> None:
        from ..findings import Finding

        sender, site = m.site
        ag.report(Finding(FindingKind.WRONG_LANE, "error", message, self.place(self.site, ag), sender.place(site)))

    def _note(self, ag: Any, cells: Any, tile: Tile, missing: Any) -> None:
        key = (tile, None if missing is None else missing.tobytes())
        move = self.known.get(key)
        if move is None:
            parts = [Part(tile, tile.vr, tile.vc)]
            assert self.shadow is not None
            move = self.shadow.transition(self.site, writes=parts, holes=missing, exempt=True)
            self.known[key] = move
        move.apply(cells, ag)


def _pop(k: Builder, op: Op) -> None:
    way = "c2v" if op.name.endswith("aic") else "v2c"
    if (way == "c2v") != (k.func.kind == "vector"):
        k.fail(op, f"a {k.func.kind} kernel cannot pop in this direction")
    typ = tile_type(k, op)
    decl, ring = _ring(k, op, way)
    if typ.loc != ("vec" if way == "c2v" else "mat"):
        k.fail(op, f"a pop gives a tile in {'vec' if way == 'c2v' else 'mat'}, not in {typ.loc}")
    slots = [base_tile(k, op, typ, decl.bases[way] + i * decl.slot_size, typ.rows, typ.cols) for i in range(decl.local)]
    info = k.site(op, "pipe")
    info.writes = ((typ.space, itemsize(typ.dtype)),)
    valid = k.wholes(op, "valid")
    codes = [v.code for v in valid] or [str(typ.rows), str(typ.cols)]
    _wait(k, ring, info.id, "pop")
    cells = "cells" if k.shadow is not None else "None"
    call = k.emit.bind("pop", Popper(k, op, info.id, slots, way))
    put(k, op, TileValue(typ, None, f"{call}(ag, {cells}, {ring}, {', '.join(codes)})"), None)


def _free(k: Builder, op: Op) -> None:
    way = "c2v" if op.name.endswith("aic") else "v2c"
    if (way == "c2v") != (k.func.kind == "vector"):
        k.fail(op, f"a {k.func.kind} kernel cannot free in this direction")
    _, ring = _ring(k, op, way)
    tell: Teller = teller(k, op)
    k.emit.line(f"{ring}.free(ag, {k.emit.bind('tell', tell)})")


def _syncall(k: Builder, op: Op) -> None:
    kind = str(op.attrs["core_type"])
    if kind not in ("mix", "aiv_only", "aic_only"):
        k.fail(op, f"unknown core_type {kind!r}; known are mix, aiv_only, aic_only")
    info = k.site(op, "scalar", Cost("scalar"))
    k.emit.line("if ag.restless: yield")
    token = k.emit.name("y")
    k.emit.line(f"{token} = ag.barrier.arrive(ag, '{kind}')")
    k.emit.line(f"if not ag.barrier.passed({token}):")
    with k.emit.indented():
        k.emit.line(f"ag.wait = ({info.id}, {token}, 'syncall')")
        k.emit.line("yield")
        k.emit.line("ag.wait = None")
    k.emit.line(f"ag.barrier.leave(ag, {token})")


HANDLERS = {
    "pto.reserve_buffer": _buffer,
    "pto.import_reserved_buffer": _buffer,
    **dict.fromkeys(["pto.aic_initialize_pipe", "pto.aiv_initialize_pipe"], _init),
    **dict.fromkeys(["pto.tpush_to_aiv", "pto.tpush_to_aic"], _push),
    **dict.fromkeys(["pto.tpop_from_aic", "pto.tpop_from_aiv"], _pop),
    **dict.fromkeys(["pto.tfree_from_aic", "pto.tfree_from_aiv"], _free),
    "pto.syncall": _syncall,
}
__all__ = ["HANDLERS", "TileT"]
